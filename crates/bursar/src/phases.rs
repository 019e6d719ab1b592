//! When memory need not be tracked.

use curve::Seen;
use curve::intermittent::{self, Intermittent};
use model::PagesRound;
use track::pages::Pages;

/// Switches tracking off while the working set stays what it is, and on again when the signals change.
pub struct Phases {
    /// Begins with the first round: it tells how many signals there are.
    tracking: Option<Intermittent>,
    /// Never off.
    pub always: bool,
}

impl Phases {
    /// Of a program of which nothing is known.
    pub fn new(always: bool) -> Phases {
        Phases { tracking: None, always }
    }

    /// Takes in a round, which tells the working set of the last ones together from now on; tracking is on or off for the next.
    pub fn round(&mut self, pages: &Pages, mut round: PagesRound) -> PagesRound {
        let signals: Vec<f64> = round.signals.iter().map(|signal| signal.value).collect();
        let units = round.signals.iter().map(|signal| signal.unit);
        let tracking = self.tracking.get_or_insert_with(|| Intermittent::new(intermittent::Settings::default(), units));
        if round.tracking && round.wss_bytes.is_none() {
            // Too little was seen since tracking is on again: the last working set stands.
            round.wss_bytes = Some(tracking.wss()).filter(|wss| *wss > 0);
            return round;
        }
        let seen = round.tracking.then(|| Seen::from(&round));
        round.new_phase = tracking.interval(seen, &signals);
        round.wss_bytes = round.wss_bytes.map(|_| tracking.wss());
        pages.track(self.always || tracking.is_on());
        round
    }
}

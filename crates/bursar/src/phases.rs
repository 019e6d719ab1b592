//! When memory need not be tracked.

use curve::Seen;
use curve::intermittent::{self, Intermittent};
use linux::procfs;
use model::{PagesRound, TOLERATED_MISSES};
use track::pages::Pages;

/// Switches tracking off while the working set stays what it is, and on again when the signals change.
pub struct Phases {
    /// Begins with the first round: it tells how many signals there are.
    tracking: Option<Intermittent>,
    /// Never off.
    pub always: bool,
    /// Most that was accessed in a tracked round, and the largest working set, in bytes.
    most_touched: u64,
    peak: u64,
}

impl Phases {
    /// Of a program of which nothing is known.
    pub fn new(always: bool) -> Phases {
        Phases { tracking: None, always, most_touched: 0, peak: 0 }
    }

    /// Takes in a round, which tells the working set of the last ones together from now on; tracking is on or off for the next.
    pub fn round(&mut self, pages: &Pages, mut round: PagesRound) -> PagesRound {
        let signals: Vec<f64> = round.signals.iter().map(|signal| signal.value).collect();
        let units = round.signals.iter().map(|signal| signal.unit);
        let tracking = self.tracking.get_or_insert_with(|| Intermittent::new(intermittent::Settings::default(), units));
        if round.tracking && round.wss_bytes.is_none() {
            // Too little was seen since tracking is on again: the last working set stands, unless it is refuted.
            let unexplained = tracking.unexplained();
            round.wss_bytes = Some(tracking.wss()).filter(|wss| *wss > 0 && unexplained.is_none());
            round.accessed_at_least = unexplained.or(round.accessed_at_least.filter(|_| round.wss_bytes.is_none()));
            return round;
        }
        let seen = round.tracking.then(|| Seen::from(&round));
        if let Some(again) = round.accessed_at_least.take().filter(|_| !round.tracking) {
            tracking.accessed_untracked(again, round.seconds);
        }
        round.new_phase = tracking.interval(seen, &signals);
        round.wss_bytes = round.wss_bytes.map(|_| tracking.wss());
        pages.track(self.always || tracking.is_on());
        let unexplained = tracking.unexplained();
        let unknown = unexplained.or_else(|| self.nothing_again(&round));
        (round.wss_bytes, round.accessed_at_least) = (round.wss_bytes.filter(|_| unknown.is_none()), unknown);
        self.peak = self.peak.max(round.wss_bytes.unwrap_or(0));
        round
    }

    /// What was accessed so far, if nothing was accessed again and that says nothing of what is needed: nothing ever was, or much was
    /// accessed for the first time in this round.
    fn nothing_again(&mut self, round: &PagesRound) -> Option<u64> {
        self.most_touched = self.most_touched.max(round.touched_bytes);
        let tolerated = TOLERATED_MISSES * round.seconds * procfs::page_bytes() as f64;
        let says_nothing = self.peak == 0 || round.touched_bytes as f64 > tolerated;
        (round.wss_bytes == Some(0) && says_nothing).then_some(self.most_touched)
    }
}

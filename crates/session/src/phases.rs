//! When memory need not be tracked.

use curve::intermittent::{self, Intermittent};
use curve::{AfterPause, Fresh, Seen};
use linux::procfs;
use model::{PagesRound, TOLERATED_MISSES};
use track::pages::Pages;

/// Switches tracking off while the working set stays what it is, and on again when the signals change.
pub struct Phases {
    /// Begins with the first round: it tells how many signals there are.
    tracking: Option<Intermittent>,
    /// Never off.
    pub always: bool,
    fresh: Fresh,
    /// Nothing was accessed again yet, in any round.
    is_first_pass: bool,
    /// Of the rounds since memory was tracked last, in seconds.
    untracked_seconds: f64,
    after_pause: Option<AfterPause>,
}

impl Phases {
    /// Of a program of which nothing is known.
    pub fn new(always: bool) -> Phases {
        Phases {
            tracking: None,
            always,
            fresh: Fresh::default(),
            is_first_pass: true,
            untracked_seconds: 0.0,
            after_pause: None,
        }
    }

    /// What is told is certain: less than before only some time after a pause of tracking, and nothing of the round that ends the first
    /// pass. Who acts on it has its own caution.
    pub fn certain(self) -> Phases {
        Phases { after_pause: Some(AfterPause::default()), ..self }
    }

    /// Takes in a round, which tells the working set of the last ones together from now on; tracking is on or off for the next.
    pub fn round(&mut self, pages: &Pages, mut round: PagesRound) -> PagesRound {
        let signals: Vec<f64> = round.signals.iter().map(|signal| signal.value).collect();
        let units = round.signals.iter().map(|signal| signal.unit);
        let tracking = self.tracking.get_or_insert_with(|| Intermittent::new(intermittent::Settings::default(), units));
        let page_bytes = procfs::page_bytes();
        match round.tracking {
            true => self.fresh.add((round.first_touches_per_second * round.seconds) as u64 * page_bytes),
            false => self.untracked_seconds += round.seconds,
        }
        if round.tracking && round.wss_bytes.is_none() {
            // Too little was seen since tracking is on again: the last working set stands, unless it is refuted.
            let unexplained = tracking.unexplained();
            round.wss_bytes = Some(tracking.wss()).filter(|wss| *wss > 0 && unexplained.is_none());
            round.accessed_at_least = unexplained.or(round.accessed_at_least.filter(|_| round.wss_bytes.is_none()));
            return round;
        }
        // In a tracked round: before it, while memory was not tracked, or for the first time since tracking began.
        let again = round.accessed_at_least.take();
        let seen = round.tracking.then(|| Seen::from(&round));
        if let (None, Some(again)) = (&seen, again) {
            tracking.accessed_untracked(again, round.seconds);
        }
        round.new_phase = tracking.interval(seen, &signals);
        let untracked_seconds = self.untracked_seconds;
        if round.tracking {
            let seconds = std::mem::take(&mut self.untracked_seconds);
            again.iter().for_each(|again| tracking.accessed_untracked(*again, seconds));
        }
        round.wss_bytes = round.wss_bytes.map(|_| tracking.wss());
        let mut holds = false;
        if let (true, Some(after_pause), Some(wss)) = (round.tracking, &mut self.after_pause, &mut round.wss_bytes) {
            (*wss, holds) = after_pause.interval(*wss, untracked_seconds > 0.0);
        }
        let there = round.seen_bytes();
        let tolerated = (TOLERATED_MISSES * round.seconds) as u64 * page_bytes;
        let fresh = round.wss_bytes.and_then(|wss| self.fresh.beyond(wss, there, tolerated));
        // The first pass ends with the first round in which memory was accessed again. A burst that has just begun may do that, too, so
        // this round tells only those who need the figure at once.
        let was_first_pass = self.is_first_pass;
        self.is_first_pass &= round.wss_bytes.unwrap_or(0) == 0;
        let is_first_pass = self.is_first_pass || was_first_pass && self.after_pause.is_some();
        let first = round.wss_bytes.filter(|_| is_first_pass).map(|_| self.fresh.recent(there));
        let unknown = tracking.unexplained().max(fresh).max(first);
        pages.track(self.always || tracking.is_on() || unknown.is_some() || holds);
        (round.wss_bytes, round.accessed_at_least) = (round.wss_bytes.filter(|_| unknown.is_none()), unknown);
        round
    }
}

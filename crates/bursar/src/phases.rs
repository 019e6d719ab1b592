//! When memory need not be tracked.

use curve::intermittent::{self, Intermittent};
use curve::{Fresh, Seen};
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

/// A pause of tracking ends while memory is accessed, and what was accessed before its end is missing. Less than was told before the pause
/// is not told until as many tracked rounds as working sets are told of have seen no more.
#[derive(Default)]
struct AfterPause {
    told: u64,
    before: u64,
    rounds_left: u32,
}

impl AfterPause {
    const ROUNDS: u32 = 8;
    /// By so much a working set that has not changed may vary.
    const SAME: f64 = 0.05;

    /// Of a tracked round that needs so many bytes, the first after a pause or not: what to tell, and whether that is still of before.
    fn round(&mut self, wss: u64, is_first: bool) -> (u64, bool) {
        if is_first {
            (self.before, self.rounds_left) = (self.told, AfterPause::ROUNDS);
        }
        let is_less = (wss as f64) < (1.0 - AfterPause::SAME) * self.before as f64;
        self.rounds_left = if is_less { self.rounds_left.saturating_sub(1) } else { 0 };
        let holds = self.rounds_left > 0;
        self.told = if holds { self.before } else { wss };
        (self.told, holds)
    }
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

    /// After a pause of tracking less than before is told late, when it is certain. Who acts on it has its own caution.
    pub fn certain_after_pauses(self) -> Phases {
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
        // In a tracked round: before it, while memory was not tracked.
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
            (*wss, holds) = after_pause.round(*wss, untracked_seconds > 0.0);
        }
        let there = round.seen_bytes();
        let tolerated = (TOLERATED_MISSES * round.seconds) as u64 * page_bytes;
        let fresh = round.wss_bytes.and_then(|wss| self.fresh.beyond(wss, there, tolerated));
        self.is_first_pass &= round.wss_bytes.unwrap_or(0) == 0;
        let first = round.wss_bytes.filter(|_| self.is_first_pass).map(|_| self.fresh.recent(there));
        let unknown = tracking.unexplained().max(fresh).max(first);
        pages.track(self.always || tracking.is_on() || unknown.is_some() || holds);
        (round.wss_bytes, round.accessed_at_least) = (round.wss_bytes.filter(|_| unknown.is_none()), unknown);
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of rounds that need so much; `None`: one without tracking.
    fn told(rounds: &[Option<u64>]) -> Vec<u64> {
        let mut after_pause = AfterPause::default();
        let mut was_paused = false;
        let tell = |need: &Option<u64>| match need {
            Some(need) => Some(after_pause.round(*need, std::mem::take(&mut was_paused)).0),
            None => {
                was_paused = true;
                None
            }
        };
        rounds.iter().filter_map(tell).collect()
    }

    #[test]
    fn a_part_that_is_seen_after_a_pause_is_not_told() {
        let part = [Some(100), None, None, Some(88), Some(90), Some(100), Some(90)];
        assert_eq!(told(&part), [100, 100, 100, 100, 90], "what was seen again may change as always");
        assert_eq!(told(&[Some(100), None, Some(98), Some(90)]), [100, 98, 90]);
    }

    #[test]
    fn less_after_a_pause_is_told_when_eight_rounds_have_seen_no_more() {
        let less: Vec<_> = [Some(100), None].into_iter().chain([Some(30); 9]).collect();
        assert_eq!(told(&less), [100, 100, 100, 100, 100, 100, 100, 100, 30, 30]);
    }

    #[test]
    fn more_after_a_pause_is_told_at_once() {
        assert_eq!(told(&[Some(100), None, Some(300), Some(100)]), [100, 300, 100]);
    }
}

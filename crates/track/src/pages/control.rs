//! How often to look, and at how many pages, so that it costs no more than allowed and shows as much as that buys.

use std::time::Duration;

/// Pages accessed between two looks are a blind part of the curve. More looks than this needs show little more, as the order
/// within a look is learnt; what they take the sample loses, and with fewer than so many pages chance rules the curve.
const LEAST_BLIND: f64 = 0.015;
const MOST_BLIND: f64 = 0.035;
const FEWEST_UNITS: usize = 512;
const MOST_UNITS: usize = 16_384;
/// Of what comes back from swap, so few tell enough: each is told of each time.
const FEWEST_RETURNED: usize = 128;
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(500);
/// Halving or doubling a cost must not overthrow the decision.
const ROOM: f64 = 0.42;

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From look to look.
    pub interval: Duration,
    /// One page of 2^level is looked at.
    pub level: u32,
}

/// What a while has shown, as shares of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Reading bits and thinking.
    pub looking: f64,
    /// Clearing bits, and what that costs the program.
    pub clearing: f64,
    /// Being told of what comes back, which follows from the level alone; part of both.
    pub returned: f64,
    /// Share of the pages, those left out that are hot, that one look found accessed.
    pub touched: f64,
    /// Pages and huge pages looked at.
    pub units: usize,
}

impl Pace {
    /// The next pace.
    pub fn after(self, spent: Spent, allowed: f64) -> Pace {
        let share = spent.looking + spent.clearing;
        let slower = Pace { interval: (self.interval * 3 / 2).min(LONGEST), ..self };
        let faster = Pace { interval: (self.interval * 2 / 3).max(SHORTEST), ..self };
        let thinner = Pace { level: self.level + 1, ..self };
        let denser = Pace { level: self.level.saturating_sub(1), ..self };
        if share > allowed {
            let is_looked_at_much = spent.units >= 2 * FEWEST_UNITS && spent.touched > LEAST_BLIND;
            let is_told_much = spent.units >= 2 * FEWEST_RETURNED && spent.returned * 2.0 > allowed;
            return if is_looked_at_much || is_told_much { thinner } else { slower };
        }
        if spent.touched > MOST_BLIND && faster != self {
            // A sample that is large enough gives way to more looks.
            return match share * 1.5 < allowed {
                true => faster,
                false if spent.units >= 2 * FEWEST_UNITS => thinner,
                false => self,
            };
        }
        if spent.touched < LEAST_BLIND && self.interval < LONGEST {
            return slower;
        }
        match share < ROOM * allowed && spent.units * 2 <= MOST_UNITS && self.level > 0 {
            true => denser,
            false => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace { interval: Duration::from_millis(10), level: 6 };

    fn spent(looking: f64, clearing: f64, touched: f64, units: usize) -> Spent {
        Spent { looking, clearing, returned: 0.0, touched, units }
    }

    #[test]
    fn what_is_too_dear_thins_a_large_sample_and_slows_a_small_or_idle_one() {
        assert_eq!(PACE.after(spent(0.01, 0.03, 0.02, 4096), 0.02).level, 7);
        assert!(PACE.after(spent(0.03, 0.0, 0.001, 4096), 0.02).interval > PACE.interval);
        assert!(PACE.after(spent(0.03, 0.03, 0.02, 512), 0.02).interval > PACE.interval);
    }

    #[test]
    fn where_much_comes_back_slower_looks_are_no_help() {
        let returned = |units| Spent { returned: 0.02, ..spent(0.015, 0.015, 0.0, units) };
        assert_eq!(PACE.after(returned(512), 0.02).level, 7);
        assert!(PACE.after(returned(128), 0.02).interval > PACE.interval);
    }

    #[test]
    fn much_touched_from_look_to_look_makes_them_faster() {
        assert!(PACE.after(spent(0.001, 0.001, 0.2, 4096), 0.02).interval < PACE.interval);
        assert_eq!(PACE.after(spent(0.018, 0.001, 0.2, 4096), 0.02).level, 7);
    }

    #[test]
    fn room_is_used_for_more_pages_but_not_beyond_the_most() {
        assert_eq!(PACE.after(spent(0.001, 0.001, 0.02, 4096), 0.02).level, 5);
        assert_eq!(PACE.after(spent(0.001, 0.001, 0.02, MOST_UNITS), 0.02), PACE);
    }

    #[test]
    fn an_idle_program_is_looked_at_rarely() {
        let mut pace = PACE;
        for _ in 0..100 {
            pace = pace.after(spent(0.0001, 0.0, 0.0, 4096), 0.02);
        }
        assert_eq!(pace.interval, LONGEST);
    }
}

//! What a curve does not say of a program that does not wait.

use model::{MissPoint, PagesRound};

/// What is accessed at every look is accessed more often than that: a program that does not wait refers to so many pages in a second of work, or more.
const UNSEEN: f64 = 200_000.0;
/// Of all misses.
const NEARLY_NOTHING: f64 = 0.25;

/// The curve of a round in which a program worked this share of the time and waited for nothing.
///
/// Of what it accesses between any two looks it is not known in which order. That is taken to be round and round, where less than all is worth
/// nothing. Where it is nearly all that is accessed, it is not known how often, either: it is taken to be so often that it is not taken from
/// who has it unless others are seen to gain much.
pub fn not_worthless(round: &PagesRound, works: f64) -> Vec<MissPoint> {
    if round.blind_below == 0 {
        return round.misses.clone();
    }
    let (all, beyond) = (round.misses_at(0), round.misses_at(round.blind_below));
    let least = if beyond < NEARLY_NOTHING * all { UNSEEN * works } else { 0.0 };
    let point = |bytes, misses_per_second| MissPoint { bytes, misses_per_second };
    let known = round.misses.iter().filter(|point| point.bytes > round.blind_below).copied();
    [point(0, all.max(least)), point(round.blind_below, beyond)].into_iter().chain(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Misses by MiB.
    fn round(blind_below: u64, misses: &[(u64, f64)]) -> PagesRound {
        let point = |(bytes, misses_per_second): &(u64, f64)| MissPoint {
            bytes: *bytes,
            misses_per_second: *misses_per_second,
        };
        PagesRound { blind_below, misses: misses.iter().map(point).collect(), ..PagesRound::default() }
    }

    fn at(curve: &[MissPoint], bytes: u64) -> f64 {
        curve[curve.partition_point(|point| point.bytes <= bytes) - 1].misses_per_second
    }

    #[test]
    fn what_is_all_accessed_at_every_look_is_worth_much_up_to_the_last_of_it() {
        let curve = not_worthless(&round(96, &[(0, 3000.0), (40, 0.0)]), 0.5);
        assert_eq!([0, 40, 95, 96, 200].map(|bytes| at(&curve, bytes)), [100_000.0, 100_000.0, 100_000.0, 0.0, 0.0]);
    }

    #[test]
    fn where_more_is_seen_beyond_no_gain_is_made_up() {
        let curve = not_worthless(&round(50, &[(0, 3000.0), (20, 2500.0), (100, 2000.0), (192, 0.0)]), 1.0);
        assert_eq!(
            [0, 20, 49, 50, 100, 191, 192].map(|bytes| at(&curve, bytes)),
            [3000.0, 3000.0, 3000.0, 2500.0, 2000.0, 2000.0, 0.0]
        );
    }

    #[test]
    fn what_is_known_stays() {
        let seen = round(0, &[(0, 3000.0), (40, 7.0)]);
        assert_eq!(not_worthless(&seen, 1.0), seen.misses);
    }
}

//! What a curve does not say of a program that does not wait.

use model::PagesRound;

/// What is accessed at every look is accessed more often than that: a program that does not wait refers to so many pages in a second of work, or more.
const UNSEEN: f64 = 200_000.0;
/// Of all misses.
const NEARLY_NOTHING: f64 = 0.25;

/// What is taken for a part of a curve that a round has not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Guess {
    /// So much is accessed between two looks: of smaller sizes the curve tells the least that may be so.
    pub below: u64,
    /// Misses at those sizes, if the curve has not more.
    pub misses_per_second: f64,
}

impl Guess {
    /// For a round in which a program worked this share of the time and waited for nothing.
    ///
    /// Of what it accesses between any two looks it is not known in which order. That is taken to be round and round, where less than all is
    /// worth nothing. Where it is nearly all that is accessed, it is not known how often, either: it is taken to be so often that it is not
    /// taken from who has it unless others are seen to gain much.
    pub fn of(round: &PagesRound, works: f64) -> Guess {
        let below = round.blind_below;
        if below == 0 {
            return Guess::default();
        }
        let (all, beyond) = (round.misses_at(0), round.misses_at(below));
        let least = if beyond < NEARLY_NOTHING * all { UNSEEN * works } else { 0.0 };
        Guess { below, misses_per_second: all.max(least) }
    }
}

#[cfg(test)]
mod tests {
    use model::MissPoint;

    use super::*;

    /// Misses by MiB.
    fn round(blind_below: u64, misses: &[(u64, f64)]) -> PagesRound {
        let point = |(bytes, misses_per_second): &(u64, f64)| MissPoint {
            bytes: *bytes,
            misses_per_second: *misses_per_second,
        };
        PagesRound { blind_below, misses: misses.iter().map(point).collect(), ..PagesRound::default() }
    }

    #[test]
    fn what_is_all_accessed_at_every_look_is_worth_much_up_to_the_last_of_it() {
        let guess = Guess::of(&round(96, &[(0, 3000.0), (40, 0.0)]), 0.5);
        assert_eq!(guess, Guess { below: 96, misses_per_second: 100_000.0 });
    }

    #[test]
    fn where_more_is_seen_beyond_no_gain_is_made_up() {
        let guess = Guess::of(&round(50, &[(0, 3000.0), (20, 2500.0), (100, 2000.0), (192, 0.0)]), 1.0);
        assert_eq!(guess, Guess { below: 50, misses_per_second: 3000.0 });
    }

    #[test]
    fn nothing_is_guessed_where_all_is_known() {
        assert_eq!(Guess::of(&round(0, &[(0, 3000.0), (40, 7.0)]), 1.0), Guess::default());
    }
}

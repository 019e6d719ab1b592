//! How often pages are accessed, from whether they were by a few moments after their bits were cleared.

use std::time::Duration;

/// Looks after a clear.
pub const LOOKS: usize = 4;
/// What was seen before counts so much less after each further clear.
const KEPT: f64 = 0.75;

/// Standard deviations: with many regions and rounds, what one of them finds by chance must not make a region hot.
const SURE: f64 = 2.0;

/// What was seen of some pages that are taken to be alike.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    pages: f64,
    /// By each look: pages found accessed by then.
    accessed: [f64; LOOKS],
    /// By each look: page-seconds since the clears.
    seconds: [f64; LOOKS],
}

impl Seen {
    /// Pages were cleared; so many of them were accessed by each look, which came so long after.
    pub fn add(&mut self, pages: u32, looks: [(u32, Duration); LOOKS]) {
        self.pages = self.pages * KEPT + f64::from(pages);
        for (look, (accessed, after)) in looks.into_iter().enumerate() {
            self.accessed[look] = self.accessed[look] * KEPT + f64::from(accessed);
            self.seconds[look] = self.seconds[look] * KEPT + f64::from(pages) * after.as_secs_f64();
        }
    }

    /// What was seen of these and of other pages.
    pub fn with(&self, other: &Seen) -> Seen {
        let sum = |one: [f64; LOOKS], other: [f64; LOOKS]| std::array::from_fn(|look| one[look] + other[look]);
        Seen {
            pages: self.pages + other.pages,
            accessed: sum(self.accessed, other.accessed),
            seconds: sum(self.seconds, other.seconds),
        }
    }

    /// Accesses per page and second, where one that follows another at once counts as one with it: -ln(1 - share) / time, by
    /// the chance that a page which is accessed at random moments was not accessed yet.
    ///
    /// Where pages differ, a late look finds those that are accessed often all accessed, and tells too little; an early one tells
    /// all, but chance rules it. So the look is believed that tells most at least, [`SURE`] below what it found; if none tells more
    /// than the last, that one, whose pages are most.
    pub fn rate(&self) -> f64 {
        let (rate, _) = self.believed();
        rate
    }

    /// The share of [`rate`](Seen::rate) that it is at least: little where it was told by a few pages, which of many regions some
    /// find accessed by chance. What was seen of its neighbours, it included, counts if they are accessed as often together.
    pub fn sure(&self, neighbours: &Seen) -> f64 {
        let (rate, at_least) = self.believed();
        let (_, neighbours_at_least) = neighbours.believed();
        if rate > 0.0 { (at_least.max(neighbours_at_least) / rate).min(1.0) } else { 1.0 }
    }

    /// The rate, and what it is at least.
    fn believed(&self) -> (f64, f64) {
        let at_least = |look: usize| {
            let found = self.accessed[look];
            let deviation = (found * (1.0 - found / self.pages).max(0.0)).sqrt();
            self.at(look, (found - SURE * deviation).max(0.0))
        };
        let told = |look: usize| self.at(look, self.accessed[look]);
        let last = (LOOKS - 1, told(LOOKS - 1));
        let (believed, _) = (0..LOOKS)
            .map(|look| (look, at_least(look)))
            .fold(last, |most, look| if look.1 > most.1 { look } else { most });
        (told(believed), at_least(believed))
    }

    /// If so many were accessed by a look.
    fn at(&self, look: usize, accessed: f64) -> f64 {
        let seconds = self.seconds[look] / self.pages;
        // Where all were accessed, half a page more was not: it is at least so much.
        let share = (accessed / (self.pages + 0.5)).clamp(0.0, 1.0);
        if seconds > 0.0 { -(1.0 - share).ln() / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: [u64; LOOKS] = [1, 4, 16, 1000];

    /// What such a rate shows of 32 pages, without chance.
    fn seen(per_second: f64) -> Seen {
        let mut seen = Seen::default();
        let looks = AFTER.map(|ms| {
            let share = 1.0 - (-per_second * ms as f64 / 1e3).exp();
            ((32.0 * share).round() as u32, Duration::from_millis(ms))
        });
        seen.add(32, looks);
        seen
    }

    #[test]
    fn rates_over_four_orders_of_magnitude_are_told_by_their_order() {
        for truth in [0.2, 0.5, 1.0, 2.0, 20.0, 100.0, 500.0, 1500.0] {
            let found = seen(truth).rate();
            assert!((truth * 0.65..truth * 1.3).contains(&found), "{truth}: {found}");
        }
    }

    #[test]
    fn a_few_pages_that_chance_finds_early_do_not_make_a_region_hot() {
        let mut seen = Seen::default();
        let looks = [(0, 1), (1, 4), (4, 16), (30, 500)].map(|(pages, ms)| (pages, Duration::from_millis(ms)));
        seen.add(32, looks);
        assert!((4.0..8.0).contains(&seen.rate()), "{}", seen.rate());
    }

    #[test]
    fn where_half_of_the_pages_are_hot_that_half_is_seen() {
        let mut seen = Seen::default();
        seen.add(
            32,
            [10, 16, 16, 16]
                .into_iter()
                .zip(AFTER)
                .map(|(pages, ms)| (pages, Duration::from_millis(ms)))
                .collect::<Vec<_>>()
                .try_into()
                .unwrap(),
        );
        assert!((150.0..500.0).contains(&seen.rate()), "{}", seen.rate());
    }

    #[test]
    fn what_is_accessed_all_the_time_is_told_to_be_accessed_at_least_thousands_of_times() {
        assert!(seen(1e6).rate() > 2000.0 && seen(1e6).rate().is_finite());
    }

    #[test]
    fn what_is_never_accessed_has_no_rate_and_nor_has_what_was_not_looked_at() {
        assert_eq!((seen(0.0).rate(), Seen::default().rate()), (0.0, 0.0));
    }

    #[test]
    fn what_few_pages_tell_is_hardly_sure_and_what_many_tell_is() {
        let sure = |pages: u32, accessed: u32| {
            let mut seen = Seen::default();
            seen.add(
                pages,
                [(0, 1), (0, 4), (0, 16), (accessed, 500)].map(|(pages, ms)| (pages, Duration::from_millis(ms))),
            );
            seen.sure(&seen)
        };
        assert!(sure(16, 3) < 0.05 && sure(16, 5) < 0.3, "{} {}", sure(16, 3), sure(16, 5));
        assert!(sure(2000, 600) > 0.9 && sure(16, 16) > 0.3 && sure(16, 0) == 1.0);
    }

    #[test]
    fn neighbours_that_are_alike_make_it_sure_and_others_do_not() {
        let seen = |pages: u32, accessed: u32| {
            let mut seen = Seen::default();
            let looks = [(0, 1), (0, 4), (accessed / 8, 16), (accessed, 500)];
            seen.add(pages, looks.map(|(pages, ms)| (pages, Duration::from_millis(ms))));
            seen
        };
        let (own, alike, colder, hotter) = (seen(8, 5), seen(64, 40), seen(64, 2), seen(64, 64));
        let alone = own.sure(&own);
        assert!(alone < 0.5 && own.sure(&own.with(&alike)) > 0.7, "{alone} {}", own.sure(&own.with(&alike)));
        assert_eq!(own.sure(&own.with(&colder)), alone);
        assert_eq!(own.sure(&own.with(&hotter)), 1.0, "it is not more than it seems itself");
    }

    #[test]
    fn what_has_changed_is_believed_after_some_clears() {
        let mut changed = seen(500.0);
        for _ in 0..20 {
            changed.add(32, AFTER.map(|ms| (0, Duration::from_millis(ms))));
        }
        assert!(changed.rate() < 2.0, "{}", changed.rate());
    }
}

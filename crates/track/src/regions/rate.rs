//! How often pages are accessed, from whether they were accessed at a few moments after their bits were cleared.

use std::time::Duration;

/// Scans after a clear.
pub const SCANS: usize = 4;
/// Weight of earlier samples after each further clear.
const DECAY: f64 = 0.75;

/// Standard deviations of the lower bound: among many regions and rounds, chance must not make a region hot.
const DEVIATIONS: f64 = 2.0;

/// Samples of pages that are taken to have the same access rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Samples {
    pages: f64,
    /// By scan: pages found accessed by then.
    accessed: [f64; SCANS],
    /// By scan: page-seconds since the clears.
    seconds: [f64; SCANS],
}

impl Samples {
    /// Adds a clear of `pages` pages. `scans`: how many were accessed by each scan, and the time of the scan after the
    /// clear.
    pub fn add(&mut self, pages: u32, scans: [(u32, Duration); SCANS]) {
        self.pages = self.pages * DECAY + f64::from(pages);
        for (scan, (accessed, after)) in scans.into_iter().enumerate() {
            self.accessed[scan] = self.accessed[scan] * DECAY + f64::from(accessed);
            self.seconds[scan] = self.seconds[scan] * DECAY + f64::from(pages) * after.as_secs_f64();
        }
    }

    /// The samples of both.
    pub fn with(&self, other: &Samples) -> Samples {
        let sum = |one: [f64; SCANS], other: [f64; SCANS]| std::array::from_fn(|scan| one[scan] + other[scan]);
        Samples {
            pages: self.pages + other.pages,
            accessed: sum(self.accessed, other.accessed),
            seconds: sum(self.seconds, other.seconds),
        }
    }

    /// Accesses per page and second, where accesses in quick succession count as one: -ln(1 - share) / time, from the
    /// chance that a page accessed at random moments was not accessed yet.
    ///
    /// If pages differ, a late scan finds all hot pages accessed, which underestimates their rate; an early scan shows
    /// them, but few pages were accessed by then. So the scan with the highest lower bound counts, [`DEVIATIONS`] deviations
    /// below what it found. If no bound exceeds that of the last scan, the last scan counts, which has found the most
    /// pages.
    pub fn rate(&self) -> f64 {
        let (rate, _) = self.believed();
        rate
    }

    /// A lower bound of [`rate`](Samples::rate), as a share of it. It is low if the rate comes from a few pages, since
    /// among many regions some have accessed pages by chance. `neighbours`, which include these pages, raise it if they
    /// are accessed as often.
    pub fn lower_bound_share(&self, neighbours: &Samples) -> f64 {
        let (rate, at_least) = self.believed();
        let (_, neighbours_at_least) = neighbours.believed();
        if rate > 0.0 { (at_least.max(neighbours_at_least) / rate).min(1.0) } else { 1.0 }
    }

    /// The rate and its lower bound.
    fn believed(&self) -> (f64, f64) {
        let at_least = |scan: usize| {
            let found = self.accessed[scan];
            let deviation = (found * (1.0 - found / self.pages).max(0.0)).sqrt();
            self.at(scan, (found - DEVIATIONS * deviation).max(0.0))
        };
        let rate = |scan: usize| self.at(scan, self.accessed[scan]);
        let last = (SCANS - 1, rate(SCANS - 1));
        let (believed, _) = (0..SCANS)
            .map(|scan| (scan, at_least(scan)))
            .fold(last, |most, scan| if scan.1 > most.1 { scan } else { most });
        (rate(believed), at_least(believed))
    }

    /// The rate if scan `scan` had found `accessed` pages accessed.
    fn at(&self, scan: usize, accessed: f64) -> f64 {
        let seconds = self.seconds[scan] / self.pages;
        // If all were accessed, assume that half a page more was not: the rate is at least that high.
        let share = (accessed / (self.pages + 0.5)).clamp(0.0, 1.0);
        if seconds > 0.0 { -(1.0 - share).ln() / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: [u64; SCANS] = [1, 4, 16, 1000];

    /// The samples of 32 pages with this rate, without chance.
    fn samples(per_second: f64) -> Samples {
        let mut samples = Samples::default();
        let scans = AFTER.map(|ms| {
            let share = 1.0 - (-per_second * ms as f64 / 1e3).exp();
            ((32.0 * share).round() as u32, Duration::from_millis(ms))
        });
        samples.add(32, scans);
        samples
    }

    #[test]
    fn rates_keep_their_order_over_four_magnitudes() {
        for truth in [0.2, 0.5, 1.0, 2.0, 20.0, 100.0, 500.0, 1500.0] {
            let found = samples(truth).rate();
            assert!((truth * 0.65..truth * 1.3).contains(&found), "{truth}: {found}");
        }
    }

    #[test]
    fn a_few_early_accesses_do_not_make_a_region_hot() {
        let mut samples = Samples::default();
        let scans = [(0, 1), (1, 4), (4, 16), (30, 500)].map(|(pages, ms)| (pages, Duration::from_millis(ms)));
        samples.add(32, scans);
        assert!((4.0..8.0).contains(&samples.rate()), "{}", samples.rate());
    }

    #[test]
    fn a_hot_half_of_the_pages_sets_the_rate() {
        let mut samples = Samples::default();
        samples.add(
            32,
            [10, 16, 16, 16]
                .into_iter()
                .zip(AFTER)
                .map(|(pages, ms)| (pages, Duration::from_millis(ms)))
                .collect::<Vec<_>>()
                .try_into()
                .unwrap(),
        );
        assert!((150.0..500.0).contains(&samples.rate()), "{}", samples.rate());
    }

    #[test]
    fn always_accessed_pages_have_a_rate_of_thousands() {
        assert!(samples(1e6).rate() > 2000.0 && samples(1e6).rate().is_finite());
    }

    #[test]
    fn idle_and_unscanned_pages_have_no_rate() {
        assert_eq!((samples(0.0).rate(), Samples::default().rate()), (0.0, 0.0));
    }

    #[test]
    fn few_pages_give_a_low_bound_and_many_a_high_one() {
        let lower_bound_share = |pages: u32, accessed: u32| {
            let mut samples = Samples::default();
            samples.add(
                pages,
                [(0, 1), (0, 4), (0, 16), (accessed, 500)].map(|(pages, ms)| (pages, Duration::from_millis(ms))),
            );
            samples.lower_bound_share(&samples)
        };
        assert!(
            lower_bound_share(16, 3) < 0.05 && lower_bound_share(16, 5) < 0.3,
            "{} {}",
            lower_bound_share(16, 3),
            lower_bound_share(16, 5)
        );
        assert!(
            lower_bound_share(2000, 600) > 0.9 && lower_bound_share(16, 16) > 0.3 && lower_bound_share(16, 0) == 1.0
        );
    }

    #[test]
    fn similar_neighbours_raise_the_bound() {
        let samples = |pages: u32, accessed: u32| {
            let mut samples = Samples::default();
            let scans = [(0, 1), (0, 4), (accessed / 8, 16), (accessed, 500)];
            samples.add(pages, scans.map(|(pages, ms)| (pages, Duration::from_millis(ms))));
            samples
        };
        let (own, alike, colder, hotter) = (samples(8, 5), samples(64, 40), samples(64, 2), samples(64, 64));
        let alone = own.lower_bound_share(&own);
        assert!(
            alone < 0.5 && own.lower_bound_share(&own.with(&alike)) > 0.7,
            "{alone} {}",
            own.lower_bound_share(&own.with(&alike))
        );
        assert_eq!(own.lower_bound_share(&own.with(&colder)), alone);
        assert_eq!(own.lower_bound_share(&own.with(&hotter)), 1.0, "the bound does not exceed the region's own rate");
    }

    #[test]
    fn a_changed_rate_shows_after_some_clears() {
        let mut changed = samples(500.0);
        for _ in 0..20 {
            changed.add(32, AFTER.map(|ms| (0, Duration::from_millis(ms))));
        }
        assert!(changed.rate() < 2.0, "{}", changed.rate());
    }
}

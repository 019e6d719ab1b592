//! How fast a program runs, measured by how soon it accesses pages whose bits were cleared: a faster program accesses
//! more of them in the same CPU time. This needs no hardware counters and no cooperation of the program.

use std::time::Duration;

/// Every second scan waits this many times as long after the clear. The additional accesses that it finds show how
/// accesses depend on time.
const LATER_FACTOR: f64 = 1.5;
/// If more time hardly finds more accesses, a faster program would not either.
const MIN_ELASTICITY: f64 = 0.1;

/// Accesses found over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    sooner: Scans,
    later: Scans,
}

/// Scans with the same wait after the clear.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Scans {
    pages: f64,
    accessed: f64,
    /// CPU time of the process from the clear to the scan, summed over pages.
    seconds: f64,
}

impl Pace {
    /// The wait after the clear of scan number `scan`, if the first scan waits for `wait`.
    pub fn after(scan: u32, wait: Duration) -> Duration {
        if scan % 2 == 0 { wait } else { wait.mul_f64(LATER_FACTOR) }
    }

    /// Adds scan number `scan`, which found `accessed` of `pages` pages accessed, `after` of wall time after the clear.
    pub fn add(&mut self, scan: u32, pages: usize, accessed: usize, after: Duration) {
        let scans = if scan % 2 == 0 { &mut self.sooner } else { &mut self.later };
        scans.pages += pages as f64;
        scans.accessed += accessed as f64;
        scans.seconds += pages as f64 * after.as_secs_f64();
    }

    /// Converts wall time to CPU time: the process has used this many processors on average.
    pub fn scale(&mut self, processors: f64) {
        self.sooner.seconds *= processors;
        self.later.seconds *= processors;
    }

    /// Share of the pages that the sooner scans found accessed.
    pub fn share(&self) -> f64 {
        self.sooner.accessed / self.sooner.pages.max(1.0)
    }

    /// How many times as fast the program was as in `other`, which must have the same pages and wait; `None` if
    /// accesses do not show it.
    ///
    /// The number of accessed pages is taken to grow as a power of the number of accesses. The two waits give the
    /// exponent, so the distribution of accesses need not be known.
    pub fn over(&self, other: &Pace) -> Option<f64> {
        let both = [(self.sooner, other.sooner), (self.later, other.later)];
        let [sooner, later] = both.map(|(one, two)| Scans {
            pages: one.pages + two.pages,
            accessed: one.accessed + two.accessed,
            seconds: one.seconds + two.seconds,
        });
        let elasticity = (later.share() / sooner.share()).ln() / (later.each() / sooner.each()).ln();
        if elasticity.is_nan() || elasticity < MIN_ELASTICITY {
            return None;
        }
        let faster =
            |(one, two): (Scans, Scans)| (one.share() / two.share()).powf(1.0 / elasticity) * two.each() / one.each();
        let [sooner, later] = both.map(faster);
        Some((sooner * later).sqrt()).filter(|faster| faster.is_finite() && *faster > 0.0)
    }
}

impl Scans {
    fn share(&self) -> f64 {
        self.accessed / self.pages
    }

    fn each(&self) -> f64 {
        self.seconds / self.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(10);

    /// The result for a program whose pages are accessed at random, at these rates per second of its CPU time.
    fn pace(rates: &[f64], processors: f64) -> Pace {
        let mut pace = Pace::default();
        for scan in 0..10 {
            let after = Pace::after(scan, WAIT);
            let own = after.as_secs_f64() * processors;
            let accessed: f64 = rates.iter().map(|rate| 1e6 * (1.0 - (-rate * own).exp())).sum();
            pace.add(scan, 1_000_000 * rates.len(), accessed as usize, after);
        }
        pace.scale(processors);
        pace
    }

    #[test]
    fn a_tenth_faster_program_is_measured_as_such() {
        for rates in [&[50.0][..], &[1000.0, 50.0, 2.0], &[5.0, 0.0, 0.0, 0.0]] {
            let faster: Vec<f64> = rates.iter().map(|rate| rate * 1.1).collect();
            let factor = pace(&faster, 1.0).over(&pace(rates, 1.0)).unwrap();
            assert!((1.09..1.11).contains(&factor), "{rates:?}: {factor}");
        }
    }

    #[test]
    fn time_off_the_processor_does_not_count() {
        let factor = pace(&[60.0], 0.6).over(&pace(&[60.0], 1.0)).unwrap();
        assert!((0.98..1.02).contains(&factor), "{factor}");
    }

    #[test]
    fn always_or_never_accessed_pages_give_no_pace() {
        assert_eq!(pace(&[1e6], 1.0).over(&pace(&[1e6], 1.0)), None);
        assert_eq!(pace(&[0.0], 1.0).over(&pace(&[0.0], 1.0)), None);
        assert_eq!(Pace::default().over(&Pace::default()), None);
    }
}

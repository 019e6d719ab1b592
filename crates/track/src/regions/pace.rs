//! How fast a program goes, told by how soon it accesses pages whose bits were cleared: the faster it is, the more of them in the same
//! processor time. It needs no counters of the processor, and no word of the program.

use std::time::Duration;

/// The later looks come so many times as long after the clear: by how much more they find it is known how much more time finds.
const LATER: f64 = 1.5;
/// Where more time finds hardly more, being faster would not either.
const LEAST_ELASTICITY: f64 = 0.1;

/// What was seen in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    sooner: Looks,
    later: Looks,
}

/// Looks that come as long after the clear.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Looks {
    pages: f64,
    accessed: f64,
    /// Of the process's processor time since the clears, by page.
    seconds: f64,
}

impl Pace {
    /// How long after the clear the look of this number comes, where the first does after `wait`.
    pub fn after(look: u32, wait: Duration) -> Duration {
        if look % 2 == 0 { wait } else { wait.mul_f64(LATER) }
    }

    /// The look of this number has found so many of so many pages accessed, so much wall time after the clear.
    pub fn add(&mut self, look: u32, pages: usize, accessed: usize, after: Duration) {
        let looks = if look % 2 == 0 { &mut self.sooner } else { &mut self.later };
        looks.pages += pages as f64;
        looks.accessed += accessed as f64;
        looks.seconds += pages as f64 * after.as_secs_f64();
    }

    /// The process has used so many processors meanwhile.
    pub fn scale(&mut self, processors: f64) {
        self.sooner.seconds *= processors;
        self.later.seconds *= processors;
    }

    /// Share of the pages that the sooner looks found accessed.
    pub fn share(&self) -> f64 {
        self.sooner.accessed / self.sooner.pages.max(1.0)
    }

    /// How many times as fast the program was as in another while, when the same pages were looked at after the same wait; `None` where
    /// accesses do not tell.
    ///
    /// What is found goes with the accesses to some power, which the two waits tell, so nothing need be known of how accesses are
    /// spread.
    pub fn over(&self, other: &Pace) -> Option<f64> {
        let both = [(self.sooner, other.sooner), (self.later, other.later)];
        let [sooner, later] = both.map(|(one, two)| Looks {
            pages: one.pages + two.pages,
            accessed: one.accessed + two.accessed,
            seconds: one.seconds + two.seconds,
        });
        let elasticity = (later.share() / sooner.share()).ln() / (later.each() / sooner.each()).ln();
        if elasticity.is_nan() || elasticity < LEAST_ELASTICITY {
            return None;
        }
        let faster =
            |(one, two): (Looks, Looks)| (one.share() / two.share()).powf(1.0 / elasticity) * two.each() / one.each();
        let [sooner, later] = both.map(faster);
        Some((sooner * later).sqrt()).filter(|faster| faster.is_finite() && *faster > 0.0)
    }
}

impl Looks {
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

    /// A while of a program whose pages are accessed so often a second of its time, on average, each at random moments.
    fn pace(rates: &[f64], processors: f64) -> Pace {
        let mut pace = Pace::default();
        for look in 0..10 {
            let after = Pace::after(look, WAIT);
            let own = after.as_secs_f64() * processors;
            let accessed: f64 = rates.iter().map(|rate| 1e6 * (1.0 - (-rate * own).exp())).sum();
            pace.add(look, 1_000_000 * rates.len(), accessed as usize, after);
        }
        pace.scale(processors);
        pace
    }

    #[test]
    fn a_program_that_is_a_tenth_faster_is_told_to_be() {
        for rates in [&[50.0][..], &[1000.0, 50.0, 2.0], &[5.0, 0.0, 0.0, 0.0]] {
            let faster: Vec<f64> = rates.iter().map(|rate| rate * 1.1).collect();
            let told = pace(&faster, 1.0).over(&pace(rates, 1.0)).unwrap();
            assert!((1.09..1.11).contains(&told), "{rates:?}: {told}");
        }
    }

    #[test]
    fn what_it_does_not_run_makes_it_no_slower() {
        let told = pace(&[60.0], 0.6).over(&pace(&[60.0], 1.0)).unwrap();
        assert!((0.98..1.02).contains(&told), "{told}");
    }

    #[test]
    fn pages_that_are_always_accessed_or_never_tell_nothing() {
        assert_eq!(pace(&[1e6], 1.0).over(&pace(&[1e6], 1.0)), None);
        assert_eq!(pace(&[0.0], 1.0).over(&pace(&[0.0], 1.0)), None);
        assert_eq!(Pace::default().over(&Pace::default()), None);
    }
}

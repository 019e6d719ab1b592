//! A small sample of pages whose Accessed bits are read in every round, also while tracking is off.

use super::choice::mix;
use super::process::{Place, Process};

/// Number of pages in the small sample.
pub const SAMPLE_PAGES: usize = 64;

/// Standard errors that a share may be off by chance.
const STANDARD_ERRORS: f64 = 2.0;

/// Which of the small sample was accessed since the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SmallSample {
    /// Number of pages that the whole sample stands for.
    all: u64,
    /// Number of pages that the small sample stands for, how many of these were accessed, and the sum of squares of
    /// what each stands for.
    pages: u64,
    accessed: u64,
    squares: u64,
}

impl SmallSample {
    /// Starts empty, for a whole sample that stands for `all` pages.
    pub fn of(all: u64) -> SmallSample {
        SmallSample { all, ..SmallSample::default() }
    }

    /// Adds one sampled page that stands for `pages` pages.
    pub fn add(&mut self, pages: u64, is_accessed: bool) {
        self.pages += pages;
        self.accessed += if is_accessed { pages } else { 0 };
        self.squares += pages * pages;
    }

    /// The share that was accessed; 0 if there is no page.
    pub fn share(self) -> f64 {
        if self.pages > 0 { self.accessed as f64 / self.pages as f64 } else { 0.0 }
    }

    /// A lower bound of the accessed pages, within the chance error of the sample.
    pub fn accessed_at_least(self) -> u64 {
        if self.pages == 0 || self.accessed == 0 {
            return 0;
        }
        // Kish's effective sample size: pages that stand for more weigh more.
        let count = self.pages as f64 * self.pages as f64 / self.squares as f64;
        let (share, chance) = (self.share(), STANDARD_ERRORS * STANDARD_ERRORS / count);
        // Wilson's lower bound, which also holds for shares near 0 and 1.
        let spread = (chance * (share * (1.0 - share) + chance / 4.0)).sqrt();
        let least = (share + chance / 2.0 - spread) / (1.0 + chance);
        (least.max(0.0) * self.all as f64) as u64
    }
}

/// The small sample by process, as rising indices, and the number of pages that the whole sample stands for. It
/// consists of the pages with the lowest hashes, so that few of them change when the whole sample does.
pub fn small_sample(processes: &[Process]) -> (Vec<Vec<usize>>, u64) {
    let is_seen = |place: Place| place.rests() || matches!(place, Place::Armed { .. });
    let mut all: Vec<(u64, usize, usize)> = Vec::new();
    let mut pages = 0;
    for (number, process) in processes.iter().enumerate() {
        let seen = process.samples.iter().enumerate().filter(|(_, sample)| is_seen(sample.place));
        all.extend(seen.map(|(index, sample)| {
            pages += sample.pages;
            (mix(sample.address ^ process.pid as u64), number, index)
        }));
    }
    if all.len() > SAMPLE_PAGES {
        all.select_nth_unstable(SAMPLE_PAGES);
        all.truncate(SAMPLE_PAGES);
    }
    let mut small_sample = vec![Vec::new(); processes.len()];
    all.iter().for_each(|(_, number, index)| small_sample[*number].push(*index));
    small_sample.iter_mut().for_each(|indices| indices.sort_unstable());
    (small_sample, pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small_sample(all: u64, pages: &[(u64, bool)]) -> SmallSample {
        let mut small_sample = SmallSample::of(all);
        pages.iter().for_each(|(pages, is_accessed)| small_sample.add(*pages, *is_accessed));
        small_sample
    }

    #[test]
    fn an_all_accessed_sample_means_nearly_all_memory() {
        let all = small_sample(51_200, &[(8, true); SAMPLE_PAGES]);
        assert_eq!(all.share(), 1.0);
        assert!((47_000..=51_200).contains(&all.accessed_at_least()), "{}", all.accessed_at_least());
    }

    #[test]
    fn one_accessed_page_may_be_chance_and_none_is_zero() {
        let mut pages = [(8, false); SAMPLE_PAGES];
        assert_eq!(small_sample(51_200, &pages).accessed_at_least(), 0);
        pages[0].1 = true;
        assert!(small_sample(51_200, &pages).accessed_at_least() < 51_200 / 64 / 2);
        assert_eq!(small_sample(0, &[]).accessed_at_least(), 0);
    }

    #[test]
    fn one_page_that_stands_for_most_gives_a_lower_bound() {
        let one = small_sample(51_200, &[(512, true), (1, false), (1, false)]);
        assert!(one.accessed_at_least() < 51_200 / 3, "{}", one.accessed_at_least());
    }
}

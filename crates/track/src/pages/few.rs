//! A few pages whose Accessed bits are read in every round, also while memory is not tracked.

use super::choice::mix;
use super::process::{Place, Process};

/// So many.
pub const FEW: usize = 64;

/// Standard errors that a share may be off by chance.
const ERRORS: f64 = 2.0;

/// What was accessed of them since the last round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Few {
    /// Pages that all samples stand for from which the few were drawn.
    all: u64,
    /// Pages that the few stand for, of these those accessed, and the squares of what each stands for.
    pages: u64,
    accessed: u64,
    squares: u64,
}

impl Few {
    /// None yet, of those that stand for so many pages.
    pub fn of(all: u64) -> Few {
        Few { all, ..Few::default() }
    }

    /// One more, which stands for so many pages.
    pub fn add(&mut self, pages: u64, is_accessed: bool) {
        self.pages += pages;
        self.accessed += if is_accessed { pages } else { 0 };
        self.squares += pages * pages;
    }

    /// The share that was accessed; 0 of none.
    pub fn share(self) -> f64 {
        if self.pages > 0 { self.accessed as f64 / self.pages as f64 } else { 0.0 }
    }

    /// So many of all pages were accessed, unless chance has drawn the few.
    pub fn accessed_at_least(self) -> u64 {
        if self.pages == 0 || self.accessed == 0 {
            return 0;
        }
        // Those that stand for much count for more: they are as good as so many that stand for the same.
        let count = self.pages as f64 * self.pages as f64 / self.squares as f64;
        let (share, chance) = (self.share(), ERRORS * ERRORS / count);
        // Wilson's lower bound, which holds for shares near 0 and 1, too.
        let spread = (chance * (share * (1.0 - share) + chance / 4.0)).sqrt();
        let least = (share + chance / 2.0 - spread) / (1.0 + chance);
        (least.max(0.0) * self.all as f64) as u64
    }
}

/// The few pages, by process, each in rising order, and how many pages all samples stand for from which they are drawn. They are
/// those with the least hashes, so that few of them change when the sample does.
pub fn few(processes: &[Process]) -> (Vec<Vec<usize>>, u64) {
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
    if all.len() > FEW {
        all.select_nth_unstable(FEW);
        all.truncate(FEW);
    }
    let mut few = vec![Vec::new(); processes.len()];
    all.iter().for_each(|(_, number, index)| few[*number].push(*index));
    few.iter_mut().for_each(|indices| indices.sort_unstable());
    (few, pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn few(all: u64, pages: &[(u64, bool)]) -> Few {
        let mut few = Few::of(all);
        pages.iter().for_each(|(pages, is_accessed)| few.add(*pages, *is_accessed));
        few
    }

    #[test]
    fn of_a_few_pages_that_all_were_accessed_nearly_all_memory_was() {
        let all = few(51_200, &[(8, true); FEW]);
        assert_eq!(all.share(), 1.0);
        assert!((47_000..=51_200).contains(&all.accessed_at_least()), "{}", all.accessed_at_least());
    }

    #[test]
    fn one_page_may_be_chance_and_none_is_nothing() {
        let mut pages = [(8, false); FEW];
        assert_eq!(few(51_200, &pages).accessed_at_least(), 0);
        pages[0].1 = true;
        assert!(few(51_200, &pages).accessed_at_least() < 51_200 / 64 / 2);
        assert_eq!(few(0, &[]).accessed_at_least(), 0);
    }

    #[test]
    fn one_page_that_stands_for_most_says_less_than_many() {
        let one = few(51_200, &[(512, true), (1, false), (1, false)]);
        assert!(one.accessed_at_least() < 51_200 / 3, "{}", one.accessed_at_least());
    }
}

//! When a process has filled its memory: what was seen of it before tells nothing of what it does with it afterwards.

/// Rounds in which it hardly grows.
const STILL: u32 = 4;
/// By less than this part of what it has.
const HARDLY: usize = 256;
/// A process that grows all the time is known by what was seen of it while it did; so it must have grown by this factor.
const GROWN: usize = 2;

/// How many regions a process had.
#[derive(Debug)]
pub struct Filling {
    /// When that was last told, or at first.
    before: usize,
    /// When it last grew by more than hardly anything.
    grown: usize,
    /// Rounds since.
    still: u32,
}

impl Filling {
    pub fn from(regions: usize) -> Filling {
        Filling { before: regions, grown: regions, still: 0 }
    }

    /// Takes in how many there are in the next round. Whether it has filled many by now, and no more for some rounds; told once.
    pub fn is_over(&mut self, regions: usize) -> bool {
        if regions > self.grown + self.grown / HARDLY {
            (self.grown, self.still) = (regions, 0);
            return false;
        }
        self.still += 1;
        let is_over = self.still == STILL && self.grown >= GROWN * self.before;
        if is_over {
            self.before = self.grown;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds in which filling is told to be over, of a process that begins with so many regions.
    fn over(first: usize, rounds: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let mut filling = Filling::from(first);
        rounds
            .into_iter()
            .enumerate()
            .filter(|(_, regions)| filling.is_over(*regions))
            .map(|(round, _)| round)
            .collect()
    }

    #[test]
    fn it_is_told_once_when_memory_is_filled() {
        let fills = (1..100).map(|round| 10 + 57 * round);
        assert_eq!(over(10, fills.chain([5653; 100])), [102]);
    }

    #[test]
    fn what_was_there_when_it_was_first_looked_at_is_not_filled_by_it() {
        assert_eq!(over(5000, [5000; 50]), [0; 0]);
        assert_eq!(
            over(5000, (0..50).map(|round| 5000 + 80 * round).chain([9000; 50])),
            [0; 0],
            "nor is it twice as much"
        );
    }

    #[test]
    fn what_grows_on_and_on_is_told_seldom() {
        let stairs = (1..=100).flat_map(|step| [100 * step; 6]);
        assert_eq!(over(100, stairs), [10, 22, 46, 94, 190, 382]);
    }

    #[test]
    fn memory_that_comes_and_goes_was_filled_once() {
        let turns = [100, 100, 100, 100, 5, 5, 5, 5, 5, 5].repeat(20);
        assert_eq!(over(5, turns), [4]);
    }
}

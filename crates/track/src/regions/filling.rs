//! Detects when a process has filled its memory: samples taken before do not show how it uses the memory afterwards.

/// Rounds without notable growth that end the fill phase.
const STILL_ROUNDS: u32 = 4;
/// Growth below this part (1/256) is not notable.
const GROWTH_PART: usize = 256;
/// The memory must have grown by this factor. Samples of a process that keeps growing stay valid.
const FILL_FACTOR: usize = 2;

/// How many regions a process had.
#[derive(Debug)]
pub struct Filling {
    /// When a fill phase was last reported, or at first.
    before: usize,
    /// After the last notable growth.
    grown: usize,
    /// Rounds since then.
    still: u32,
}

impl Filling {
    pub fn from(regions: usize) -> Filling {
        Filling { before: regions, grown: regions, still: 0 }
    }

    /// Takes in the regions of the next round. Returns true once, when the fill phase has ended: the memory has grown
    /// much, and then not for some rounds.
    pub fn is_over(&mut self, regions: usize) -> bool {
        if regions > self.grown + self.grown / GROWTH_PART {
            (self.grown, self.still) = (regions, 0);
            return false;
        }
        self.still += 1;
        let is_over = self.still == STILL_ROUNDS && self.grown >= FILL_FACTOR * self.before;
        if is_over {
            self.before = self.grown;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds that report the end of the fill phase, of a process that begins with this many regions.
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
    fn end_of_filling_is_reported_once() {
        let fills = (1..100).map(|round| 10 + 57 * round);
        assert_eq!(over(10, fills.chain([5653; 100])), [102]);
    }

    #[test]
    fn memory_of_the_first_round_is_not_a_fill() {
        assert_eq!(over(5000, [5000; 50]), [0; 0]);
        assert_eq!(
            over(5000, (0..50).map(|round| 5000 + 80 * round).chain([9000; 50])),
            [0; 0],
            "nor is it twice as much"
        );
    }

    #[test]
    fn steady_growth_is_reported_rarely() {
        let stairs = (1..=100).flat_map(|step| [100 * step; 6]);
        assert_eq!(over(100, stairs), [10, 22, 46, 94, 190, 382]);
    }

    #[test]
    fn memory_that_comes_and_goes_is_filled_once() {
        let turns = [100, 100, 100, 100, 5, 5, 5, 5, 5, 5].repeat(20);
        assert_eq!(over(5, turns), [4]);
    }
}

//! Memory that goes round.

/// What a move counts for an interval later.
const KEPT: f64 = 0.95;

/// What was taken from a program of late and given back to it, or given and taken again.
///
/// Looks see only some of what would come back to a program that has what it needs, and more of one that starves. So who starves seems to
/// gain more than the others lose, and where programs are alike each move seems to be worth the next. That moves are taken back tells that
/// what is foretold of them is wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unrest {
    taken: f64,
    given: f64,
}

impl Unrest {
    /// Takes in how its limit has moved in an interval, in bytes.
    pub fn add(&mut self, from: u64, to: u64) {
        self.taken = KEPT * self.taken + from.saturating_sub(to) as f64;
        self.given = KEPT * self.given + to.saturating_sub(from) as f64;
    }

    /// How much of it has gone round, in bytes; what is longer ago counts for less.
    pub fn bytes(&self) -> f64 {
        self.taken.min(self.given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_comes_has_not_gone_round_and_what_has_is_forgotten_by_and_by() {
        let mut unrest = Unrest::default();
        (1..5).for_each(|at| unrest.add(at * 100, at * 100 + 100));
        assert_eq!(unrest.bytes(), 0.0);
        unrest.add(500, 400);
        assert_eq!(unrest.bytes(), 100.0);
        (0..100).for_each(|_| unrest.add(400, 400));
        assert!((0.0..1.0).contains(&unrest.bytes()));
    }
}

//! What page walks cost a program.

use model::Costs;

/// A loop does more than load: even where no access waits for another, they follow each other no faster than this part of the time that
/// one takes which waits.
const FASTEST: f64 = 1.0 / 8.0;
/// And where each waits, many find their data in a cache: together they take this part of what those take that do not.
const WAITING: f64 = 1.0 / 4.0;

/// A program's misses of the TLB. Shares are 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Walks {
    /// Share of them that find the entry of the page table in the core's second cache.
    pub near: f64,
    /// Share of them that find it in no cache. What is left finds it in the last cache.
    pub memory: f64,
    /// Share of those that find it in a cache that wait for the access before.
    pub dependent: f64,
    /// Share of the others that do.
    pub memory_dependent: f64,
}

impl Walks {
    /// By how much processor time the program uses for each of all its misses, and for each that goes to memory: where they follow each
    /// other faster than such accesses can, the processor makes several at a time. One that goes to memory is waited for though there
    /// are others beside it, which are over long before.
    pub fn spaced(near: f64, memory: f64, ns_per_miss: f64, ns_per_memory_miss: f64, costs: &Costs) -> Walks {
        let [dependent, memory_dependent] = [ns_per_miss, ns_per_memory_miss].map(|ns| dependent_share(ns, costs));
        Walks { near, memory, dependent, memory_dependent }
    }

    /// What a huge page saves of one of them, in ns.
    pub fn each_ns(&self, costs: &Costs) -> f64 {
        let by = |share: f64, of: f64, else_of: f64| share.clamp(0.0, 1.0) * (of - else_of) + else_of;
        let near = by(self.dependent, costs.walk_near_dependent_ns, costs.walk_near_independent_ns);
        let last = by(self.dependent, costs.walk_dependent_ns, costs.walk_independent_ns);
        let memory = by(self.memory_dependent, costs.walk_memory_dependent_ns, costs.walk_memory_independent_ns);
        by(self.memory, memory, by(self.near / (1.0 - self.memory).max(f64::EPSILON), near, last))
    }
}

/// Share of misses that wait for the one before, 0 to 1.
fn dependent_share(ns_per_miss: f64, costs: &Costs) -> f64 {
    let least = costs.access_independent_ns.max(FASTEST * costs.access_dependent_ns);
    let most = WAITING * costs.access_dependent_ns;
    if most > least { ((ns_per_miss - least) / (most - least)).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_that_follow_each_other_at_once_do_not_wait_and_those_far_apart_do() {
        let costs = Costs { access_dependent_ns: 400.0, ..Costs::reference() };
        let share = |ns_per_miss| dependent_share(ns_per_miss, &costs);
        assert_eq!([0.0, 50.0, 75.0, 100.0, 1e4, f64::INFINITY].map(share), [0.0, 0.0, 0.5, 1.0, 1.0, 1.0]);
        let strange = Costs { access_dependent_ns: 5.0, ..Costs::reference() };
        assert_eq!(dependent_share(1000.0, &strange), 0.0);
    }

    #[test]
    fn a_miss_is_worth_what_each_kind_is_by_its_share() {
        let each = |near, memory, dependent, memory_dependent| {
            Walks { near, memory, dependent, memory_dependent }.each_ns(&Costs::reference()).round()
        };
        assert_eq!([-1.0, 0.0, 0.5, 1.0, 2.0].map(|share| each(0.0, 0.0, share, 0.0)), [2.0, 2.0, 61.0, 120.0, 120.0]);
        assert_eq!([0.5, 1.0].map(|share| each(share, 0.0, 1.0, 0.0)), [66.0, 12.0]);
        assert_eq!([0.5, 1.0].map(|share| each(0.0, share, 0.0, 1.0)), [101.0, 200.0]);
        assert_eq!(each(0.5, 0.25, 1.0, 0.0), 41.0, "half of 12, a quarter of 120 and of 20");
    }

    #[test]
    fn one_that_goes_to_memory_among_others_is_waited_for() {
        let walks = Walks::spaced(0.8, 0.1, 46.0, 460.0, &Costs::reference());
        assert_eq!(walks, Walks { near: 0.8, memory: 0.1, dependent: 0.0, memory_dependent: 1.0 });
    }
}

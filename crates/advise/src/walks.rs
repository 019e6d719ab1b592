//! What page walks cost a program.

use model::Costs;

/// A loop does more than load: even independent accesses follow each other no faster than this part of the time of a
/// dependent one.
const MIN_PART: f64 = 1.0 / 8.0;
/// Where all accesses depend on each other, many still find their data in a cache: on average they take this part of
/// the time of an access that misses.
const DEPENDENT_PART: f64 = 1.0 / 4.0;

/// A program's TLB misses. Shares are 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Walks {
    /// Share of them that find the page table entry in the core's second-level cache.
    pub near: f64,
    /// Share of them that find it in no cache. The others find it in the last-level cache.
    pub memory: f64,
    /// CPU time of the program per TLB miss, in ns. If misses follow each other faster than dependent accesses can, the
    /// processor handles several at a time.
    pub ns_per_miss: f64,
    /// CPU time per miss that goes to memory, in ns. The program waits for such a miss even if others run beside it,
    /// because those are over long before.
    pub ns_per_memory_miss: f64,
}

impl Walks {
    /// Time that a huge page saves per miss, in ns.
    pub fn each_ns(&self, costs: &Costs) -> f64 {
        let seen = |ns: f64, dependent: f64, independent: f64| {
            mixed(dependent_share(ns, costs), dependent, shown_ns(independent, ns))
        };
        let near = seen(self.ns_per_miss, costs.walk_near_dependent_ns, costs.walk_near_independent_ns);
        let last = seen(self.ns_per_miss, costs.walk_dependent_ns, costs.walk_independent_ns);
        let memory = seen(self.ns_per_memory_miss, costs.walk_memory_dependent_ns, costs.walk_memory_independent_ns);
        mixed(self.memory, memory, mixed(self.near / (1.0 - self.memory).max(f64::EPSILON), near, last))
    }
}

/// Weighted mean of both.
fn mixed(share: f64, one: f64, other: f64) -> f64 {
    share.clamp(0.0, 1.0) * (one - other) + other
}

/// The visible part of a page walk that no access waits for. Its cost was measured with back-to-back walks. With more
/// time between them, most of it is hidden.
fn shown_ns(walk_ns: f64, ns_per_miss: f64) -> f64 {
    walk_ns * (walk_ns / ns_per_miss.max(f64::EPSILON)).clamp(0.0, 1.0)
}

/// Share of misses that wait for the one before, 0 to 1.
fn dependent_share(ns_per_miss: f64, costs: &Costs) -> f64 {
    let least = costs.access_independent_ns.max(MIN_PART * costs.access_dependent_ns);
    let most = DEPENDENT_PART * costs.access_dependent_ns;
    if most > least { ((ns_per_miss - least) / (most - least)).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_misses_do_not_wait_and_rare_ones_do() {
        let costs = Costs { access_dependent_ns: 400.0, ..Costs::reference() };
        let share = |ns_per_miss| dependent_share(ns_per_miss, &costs);
        assert_eq!([0.0, 50.0, 75.0, 100.0, 1e4, f64::INFINITY].map(share), [0.0, 0.0, 0.5, 1.0, 1.0, 1.0]);
        let strange = Costs { access_dependent_ns: 5.0, ..Costs::reference() };
        assert_eq!(dependent_share(1000.0, &strange), 0.0);
    }

    fn each(near: f64, memory: f64, ns_per_miss: f64, ns_per_memory_miss: f64) -> f64 {
        Walks { near, memory, ns_per_miss, ns_per_memory_miss }.each_ns(&Costs::reference()).round()
    }

    #[test]
    fn a_miss_costs_the_mean_over_its_kinds() {
        // By the reference costs a dependent access takes 390 ns: no access waits at 48.75 ns per miss, and all wait at
        // 97.5 ns.
        assert_eq!([0.0, 73.125, 97.5, 1e9].map(|ns| each(0.0, 0.0, ns, 0.0)), [2.0, 60.0, 120.0, 120.0]);
        assert_eq!([0.5, 1.0].map(|share| each(share, 0.0, 97.5, 0.0)), [66.0, 12.0]);
        assert_eq!([0.5, 1.0].map(|share| each(0.0, share, 0.0, 97.5)), [101.0, 200.0]);
        assert_eq!(each(0.5, 0.25, 97.5, 0.0), 41.0, "half of 12, a quarter of 120 and of 20");
    }

    #[test]
    fn walks_nobody_waits_for_are_hidden_by_other_work() {
        assert_eq!([0.0, 1.0, 2.0, 4.0, 20.0].map(|ns| shown_ns(2.0, ns)), [2.0, 2.0, 2.0, 1.0, 0.2]);
        assert_eq!([shown_ns(0.0, 0.0), shown_ns(0.0, 9.0), shown_ns(2.0, f64::INFINITY)], [0.0; 3]);
    }

    #[test]
    fn walks_to_memory_are_waited_for() {
        assert_eq!(each(0.8, 0.1, 46.0, 460.0), 20.0, "a tenth of 200, and of the others next to nothing");
    }
}

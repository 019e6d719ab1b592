//! What page walks cost a program.

use model::Costs;

/// A program's misses of the TLB.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Walks {
    /// Share of them that find the entry of the page table in the core's second cache, 0 to 1.
    pub near: f64,
    /// Share of these that wait for the access before, 0 to 1.
    pub near_dependent: f64,
    /// Share of the others that do.
    pub far_dependent: f64,
}

impl Walks {
    /// By how much processor time the program uses for each of all its misses, and for each far one: where they follow each other
    /// faster than such accesses can, the processor makes several at a time. A far one is waited for though there are near ones
    /// beside it, which are over long before.
    pub fn spaced(near: f64, ns_per_miss: f64, ns_per_far_miss: f64, costs: &Costs) -> Walks {
        let [near_dependent, far_dependent] = [ns_per_miss, ns_per_far_miss].map(|ns| dependent_share(ns, costs));
        Walks { near, near_dependent, far_dependent }
    }

    /// What a huge page saves of one of them, in ns.
    pub fn each_ns(&self, costs: &Costs) -> f64 {
        let by =
            |share: f64, of: f64, else_of: f64| share.clamp(0.0, 1.0) * of + (1.0 - share.clamp(0.0, 1.0)) * else_of;
        let far = by(self.far_dependent, costs.walk_dependent_ns, costs.walk_independent_ns);
        let near = by(self.near_dependent, costs.walk_near_dependent_ns, costs.walk_near_independent_ns);
        by(self.near, near, far)
    }
}

/// Share of misses that wait for the one before, 0 to 1.
fn dependent_share(ns_per_miss: f64, costs: &Costs) -> f64 {
    let (least, most) = (costs.access_independent_ns, costs.access_dependent_ns);
    if most > least { ((ns_per_miss - least) / (most - least)).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_that_follow_each_other_at_once_do_not_wait_and_those_far_apart_do() {
        let share = |ns_per_miss| dependent_share(ns_per_miss, &Costs::reference());
        assert_eq!([0.0, 46.0, 244.0, 442.0, 1e4, f64::INFINITY].map(share), [0.0, 0.0, 0.5, 1.0, 1.0, 1.0]);
        let strange = Costs { access_dependent_ns: 40.0, ..Costs::reference() };
        assert_eq!(dependent_share(1000.0, &strange), 0.0);
    }

    #[test]
    fn a_miss_is_worth_what_each_kind_is_by_its_share() {
        let each = |near, near_dependent, far_dependent| {
            Walks { near, near_dependent, far_dependent }.each_ns(&Costs::reference())
        };
        assert_eq!([-1.0, 0.0, 0.5, 1.0, 2.0].map(|share| each(0.0, 0.0, share)), [22.0, 22.0, 100.0, 178.0, 178.0]);
        assert_eq!([0.5, 1.0].map(|share| each(share, 0.0, 0.0)), [13.0, 4.0]);
        assert_eq!([each(1.0, 1.0, 0.0), each(0.5, 0.0, 1.0)], [8.0, 91.0]);
    }

    #[test]
    fn a_far_miss_among_near_ones_is_waited_for() {
        let walks = Walks::spaced(0.9, 46.0, 460.0, &Costs::reference());
        assert_eq!(walks, Walks { near: 0.9, near_dependent: 0.0, far_dependent: 1.0 });
    }
}

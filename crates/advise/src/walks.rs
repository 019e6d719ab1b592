//! What page walks cost a program.

use model::Costs;

/// Share of a program's misses of the TLB that wait for the one before, 0 to 1, by how much processor time it uses for each of
/// them: where they follow each other faster than such accesses can, the processor makes several at a time.
pub fn dependent_share(ns_per_miss: f64, costs: &Costs) -> f64 {
    let (least, most) = (costs.access_independent_ns, costs.access_dependent_ns);
    if most > least { ((ns_per_miss - least) / (most - least)).clamp(0.0, 1.0) } else { 0.0 }
}

/// What a huge page saves of a miss, in ns, if such a share of them waits for the one before.
pub fn walk_ns(dependent_share: f64, costs: &Costs) -> f64 {
    let dependent = dependent_share.clamp(0.0, 1.0);
    dependent * costs.walk_dependent_ns + (1.0 - dependent) * costs.walk_independent_ns
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
    fn a_miss_is_worth_what_both_kinds_are_by_their_share() {
        let each = |share| walk_ns(share, &Costs::reference());
        assert_eq!([-1.0, 0.0, 0.5, 1.0, 2.0].map(each), [22.0, 22.0, 100.0, 178.0, 178.0]);
    }
}

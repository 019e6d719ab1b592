//! The division against all there are.

use balance::{Demand, Want, divide};
use model::MissPoint;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn demand(points: &[(u64, f64)]) -> Demand {
    let mut misses: Vec<MissPoint> =
        points.iter().map(|(mib, rate)| MissPoint { bytes: mib * MIB, misses_per_second: *rate }).collect();
    misses.sort_by_key(|point| point.bytes);
    Demand::of(&misses, 1e-3, 0.0)
}

fn lost(wants: &[Want<'_>], shares: &[u64]) -> f64 {
    wants.iter().zip(shares).map(|(want, share)| want.weight * want.demand.lost_with(*share)).sum()
}

/// The least loss of all divisions into whole units; `None` if there is none.
fn least_of_all(units: u64, wants: &[Want<'_>]) -> Option<f64> {
    let Some((first, rest)) = wants.split_first() else { return Some(0.0) };
    let least = first.least.div_ceil(MIB);
    let most = (first.most / MIB).max(least);
    let shares = (least..=most).take_while(|share| *share <= units);
    shares
        .filter_map(|share| {
            Some(first.weight * first.demand.lost_with(share * MIB) + least_of_all(units - share, rest)?)
        })
        .reduce(f64::min)
}

proptest! {
    #[test]
    fn no_division_loses_less(
        units in 0u64..14,
        programs in prop::collection::vec(
            (prop::collection::vec((0u64..14, 0.0..5000.0f64), 0..6), 0.1..5.0f64, 0u64..5, 0u64..16),
            1..5,
        ),
    ) {
        let demands: Vec<Demand> = programs.iter().map(|(points, ..)| demand(points)).collect();
        let wants: Vec<Want<'_>> = programs
            .iter()
            .zip(&demands)
            .map(|((_, weight, least, most), demand)| Want {
                weight: *weight, least: least * MIB, most: most * MIB, demand,
            })
            .collect();
        let shares = divide(units * MIB, MIB, &wants);
        let best = least_of_all(units, &wants);
        prop_assert_eq!(shares.is_some(), best.is_some());
        if let (Some(shares), Some(best)) = (shares, best) {
            prop_assert!(lost(&wants, &shares) <= best + 1e-9, "{} > {best}: {shares:?}", lost(&wants, &shares));
            prop_assert!(shares.iter().sum::<u64>() <= units * MIB);
            for (share, want) in shares.iter().zip(&wants) {
                prop_assert!(*share >= want.least && *share <= want.most.max(want.least), "{shares:?}");
            }
        }
    }
}

#[test]
fn a_cliff_that_does_not_fit_gets_nothing_and_one_that_does_gets_all_of_it() {
    let gains = demand(&[(0, 900.0), (100, 500.0), (200, 0.0)]);
    let cliff = demand(&[(0, 5000.0), (150, 0.0)]);
    let want = |demand| Want { weight: 1.0, least: 8 * MIB, most: u64::MAX, demand };
    let wants = [want(&gains), want(&cliff)];
    assert!(divide(120 * MIB, MIB, &wants).unwrap()[0] >= 100 * MIB);
    assert!(divide(200 * MIB, MIB, &wants).unwrap()[1] >= 150 * MIB);
}

#[test]
fn what_nobody_gains_from_is_for_all_by_weight() {
    let small = demand(&[(0, 900.0), (10, 0.0)]);
    let want = |weight| Want { weight, least: 0, most: u64::MAX, demand: &small };
    assert_eq!(divide(80 * MIB, MIB, &[want(1.0), want(2.0)]).unwrap(), [30 * MIB, 50 * MIB]);
    let capped = Want { most: 12 * MIB, ..want(2.0) };
    assert_eq!(divide(80 * MIB, MIB, &[want(1.0), capped]).unwrap(), [68 * MIB, 12 * MIB]);
    assert_eq!(divide(80 * MIB, MIB, &[capped]).unwrap(), [12 * MIB]);
}

#[test]
fn less_than_the_least_of_all_cannot_be_divided() {
    let none = demand(&[]);
    let want = Want { weight: 1.0, least: 50 * MIB, most: u64::MAX, demand: &none };
    assert_eq!(divide(99 * MIB, MIB, &[want, want]), None);
    assert_eq!(divide(100 * MIB, MIB, &[want, want]), Some(vec![50 * MIB, 50 * MIB]));
    assert_eq!(divide(0, MIB, &[]), Some(vec![]));
}

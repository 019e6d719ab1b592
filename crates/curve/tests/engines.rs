//! Tests the engines against the definition, and the sampling engines against the exact one.

mod generate;

use curve::{Aet, Engine, EngineKind, Exact, MissRatioCurve, Object, Shards};
use generate::{Textbook, Zipf, cycle, phased, uniform};
use proptest::prelude::*;

/// The definition: depths in a list with the last referenced first.
fn depths_in_a_list(keys: &[u64]) -> Vec<Option<usize>> {
    let mut list: Vec<u64> = Vec::new();
    let mut depth = |key: &u64| {
        let depth = list.iter().position(|k| k == key);
        if let Some(depth) = depth {
            list.remove(depth);
        }
        list.insert(0, *key);
        depth
    };
    keys.iter().map(&mut depth).collect()
}

fn curve_of(mut engine: impl Engine<u64>, keys: &[u64]) -> MissRatioCurve {
    keys.chunks(1000).for_each(|keys| engine.reference(keys));
    engine.curve()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    #[test]
    fn the_exact_curve_equals_a_list_at_every_size(keys in prop::collection::vec(0u64..30, 1..60)) {
        let curve = curve_of(Exact::new(), &keys);
        let depths = depths_in_a_list(&keys);
        for size in 0..=31 {
            let misses = depths.iter().filter(|depth| depth.is_none_or(|depth| depth >= size)).count();
            prop_assert_eq!(curve.miss_ratio_at(size as u64), misses as f64 / keys.len() as f64, "at {}", size);
        }
    }
}

proptest! {
    #[test]
    fn objects_of_one_byte_have_the_curve_of_pages(keys in prop::collection::vec(0u64..300, 1..2000)) {
        let mut engine = Exact::new();
        engine.reference(&keys.iter().map(|key| Object { key: *key, bytes: 1 }).collect::<Vec<_>>());
        let (objects, pages) = (engine.curve(), curve_of(Exact::new(), &keys));
        prop_assert_eq!(objects, pages);
    }

    #[test]
    fn an_object_needs_its_size_and_those_since(
        references in prop::collection::vec((0u64..40, 1u64..2000), 1..300)
    ) {
        let mut engine = Exact::new();
        engine.reference(&references.iter().map(|(key, bytes)| Object { key: *key, bytes: *bytes }).collect::<Vec<_>>());
        let curve = engine.curve();
        let mut stack: Vec<(u64, u64)> = Vec::new();
        let mut needs: Vec<u64> = Vec::new();
        for (key, bytes) in &references {
            if let Some(depth) = stack.iter().position(|(k, _)| k == key) {
                needs.push(stack[..depth].iter().map(|(_, bytes)| bytes).sum::<u64>() + bytes);
                stack.remove(depth);
            }
            stack.insert(0, (*key, *bytes));
        }
        // Above 2048 bytes needs are rounded up by less than a thousandth.
        for size in [1, 100, 1000, 2000, 5000, 20_000, 80_000u64] {
            let misses = |size| references.len() - needs.iter().filter(|need| **need <= size).count();
            let ratio = |size| misses(size) as f64 / references.len() as f64;
            let found = curve.miss_ratio_at(size);
            prop_assert!(found >= ratio(size) && found <= ratio(size - size / 1000), "{} at {}", found, size);
        }
    }
}

fn agrees_with_the_textbook(keys: &[u64]) {
    let mut textbook = Textbook::new(keys.len());
    textbook.reference(keys);
    let curve = curve_of(Exact::new(), keys);
    for (size, ratio) in textbook.miss_ratios().into_iter().enumerate() {
        assert_eq!(curve.miss_ratio_at(size as u64), ratio, "at {size}");
    }
}

#[test]
fn the_exact_curve_equals_the_textbook() {
    agrees_with_the_textbook(&Zipf::new(0.9, 50_000, 1).pages(300_000));
    agrees_with_the_textbook(&uniform(20_000, 100_000, 2));
    agrees_with_the_textbook(&cycle(30_000, 100_000));
    agrees_with_the_textbook(&phased(10_000, 100_000, 3));
}

/// Mean absolute errors of the three sampling engines.
fn errors(keys: &[u64], rate: f64, size: usize) -> [f64; 3] {
    let exact = curve_of(Exact::new(), keys);
    let error = |curve: MissRatioCurve| {
        assert_eq!(curve.references(), keys.len() as u64);
        let off = curve.distinct() as f64 / exact.distinct() as f64 - 1.0;
        assert!(off.abs() < 0.05, "{} distinct, not {}", curve.distinct(), exact.distinct());
        exact.mean_absolute_error(&curve, 1000)
    };
    [
        error(curve_of(Shards::with_rate(rate), keys)),
        error(curve_of(Shards::with_size(size), keys)),
        error(curve_of(Aet::with_size(size), keys)),
    ]
}

fn within(errors: [f64; 3], bounds: [f64; 3]) {
    assert!(errors.iter().zip(bounds).all(|(error, bound)| *error <= bound), "{errors:?}, not within {bounds:?}");
}

#[test]
fn the_sampled_curves_of_skewed_references_are_close() {
    within(errors(&Zipf::new(0.9, 200_000, 1).pages(1_000_000), 0.05, 8192), [0.005, 0.005, 0.01]);
    within(errors(&Zipf::new(1.2, 200_000, 2).pages(1_000_000), 0.05, 8192), [0.005, 0.005, 0.005]);
}

#[test]
fn the_sampled_curves_of_uniform_references_are_close() {
    within(errors(&uniform(100_000, 1_000_000, 4), 0.05, 8192), [0.02, 0.02, 0.02]);
}

#[test]
fn the_cliff_of_a_loop_stays_where_it_is() {
    // The expected error is one over the square root of the sample, 5000 and 8192 pages; three times that is allowed.
    within(errors(&cycle(100_000, 1_000_000), 0.05, 8192), [0.042, 0.033, 0.033]);
}

#[test]
fn stacks_handle_phases_better_than_average_times() {
    within(errors(&phased(100_000, 1_000_000, 5), 0.05, 8192), [0.02, 0.02, 0.06]);
}

#[test]
fn traces_that_fit_into_the_sample_are_exact() {
    let keys = phased(5000, 100_000, 6);
    let exact = curve_of(Exact::new(), &keys);
    let all = curve_of(Shards::with_size(8192), &keys);
    for size in 0..6000 {
        // Above 2048, sizes are rounded up by less than a thousandth.
        let least = exact.miss_ratio_at(size);
        assert!(all.miss_ratio_at(size) >= least && all.miss_ratio_at(size) <= exact.miss_ratio_at(size - size / 1000));
    }
}

#[test]
fn byte_curves_of_samples_are_close() {
    let keys = Zipf::new(0.9, 100_000, 7).pages(500_000);
    let objects: Vec<Object> = keys.iter().map(|key| Object { key: *key, bytes: 100 + key * 7919 % 8000 }).collect();
    let of = |kind: EngineKind| {
        let mut engine = kind.build();
        engine.reference(&objects);
        engine.curve()
    };
    let exact = of(EngineKind::Exact);
    for (kind, bound) in
        [(EngineKind::ShardsRate(0.05), 0.01), (EngineKind::ShardsSize(8192), 0.01), (EngineKind::Aet(8192), 0.01)]
    {
        let error = exact.mean_absolute_error(&of(kind), 1000);
        assert!(error <= bound, "{kind:?}: {error}");
    }
}

#[test]
fn a_restarted_curve_keeps_earlier_references() {
    let keys = cycle(1000, 5000);
    for kind in [EngineKind::Exact, EngineKind::ShardsRate(1.0), EngineKind::ShardsSize(8192), EngineKind::Aet(8192)] {
        let mut engine = kind.build();
        engine.reference(&keys);
        engine.restart();
        engine.reference(&keys[..2000]);
        let curve = engine.curve();
        assert_eq!((curve.references(), curve.distinct()), (2000, 1000), "{kind:?}");
        assert_eq!((curve.miss_ratio_at(990), curve.miss_ratio_at(1001)), (1.0, 0.0), "{kind:?}");
    }
}

#[test]
fn one_page_and_no_pages() {
    for kind in [EngineKind::Exact, EngineKind::ShardsRate(1.0), EngineKind::ShardsSize(8), EngineKind::Aet(8)] {
        let mut engine = kind.build::<u64>();
        let nothing = engine.curve();
        assert_eq!((nothing.references(), nothing.distinct(), nothing.largest_size()), (0, 0, 0), "{kind:?}");
        engine.reference(&[7; 100]);
        let curve = engine.curve();
        assert_eq!((curve.distinct(), curve.miss_ratio_at(1), curve.working_set(0.01)), (1, 0.01, Some(1)), "{kind:?}");
    }
}

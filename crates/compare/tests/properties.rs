//! What holds of every check.

use compare::{Check, Figure, Verdict, below_limit, differ};
use proptest::prelude::*;

fn values(most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(1e3..1e9f64, 0..most)
}

fn figure() -> impl Strategy<Value = Figure> {
    (values(12), values(12), 0.0..1.0f64, 0.0..1e6f64).prop_map(|(baseline, runs, tolerance, least)| Figure {
        baseline,
        runs,
        tolerance,
        least,
    })
}

proptest! {
    #[test]
    fn a_last_look_decides_and_says_what_it_fails_by(figures in prop::collection::vec(figure(), 0..6), runs in 1..40u32) {
        let look = Check::of_all(runs).look(runs, &figures);
        for (figure, finding) in figures.iter().zip(&look.findings) {
            match (finding.verdict, finding.noise) {
                (Some(Verdict::Failed), Some(noise)) => prop_assert!(finding.value > finding.bound + noise * (1.0 - 1e-9)),
                (Some(Verdict::Failed), None) => prop_assert!(false, "failed without a noise"),
                (Some(Verdict::Passed), Some(noise)) => {
                    let growth = finding.value - finding.bound / (1.0 + figure.tolerance);
                    prop_assert!(finding.value <= finding.bound + noise * (1.0 + 1e-9) || growth <= figure.least * (1.0 + 1e-9));
                }
                (verdict, _) => prop_assert_eq!(verdict, Some(Verdict::Undecided)),
            }
        }
    }

    #[test]
    fn larger_runs_never_pass_where_smaller_ones_failed(figure in figure(), more in 0.0..1e8f64) {
        let check = Check::of_all(12);
        let verdict = |figure: &Figure| check.look(12, std::slice::from_ref(figure)).findings[0].verdict;
        let before = verdict(&figure);
        let larger = Figure { runs: figure.runs.iter().map(|value| value + more).collect(), ..figure };
        prop_assert!(before != Some(Verdict::Failed) || verdict(&larger) == Some(Verdict::Failed));
    }

    #[test]
    fn the_unit_does_not_matter(figure in figure()) {
        let scale = |values: &[f64]| values.iter().map(|value| value * 1024.0).collect::<Vec<f64>>();
        let scaled = Figure { baseline: scale(&figure.baseline), runs: scale(&figure.runs), least: figure.least * 1024.0, ..figure };
        let verdict = |figure: &Figure| Check::of_all(12).look(12, std::slice::from_ref(figure)).findings[0].verdict;
        prop_assert_eq!(verdict(&figure), verdict(&scaled));
    }

    #[test]
    fn what_exceeds_a_limit_fails(values in values(8), limit in 1e3..1e9f64, is_last: bool) {
        let found = below_limit(&values, limit, is_last);
        let exceeds = values.iter().any(|value| *value > limit);
        prop_assert_eq!(found.is_some_and(|finding| finding.verdict == Some(Verdict::Failed)), exceeds);
        prop_assert!(!is_last || found.is_none_or(|finding| finding.verdict.is_some()));
    }

    #[test]
    fn differences_have_no_direction(figures in prop::collection::vec((values(8), values(8)), 0..6)) {
        let turned: Vec<_> = figures.iter().map(|(a, b)| (b.clone(), a.clone())).collect();
        for (one, other) in differ(&figures).iter().zip(differ(&turned)) {
            prop_assert_eq!((one.a, one.b, one.significant), (other.b, other.a, other.significant));
        }
    }
}

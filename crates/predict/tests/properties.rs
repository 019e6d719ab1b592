//! Properties that hold of any history.

use predict::{Confidence, History, LEAST_ASK_BYTES, Need, Run};
use proptest::prelude::*;

fn run() -> impl Strategy<Value = Run> {
    let need = prop_oneof![4 => (0.0..1e12).prop_map(Need::Exactly), 1 => (0.0..1e12).prop_map(Need::MoreThan)];
    (prop_oneof![Just(0.0), 0.0..1e13], 0.0f64..64.0, need, prop_oneof![Just(0.0), 0.0..1e6])
        .prop_map(|(size, option, need, seconds)| Run { features: vec![size, option.floor()], need, seconds })
}

fn learnt(runs: &[Run]) -> History {
    let mut history = History::new(Confidence::default());
    runs.iter().for_each(|run| history.learn(run.clone()));
    history
}

proptest! {
    #[test]
    fn answers_are_finite_and_in_order(
        runs in prop::collection::vec(run(), 0..60), size in 0.0..1e14, option in 0.0..100.0, requested in prop::option::of(1.0..1e12)
    ) {
        let history = learnt(&runs);
        let Ok(forecast) = history.ask(&[size, option], requested) else {
            prop_assert!(history.completed() < 3);
            return Ok(());
        };
        prop_assert!(forecast.ask_bytes >= LEAST_ASK_BYTES && forecast.ask_bytes.is_finite(), "{forecast:?}");
        prop_assert!(forecast.ask_bytes >= forecast.predicted_bytes, "{forecast:?}");
        prop_assert!(forecast.interval_bytes.0 <= forecast.interval_bytes.1 && forecast.interval_bytes.0 >= 0.0, "{forecast:?}");
        let (least, most) = forecast.interval_bytes;
        prop_assert!((least..=most).contains(&forecast.predicted_bytes), "{forecast:?}");
        prop_assert!((0.0..1.0).contains(&forecast.probability), "{forecast:?}");
        prop_assert!(forecast.waste_byte_seconds.is_finite() && forecast.waste_byte_seconds >= 0.0, "{forecast:?}");
        let ladder: Vec<f64> = [forecast.ask_bytes].into_iter().chain(forecast.retry_bytes.clone()).collect();
        prop_assert!(ladder.windows(2).all(|pair| pair[0] < pair[1]), "{forecast:?}");
    }

    #[test]
    fn the_same_runs_give_the_same_answer(runs in prop::collection::vec(run(), 3..40), size in 0.0..1e13) {
        prop_assert_eq!(learnt(&runs).ask(&[size, 1.0], None), learnt(&runs).ask(&[size, 1.0], None));
    }

    #[test]
    fn a_run_that_was_killed_never_lowers_the_request(runs in prop::collection::vec(run(), 3..40), killed in run(), size in 0.0..1e13) {
        let (mut history, asked) = (learnt(&runs), [size, 1.0]);
        let Ok(before) = history.ask(&asked, None) else { return Ok(()) };
        let (Need::Exactly(limit) | Need::MoreThan(limit)) = killed.need;
        history.learn(Run { need: Need::MoreThan(limit), ..killed });
        prop_assert!(history.ask(&asked, None).unwrap().ask_bytes >= before.ask_bytes);
    }

    #[test]
    fn needs_that_are_a_line_are_met_exactly(slope in 0.1..10.0, intercept in 0.0..1e9, size in 1e9..2e10) {
        let line = |size: f64| intercept + slope * size;
        let sizes = (1..=25).map(|run| 1e9 * f64::from(run * 7 % 26));
        let runs: Vec<Run> =
            sizes.map(|size| Run { features: vec![size, 1.0], need: Need::Exactly(line(size)), seconds: 10.0 }).collect();
        let forecast = learnt(&runs).ask(&[size, 1.0], None).unwrap();
        prop_assert!(forecast.ask_bytes >= line(size) * 0.999 && forecast.ask_bytes <= line(size) * 1.1, "{forecast:?} {}", line(size));
    }
}

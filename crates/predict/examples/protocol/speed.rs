//! How long learning and asking take.

use std::time::Instant;

use predict::{Confidence, History, Need, Run};

const ASKED: u32 = 50;

/// Prints a table of times by the number of past runs, with one feature and with four.
pub fn print() {
    println!(
        "| past runs | features | learning all (ms) | learning one more (µs) | asking, median (ms) | asking, longest (ms) |"
    );
    println!("|---|---|---|---|---|---|");
    for count in [100u32, 1000, 10_000] {
        for features in [1, 4] {
            let mut history = History::new(Confidence::default());
            let begun = Instant::now();
            for index in 0..count {
                history.learn(run(index, features));
            }
            let learnt = begun.elapsed();
            let (mut copy, next) = (history.clone(), run(count, features));
            let begun = Instant::now();
            copy.learn(next);
            let one = begun.elapsed();
            let mut asked: Vec<f64> = (0..ASKED)
                .map(|index| {
                    let features = run(count + index, features).features;
                    let begun = Instant::now();
                    let forecast = history.ask(&features, None);
                    assert!(forecast.is_ok());
                    begun.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            asked.sort_by(f64::total_cmp);
            let (median, longest) = (asked[asked.len() / 2], asked[asked.len() - 1]);
            let (all, one) = (learnt.as_secs_f64() * 1e3, one.as_secs_f64() * 1e6);
            println!("| {count} | {features} | {all:.1} | {one:.0} | {median:.2} | {longest:.2} |");
        }
    }
}

/// Sizes and noise that do not repeat.
fn run(index: u32, features: u32) -> Run {
    let fraction = |times: f64| (f64::from(index + 1) * times).fract();
    let size = 1e9 * 64f64.powf(fraction(0.618_034));
    let others = (1..features).map(|feature| (16.0 * fraction(0.414_214 * f64::from(feature))).floor());
    let bytes = 5e8 + 2.0 * size * (1.0 + 0.05 * fraction(0.732_051));
    Run { features: [size].into_iter().chain(others).collect(), need: Need::Exactly(bytes), seconds: 60.0 }
}

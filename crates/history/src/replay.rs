//! What intermittent tracking would have made of a run that was tracked all the time.

use std::path::Path;

use anyhow::ensure;
use curve::intermittent::{Interval, Settings, Threshold, replay as follow};
use model::{PagesRound, ReplayedArm, ReplayedRecord};
use record::Record;
use report::html::Followed;

/// The fixed thresholds of the paper's Table 1.
const FIXED: [f64; 6] = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3];

/// One record through all arms, and how the adaptive one went.
///
/// # Errors
/// A sentence if it was not tracked all the time, or holds no interval whose working set is known.
pub fn replayed(record: &Record, path: &Path, settings: Settings) -> anyhow::Result<(ReplayedRecord, Followed)> {
    ensure!(
        record.pages.iter().all(|round| round.tracking),
        "'{}' was not tracked all the time, so that nobody knows what was missed; record it with \
         `bursar watch --always --record FILE`",
        path.display()
    );
    // Of an interval in which no look was made there is no truth.
    let rounds: Vec<&PagesRound> = record.pages.iter().filter(|round| round.wss_bytes.is_some()).collect();
    ensure!(!rounds.is_empty(), "'{}' holds no interval whose working set is known", path.display());
    let run: Vec<Interval> = rounds.iter().map(|round| interval(round)).collect();
    let units: Vec<f64> = rounds[0].signals.iter().map(|signal| signal.unit).collect();
    let cost = |on: &dyn Fn(usize) -> bool| {
        let costs = rounds.iter().enumerate().filter(|(at, _)| on(*at)).map(|(_, round)| round.overhead.share());
        costs.sum::<f64>() / rounds.len() as f64
    };
    let always = ReplayedArm {
        threshold: "none".into(),
        up_ratio: 1.0,
        mean_relative_error: 0.0,
        overhead_share: cost(&|_| true),
    };
    let mut arms = vec![always];
    let mut figure = Followed::default();
    let fixed = FIXED.map(|share| (share.to_string(), Threshold::Fixed(share)));
    for (name, threshold) in fixed.into_iter().chain([("adaptive".into(), settings.threshold)]) {
        let Some(replay) = follow(Settings { threshold, ..settings }, &units, &run) else { continue };
        arms.push(ReplayedArm {
            threshold: name,
            up_ratio: replay.up_ratio,
            mean_relative_error: replay.mean_relative_error,
            overhead_share: cost(&|at| replay.on[at]),
        });
        figure = Followed { wss: replay.wss, on: replay.on, told: replay.told, ..Followed::default() };
    }
    let signals: Vec<String> = rounds[0].signals.iter().map(|signal| signal.name.clone()).collect();
    let name = path.display().to_string();
    let values = |at: usize| run.iter().map(|interval| interval.events.get(at).copied().unwrap_or(0.0)).collect();
    let figure = Followed {
        name: name.clone(),
        seconds: rounds.iter().map(|round| round.t_ns as f64 / 1e9).collect(),
        signals: signals.iter().enumerate().map(|(at, signal)| (signal.clone(), values(at))).collect(),
        ..figure
    };
    let header = &record.header;
    let replayed = ReplayedRecord {
        record: name,
        command: header.command.join(" "),
        hot_set: header.options.get("hot-set").is_none_or(|hot_set| hot_set == "true"),
        intervals: rounds.len() as u64,
        signals,
        arms,
    };
    Ok((replayed, figure))
}

fn interval(round: &PagesRound) -> Interval {
    Interval { seen: round.into(), events: round.signals.iter().map(|signal| signal.value).collect() }
}

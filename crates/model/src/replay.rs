//! What intermittent tracking would have made of runs that were tracked all the time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `bursar report --phases`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PhaseReplay {
    /// Each record by itself.
    pub records: Vec<ReplayedRecord>,
    /// All of them: mean and worst.
    pub arms: Vec<ReplayArm>,
}

/// One record.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ReplayedRecord {
    /// Its file.
    pub record: String,
    /// The observed target.
    pub command: String,
    /// Whether hot pages were left in peace (the dynamic hot set).
    pub hot_set: bool,
    /// Intervals.
    pub intervals: u64,
    /// Names of the signals.
    pub signals: Vec<String>,
    /// By threshold.
    pub arms: Vec<ReplayedArm>,
}

/// One record at one threshold.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ReplayedArm {
    /// `none` (always on), `adaptive`, or a fixed share.
    pub threshold: String,
    /// Share of the intervals in which memory would have been tracked.
    pub up_ratio: f64,
    /// Mean of |true - told| / true working set.
    pub mean_relative_error: f64,
    /// What looking would have cost, as a share of one processor; intervals without tracking taken for free.
    pub overhead_share: f64,
}

/// All records of one kind at one threshold.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ReplayArm {
    /// Whether hot pages were left in peace.
    pub hot_set: bool,
    /// As [`ReplayedArm::threshold`].
    pub threshold: String,
    /// Mean of the records.
    pub up_ratio: f64,
    /// The largest.
    pub worst_up_ratio: f64,
    /// Mean of the records.
    pub mean_relative_error: f64,
    /// The largest.
    pub worst_mean_relative_error: f64,
    /// Mean of the records.
    pub overhead_share: f64,
    /// The largest.
    pub worst_overhead_share: f64,
}

impl PhaseReplay {
    /// Of these records; those with and without the hot set are kept apart.
    pub fn of(records: Vec<ReplayedRecord>) -> PhaseReplay {
        let mut arms = Vec::new();
        for hot_set in [false, true] {
            let of_kind: Vec<_> = records.iter().filter(|record| record.hot_set == hot_set).collect();
            let thresholds = of_kind.first().map_or(&[][..], |record| &record.arms);
            for (at, ReplayedArm { threshold, .. }) in thresholds.iter().enumerate() {
                let same: Vec<_> = of_kind.iter().filter_map(|record| record.arms.get(at)).collect();
                let mean =
                    |of: fn(&ReplayedArm) -> f64| same.iter().map(|arm| of(arm)).sum::<f64>() / same.len() as f64;
                let worst = |of: fn(&ReplayedArm) -> f64| same.iter().map(|arm| of(arm)).fold(0.0, f64::max);
                arms.push(ReplayArm {
                    hot_set,
                    threshold: threshold.clone(),
                    up_ratio: mean(|arm| arm.up_ratio),
                    worst_up_ratio: worst(|arm| arm.up_ratio),
                    mean_relative_error: mean(|arm| arm.mean_relative_error),
                    worst_mean_relative_error: worst(|arm| arm.mean_relative_error),
                    overhead_share: mean(|arm| arm.overhead_share),
                    worst_overhead_share: worst(|arm| arm.overhead_share),
                });
            }
        }
        PhaseReplay { records, arms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_with_and_without_the_hot_set_are_kept_apart() {
        let record = |hot_set, up_ratio| ReplayedRecord {
            hot_set,
            arms: vec![ReplayedArm { threshold: "adaptive".into(), up_ratio, ..ReplayedArm::default() }],
            ..ReplayedRecord::default()
        };
        let replay = PhaseReplay::of(vec![record(true, 0.1), record(false, 0.9), record(true, 0.3)]);
        let found: Vec<_> = replay.arms.iter().map(|arm| (arm.hot_set, arm.up_ratio, arm.worst_up_ratio)).collect();
        assert_eq!(found, [(false, 0.9, 0.9), (true, 0.2, 0.3)]);
    }
}

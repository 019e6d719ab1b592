//! The replay of intermittent tracking in sentences and tables.

use model::{PhaseReplay, ReplayedArm};

use crate::format::{count, percent, printable};
use crate::tables::{Table, Tone};

/// The paper's best.
const ADAPTIVE: &str = "adaptive";

/// The answer: what the adaptive threshold gives.
pub fn headline(replay: &PhaseReplay) -> String {
    let adaptive = || replay.arms.iter().filter(|arm| arm.threshold == ADAPTIVE);
    match adaptive().find(|arm| arm.hot_set).or(adaptive().next()) {
        Some(arm) => format!(
            "with the adaptive threshold tracking is off {} of the time, at a mean relative error of {}",
            percent(Some(1.0 - arm.up_ratio)),
            percent(Some(arm.mean_relative_error))
        ),
        None => "no record was replayed".into(),
    }
}

/// The arms: mean and worst of all records.
pub fn arms_table(replay: &PhaseReplay) -> Table {
    let mut table =
        Table::new(&["hot set, threshold", "up ratio", "worst", "relative error", "worst", "scanning costs", "worst"]);
    for arm in &replay.arms {
        let tone = if arm.threshold == ADAPTIVE { Tone::Strong } else { Tone::Plain };
        let name = format!("{}, {}", if arm.hot_set { "on" } else { "off" }, threshold(&arm.threshold));
        let figures = [
            arm.up_ratio,
            arm.worst_up_ratio,
            arm.mean_relative_error,
            arm.worst_mean_relative_error,
            arm.overhead_share,
            arm.worst_overhead_share,
        ];
        table.row(tone, std::iter::once(name).chain(figures.map(|share| percent(Some(share)))).collect());
    }
    table
}

/// Each record: always on, and the adaptive threshold.
pub fn records_table(replay: &PhaseReplay) -> Table {
    let mut table =
        Table::new(&["record", "hot set", "intervals", "up ratio", "relative error", "scanning costs", "of"]);
    for record in &replay.records {
        let of = |name: &str| record.arms.iter().find(|arm| arm.threshold == name);
        let share = |arm: Option<&ReplayedArm>, of: fn(&ReplayedArm) -> f64| percent(arm.map(of));
        table.row(
            Tone::Plain,
            vec![
                printable(&record.record),
                if record.hot_set { "on" } else { "off" }.into(),
                count(Some(record.intervals)),
                share(of(ADAPTIVE), |arm| arm.up_ratio),
                share(of(ADAPTIVE), |arm| arm.mean_relative_error),
                share(of(ADAPTIVE), |arm| arm.overhead_share),
                share(of("none"), |arm| arm.overhead_share),
            ],
        );
    }
    table
}

fn threshold(name: &str) -> String {
    match name {
        "none" => "always on".into(),
        ADAPTIVE => "adaptive".into(),
        fixed => format!("fixed {fixed}"),
    }
}

#[cfg(test)]
pub mod tests {
    use model::ReplayedRecord;

    use super::*;

    pub fn replay() -> PhaseReplay {
        let arm = |threshold: &str, up_ratio, mean_relative_error| ReplayedArm {
            threshold: threshold.into(),
            up_ratio,
            mean_relative_error,
            overhead_share: up_ratio * 0.02,
        };
        let record = |name: &str, up| ReplayedRecord {
            record: name.into(),
            command: "solve".into(),
            hot_set: true,
            intervals: 100,
            signals: vec!["DTLB misses".into()],
            arms: vec![arm("none", 1.0, 0.0), arm("0.05", 0.5, 0.06), arm(ADAPTIVE, up, 0.04)],
        };
        PhaseReplay::of(vec![record("<a>.bursar", 0.1), record("b.bursar", 0.3)])
    }

    #[test]
    fn the_answer_is_the_adaptive_thresholds_and_each_arm_has_its_worst_beside_it() {
        let replay = replay();
        assert!(headline(&replay).contains("off 80 % of the time"), "{}", headline(&replay));
        let rows: Vec<_> = arms_table(&replay).rows.into_iter().map(|(_, cells)| cells.join("|")).collect();
        assert_eq!(rows[1], "on, fixed 0.05|50 %|50 %|6 %|6 %|1 %|1 %");
        assert_eq!(rows[2], "on, adaptive|20 %|30 %|4 %|4 %|0.4 %|0.6 %");
        assert_eq!(records_table(&replay).rows.len(), 2);
        assert!(headline(&PhaseReplay::default()).contains("no record"));
    }
}

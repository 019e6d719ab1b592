//! Memory that cannot be reclaimed and is missing from the figures: a run may need more than they say.

use crate::Verdict;
use model::{Bytes, Doubt, DoubtKind, Observation, RunAccount};

use super::figures::Figure;
use super::judge::Checked;

type Runs = [(Observation, RunAccount)];

/// Why figures that have not failed decide nothing. A figure that was named is only its own part of the memory.
pub fn undecided(checked: &[Checked], is_named: bool, runs: &Runs, baseline: &Runs) -> Option<String> {
    if checked.iter().any(|checked| checked.finding.verdict == Some(Verdict::Failed)) {
        return None;
    }
    let holds_all = |figure: Figure| !is_named || matches!(figure, Figure::Floor | Figure::PeakCharge);
    checked.iter().filter(|checked| holds_all(checked.figure)).find_map(|checked| match checked.baseline {
        None => runs.iter().find_map(|(run, account)| above_maximum(checked, run, account)),
        Some(_) => in_most(runs, "the runs").or_else(|| in_most(baseline, "the baseline")),
    })
}

/// Where a run was above the maximum if it held what is missing from its figure.
fn above_maximum(checked: &Checked, run: &Observation, account: &RunAccount) -> Option<String> {
    let (figure, max) = (checked.figure, checked.finding.bound);
    let value = figure.beside_limit(max, run, account)?;
    let missing: u64 = account.doubts.iter().filter_map(|doubt| at_most(doubt, run)).sum();
    let doubt = account.doubts.iter().max_by_key(|doubt| doubt.missing_bytes())?;
    (value + missing as f64 > max).then(|| {
        format!(
            "{} {} is at most the maximum of {}, but {}",
            figure.name(),
            figure.text(value),
            Bytes(max as u64),
            doubt.sentence
        )
    })
}

/// The most that is missing from what the processes of a run held together, bytes.
pub fn missing_at_most(run: &Observation, account: &RunAccount) -> u64 {
    account.doubts.iter().filter(|doubt| doubt.missing_from_peak).filter_map(|doubt| at_most(doubt, run)).sum()
}

/// The most that a doubt says is missing. Of files in memory samples saw a part; no more is in them than was read and written there.
fn at_most(doubt: &Doubt, run: &Observation) -> Option<u64> {
    let missing = doubt.missing_bytes()?;
    let demand = run.file_demand.as_ref().filter(|_| doubt.kind == DoubtKind::FilesInMemory);
    let moved = demand.and_then(|demand| demand.not_visible.iter().find(|(what, _)| what == "tmpfs")?.1);
    Some(missing.max(moved.unwrap_or(0)))
}

/// Where the figures of most of these runs lack memory.
fn in_most(runs: &Runs, of: &str) -> Option<String> {
    let largest = |account: &RunAccount| {
        let missing = account.doubts.iter().filter(|doubt| doubt.missing_bytes().is_some());
        missing.max_by_key(|doubt| doubt.missing_bytes()).map(|doubt| doubt.sentence.clone())
    };
    let found: Vec<String> = runs.iter().filter_map(|(_, account)| largest(account)).collect();
    let sentence = found.first().filter(|_| 2 * found.len() > runs.len())?;
    Some(format!("memory is missing from the figures of {of}: {sentence}"))
}

#[cfg(test)]
mod tests {
    use model::{FileDemand, RunRole, Target};

    use super::*;

    #[test]
    fn of_files_in_memory_as_much_may_be_missing_as_was_read_and_written_there() {
        let doubt = |kind| Doubt {
            kind,
            bytes: Some(8),
            voids: false,
            missing_from_peak: false,
            sentence: "at least 8 B".into(),
        };
        let not_visible = vec![("tmpfs".to_string(), Some(100))];
        let file_demand = Some(FileDemand { not_visible, ..FileDemand::default() });
        let begun = Observation::begun(0, RunRole::Plain, Target::Command, String::new(), 0);
        let run = Observation { file_demand, ..begun.clone() };
        assert_eq!(at_most(&doubt(DoubtKind::FilesInMemory), &run), Some(100));
        assert_eq!(at_most(&doubt(DoubtKind::FilesInMemory), &begun), Some(8));
        assert_eq!(at_most(&doubt(DoubtKind::LeftCgroup), &run), Some(8));
    }
}

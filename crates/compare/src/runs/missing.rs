//! Memory that cannot be reclaimed and is missing from the figures: a run may need more than they say.

use crate::Verdict;
use model::{Bytes, Doubt, Observation, RunAccount};

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
    let missing: u64 = account.doubts.iter().filter_map(Doubt::missing_bytes).sum();
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

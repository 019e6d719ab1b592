//! Why a search's answer may not be about the command.

use model::{Answer, Doubt, DoubtKind, Exit, Observation, Outcome, RunAccount, RunRole, Trial};
use record::Record;

/// Of all runs, the gravest first, each kind once.
pub fn of(record: &Record) -> Vec<Doubt> {
    let whole = |run: &&Observation| run.role != RunRole::Part;
    let is_complete = |run: &&Observation| run.exit == Exit::Status(0);
    let unlimited: Vec<&Observation> =
        record.runs.iter().filter(is_complete).filter(|run| run.limit_bytes.is_none()).collect();
    // Files that were cached before are evicted from then on: the last run shows what is left of that.
    let last = unlimited.iter().rev().find(|run| whole(run)).map_or(0, |run| run.run);
    let mut found: Vec<Doubt> = Vec::new();
    for run in &unlimited {
        let doubts = record.accounts.get(&run.run).map_or(&[][..], |account| &account.doubts);
        for doubt in doubts.iter().filter(|doubt| doubt.kind != DoubtKind::CachedBefore || run.run >= last) {
            match found.iter_mut().find(|known| known.kind == doubt.kind) {
                Some(known) if (known.voids, known.bytes) >= (doubt.voids, doubt.bytes) => {}
                Some(known) => *known = doubt.clone(),
                None => found.push(doubt.clone()),
            }
        }
    }
    let limited = record.runs.iter().filter(whole).filter(is_complete);
    let not_held = limited.filter_map(|run| not_held(run, &record.trials, record.header.page_bytes));
    found.extend(not_held.max_by_key(|doubt| doubt.bytes));
    let passed = |run: &&Observation| {
        run.limit_bytes.is_none()
            || record.trials.iter().any(|trial| trial.run == run.run && trial.outcome == Outcome::Ok)
    };
    let equal: Vec<&Observation> = record.runs.iter().filter(whole).filter(is_complete).filter(passed).collect();
    found.extend(account::evidence::work_differs(&equal));
    if account::evidence::is_void(&found) {
        found.retain(|doubt| doubt.voids);
    }
    found
}

/// Whether its limit did not hold, of a run on which the answer rests: a step of the search from the largest that was too little on.
/// One that was too slow with more than its limit says would have been with less.
fn not_held(run: &Observation, trials: &[Trial], page_bytes: u64) -> Option<Doubt> {
    let steps = || trials.iter().filter(|trial| trial.method.is_none());
    let limits =
        |of: fn(Outcome) -> bool| steps().filter(move |trial| of(trial.outcome)).filter_map(|trial| trial.limit_bytes);
    let enough = limits(|outcome| outcome == Outcome::Ok).min();
    let too_little =
        limits(|outcome| outcome != Outcome::Ok).filter(|limit| enough.is_none_or(|enough| *limit < enough)).max();
    let trial = steps().find(|trial| trial.run == run.run && trial.limit_bytes >= too_little)?;
    match trial.outcome {
        Outcome::Ok => account::evidence::limit_not_held(run, page_bytes),
        _ => account::evidence::mapped_stays(run),
    }
}

/// The answer as far as it can be trusted: no limit at all where nothing is known of the command.
pub fn weighed(answer: Answer, doubts: &[Doubt]) -> Answer {
    if account::evidence::is_void(doubts) {
        return Answer { reason: "What was measured is not the command.".into(), ..Answer::default() };
    }
    Answer { confident: answer.confident && doubts.is_empty(), ..answer }
}

/// Whether a search need not go on.
pub fn end_it(account: &RunAccount) -> bool {
    account::evidence::is_void(&account.doubts)
}

#[cfg(test)]
mod tests {
    use model::{EmulatedLimit, Method, Target};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn trial(run: u32, limit_mib: u64, outcome: Outcome) -> Trial {
        Trial::new(run, Some(limit_mib * MIB), outcome)
    }

    #[test]
    fn a_limit_that_did_not_hold_is_told_of_the_runs_on_which_the_answer_rests() {
        let trials = [
            Trial { method: Some(Method::AppMaxRss), ..trial(1, 2, Outcome::Ok) },
            trial(2, 3, Outcome::TooSlow),
            trial(3, 80, Outcome::TooSlow),
            trial(4, 90, Outcome::Ok),
        ];
        let told = |run: u32, emulated: EmulatedLimit| {
            let limit_bytes = trials.iter().find(|trial| trial.run == run).and_then(|trial| trial.limit_bytes);
            let mut seen = Observation::begun(run, RunRole::Trial, Target::Command, String::new(), 0);
            (seen.limit_bytes, seen.evidence.emulated) = (limit_bytes, Some(emulated));
            not_held(&seen, &trials, 4096).is_some()
        };
        let had_more = EmulatedLimit { above_bytes: 40 * MIB, ..EmulatedLimit::default() };
        assert_eq!([1, 2, 3, 4].map(|run| told(run, had_more)), [false, false, false, true]);
        let mapped = EmulatedLimit { mapped_bytes: 40 * MIB, ..EmulatedLimit::default() };
        assert_eq!([1, 2, 3, 4].map(|run| told(run, mapped)), [false, false, true, true]);
    }
}

//! Why a search's answer may not be about the command.

use model::{Answer, Doubt, DoubtKind, Exit, Observation, Outcome, RunAccount, RunRole};
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
    let page_bytes = record.header.page_bytes;
    let not_held = limited.filter_map(|run| account::evidence::limit_not_held(run, page_bytes));
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

//! From what a search saw to its answer and its report.

use budget::{Settings, Step};
use model::{Answer, BudgetReport, Bytes, Doubt, DoubtKind, LimitSource, Trial};
use session::cache::foreign_note;

use crate::executor::Executor;
use crate::runtime::Sizing;
use crate::search::Search;

/// The least answer where limits are emulated.
const LEAST_BUDGET_BYTES: u64 = 1 << 20;

impl<E: Executor> Search<'_, E> {
    /// Whether the program sizes itself by its limit: its runtime is known to, or the trials show it.
    pub(crate) fn sizes_itself(&self) -> bool {
        match &self.sizing {
            Some(sizing) => sizing.follows_limit(),
            None => budget::held_less(&self.seen).is_some(),
        }
    }

    /// A program that asks how much it may have is not told of an emulated limit, but by a setting.
    pub(crate) fn not_limited(&self) -> Option<Doubt> {
        let is_set = matches!(self.sizing, Some(Sizing::Set(_)));
        let is_unaware =
            self.executor.emulates_limits() && self.sizing.as_ref().is_some_and(Sizing::follows_limit) && !is_set;
        is_unaware.then(|| Doubt {
            kind: DoubtKind::LimitNotHeld,
            bytes: None,
            voids: false,
            missing_from_peak: false,
            sentence: "it sizes itself by its limit, and cannot see one that is emulated".into(),
        })
    }

    /// An emulated limit kills nobody: an answer is at least what the runs held that cannot be reclaimed, as far as anybody knows, and never
    /// so little that whoever enforces it takes it for none.
    pub(crate) fn no_less_than_held(&self, answer: Answer, doubts: &[Doubt]) -> Answer {
        let largest = self.record.accounts.values().filter_map(|account| account.app_max_rss_bytes).max();
        // With the tables of its pages: eight bytes for each, and the tables above them.
        let with_tables = |heap: u64| heap + heap / 256;
        let together = self.record.runs.iter().filter_map(account::heap_together).map(with_tables).max();
        let bounds = doubts.iter().filter(|doubt| doubt.kind == DoubtKind::BetweenBounds);
        let at_most = bounds.filter_map(|doubt| doubt.bytes).max();
        let held = self.seen.floor_bytes().or(largest).max(together).max(at_most).unwrap_or(0).max(LEAST_BUDGET_BYTES);
        Answer { budget_bytes: answer.budget_bytes.map(|bytes| bytes.max(held)), ..answer }
    }

    /// The notes that change how the answer must be read.
    pub(crate) fn notes_of_answer(&self, report: &BudgetReport) -> Vec<String> {
        let of_record = self.record.notes.iter().cloned().chain(self.executor.machine_notes(&self.record));
        // Where it is not sure, the reason has the advice; a setting is told with the answer.
        let advice = self.advice(&report.answer).filter(|_| report.answer.confident && report.setting.is_none());
        of_record.chain(advice).chain(self.why_no_curve()).collect()
    }

    /// What the runtime that sizes itself asks of the reader, where one is known.
    fn advice(&self, answer: &Answer) -> Option<String> {
        let sizes = answer.budget_bytes.zip(answer.smallest_passing_bytes);
        self.sizing.as_ref().zip(sizes).and_then(|(sizing, (budget, tried))| sizing.advice(budget, tried))
    }

    /// Where no curve of the page cache was made: that, and what the first run noted.
    fn why_no_curve(&self) -> Vec<String> {
        if self.seen.demand.is_some() || self.seen.references.is_empty() {
            return Vec::new();
        }
        let noted = self.record.runs.first().into_iter().flat_map(|run| run.notes.iter().cloned());
        let said = "There is no file demand curve, so the search had nothing to go by but the floor.".to_string();
        std::iter::once(said).chain(noted).collect()
    }

    /// The answer as far as it goes: what the planner would say if it may make no more trials.
    pub(crate) fn partial(&self) -> Answer {
        let no_more = Settings {
            max_trials: 0,
            compare: false,
            runs: Some(self.seen.references.len() as u32),
            ..self.settings.clone()
        };
        let answer = match budget::next(&no_more, &self.seen) {
            Step::Done(answer) if !self.seen.references.is_empty() => answer,
            _ => Answer::default(),
        };
        // The planner's reason would be that it may make no more trials.
        let has_tried =
            answer.budget_bytes.is_some() || self.seen.trials.iter().any(|trial| trial.limit_bytes.is_some());
        let what = if has_tried { "it was done" } else { "any limit was tried" };
        Answer { confident: false, reason: format!("Interrupted before {what}."), ..answer }
    }

    pub(crate) fn report(&self, answer: Answer) -> BudgetReport {
        let methods = budget::methods(&self.settings, &self.seen, &answer);
        // As they are judged now: a reference made later may have shown that the machine was slower then.
        let judged = |trial: &Trial| self.seen.trials.iter().find(|t| t.run == trial.run).unwrap_or(trial).clone();
        let reference = self.seen.reference();
        let scout = reference.map_or(0.0, |reference| self.scout_seconds / reference.median);
        let mut notes = self.record.notes.clone();
        notes.extend(self.executor.machine_notes(&self.record));
        notes.extend(self.why_no_curve());
        notes.extend(self.seen.demand.as_ref().and_then(foreign_note));
        notes.extend(budget::method_notes(&self.settings, &self.seen));
        let sizes = answer.budget_bytes.zip(answer.smallest_passing_bytes);
        let advice = self.advice(&answer);
        // Where no runtime is known, nothing says by what rule it does.
        let held_less = budget::held_less(&self.seen).filter(|_| self.sizing.is_none());
        let advice = advice.or_else(|| {
            held_less.map(|found| {
                // Of an emulated limit the program knows nothing.
                if self.executor.emulates_limits() {
                    return format!(
                        "But its runs differ: one never had more than {}, and others held {}.",
                        Bytes(found.peak_bytes),
                        Bytes(found.held_bytes)
                    );
                }
                format!(
                    "But the program sizes itself by its limit, or does not do the same every time: under a limit of {} it never had \
                     more than {}, and without one it held {}. A fixed size, if it has such a setting, makes the answer certain.",
                    Bytes(found.limit_bytes),
                    Bytes(found.peak_bytes),
                    Bytes(found.held_bytes)
                )
            })
        });
        let answer = Answer {
            confident: answer.confident && held_less.is_none(),
            reason: [Some(answer.reason), advice].into_iter().flatten().collect::<Vec<_>>().join(" "),
            ..answer
        };
        if self.sizing.is_none() {
            notes.push(
                "Programs that size their caches by the limit they see (databases) were measured doing so: each trial shows \
                 what the program does under that limit."
                    .into(),
            );
        }
        let trials: Vec<Trial> = self.record.trials.iter().map(judged).collect();
        BudgetReport {
            nodes: budget::nodes(&trials, &answer),
            answer,
            slowdown_target: self.settings.slowdown,
            reference_seconds: reference.map(|spread| spread.median),
            reference_stddev_seconds: budget::stddev_seconds(&self.settings, &self.seen),
            run_times_used: self.seen.run_times_used().map(|used| used + scout),
            compare_run_times: self.seen.compare_run_times(),
            floor_bytes: self.seen.floor_bytes(),
            placement: self.record.header.placement.clone(),
            limit_source: self.executor.emulates_limits().then_some(LimitSource::Emulated),
            swap: self.record.header.swap.clone(),
            fast_tier: self.options.fast_tier.map(|tier| tier.to_string()),
            setting: self.sizing.as_ref().zip(sizes).and_then(|(sizing, (_, tried))| sizing.setting(tried)),
            cache_state: self.executor.cache_state(),
            methods,
            trials,
            doubts: Vec::new(),
            file_demand: self.seen.demand.clone(),
            notes,
        }
    }
}

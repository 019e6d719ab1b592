//! What a record says, for people: tables for a terminal, one self-contained HTML page.
//!
//! Everything is made from a [`View`] of a record; nothing is measured here. A figure that could not be had is shown as
//! `-`, never as 0.

mod answer;
mod arms;
mod attribution;
pub mod balance;
pub mod check;
mod comm;
mod decisions;
mod demand;
mod diff;
mod faults;
mod figures;
#[cfg(test)]
#[path = "../tests/fixture/mod.rs"]
mod fixture;
mod format;
pub mod html;
mod interval;
pub mod jobs;
mod phases;
pub mod predict;
mod processes;
mod repeated;
mod run_figures;
mod tables;
mod tasks;
pub mod terminal;
mod trace;
mod verdict;
mod watch;

use model::{BudgetReport, Header, Observation, RunAccount, RunRole, Trial};

pub use answer::{limit_lines, paste_lines};
pub use attribution::{Attributed, BY_LIBRARY, FilesInMemory, SCALING, files_in_memory};
pub use decisions::{DecisionsJson, decisions};
pub use diff::{Diff, DiffRow, DiffSet, DiffUnit, DiffValue};
pub use faults::Faulted;
pub use format::{seconds, shell_word};
pub use interval::interval_line;
pub use repeated::{RUNS, Unfinished, is_complete};
pub use run_figures::{RunFigures, run_figures};
pub use tasks::{LeftOut, RuleTasks, Spread, Tasks};
pub use verdict::are_apart;
pub use watch::{Totals, Watched, bound_by_huge_pages};

/// What a report is made from: a record and the accounts of its runs.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// Where, when and of what the record is.
    pub header: &'a Header,
    /// The runs in their order, each with its account.
    pub runs: Vec<(&'a Observation, &'a RunAccount)>,
    /// The answer of `bursar budget`.
    pub budget: Option<&'a BudgetReport>,
    /// The finished trials; the ones in `budget`, or what there is when the search was cut short.
    pub trials: &'a [Trial],
    /// Notes on the record itself, as sentences.
    pub notes: &'a [String],
    /// The record has its end: nothing was cut off.
    pub complete: bool,
}

impl<'a> View<'a> {
    /// The runs that show the need itself: not held back by a trial's limit, and where several were asked for, come to their end. All of
    /// them if there are no such runs.
    fn plain_runs(&self) -> Vec<(&'a Observation, &'a RunAccount)> {
        let plain = |role| matches!(role, RunRole::Plain | RunRole::Reference);
        let chosen: Vec<_> = self.runs.iter().copied().filter(|(run, _)| plain(run.role)).collect();
        let chosen = if chosen.is_empty() { self.runs.clone() } else { chosen };
        let are_several = repeated::asked(self.header).is_some();
        let complete: Vec<_> = chosen.iter().copied().filter(|(run, _)| are_several && is_complete(run)).collect();
        if complete.is_empty() { chosen } else { complete }
    }

    /// What is missing of several runs that were asked for.
    fn unfinished(&self) -> Option<Unfinished> {
        Unfinished::of(self.header, &self.runs.iter().map(|(run, _)| *run).collect::<Vec<_>>())
    }

    /// What the ranks or nodes of a run showed.
    fn parts_of(&self, whole: &Observation) -> Vec<(&'a Observation, &'a RunAccount)> {
        let after = self.runs.iter().copied().skip_while(|(run, _)| run.run <= whole.run);
        after.take_while(|(run, _)| run.role == RunRole::Part).collect()
    }

    /// The run whose figures stand for all equal ones: the one with the highest peak.
    fn foremost_run(&self) -> Option<(&'a Observation, &'a RunAccount)> {
        self.plain_runs().into_iter().max_by_key(|(run, account)| (verdict::need(account), std::cmp::Reverse(run.run)))
    }

    /// All trials, those of a finished search first.
    fn all_trials(&self) -> &'a [Trial] {
        match self.budget {
            Some(report) if report.trials.len() >= self.trials.len() => &report.trials,
            _ => self.trials,
        }
    }

    /// The notes on the record, and those of the answer that are not among them.
    fn all_notes(&self) -> Vec<String> {
        let answer = self.budget.iter().flat_map(|report| &report.notes).filter(|note| !self.notes.contains(note));
        self.notes.iter().chain(answer).cloned().collect()
    }

    /// The command line as one would type it.
    fn command(&self) -> String {
        self.header.command.iter().map(|word| format::shell_word(word)).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
impl fixture::Parts {
    pub(crate) fn view(&self) -> View<'_> {
        View {
            header: &self.header,
            runs: self.runs.iter().map(|(observation, account)| (observation, account)).collect(),
            budget: self.budget.as_ref(),
            trials: self.budget.as_ref().map_or(&[], |report| &report.trials),
            notes: &[],
            complete: true,
        }
    }
}

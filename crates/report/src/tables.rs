//! The tables that every report shows.

use std::iter::once;

use model::{BudgetReport, FileDemand, Observation, Outcome, ProcessRecord, RunAccount, Trial};

use crate::figures::{RunsFigure, memory_rows, size, spreads};
use crate::format::{self, bytes, count, opt_seconds, percent, printable, ratio, score, seconds};
use crate::verdict::{Level, are_apart, died, judge, method_name, outcome_name};
use crate::{demand, processes};

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    Dim,
    Good,
    Warning,
    Bad,
}

/// Rows of cells below a header; words to the left, figures to the right.
pub struct Table {
    /// Names of the columns.
    pub header: Vec<String>,
    /// Cells of each row, as many as columns.
    pub rows: Vec<(Tone, Vec<String>)>,
    words_last: bool,
}

impl Table {
    /// A table of these columns, the first of words.
    pub fn new(header: &[impl ToString]) -> Table {
        Table { header: header.iter().map(ToString::to_string).collect(), rows: Vec::new(), words_last: false }
    }

    /// The same with words in its last column, too.
    pub fn with_words_last(self) -> Table {
        Table { words_last: true, ..self }
    }

    /// Adds a row; it must have as many cells as the header.
    pub fn row(&mut self, tone: Tone, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push((tone, cells));
    }

    /// Whether a column holds words.
    pub fn is_words(&self, column: usize) -> bool {
        column == 0 || (self.words_last && column + 1 == self.header.len())
    }
}

/// What each rank or node showed of a merged run; `None`: it was not merged.
pub fn parts_table(runs: &[(&Observation, &RunAccount)]) -> Option<Table> {
    let mut table = Table::new(&["host", "rank", "peak charge", "heap", "RSS tree", "floor", "wall", "exit"]);
    for (run, account) in runs {
        let Some(origin) = &run.origin else { continue };
        let exit = account.exit_status.map_or_else(|| "-".to_string(), |status| status.to_string());
        let tone = if account.exit_status == Some(0) { Tone::Plain } else { Tone::Bad };
        let cells = vec![
            printable(&origin.host),
            origin.rank.map_or_else(|| "-".to_string(), |rank| rank.to_string()),
            bytes(account.peak_charge_bytes),
            bytes(account.peak_breakdown.heap),
            bytes(account.tree_max_rss_bytes),
            bytes(account.floor_bytes),
            seconds(account.wall_seconds),
            exit,
        ];
        table.row(tone, cells);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The memory figures of one run.
pub fn memory_table(account: &RunAccount) -> Table {
    let mut table = Table::new(&["memory", "total", "heap", "file", "shared", "kernel"]);
    for row in memory_rows(account) {
        let tone = if row.name.starts_with("peak") { Tone::Strong } else { Tone::Plain };
        let (most, least) = (row.parts, row.least_parts);
        let cells = [
            bounded(row.least, row.total),
            bounded(least.heap, most.heap),
            bounded(least.file, most.file),
            bounded(least.shared, most.shared),
            bounded(least.kernel, most.kernel),
        ];
        table.row(tone, once(row.name.to_string()).chain(cells).collect());
    }
    table
}

/// Both bounds, where they are clearly apart; else the lower, as in the few lines.
pub fn bounded(least: Option<u64>, most: Option<u64>) -> String {
    match least.zip(most).filter(|(least, most)| are_apart(*least, *most)) {
        Some((least, most)) => format!("{} to {}", size(least), size(most)),
        None => bytes(least.or(most)),
    }
}

/// Means and spreads over several runs.
pub fn variability_table(runs: &[(&Observation, &RunAccount)]) -> Table {
    let mut table = Table::new(&["", "mean", "± stddev", "min", "max"]);
    for RunsFigure { name, spread, text } in spreads(runs) {
        let mut cells = vec![name.to_string()];
        cells.extend([spread.mean, spread.stddev, spread.min, spread.max].map(text));
        table.row(Tone::Plain, cells);
    }
    table
}

/// The file demand curve in a few lines.
pub fn demand_table(demand: &FileDemand, seconds_per_byte: Option<f64>) -> Table {
    let mut table = Table::new(&["limit", "read again", "est. added time"]);
    let lines = demand::lines(demand, seconds_per_byte);
    let limits = format::distinct_bytes(&lines.iter().map(|line| line.limit_bytes).collect::<Vec<_>>());
    for (line, limit) in lines.into_iter().zip(limits) {
        table.row(Tone::Plain, vec![limit, size(line.refault_bytes), opt_seconds(line.estimated_seconds)]);
    }
    table
}

/// The process tree; names longer than `room` characters are cut.
pub fn process_table(records: &[ProcessRecord], room: usize) -> Table {
    let mut table = Table::new(&["", "max RSS", "CPU", "lifetime", "I/O wait"]);
    for row in processes::rows(records) {
        let name = printable(&row.command);
        let name = match row.pid {
            Some(pid) => format!("{}{name} {pid}", "  ".repeat(row.depth)),
            None => format!("{}{name} x {}", "  ".repeat(row.depth), count(Some(row.count as u64))),
        };
        let name =
            if name.chars().count() > room { name.chars().take(room - 1).chain(['…']).collect() } else { name };
        table.row(
            Tone::Plain,
            vec![
                name,
                if row.count > 1 && row.max_rss_bytes.is_some() {
                    format!("max {}", bytes(row.max_rss_bytes))
                } else {
                    bytes(row.max_rss_bytes)
                },
                opt_seconds(row.cpu_seconds),
                opt_seconds(row.lifetime_seconds),
                opt_seconds(row.io_delay_seconds),
            ],
        );
    }
    table
}

/// Every run under a limit.
pub fn trials_table(trials: &[Trial]) -> Table {
    let mut table = Table::new(&["run", "limit", "time", "ratio", "predicted", "I/O", "refaults", "peak", "outcome"])
        .with_words_last();
    for trial in trials {
        table.row(
            tone(Some(trial.outcome)),
            vec![
                trial.run.to_string(),
                trial.limit_bytes.map_or_else(|| "none".to_string(), |limit| bytes(Some(limit))),
                seconds(trial.wall_seconds),
                ratio(trial.runtime_ratio.filter(|_| !died(trial.outcome)), trial.lower_bound),
                ratio(trial.predicted_ratio, false),
                percent(trial.io_wait_share),
                format::count(trial.refaults),
                bytes(trial.peak_charge_bytes),
                happened(trial),
            ],
        );
    }
    table
}

/// How a run ended, and on which of several nodes if one was to blame.
fn happened(trial: &Trial) -> String {
    let killed = trial.nodes.iter().filter(|node| node.oom_kills.is_some_and(|kills| kills > 0));
    let hosts: Vec<String> = killed.map(|node| printable(&node.host)).collect();
    let outcome = outcome_name(trial.outcome);
    if hosts.is_empty() { outcome.to_string() } else { format!("{outcome} on {}", hosts.join(", ")) }
}

/// What each node of a job over several needs of the one limit; `None`: it ran on one machine.
pub fn nodes_table(report: &BudgetReport) -> Option<Table> {
    let passing = bytes(report.answer.smallest_passing_bytes);
    let header = ["node", "floor", "peak, no limit", "time", &format!("peak at {passing}"), "time", "OOM kills"];
    let mut table = Table::new(&header);
    for node in &report.nodes {
        let cells = vec![
            printable(&node.host),
            bytes(node.floor_bytes),
            bytes(node.peak_charge_bytes),
            opt_seconds(node.reference_seconds),
            bytes(node.peak_at_passing_bytes),
            opt_seconds(node.seconds_at_passing),
            count(node.oom_kills),
        ];
        table.row(Tone::Plain, cells);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// What each method names, and what that is made of (Figure 1).
pub fn methods_memory_table(report: &BudgetReport) -> Table {
    let mut table = Table::new(&["method", "memory", "heap", "file", "shared", "kernel", "amplif."]);
    for row in &report.methods {
        let parts = row.breakdown;
        let mut cells = vec![method_name(row.name).to_string(), bytes(row.memory_bytes)];
        cells.extend([parts.heap, parts.file, parts.shared, parts.kernel].map(bytes));
        cells.push(ratio(row.amplification, false));
        table.row(tone(row.outcome), cells);
    }
    table
}

/// What each method's budget costs (Figure 2, Table 2).
pub fn methods_time_table(report: &BudgetReport) -> Table {
    let mut table = Table::new(&["method", "time", "pred.", "± dev", "runs", "I/O", "Perf.", "Perf/GB", "outcome"])
        .with_words_last();
    for row in &report.methods {
        table.row(
            tone(row.outcome),
            vec![
                method_name(row.name).to_string(),
                ratio(row.runtime_ratio, row.lower_bound),
                ratio(row.predicted_ratio, false),
                opt_seconds(row.runtime_stddev_seconds.filter(|_| row.runs > 1)),
                row.runs.to_string(),
                percent(row.io_wait_share),
                score(row.performance, row.lower_bound),
                score(row.performance_per_gb, row.lower_bound),
                row.outcome.map_or_else(|| "not tried".to_string(), |o| outcome_name(o).to_string()),
            ],
        );
    }
    table
}

/// What to think of each method (Table 1).
pub fn judgement_table(report: &BudgetReport) -> Table {
    let mut table = Table::new(&["method", "performance", "efficiency", "variability", "verdict"]).with_words_last();
    let level = |level: Option<Level>| format::or_unknown(level, |l| l.name().to_string());
    for row in &report.methods {
        let judgement = judge(row, report);
        table.row(
            tone(row.outcome),
            vec![
                method_name(row.name).to_string(),
                level(judgement.performance),
                level(judgement.efficiency),
                level(judgement.variability),
                judgement.verdict,
            ],
        );
    }
    table
}

/// How a run ended, as a tone.
fn tone(outcome: Option<Outcome>) -> Tone {
    match outcome {
        Some(Outcome::Ok) => Tone::Plain,
        Some(Outcome::TooSlow | Outcome::Timeout) => Tone::Warning,
        Some(Outcome::Oom | Outcome::Failed) => Tone::Bad,
        None => Tone::Dim,
    }
}

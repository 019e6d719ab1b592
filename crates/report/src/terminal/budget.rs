//! The answer of a budget search and what it rests on.

use model::{BudgetReport, Bytes, MethodRow, Outcome, Trial};

use super::Style;
use super::table::{Page, Table, Tone};
use crate::figures::warnings;
use crate::format::{bytes, opt_seconds, percent, printable, ratio, score, seconds};
use crate::verdict::{Level, judge, method_name, outcome_name};
use crate::{View, demand, format};

/// The budget that was found; its first line is the answer. Of a search cut short: its trials.
pub fn budget(view: &View, style: Style) -> String {
    let mut page = Page::new(style);
    let Some(report) = view.budget else {
        page.paragraph(Tone::Strong, "no answer yet: the search was cut short");
        page.paragraph(Tone::Plain, &printable(&view.command()));
        page.paragraph(Tone::Plain, "go on with: bursar budget --resume RECORD");
        trials(&mut page, view.all_trials());
        notes(&mut page, view.notes);
        return page.finish();
    };
    answer(&mut page, report);
    page.paragraph(Tone::Plain, &printable(&view.command()));
    page.gap();
    evidence(&mut page, report);
    if !report.methods.is_empty() {
        page.heading("what the methods name, and what it is made of");
        page.table(&memory_table(&report.methods));
        page.heading("what each costs");
        page.table(&time_table(report));
        page.heading("what to think of each");
        page.table(&judgement_table(report));
    }
    trials(&mut page, view.all_trials());
    file_demand(&mut page, view, report);
    paste(&mut page, report);
    let all: Vec<String> = view.notes.iter().chain(&report.notes).cloned().collect();
    notes(&mut page, &all);
    page.finish()
}

/// The answer in one sentence, without its reason.
pub fn headline(report: &BudgetReport) -> String {
    let within = format!(
        "within {} of its {}",
        percent(Some(report.slowdown_target)),
        report.reference_seconds.map_or_else(|| "unlimited run time".to_string(), seconds)
    );
    match report.answer.budget_bytes {
        Some(budget) => format!("needs {} MiB to stay {within}", Bytes(budget).mib_ceil()),
        None => format!("no limit was found that keeps it {within}"),
    }
}

/// How sure the answer is, in a word or two.
pub fn confidence(report: &BudgetReport) -> &'static str {
    if report.answer.confident { "confident" } else { "not sure" }
}

/// What to paste where, as (tool, line), each with the swap setting that was measured where the tool has one. Empty
/// without an answer.
pub fn paste_lines(report: &BudgetReport) -> Vec<(String, String)> {
    let Some(budget) = report.answer.budget_bytes else { return Vec::new() };
    let mib = Bytes(budget).mib_ceil();
    let (systemd_swap, docker_swap) =
        if swap_allowed(report) { ("infinity", "-1".to_string()) } else { ("0", format!("{mib}m")) };
    [
        ("Slurm", format!("#SBATCH --mem={mib}M")),
        ("Kubernetes", format!("resources: {{limits: {{memory: {mib}Mi}}}}")),
        ("systemd-run", format!("systemd-run --scope -p MemoryMax={mib}M -p MemorySwapMax={systemd_swap}")),
        ("systemd unit", format!("MemoryMax={mib}M")),
        ("systemd unit", format!("MemorySwapMax={systemd_swap}")),
        ("Docker", format!("docker run --memory {mib}m --memory-swap {docker_swap}")),
    ]
    .into_iter()
    .map(|(tool, line)| (tool.to_string(), line))
    .collect()
}

/// What the margin is and why, and what the limits around the answer did.
pub fn margin_sentence(report: &BudgetReport) -> Option<String> {
    let answer = &report.answer;
    let passing = answer.smallest_passing_bytes?;
    let failing = match answer.largest_failing_bytes {
        Some(failing) => format!("{} did not", bytes(Some(failing))),
        None => "no smaller limit was seen to fail".to_string(),
    };
    let margin = match answer.margin_bytes {
        0 => "no margin was added".to_string(),
        margin => format!("margin {} for the spread of the peaks seen", bytes(Some(margin))),
    };
    Some(format!("{} passed, {failing}; {margin}", bytes(Some(passing))))
}

/// A trial's tone: how it ended.
fn tone(outcome: Option<Outcome>) -> Tone {
    match outcome {
        Some(Outcome::Ok) => Tone::Plain,
        Some(Outcome::TooSlow | Outcome::Timeout) => Tone::Warning,
        Some(Outcome::Oom | Outcome::Failed) => Tone::Bad,
        None => Tone::Dim,
    }
}

fn swap_allowed(report: &BudgetReport) -> bool {
    report.swap.contains("allowed")
}

fn answer(page: &mut Page, report: &BudgetReport) {
    let tone = match report.answer.budget_bytes {
        Some(_) if report.answer.confident => Tone::Strong,
        _ => Tone::Warning,
    };
    let (headline, reason) = (headline(report), printable(&report.answer.reason));
    let in_one = format!("{headline} ({}: {reason})", confidence(report));
    if in_one.chars().count() <= page.width() {
        page.line(tone, &in_one);
    } else {
        page.paragraph(tone, &format!("{headline} ({})", confidence(report)));
        page.paragraph(Tone::Plain, &format!("{}: {reason}", confidence(report)));
    }
}

fn evidence(page: &mut Page, report: &BudgetReport) {
    page.items(
        Tone::Plain,
        &[
            format!(
                "reference {} ± {}",
                opt_seconds(report.reference_seconds),
                opt_seconds(report.reference_stddev_seconds)
            ),
            format!("floor {}", bytes(report.floor_bytes)),
            format!("search took {} run times", format::or_unknown(report.run_times_used, |v| format!("{v:.1}"))),
            format!("comparison {} more", format::or_unknown(report.compare_run_times, |v| format!("{v:.1}"))),
        ],
    );
    if let Some(sentence) = margin_sentence(report) {
        page.paragraph(Tone::Plain, &sentence);
    }
    page.paragraph(
        Tone::Dim,
        &format!(
            "limits by {}; swap: {}; page cache at each start: {}",
            printable(&report.placement),
            printable(&report.swap),
            printable(&report.cache_state)
        ),
    );
}

fn memory_table(methods: &[MethodRow]) -> Table {
    let mut table = Table::new(&["method", "memory", "heap", "file", "shared", "kernel", "amplif."]);
    for row in methods {
        let parts = row.breakdown;
        let mut cells = vec![method_name(row.name).to_string(), bytes(row.memory_bytes)];
        cells.extend([parts.heap, parts.file, parts.shared, parts.kernel].map(bytes));
        cells.push(ratio(row.amplification, false));
        table.row(tone(row.outcome), cells);
    }
    table
}

fn time_table(report: &BudgetReport) -> Table {
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

fn judgement_table(report: &BudgetReport) -> Table {
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

fn trials(page: &mut Page, trials: &[Trial]) {
    if trials.is_empty() {
        return;
    }
    page.heading("trials, in their order");
    let mut table = Table::new(&["run", "limit", "time", "ratio", "predicted", "I/O", "refaults", "peak", "outcome"])
        .with_words_last();
    for trial in trials {
        table.row(
            tone(Some(trial.outcome)),
            vec![
                trial.run.to_string(),
                trial.limit_bytes.map_or_else(|| "none".to_string(), |limit| bytes(Some(limit))),
                seconds(trial.wall_seconds),
                ratio(trial.runtime_ratio, trial.lower_bound),
                ratio(trial.predicted_ratio, false),
                percent(trial.io_wait_share),
                format::count(trial.refaults),
                bytes(trial.peak_charge_bytes),
                outcome_name(trial.outcome).to_string(),
            ],
        );
    }
    page.table(&table);
    for trial in trials.iter().filter(|trial| !trial.why.is_empty()) {
        page.paragraph(Tone::Dim, &format!("{}: {}", trial.run, printable(&trial.why)));
    }
}

fn file_demand(page: &mut Page, view: &View, report: &BudgetReport) {
    let Some(curve) = &report.file_demand else { return };
    let price = view.foremost_run().and_then(|(observation, _)| demand::seconds_per_byte(observation));
    super::run::file_demand(page, curve, price);
    for warning in warnings(curve) {
        page.paragraph(Tone::Warning, &warning);
    }
}

fn paste(page: &mut Page, report: &BudgetReport) {
    let lines = paste_lines(report);
    if lines.is_empty() {
        return;
    }
    page.heading(&format!("to paste (measured with: {}; {})", printable(&report.swap), printable(&report.placement)));
    for (tool, line) in lines {
        // What is to be pasted is never broken.
        page.line(Tone::Good, &format!("{:<14}{line}", format!("{tool}:")));
    }
}

fn notes(page: &mut Page, notes: &[String]) {
    if !notes.is_empty() {
        page.gap();
    }
    for note in notes {
        page.paragraph(Tone::Plain, &format!("note: {}", printable(note)));
    }
}

//! The answer of a budget search and what it rests on.

use model::{BudgetReport, Trial};

use super::Style;
use super::table::Page;
use crate::answer::{bracket, confidence, headline, paste_lines, why_none, why_nothing_to_paste};
use crate::figures::{other_doubts, warnings};
use crate::format::{bytes, opt_seconds, or_unknown, printable};
use crate::tables::{Tone, judgement_table, methods_memory_table, methods_time_table, nodes_table, trials_table};
use crate::{View, demand};

/// The budget that was found; its first line is the answer. Of a search cut short: its trials and the
/// account of its reference.
pub fn budget(view: &View, style: Style) -> String {
    let mut page = Page::new(style);
    let Some(report) = view.budget else {
        page.paragraph(Tone::Strong, "no answer yet: the search was cut short");
        page.paragraph(Tone::Plain, &printable(&view.command()));
        page.paragraph(Tone::Plain, "go on with: bursar budget --resume RECORD");
        trials(&mut page, view.all_trials());
        page.gap();
        return page.finish() + &super::run(view, style);
    };
    answer(&mut page, report);
    page.paragraph(Tone::Plain, &printable(&view.command()));
    page.gap();
    evidence(&mut page, report);
    if let Some(nodes) = nodes_table(report) {
        page.heading("what each node needs");
        page.table(&nodes);
    }
    if !report.methods.is_empty() {
        page.heading("what the methods name, and what it is made of");
        page.table(&methods_memory_table(report));
        page.heading("what each costs");
        page.table(&methods_time_table(report));
        page.heading("what to think of each");
        page.table(&judgement_table(report));
    }
    trials(&mut page, view.all_trials());
    file_demand(&mut page, view, report);
    paste(&mut page, report);
    notes(&mut page, &view.all_notes());
    page.finish()
}

fn answer(page: &mut Page, report: &BudgetReport) {
    let tone = match report.answer.budget_bytes {
        Some(_) if report.answer.confident => Tone::Strong,
        _ => Tone::Warning,
    };
    let (headline, reason) = (headline(report), printable(&report.answer.reason));
    if why_none(report).is_some() {
        page.paragraph(tone, &headline);
        return;
    }
    let in_one = format!("{headline} ({}: {reason})", confidence(report));
    if in_one.chars().count() <= page.width() {
        page.line(tone, &in_one);
    } else {
        page.paragraph(tone, &format!("{headline} ({})", confidence(report)));
        page.paragraph(Tone::Plain, &reason);
    }
    for doubt in other_doubts(&report.doubts) {
        page.paragraph(Tone::Warning, &doubt);
    }
}

fn evidence(page: &mut Page, report: &BudgetReport) {
    let times = |run_times: Option<f64>| or_unknown(run_times, |times| format!("{times:.1} times"));
    let compared = report.compare_run_times.filter(|run_times| *run_times > 0.0);
    let compared = compared.map(|run_times| format!("comparison {} as long", times(Some(run_times))));
    let mut figures = vec![
        format!("floor {}", bytes(report.floor_bytes)),
        format!(
            "reference run {} ± {}",
            opt_seconds(report.reference_seconds),
            opt_seconds(report.reference_stddev_seconds)
        ),
        format!("search {} as long", times(report.run_times_used)),
    ];
    figures.extend(compared);
    page.items(Tone::Plain, &figures);
    if let Some(sentence) = bracket(report) {
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

fn trials(page: &mut Page, trials: &[Trial]) {
    if trials.is_empty() {
        return;
    }
    page.heading("trials, in their order");
    page.table(&trials_table(trials));
    for trial in trials.iter().filter(|trial| !trial.why.is_empty()) {
        page.paragraph(Tone::Dim, &format!("{}: {}", trial.run, printable(&trial.why)));
    }
}

fn file_demand(page: &mut Page, view: &View, report: &BudgetReport) {
    let Some(curve) = &report.file_demand else { return };
    let price = view.foremost_run().and_then(|(observation, account)| demand::seconds_per_byte(observation, account));
    super::run::file_demand(page, curve, price);
    for warning in warnings(curve, &report.doubts) {
        page.paragraph(Tone::Warning, &warning);
    }
}

fn paste(page: &mut Page, report: &BudgetReport) {
    if let Some(why) = why_nothing_to_paste(report) {
        page.gap();
        page.paragraph(Tone::Warning, why);
    }
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

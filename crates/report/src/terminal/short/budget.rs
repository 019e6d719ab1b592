//! The short answer of a budget search.

use model::{BudgetReport, Method, MethodRow, Outcome, Spread, Trial};

use super::{Aside, MOST_BUDGET_LINES, Rank, Short};
use crate::answer::{confidence, is_lower_bound_alone, keeps_within, paste_lines, why_none, why_nothing_to_paste};
use crate::figures::{blind_spots, size};
use crate::format::{bytes, printable, ratio};
use crate::tables::Tone;
use crate::terminal::Style;
use crate::verdict::{judge, outcome_name};
use crate::{View, terminal};

/// Pages read again are worth a word from this many bytes on.
const LEAST_AGAIN_BYTES: u64 = 1 << 20;

/// What wrapping may take of two lines: the indent, and the part of a word that goes to the next line.
const WRAPPED: usize = 20;

/// The budget that was found in a few lines; the first is the answer.
pub fn budget(view: &View, aside: &Aside, style: Style) -> String {
    let Some(report) = view.budget else { return terminal::budget(view, style) };
    let mut short = Short::new(style);
    let is_sure = report.answer.confident && report.answer.budget_bytes.is_some();
    let tone = if is_sure { Tone::Strong } else { Tone::Warning };
    let runs = match report.trials.len() {
        1 => "1 run".to_string(),
        runs => format!("{runs} runs"),
    };
    let voiding = report.doubts.iter().find(|doubt| doubt.voids);
    let head = voiding.map_or_else(|| keeps_within(report), |doubt| printable(&doubt.sentence));
    let sureness = if why_none(report).is_some() { String::new() } else { format!("{}, ", confidence(report)) };
    short.section(Rank::Answer, |page| page.answer(tone, &head, "", &[sureness + &runs]));
    if voiding.is_none() {
        short.doubts(&report.doubts);
    }
    short.warnings(aside.warnings.iter().cloned());
    short.warnings(report.file_demand.iter().flat_map(blind_spots));
    if !is_sure && head != why_none(report).unwrap_or_default() {
        short.section(Rank::Answer, |page| page.paragraph(Tone::Warning, &why_not_sure(report, page.width())));
    }
    if let Some(setting) = &report.setting {
        let setting = format!("  together with {} in the environment", printable(setting));
        short.section(Rank::Answer, |page| page.paragraph(Tone::Strong, &setting));
    }
    let is_comparable = !is_lower_bound_alone(report);
    for (tone, line) in bracket(view, report).into_iter().filter(|_| is_comparable) {
        short.section(Rank::Fact, |page| page.line(tone, &line));
    }
    let pool = view.plain_runs().into_iter().filter_map(|(_, account)| account.peak_breakdown.hugetlb).max();
    if let Some(pool) = pool.filter(|bytes| *bytes > 0) {
        let beside = format!("{} of huge pages of the pool are needed beside it", size(pool));
        short.section(Rank::Answer, |page| page.paragraph(Tone::Warning, &beside));
    }
    let methods = methods(report);
    if !methods.is_empty() && is_comparable {
        short.section(Rank::Comparison, |page| {
            page.line(Tone::Plain, "what other methods would give");
            methods.iter().for_each(|line| page.line(Tone::Plain, line));
        });
    }
    // The setting is above, and the two lines of a unit file are in the one of systemd-run.
    let tools = ["Slurm", "Kubernetes", "systemd-run", "Docker"];
    for (tool, line) in paste_lines(report).into_iter().filter(|(tool, _)| tools.contains(&tool.as_str())) {
        short.section(Rank::Answer, |page| page.line(Tone::Good, &format!("{tool:<13}{line}")));
    }
    if let Some(why) = why_nothing_to_paste(report) {
        short.section(Rank::Answer, |page| page.paragraph(Tone::Warning, why));
    }
    short.notes(aside.notes.iter());
    short.finish(MOST_BUDGET_LINES, aside.record)
}

/// The reasons that fit into two lines. What was found comes below, and is in the reason, too.
fn why_not_sure(report: &BudgetReport, width: usize) -> String {
    let reason = printable(&report.answer.reason);
    let Some((_, doubts)) = reason.split_once(". But ").filter(|_| report.answer.budget_bytes.is_some()) else {
        return reason;
    };
    let doubts: Vec<&str> = doubts.trim_end_matches('.').split("; and ").collect();
    let said = |count: usize| {
        let more = doubts.len() - count;
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("reason: {}{more}", doubts[..count].join("; and "))
    };
    let fits = |text: &String| text.chars().count() <= 2 * width - WRAPPED;
    (1..=doubts.len()).rev().map(said).find(fits).unwrap_or_else(|| said(1))
}

/// What happened at the largest limit that was too little and at the smallest that was enough.
fn bracket(view: &View, report: &BudgetReport) -> Vec<(Tone, String)> {
    let line = |limit: u64, said: String| format!("  {:>9}   {said}", size(limit));
    let at = |limit: u64| view.all_trials().iter().filter(move |trial| trial.limit_bytes == Some(limit));
    let too_little = report.answer.largest_failing_bytes.and_then(|limit| {
        let worst = at(limit).max_by_key(|trial| trial.outcome != Outcome::Ok)?;
        // In view of other trials, one that came to its end in time may have been slowed down all the same.
        let allowed = 1.0 + report.slowdown_target;
        let is_in_time = worst.runtime_ratio.is_some_and(|ratio| ratio <= allowed) && !worst.lower_bound;
        let said = match is_in_time {
            true => format!("slower by its CPU time and I/O delay{}", again(view, worst)),
            false => format!("{}{}", outcome(worst), again(view, worst)),
        };
        Some((Tone::Warning, line(limit, format!("too little: {said}"))))
    });
    let enough = report.answer.smallest_passing_bytes.filter(|limit| *limit > 0).map(|limit| {
        let times: Vec<f64> =
            at(limit).filter(|trial| trial.outcome == Outcome::Ok).filter_map(|trial| trial.runtime_ratio).collect();
        let unlimited = view.all_trials().iter().filter(|trial| trial.limit_bytes.is_none());
        let is_peak = unlimited.filter_map(|trial| trial.peak_charge_bytes).min().is_some_and(|peak| limit >= peak);
        let said = match Spread::of(&times) {
            Some(spread) => format!("enough: {} the run time", ratio(Some(spread.median), false)),
            None if is_peak => "enough: its peak without a limit".to_string(),
            None => "enough: slower, but for other reasons than memory".to_string(),
        };
        let said = match report.answer.margin_bytes {
            0 => said,
            margin => format!("{said}; a margin of {} is added", size(margin)),
        };
        (Tone::Plain, line(limit, said))
    });
    too_little.into_iter().chain(enough).collect()
}

fn outcome(trial: &Trial) -> String {
    // A lower bound below 1 says nothing.
    let shown = trial.runtime_ratio.filter(|ratio| !trial.lower_bound || *ratio > 1.0);
    match (trial.outcome, shown) {
        (Outcome::Ok | Outcome::TooSlow, Some(_)) => format!("{} the run time", ratio(shown, trial.lower_bound)),
        (other, _) => outcome_name(other).to_string(),
    }
}

fn again(view: &View, trial: &Trial) -> String {
    let bytes = trial.refaults.map(|pages| pages.saturating_mul(view.header.page_bytes));
    let bytes = bytes.filter(|bytes| *bytes >= LEAST_AGAIN_BYTES);
    bytes.map(|bytes| format!(", reads {} again", size(bytes))).unwrap_or_default()
}

/// What each method would have named, and what that would have cost.
fn methods(report: &BudgetReport) -> Vec<String> {
    let of = |method: Method| report.methods.iter().find(|row| row.name == method && row.memory_bytes.is_some());
    let (largest, tree) = (of(Method::AppMaxRssLargest), of(Method::AppMaxRss));
    let is_alike = largest.zip(tree).is_some_and(|(largest, tree)| largest.memory_bytes == tree.memory_bytes);
    let of_rss = match (largest, tree) {
        (_, Some(tree)) if is_alike => vec![("GNU time, seff", tree)],
        (largest, tree) => {
            largest.map(|row| ("GNU time", row)).into_iter().chain(tree.map(|row| ("seff (sum of RSS)", row))).collect()
        }
    };
    let others = [("active + inactive", of(Method::SysMaxRss)), ("free", of(Method::Unlimited))];
    let rows: Vec<(&str, &MethodRow)> =
        of_rss.into_iter().chain(others.into_iter().filter_map(|(name, row)| Some((name, row?)))).collect();
    let line = |(name, row): (&str, &MethodRow)| {
        let verdict = judge(row, report).verdict;
        let time = row.runtime_ratio.filter(|_| row.outcome == Some(Outcome::Ok) && !verdict.contains("time"));
        let time = time.map(|time| format!(", {} time", ratio(Some(time), false))).unwrap_or_default();
        format!("  {name:<18} {:>9}   {verdict}{time}", bytes(row.memory_bytes))
    };
    rows.into_iter().map(line).collect()
}

//! What the figures mean, as in Table 1 of the MEMSYS paper: derived from the numbers of this record alone.

use model::{BudgetReport, LimitSource, Method, MethodRow, Outcome, RunAccount};

use crate::format;

/// A column of Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Good for performance and efficiency, bad for variability.
    High,
    /// Between.
    Medium,
    /// The other end.
    Low,
}

/// Table 1's row of one method; of one that did not finish there is only the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Within the slow-down: high; within a quarter: medium.
    pub performance: Option<Level>,
    /// Memory over the least that does: within 15 % high, within twice medium.
    pub efficiency: Option<Level>,
    /// Standard deviation of the run time: within 2 % low, within 5 % medium.
    pub variability: Option<Level>,
    /// In words.
    pub verdict: String,
}

impl Level {
    /// As the paper prints it.
    pub fn name(self) -> &'static str {
        match self {
            Level::High => "high",
            Level::Medium => "medium",
            Level::Low => "low",
        }
    }
}

/// The memory a run needed at its peak: the charge, or at most what the tree held together where there is no cgroup to charge.
pub fn need(account: &RunAccount) -> Option<u64> {
    let of_tree = account.tree_held_at_most_bytes.or(account.tree_max_rss_bytes);
    account.peak_charge_bytes.or(of_tree).or(account.app_max_rss_bytes)
}

/// So many times the answer is too much, and an answer of so many times a limit contradicts it.
const MUCH: f64 = 1.15;

/// Bounds this close are one figure, in parts of the upper one and in bytes.
const CLOSE_PARTS: u64 = 20;
const CLOSE_BYTES: u64 = 2 << 20;

/// The memory that it needed at least, where that is clearly less: processes may have shared the rest.
pub fn need_at_least(account: &RunAccount) -> Option<u64> {
    let most = need(account).filter(|_| account.peak_charge_bytes.is_none())?;
    let least = account.tree_held_at_least_bytes?;
    are_apart(least, most).then_some(least)
}

/// The upper bound of the floor, where that is clearly more.
pub fn floor_at_most(account: &RunAccount) -> Option<u64> {
    let (least, most) = account.floor_bytes.zip(account.floor_at_most_bytes)?;
    are_apart(least, most).then_some(most)
}

/// Whether the peak is a lower bound: memory of the job is, or may be, missing from it.
pub fn peak_is_least(account: &RunAccount) -> bool {
    account.doubts.iter().any(|doubt| doubt.missing_from_peak)
}

/// Likewise the floor: what is missing cannot be reclaimed.
pub fn floor_is_least(account: &RunAccount) -> bool {
    account.doubts.iter().any(|doubt| doubt.missing_from_peak && doubt.may_kill())
}

/// Whether two bounds are more than one figure.
pub fn are_apart(least: u64, most: u64) -> bool {
    most.saturating_sub(least) > CLOSE_BYTES.max(most / CLOSE_PARTS)
}

/// A method's name as the paper and `time -v` users know it.
pub fn method_name(method: Method) -> &'static str {
    match method {
        Method::AppMaxRss => "App-MaxRSS tree",
        Method::AppMaxRssLargest => "App-MaxRSS largest",
        Method::SysMaxRss => "Sys-MaxRSS",
        Method::Unlimited => "Unlimited",
        Method::Bursar => "bursar",
    }
}

/// An outcome in a word or two.
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::TooSlow => "too slow",
        Outcome::Oom => "OOM kill",
        Outcome::Timeout => "time-out",
        Outcome::Failed => "failed",
    }
}

/// Whether a run ended before its work was done, so that its time says nothing.
pub fn died(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Oom | Outcome::Failed)
}

/// Judges one method of a comparison.
pub fn judge(row: &MethodRow, report: &BudgetReport) -> Judgement {
    let died = row.outcome.is_some_and(died);
    let allowed = 1.0 + report.slowdown_target;
    let performance = row.runtime_ratio.filter(|_| !died).map(|ratio| match ratio {
        _ if row.lower_bound => Level::Low,
        r if r <= allowed => Level::High,
        r if r <= 1.25 => Level::Medium,
        _ => Level::Low,
    });
    let excess = match (row.memory_bytes, report.answer.budget_bytes) {
        (Some(memory), Some(budget)) if budget > 0 => Some(memory as f64 / budget as f64),
        _ => None,
    };
    let efficiency = excess.filter(|_| !died).map(|excess| match excess {
        e if e <= MUCH => Level::High,
        e if e <= 2.0 => Level::Medium,
        _ => Level::Low,
    });
    let run_seconds = row.runtime_ratio.zip(report.reference_seconds).map(|(ratio, reference)| ratio * reference);
    let spread = row.runtime_stddev_seconds.filter(|_| row.runs > 1).zip(run_seconds).map(|(dev, mean)| dev / mean);
    let variability = spread.map(|spread| match spread {
        s if s <= 0.02 => Level::Low,
        s if s <= 0.05 => Level::Medium,
        _ => Level::High,
    });
    Judgement { performance, efficiency, variability, verdict: verdict(row, report, excess) }
}

fn verdict(row: &MethodRow, report: &BudgetReport, excess: Option<f64>) -> String {
    let allowed = 1.0 + report.slowdown_target;
    let Some(outcome) = row.outcome else { return "not tried".to_string() };
    let is_slow = row.runtime_ratio.is_some_and(|ratio| ratio > allowed || row.lower_bound);
    let time = format::ratio(row.runtime_ratio, row.lower_bound);
    let broke = match outcome {
        Outcome::Oom => Some("killed"),
        Outcome::Failed => Some("fails"),
        Outcome::Timeout => Some("time-out"),
        Outcome::Ok | Outcome::TooSlow => None,
    };
    match (is_enough(row, allowed), broke) {
        (true, Some(broke)) => return format!("{broke}, though as much was enough in other runs"),
        (false, Some(broke)) => return format!("too little: {broke}"),
        (false, None) if is_slow => return format!("too little: {time} time"),
        (false, None) => return "too little: by CPU time and I/O delay".to_string(),
        (true, None) => {}
    }
    let is_untried = row.name == Method::Unlimited && row.memory_bytes < report.answer.budget_bytes;
    let is_emulated = report.limit_source == Some(LimitSource::Emulated);
    // Nothing held the run to it, or not to what is shared: what cannot be reclaimed would not have fit.
    if (is_untried || is_emulated)
        && row.memory_bytes.zip(report.floor_bytes).is_some_and(|(memory, floor)| memory < floor)
    {
        return "too little: more cannot be reclaimed".to_string();
    }
    if is_emulated && !is_untried && excess.is_some_and(|excess| excess * MUCH < 1.0) {
        return "fast enough, but may be killed: its limit was emulated".to_string();
    }
    let verdict = match excess {
        // What free shows is no limit that was tried.
        _ if is_untried => return "measured without a limit".to_string(),
        _ if row.name == Method::Bursar => "enough".to_string(),
        Some(excess) if excess > MUCH => format!("too much: {excess:.1}x the answer"),
        Some(_) => "enough".to_string(),
        None => "enough, least not known".to_string(),
    };
    let slow = if is_slow { format!(", {time} time for other reasons than memory") } else { String::new() };
    let contrary = match too_little_above(row, report, allowed) {
        Some(limit) => format!(", though {} was too little", format::bytes(Some(limit))),
        None if excess.is_some_and(|excess| excess * MUCH < 1.0) => ", though the answer is more".to_string(),
        None => String::new(),
    };
    format!("{verdict}{slow}{contrary}")
}

/// Records of earlier versions have nothing but run times to judge by.
fn is_enough(row: &MethodRow, allowed: f64) -> bool {
    let is_fast = || row.runtime_ratio.is_some_and(|ratio| ratio <= allowed && !row.lower_bound);
    row.enough.unwrap_or_else(|| matches!(row.outcome, Some(Outcome::Ok | Outcome::TooSlow)) && is_fast())
}

/// The largest memory that was too little, if it is more than this method's.
fn too_little_above(row: &MethodRow, report: &BudgetReport, allowed: f64) -> Option<u64> {
    let is_too_little = |other: &&MethodRow| other.outcome.is_some() && !is_enough(other, allowed);
    let methods = report.methods.iter().filter(is_too_little).filter_map(|other| other.memory_bytes);
    methods.chain(report.answer.largest_failing_bytes).max().filter(|limit| Some(*limit) > row.memory_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn each_method_is_judged_by_its_own_numbers() {
        let report = fixture::budget();
        let of = |method| judge(report.methods.iter().find(|m| m.name == method).unwrap(), &report);
        let app = of(Method::AppMaxRss);
        assert_eq!((app.performance, app.efficiency), (Some(Level::Low), Some(Level::High)));
        assert_eq!(app.verdict, "too little: > 1.50x time");
        let unlimited = of(Method::Unlimited);
        assert_eq!((unlimited.performance, unlimited.efficiency), (Some(Level::High), Some(Level::Low)));
        assert_eq!(unlimited.verdict, "too much: 3.0x the answer");
        assert_eq!(of(Method::AppMaxRssLargest).verdict, "too little: killed");
        let killed = of(Method::AppMaxRssLargest);
        assert_eq!((killed.performance, killed.efficiency), (None, None));
        assert_eq!(of(Method::Bursar).verdict, "enough");
        assert_eq!(of(Method::Bursar).variability, Some(Level::Low));
    }

    #[test]
    fn a_method_that_memory_cost_nothing_is_enough_however_slow_it_was() {
        let report = fixture::budget();
        let row = report.methods.iter().find(|row| row.name == Method::SysMaxRss).unwrap();
        let slow =
            MethodRow { outcome: Some(Outcome::Ok), runtime_ratio: Some(1.27), lower_bound: false, ..row.clone() };
        let of = |memory: u64, enough: bool| {
            judge(&MethodRow { memory_bytes: Some(memory << 20), enough: Some(enough), ..slow.clone() }, &report)
                .verdict
        };
        assert_eq!(of(402, true), "enough, 1.27x time for other reasons than memory");
        assert_eq!(of(390, false), "too little: 1.27x time");
        assert_eq!(of(380, true), "enough, 1.27x time for other reasons than memory, though 390 MiB was too little");
        assert_eq!(of(395, true), "enough, 1.27x time for other reasons than memory");
    }

    #[test]
    fn what_was_enough_far_below_the_answer_contradicts_it() {
        let mut report = fixture::budget();
        report.answer.largest_failing_bytes = None;
        let row = report.methods.iter().find(|row| row.name == Method::SysMaxRss).unwrap().clone();
        report.methods.clear();
        let of = |memory: u64| {
            let enough = MethodRow { memory_bytes: Some(memory << 20), enough: Some(true), ..row.clone() };
            judge(&MethodRow { outcome: Some(Outcome::Ok), ..enough }, &report).verdict
        };
        assert!(of(41).starts_with("enough") && of(41).ends_with(", though the answer is more"), "{}", of(41));
        assert!(!of(400).contains("though"), "what is nearly the answer agrees with it: {}", of(400));
    }

    #[test]
    fn what_nothing_held_the_program_to_is_not_called_enough() {
        let mut report = fixture::budget();
        let floor = 30 << 20;
        (report.floor_bytes, report.limit_source) = (Some(floor), Some(LimitSource::Emulated));
        let of = |method: Method, memory_bytes: u64| {
            let row = report.methods.iter().find(|row| row.name == method).unwrap().clone();
            let row =
                MethodRow { memory_bytes: Some(memory_bytes), enough: Some(true), runtime_ratio: Some(1.0), ..row };
            judge(&MethodRow { outcome: Some(Outcome::Ok), lower_bound: false, ..row }, &report).verdict
        };
        assert_eq!(of(Method::SysMaxRss, floor - 1), "too little: more cannot be reclaimed");
        assert_eq!(of(Method::SysMaxRss, floor), "fast enough, but may be killed: its limit was emulated");
        assert_eq!(of(Method::Unlimited, 60 << 10), "too little: more cannot be reclaimed");
        assert_eq!(of(Method::Unlimited, floor), "measured without a limit");
    }

    #[test]
    fn a_limit_that_the_search_found_enough_is_not_called_too_little() {
        let report = fixture::budget();
        let row = report.methods.iter().find(|row| row.name == Method::SysMaxRss).unwrap();
        let killed = MethodRow {
            memory_bytes: Some(412 << 20),
            outcome: Some(Outcome::Oom),
            runtime_ratio: None,
            enough: Some(true),
            ..row.clone()
        };
        assert_eq!(judge(&killed, &report).verdict, "killed, though as much was enough in other runs");
    }

    #[test]
    fn a_limit_that_cost_processor_time_is_too_little_however_fast_it_was() {
        let report = fixture::budget();
        let row = report.methods.iter().find(|row| row.name == Method::SysMaxRss).unwrap();
        let fast = MethodRow {
            outcome: Some(Outcome::Ok),
            runtime_ratio: Some(1.02),
            lower_bound: false,
            enough: Some(false),
            ..row.clone()
        };
        assert_eq!(judge(&fast, &report).verdict, "too little: by CPU time and I/O delay");
    }
}

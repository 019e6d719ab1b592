//! What the figures mean, as in Table 1 of the MEMSYS paper: derived from the numbers of this record alone.

use model::{BudgetReport, Method, MethodRow, Outcome, RunAccount};

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

/// Bounds this close are one figure, in parts of the upper one and in bytes.
const CLOSE_PARTS: u64 = 20;
const CLOSE_BYTES: u64 = 2 << 20;

/// The memory that it needed at least, where that is clearly less: processes may have shared the rest.
pub fn need_at_least(account: &RunAccount) -> Option<u64> {
    let most = need(account).filter(|_| account.peak_charge_bytes.is_none())?;
    let least = account.tree_held_at_least_bytes?;
    are_apart(least, most).then_some(least)
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
        e if e <= 1.15 => Level::High,
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
    let was_enough = |answer: &MethodRow| {
        answer.name == Method::Bursar
            && answer.outcome == Some(Outcome::Ok)
            && answer.runtime_ratio.is_some_and(|ratio| ratio <= allowed && !answer.lower_bound)
    };
    let less_was_enough = row.name != Method::Bursar
        && excess.is_some_and(|excess| excess > 1.0)
        && report.methods.iter().any(was_enough);
    Judgement { performance, efficiency, variability, verdict: verdict(row, allowed, excess, less_was_enough) }
}

fn verdict(row: &MethodRow, allowed: f64, excess: Option<f64>, less_was_enough: bool) -> String {
    // More memory slows nothing down: where less was enough, something else did, as on a busy machine.
    let slow = || match (crate::format::ratio(row.runtime_ratio, row.lower_bound), less_was_enough) {
        (time, true) => format!("{time} time by chance: less was enough"),
        (time, false) => format!("too little: {time} time"),
    };
    match (row.outcome, row.runtime_ratio) {
        (None, _) => "not tried".to_string(),
        (Some(Outcome::Oom), _) => "too little: killed".to_string(),
        (Some(Outcome::Failed), _) => "too little: fails".to_string(),
        (Some(Outcome::Timeout), _) => "too little: time-out".to_string(),
        (Some(Outcome::TooSlow), ratio) if ratio.is_none_or(|r| r > allowed || row.lower_bound) => slow(),
        (_, Some(ratio)) if ratio > allowed => slow(),
        _ if row.name == Method::Bursar => "enough".to_string(),
        _ => match excess {
            Some(excess) if excess > 1.15 => format!("too much: {excess:.1}x the answer"),
            Some(_) => "enough".to_string(),
            None => "enough, least not known".to_string(),
        },
    }
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
    fn what_has_more_than_was_enough_has_not_too_little() {
        let report = fixture::budget();
        let enough = report.answer.budget_bytes.unwrap();
        let of = |name, memory, lower_bound| {
            let row = report.methods.iter().find(|row| row.name == name).unwrap().clone();
            let outcome = Some(Outcome::TooSlow);
            let runtime_ratio = Some(1.5);
            judge(&MethodRow { memory_bytes: Some(memory), outcome, runtime_ratio, lower_bound, ..row }, &report)
                .verdict
        };
        assert_eq!(of(Method::SysMaxRss, enough + 4096, false), "1.50x time by chance: less was enough");
        assert_eq!(of(Method::SysMaxRss, enough + 4096, true), "> 1.50x time by chance: less was enough");
        assert_eq!(of(Method::SysMaxRss, enough - 4096, false), "too little: 1.50x time");
        assert_eq!(of(Method::Bursar, enough, false), "too little: 1.50x time");

        // Nothing says that less was enough where the answer was too slow itself.
        let mut unproved = fixture::budget();
        let answer = unproved.methods.iter_mut().find(|row| row.name == Method::Bursar).unwrap();
        answer.runtime_ratio = Some(1.5);
        let row = unproved.methods.iter().find(|row| row.name == Method::Unlimited).unwrap().clone();
        let slow = MethodRow { outcome: Some(Outcome::TooSlow), runtime_ratio: Some(1.5), ..row };
        assert_eq!(judge(&slow, &unproved).verdict, "too little: 1.50x time");
    }
}

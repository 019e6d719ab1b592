//! The comparison of methods (MEMSYS 2020, figures 1 and 2, tables 1 and 2).

use model::{Answer, Breakdown, Bytes, Method, MethodRow, Outcome, Spread, Trial, performance, performance_per_gb};

use crate::predict::{never_reached, predict};
use crate::search::{is_telling, severity};
use crate::{Seen, Settings, round_up};

/// The methods whose figure is tried as a limit. Unlimited is what the references are.
pub const LIMITED: [Method; 3] = [Method::AppMaxRss, Method::AppMaxRssLargest, Method::SysMaxRss];

/// Limits this close are one limit.
const SAME_LIMIT: f64 = 0.02;

/// The runs that show how a method does.
enum Runs<'a> {
    References,
    Trials(Vec<&'a Trial>),
}

/// The rows of the comparison, in the order in which the report shows them; methods without a figure have none.
pub fn methods(settings: &Settings, seen: &Seen, answer: &Answer) -> Vec<MethodRow> {
    let order = [Method::AppMaxRss, Method::AppMaxRssLargest, Method::SysMaxRss, Method::Unlimited, Method::Bursar];
    let rows: Vec<MethodRow> = order.into_iter().filter_map(|method| row(settings, seen, answer, method)).collect();
    let least_failed = rows.iter().any(|row| row.name == Method::AppMaxRss && has_failed(row));
    let least = rows.iter().find(|row| row.name == Method::AppMaxRss).and_then(|row| row.memory_bytes);
    rows.into_iter()
        .map(|row| {
            let per_gb = per_gb(seen, least.filter(|_| !least_failed), &row);
            MethodRow { performance_per_gb: per_gb, ..row }
        })
        .collect()
}

/// Where the figures of the comparison are not from a run of their own, as sentences.
pub fn method_notes(settings: &Settings, seen: &Seen) -> Vec<String> {
    let note = |method: Method| {
        let memory = Bytes(memory(seen, method)?.0);
        let name = name(method);
        match shown_by(settings, seen, method, round_up(memory.0))? {
            Runs::References => Some(format!(
                "{name} says {memory}, which the job does not fill without a limit: its figures are the reference runs'."
            )),
            Runs::Trials(trials) if trials.iter().all(|t| t.method != Some(method)) => Some(format!(
                "{name} says {memory}: its figures are those of a run at {}, too close to be run again.",
                Bytes(trials[0].limit_bytes?)
            )),
            Runs::Trials(_) => None,
        }
    };
    LIMITED.into_iter().filter_map(note).collect()
}

fn name(method: Method) -> &'static str {
    match method {
        Method::AppMaxRss => "App-MaxRSS",
        Method::AppMaxRssLargest => "App-MaxRSS of the largest process",
        Method::SysMaxRss => "Sys-MaxRSS",
        Method::Unlimited => "Unlimited",
        Method::Bursar => "bursar",
    }
}

/// The limit at which a method must still be run; `None` if what was run already shows it, or it names none.
pub fn limit_to_measure(settings: &Settings, seen: &Seen, method: Method) -> Option<u64> {
    let limit = round_up(memory(seen, method)?.0);
    shown_by(settings, seen, method, limit).is_none().then_some(limit)
}

fn memory(seen: &Seen, method: Method) -> Option<(u64, Breakdown)> {
    seen.methods.iter().find(|m| m.method == method).map(|m| (m.memory_bytes, m.breakdown))
}

/// The runs that show how a method does. A limit that the charge never reached without one is no limit.
fn shown_by<'a>(settings: &Settings, seen: &'a Seen, method: Method, limit: u64) -> Option<Runs<'a>> {
    if method == Method::Unlimited || never_reached(settings, seen).is_some_and(|peak| limit >= peak) {
        return Some(Runs::References);
    }
    let is_same =
        |trial: &&Trial| trial.limit_bytes.is_some_and(|l| (l as f64 / limit as f64 - 1.0).abs() <= SAME_LIMIT);
    let own: Vec<&Trial> = seen.trials.iter().filter(|t| t.method == Some(method)).collect();
    if !own.is_empty() {
        return Some(Runs::Trials(own));
    }
    // A trial of the search that was stopped early does not show how slow the method would have been.
    let tells = |trial: &&Trial| is_same(trial) && (trial.method.is_some() || !trial.lower_bound);
    let others: Vec<&Trial> = seen.trials.iter().filter(tells).collect();
    (!others.is_empty()).then_some(Runs::Trials(others))
}

fn row(settings: &Settings, seen: &Seen, answer: &Answer, method: Method) -> Option<MethodRow> {
    let (memory, breakdown, runs) = match method {
        Method::Bursar => {
            let runs = passing_runs(settings, seen, answer.smallest_passing_bytes?);
            let breakdown = match &runs {
                Runs::Trials(trials) => trials[0].breakdown,
                Runs::References => seen.references.first()?.breakdown,
            };
            (answer.budget_bytes?, breakdown, Some(runs))
        }
        _ => {
            let (memory, breakdown) = memory(seen, method)?;
            (memory, breakdown, shown_by(settings, seen, method, round_up(memory)))
        }
    };
    let row = MethodRow {
        name: method,
        memory_bytes: Some(memory),
        breakdown,
        amplification: required(seen, answer).map(|required| memory as f64 / required as f64),
        runs: 0,
        runtime_ratio: None,
        runtime_stddev_seconds: None,
        predicted_ratio: match method {
            Method::Unlimited => Some(1.0),
            _ => predict(settings, seen, round_up(memory)),
        },
        io_wait_share: None,
        performance: None,
        performance_per_gb: None,
        outcome: None,
        lower_bound: false,
    };
    Some(match runs {
        Some(Runs::References) => with_references(row, settings, seen),
        Some(Runs::Trials(trials)) => with_trials(row, seen, &trials),
        None => row,
    })
}

/// The runs at the smallest passing limit; the references where that is their peak charge.
fn passing_runs<'a>(settings: &Settings, seen: &'a Seen, limit: u64) -> Runs<'a> {
    let is_there = |t: &&Trial| t.limit_bytes == Some(limit) && is_telling(settings, seen, t);
    let trials: Vec<&Trial> = seen.trials.iter().filter(is_there).collect();
    if trials.is_empty() { Runs::References } else { Runs::Trials(trials) }
}

fn with_references(row: MethodRow, settings: &Settings, seen: &Seen) -> MethodRow {
    let spread = seen.reference();
    let waits: Vec<f64> = seen.references.iter().filter_map(|r| r.io_wait_share).collect();
    let peak = never_reached(settings, seen);
    let is_unlimited = |t: &&Trial| t.outcome == Outcome::Ok && peak.is_some_and(|peak| t.limit_bytes >= Some(peak));
    let trials = seen.search_trials().filter(is_unlimited).map(|t| t.wall_seconds);
    let walls: Vec<f64> = seen.references.iter().map(|r| r.wall_seconds).chain(trials).collect();
    MethodRow {
        runs: walls.len() as u32,
        runtime_ratio: spread.map(|_| 1.0),
        runtime_stddev_seconds: Spread::of(&walls).filter(|_| walls.len() > 1).map(|s| s.stddev),
        io_wait_share: Spread::of(&waits).map(|s| s.mean),
        performance: spread.and_then(|s| performance(s.median, s.median)),
        outcome: spread.map(|_| Outcome::Ok),
        ..row
    }
}

fn with_trials(row: MethodRow, seen: &Seen, trials: &[&Trial]) -> MethodRow {
    let spread =
        |of: fn(&&Trial) -> Option<f64>| Spread::of(&trials.iter().copied().filter_map(|t| of(&t)).collect::<Vec<_>>());
    let outcome = trials.iter().map(|t| t.outcome).max_by_key(severity);
    let ended = !matches!(outcome, Some(Outcome::Oom | Outcome::Failed));
    let ratio = spread(|t| t.runtime_ratio).map(|s| s.median).filter(|_| ended);
    MethodRow {
        runs: trials.len() as u32,
        runtime_ratio: ratio,
        runtime_stddev_seconds: spread(|t| Some(t.wall_seconds)).filter(|_| trials.len() > 1).map(|s| s.stddev),
        io_wait_share: spread(|t| t.io_wait_share).map(|s| s.mean),
        performance: ratio.zip(seen.reference()).and_then(|(r, s)| performance(s.median, r * s.median)),
        outcome,
        lower_bound: ended && trials.iter().any(|t| t.lower_bound),
        ..row
    }
}

/// What it takes to complete without swapping: the floor, or less where less has been seen to do.
fn required(seen: &Seen, answer: &Answer) -> Option<u64> {
    let completed = seen.trials.iter().filter(|t| t.outcome == Outcome::Ok).filter_map(|t| t.limit_bytes);
    completed.chain(answer.smallest_passing_bytes).chain(seen.floor_bytes()).min().filter(|bytes| *bytes > 0)
}

/// Equation 3. The least memory is App-MaxRSS's and the least run time Unlimited's; without either there is nothing to
/// compare with.
fn per_gb(seen: &Seen, least_bytes: Option<u64>, row: &MethodRow) -> Option<f64> {
    let reference = seen.reference()?.median;
    performance_per_gb(least_bytes?, reference, row.memory_bytes?, row.runtime_ratio? * reference)
}

fn has_failed(row: &MethodRow) -> bool {
    matches!(row.outcome, Some(Outcome::Oom | Outcome::Failed))
}

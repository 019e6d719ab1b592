//! The comparison of methods (MEMSYS 2020, figures 1 and 2, tables 1 and 2).

use model::{Answer, Breakdown, Bytes, Method, MethodRow, Outcome, Spread, Trial, performance, performance_per_gb};

use crate::cause::is_conclusive;
use crate::noise::Noise;
use crate::outcome::{breaks, severity};
use crate::predict::predict;
use crate::tried::is_enough;
use crate::{Evidence, Reference, Settings, round_up};

/// The methods whose figure is tried as a limit.
const LIMITED: [Method; 3] = [Method::AppMaxRss, Method::AppMaxRssLargest, Method::SysMaxRss];

/// Limits within this share of each other count as one.
const SAME_LIMIT: f64 = 0.02;

/// This many runs show the run time of a method and its spread.
const RUNS: usize = 2;

/// The runs that show the result of a method.
enum Runs<'a> {
    References,
    Trials(Vec<&'a Trial>),
}

/// The rows of the comparison, in the order of the report; methods without a figure have none.
pub fn methods(settings: &Settings, evidence: &Evidence, answer: &Answer) -> Vec<MethodRow> {
    let a = &Noise::of(settings, evidence);
    let order = [Method::AppMaxRss, Method::AppMaxRssLargest, Method::SysMaxRss, Method::Unlimited, Method::Bursar];
    let rows: Vec<MethodRow> = order.into_iter().filter_map(|method| row(a, answer, method)).collect();
    let least_failed = rows.iter().any(|row| row.name == Method::AppMaxRss && has_failed(row));
    let least = rows.iter().find(|row| row.name == Method::AppMaxRss).and_then(|row| row.memory_bytes);
    rows.into_iter()
        .map(|row| {
            let per_gb = per_gb(a, least.filter(|_| !least_failed), &row);
            MethodRow { performance_per_gb: per_gb, ..row }
        })
        .collect()
}

/// Sentences about figures of the comparison that are not from a run of their own.
pub fn method_notes(settings: &Settings, evidence: &Evidence) -> Vec<String> {
    let a = &Noise::of(settings, evidence);
    let note = |method: Method| {
        let memory = Bytes(memory(a, method)?.0);
        let name = name(method);
        match shown_by(a, method, round_up(memory.0))? {
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
    let is_stopped = |t: &&Trial| t.method.is_some() && t.lower_bound;
    let stopped = a.evidence.trials.iter().find(is_stopped).filter(|_| !a.settings.full);
    let unvaried = stopped.map(|_| {
        "A run that was stopped early has no run time: --full lets it end, and shows how much that varies.".to_string()
    });
    LIMITED.into_iter().filter_map(note).chain(unvaried).collect()
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

/// A run that the comparison lacks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lacking {
    /// The method that it shows.
    pub method: Method,
    /// Its limit; `None`: Unlimited has none.
    pub limit: Option<u64>,
    /// How many such runs exist.
    pub has: usize,
}

/// The next run that the comparison lacks: of the methods with the fewest runs, first one whose run may show others, too.
pub fn lacking(a: &Noise, passing_bytes: Option<u64>) -> Option<Lacking> {
    let unlimited = unlimited_walls(a).len();
    let lacks_unlimited = unlimited < runs_each(a);
    let unlimited = lacks_unlimited.then_some(Lacking { method: Method::Unlimited, limit: None, has: unlimited });
    let own = passing_bytes.map(|limit| (Method::Bursar, limit, Some(passing_runs(a, limit))));
    let named = LIMITED.into_iter().filter_map(|method| {
        let limit = round_up(memory(a, method)?.0);
        Some((method, limit, shown_by(a, method, limit)))
    });
    let limited = own.into_iter().chain(named).filter_map(|(method, limit, runs)| {
        let has = match &runs {
            None => 0,
            Some(Runs::Trials(trials)) if wants_another(a, trials) => trials.len(),
            Some(_) => return None,
        };
        Some(Lacking { method, limit: Some(limit), has })
    });
    unlimited.into_iter().chain(limited).min_by_key(|lacking| lacking.has)
}

fn runs_each(a: &Noise) -> usize {
    a.settings.runs.map_or(RUNS, |runs| runs as usize)
}

/// If two runs disagree on whether it is too slow, a third decides. A run that did not complete has no run time that could vary.
fn wants_another(a: &Noise, trials: &[&Trial]) -> bool {
    let is_slow = |t: &&Trial| t.runtime_ratio.is_some_and(|ratio| ratio > 1.0 + a.settings.slowdown);
    let disagree = trials.iter().any(is_slow) && !trials.iter().all(is_slow);
    let died = trials.iter().any(|t| breaks(t));
    trials.iter().all(|t| has_ended(t)) && trials.len() < runs_each(a) || !died && disagree && trials.len() == 2
}

fn memory(a: &Noise, method: Method) -> Option<(u64, Breakdown)> {
    a.evidence.methods.iter().find(|m| m.method == method).map(|m| (m.memory_bytes, m.breakdown))
}

/// The runs that show the result of a method.
fn shown_by<'a>(a: &Noise<'a>, method: Method, limit: u64) -> Option<Runs<'a>> {
    if method == Method::Unlimited || a.is_no_limit(limit) {
        return Some(Runs::References);
    }
    let is_same =
        |trial: &&Trial| trial.limit_bytes.is_some_and(|l| (l as f64 / limit as f64 - 1.0).abs() <= SAME_LIMIT);
    // A trial of the search that was stopped early does not show how slow the method would have been.
    let is_shown = |trial: &&Trial| is_same(trial) && (trial.method.is_some() || !trial.lower_bound);
    let trials: Vec<&Trial> = a.evidence.trials.iter().filter(|t| t.method == Some(method) || is_shown(t)).collect();
    (!trials.is_empty()).then_some(Runs::Trials(trials))
}

fn row(a: &Noise, answer: &Answer, method: Method) -> Option<MethodRow> {
    let (memory, breakdown, runs) = match method {
        Method::Bursar => {
            let runs = passing_runs(a, answer.smallest_passing_bytes?);
            let breakdown = match &runs {
                Runs::Trials(trials) => trials[0].breakdown,
                Runs::References => a.evidence.references.first()?.breakdown,
            };
            (answer.budget_bytes?, breakdown, Some(runs))
        }
        _ => {
            let (memory, breakdown) = memory(a, method)?;
            (memory, breakdown, shown_by(a, method, round_up(memory)))
        }
    };
    let row = MethodRow {
        name: method,
        memory_bytes: Some(memory),
        breakdown,
        amplification: required(a, answer).map(|required| memory as f64 / required as f64),
        runs: 0,
        runtime_ratio: None,
        runtime_stddev_seconds: None,
        predicted_ratio: match method {
            Method::Unlimited => Some(1.0),
            _ => predict(a, round_up(memory)),
        },
        io_wait_share: None,
        performance: None,
        performance_per_gb: None,
        outcome: None,
        enough: None,
        lower_bound: false,
    };
    let limit = round_up(memory);
    let is_known_enough = answer.smallest_passing_bytes.is_some_and(|passing| limit >= passing);
    Some(match runs {
        Some(Runs::References) => with_references(row, a),
        Some(Runs::Trials(trials)) => {
            let fits = !is_surely_less_than_held(a, limit) || trials.iter().any(|t| has_ended(t));
            let enough = is_known_enough || fits && is_enough(a, limit, &trials);
            MethodRow { enough: Some(enough), ..with_trials(row, a, &trials) }
        }
        None => row,
    })
}

/// Whether every reference held more unreclaimable memory than this limit; a run that was stopped early had not reached that point.
fn is_surely_less_than_held(a: &Noise, limit: u64) -> bool {
    let held = |r: &Reference| Some(r.floor_bytes?.saturating_sub(r.breakdown.kernel.unwrap_or(0)));
    let least = a.evidence.references.iter().map(held).min().flatten();
    least.is_some_and(|held| limit < held) && !a.settings.sizes_itself && !a.settings.has_slower_memory
}

/// The runs at the smallest passing limit; the references if that limit restricts nothing.
fn passing_runs<'a>(a: &Noise<'a>, limit: u64) -> Runs<'a> {
    let is_shown = |t: &Trial| t.method == Some(Method::Bursar) || is_conclusive(a, t);
    let is_there = |t: &&Trial| t.limit_bytes == Some(limit) && is_shown(t);
    let trials: Vec<&Trial> = a.evidence.trials.iter().filter(is_there).collect();
    if a.is_no_limit(limit) || trials.is_empty() { Runs::References } else { Runs::Trials(trials) }
}

fn with_references(row: MethodRow, a: &Noise) -> MethodRow {
    let spread = a.reference;
    let waits: Vec<f64> = a.evidence.references.iter().filter_map(|r| r.io_wait_share).collect();
    let walls = unlimited_walls(a);
    MethodRow {
        runs: walls.len() as u32,
        runtime_ratio: spread.map(|_| 1.0),
        runtime_stddev_seconds: Spread::of(&walls).filter(|_| walls.len() > 1).map(|s| s.stddev),
        io_wait_share: Spread::of(&waits).map(|s| s.mean),
        performance: spread.and_then(|s| performance(s.median, s.median)),
        outcome: spread.map(|_| Outcome::Ok),
        enough: spread.map(|_| true),
        ..row
    }
}

/// Run times without a limit, or under one that restricts nothing, as the machine is now.
fn unlimited_walls(a: &Noise) -> Vec<f64> {
    let is_unlimited = |t: &&Trial| t.limit_bytes.is_none_or(|limit| a.is_no_limit(limit)) && has_ended(t);
    let trials = a.evidence.trials.iter().filter(is_unlimited).filter_map(|t| wall_now(a, t));
    a.evidence.timed().iter().map(|r| r.wall_seconds).chain(trials).collect()
}

fn has_ended(trial: &Trial) -> bool {
    !breaks(trial) && !trial.lower_bound
}

/// The run time that a run would have as the machine is now: it may have been made while all runs were slower.
fn wall_now(a: &Noise, trial: &Trial) -> Option<f64> {
    Some(trial.runtime_ratio? * a.reference?.median)
}

fn with_trials(row: MethodRow, a: &Noise, trials: &[&Trial]) -> MethodRow {
    let spread =
        |of: &dyn Fn(&Trial) -> Option<f64>| Spread::of(&trials.iter().filter_map(|t| of(t)).collect::<Vec<_>>());
    let worst = trials.iter().map(|t| t.outcome).max_by_key(severity);
    let ended = !matches!(worst, Some(Outcome::Oom | Outcome::Failed));
    let ratio = spread(&|t| t.runtime_ratio).map(|s| s.median).filter(|_| ended);
    let stopped = trials.iter().filter(|t| t.lower_bound).count();
    // Of three runs, one that was stopped does not turn the median into a bound.
    let lower_bound = ended && stopped > 0 && 2 * stopped >= trials.len();
    let is_slow = lower_bound || ratio.is_none_or(|ratio| ratio > 1.0 + a.settings.slowdown);
    MethodRow {
        runs: trials.len() as u32,
        runtime_ratio: ratio,
        runtime_stddev_seconds: spread(&|t| wall_now(a, t))
            .filter(|_| ended && stopped == 0 && trials.len() > 1)
            .map(|s| s.stddev),
        io_wait_share: spread(&|t| t.io_wait_share).map(|s| s.mean),
        performance: ratio.zip(a.reference).and_then(|(r, s)| performance(s.median, r * s.median)),
        outcome: worst.map(|worst| if worst == Outcome::TooSlow && !is_slow { Outcome::Ok } else { worst }),
        lower_bound,
        ..row
    }
}

/// The memory needed to complete without swap: the floor, or less if less was enough.
fn required(a: &Noise, answer: &Answer) -> Option<u64> {
    let completed = a.evidence.trials.iter().filter(|t| t.outcome == Outcome::Ok).filter_map(|t| t.limit_bytes);
    completed.chain(answer.smallest_passing_bytes).chain(a.floor).min().filter(|bytes| *bytes > 0)
}

/// Equation 3. The smallest memory is App-MaxRSS's and the shortest run time Unlimited's; without either there is nothing to compare with.
fn per_gb(a: &Noise, least_bytes: Option<u64>, row: &MethodRow) -> Option<f64> {
    let reference = a.reference?.median;
    performance_per_gb(least_bytes?, reference, row.memory_bytes?, row.runtime_ratio? * reference)
}

fn has_failed(row: &MethodRow) -> bool {
    matches!(row.outcome, Some(Outcome::Oom | Outcome::Failed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::trial;
    use crate::{MIB, MethodMemory, Reference};

    /// A method's run of 12.7 s with references of 10 s, where the search answers 121 MiB.
    fn row(memory_mib: u64, stall_seconds: f64, refaults: u64) -> MethodRow {
        let reference = |run, wall_seconds| Reference {
            run,
            wall_seconds,
            stall_seconds: Some(0.0),
            refaults: Some(0),
            cpu_seconds: Some(4.0),
            system_seconds: Some(0.3),
            peak_charge_bytes: Some(125 * MIB),
            ..Reference::default()
        };
        let run = Trial {
            method: Some(Method::AppMaxRss),
            outcome: Outcome::Ok,
            cpu_seconds: Some(4.0),
            system_seconds: Some(0.3),
            stall_seconds: Some(stall_seconds),
            refaults: Some(refaults),
            peak_charge_bytes: Some(memory_mib * MIB),
            ..trial(memory_mib, 12.7)
        };
        let named = MethodMemory {
            method: Method::AppMaxRss,
            memory_bytes: memory_mib * MIB - 4096,
            breakdown: Breakdown::default(),
        };
        let evidence = Evidence {
            references: vec![reference(0, 9.9), reference(1, 10.1)],
            trials: vec![run],
            methods: vec![named],
            ..Evidence::default()
        };
        let answer =
            Answer { budget_bytes: Some(123 * MIB), smallest_passing_bytes: Some(121 * MIB), ..Answer::default() };
        methods(&Settings::default(), &evidence, &answer).into_iter().find(|row| row.name == Method::AppMaxRss).unwrap()
    }

    #[test]
    fn a_slow_run_without_memory_cost_is_no_evidence_against_its_limit() {
        let unhindered = row(113, 0.0, 0);
        assert_eq!((unhindered.enough, unhindered.runtime_ratio), (Some(true), Some(1.27)));
        assert_eq!(row(113, 2.5, 100_000).enough, Some(false), "it waited for refaults");
    }

    #[test]
    fn a_limit_below_what_every_run_held_is_not_enough() {
        let reference =
            |run| Reference { run, wall_seconds: 10.0, floor_bytes: Some(117 * MIB), ..Reference::default() };
        let stopped =
            Trial { method: Some(Method::AppMaxRss), lower_bound: true, stall_seconds: Some(0.0), ..trial(113, 25.0) };
        let ended = Trial { lower_bound: false, outcome: Outcome::Ok, ..stopped.clone() };
        let named = |method| MethodMemory { method, memory_bytes: 113 * MIB, breakdown: Breakdown::default() };
        let answer =
            Answer { budget_bytes: Some(123 * MIB), smallest_passing_bytes: Some(121 * MIB), ..Answer::default() };
        for (run, enough) in [(stopped, false), (ended, true)] {
            let evidence = Evidence {
                references: vec![reference(0), reference(1)],
                trials: vec![Trial { runtime_ratio: Some(1.0), ..run }],
                methods: vec![named(Method::AppMaxRss)],
                ..Evidence::default()
            };
            let rows = methods(&Settings::default(), &evidence, &answer);
            let row = rows.iter().find(|row| row.name == Method::AppMaxRss).unwrap();
            assert_eq!(row.enough, Some(enough), "{row:?}");
        }
    }

    #[test]
    fn a_limit_at_least_the_answer_is_enough() {
        assert_eq!(row(120, 2.5, 100_000).enough, Some(false));
        assert_eq!(row(121, 2.5, 100_000).enough, Some(true));
    }
}

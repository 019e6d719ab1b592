//! A recommendation as the VerticalPodAutoscaler of Kubernetes gives one (`autoscaling.k8s.io/v1`), of memory alone: a budget
//! where there is one, else what a run without a limit needed. Runs that did not come to their end are lower bounds, and left out.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use model::{Bytes, Doubt, Program, RunAccount, RunRole, Target};
use record::Record;
use serde_json::{Value, json};

use crate::Error;

/// What one container needs, in bytes.
struct Needs {
    target: u64,
    /// Less would be too slow, or kill.
    lower: Option<u64>,
    /// More would be wasted.
    upper: u64,
    why: String,
}

/// Records of the same program are one container, which gets what the most demanding of them needs. Of other programs with the same
/// name each gets a number behind it.
pub(crate) fn write(records: &[Record], out: &mut impl Write) -> Result<(), Error> {
    let mut found: BTreeMap<String, Result<Needs, Error>> = BTreeMap::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for record in records {
        let (key, base) = program(record);
        let name = names.entry(key).or_insert_with(|| unused(&base, &found)).clone();
        let needs = match found.remove(&name) {
            Some(known) => either(known, needs(record)),
            None => needs(record),
        };
        found.insert(name, needs);
    }
    let containers = found
        .into_iter()
        .map(|(name, needs)| Ok((name, needs?)))
        .collect::<Result<BTreeMap<String, Needs>, Error>>()?;
    let first = containers.keys().next().ok_or(Error::NoNeeds)?.clone();
    let why: Vec<String> = containers.iter().map(|(name, needs)| format!("{name}: {}", needs.why)).collect();
    let recommendations: Vec<Value> = containers.iter().map(|(name, needs)| recommendation(name, needs)).collect();
    let object = json!({
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": { "name": first, "annotations": { "bursar/from": why.join("; ") } },
        "spec": {
            "targetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": first },
            "updatePolicy": { "updateMode": "Off" },
        },
        "status": { "recommendation": { "containerRecommendations": recommendations } },
    });
    serde_json::to_writer_pretty(&mut *out, &object).map_err(io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

fn recommendation(name: &str, needs: &Needs) -> Value {
    let memory = |bytes: u64| json!({ "memory": format!("{}Mi", Bytes(bytes).mib_ceil()) });
    let mut recommendation = json!({
        "containerName": name,
        "target": memory(needs.target),
        // What a policy of the cluster would have made of it is not known here.
        "uncappedTarget": memory(needs.target),
        "upperBound": memory(needs.upper),
    });
    if let Some(lower) = needs.lower {
        recommendation["lowerBound"] = memory(lower);
    }
    recommendation
}

impl Needs {
    /// What does for both.
    fn and(self, other: Needs) -> Needs {
        let why = if self.why.contains(&other.why) { self.why } else { format!("{}, {}", self.why, other.why) };
        Needs {
            target: self.target.max(other.target),
            lower: self.lower.max(other.lower),
            upper: self.upper.max(other.upper),
            why,
        }
    }

    /// The same, and what was left out of it.
    fn without(self, left_out: &Error) -> Needs {
        let why = match left_out {
            Error::NoWholeRun(why) if !self.why.contains(why) => format!("{}, without {why}", self.why),
            _ => self.why,
        };
        Needs { why, ..self }
    }
}

/// What does for both, as far as they are known.
fn either(one: Result<Needs, Error>, other: Result<Needs, Error>) -> Result<Needs, Error> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(one.and(other)),
        (Ok(known), Err(unknown)) | (Err(unknown), Ok(known)) => Ok(known.without(&unknown)),
        (Err(error), Err(_)) => Err(error),
    }
}

fn needs(record: &Record) -> Result<Needs, Error> {
    let unlimited = record.runs.iter().filter(|run| matches!(run.role, RunRole::Plain | RunRole::Reference));
    let of_runs = unlimited.map(|run| of_run(record, run)).reduce(either).unwrap_or(Err(Error::NoNeeds));
    let answer = record.budget.as_ref().map(|report| (report, &report.answer));
    let Some((report, answer, budget)) =
        answer.and_then(|(report, answer)| Some((report, answer, answer.budget_bytes?)))
    else {
        return of_runs;
    };
    if let Some(why) = missing(&report.doubts) {
        return Err(Error::NoWholeRun(why));
    }
    let percent = 100.0 * report.slowdown_target;
    let sure = if answer.confident { "confident" } else { "not sure" };
    Ok(Needs {
        target: budget,
        lower: answer.smallest_passing_bytes.map(|passed| passed.min(budget)),
        upper: of_runs.map_or(budget, |all| all.upper.max(budget)),
        why: format!("budget within {percent} % of its run time ({sure})"),
    })
}

/// Of a run without a limit: up to where the file demand curve says that nothing would be read again, else all it took. What is known
/// between bounds counts as the upper one. Parts of huge pages that were given back count: what it costs to have the kernel free them, and
/// whether it is in time, one run does not show.
fn of_run(record: &Record, run: &model::Observation) -> Result<Needs, Error> {
    let account = account::account(run, &record.header);
    if let Some(why) = cut_short(&account).or_else(|| missing(&account.doubts)) {
        return Err(Error::NoWholeRun(format!("run {}: {why}", run.run)));
    }
    let held = account.tree_held_at_most_bytes.or(account.tree_max_rss_bytes);
    let peak = account.peak_charge_bytes.or(held).ok_or(Error::NoNeeds)?;
    let lower = account.floor_bytes.map(|floor| floor.min(peak));
    let must_fit = account.floor_at_most_bytes.or(lower).unwrap_or(0);
    let demand = account.file_demand.as_ref().filter(|demand| demand.lost_events == 0);
    let has_given_back = account.peak_detail.given_back.is_some();
    let enough = demand.filter(|_| !has_given_back).and_then(|demand| Some(demand.points.last()?.limit_bytes));
    let is_exact = account.floor_at_most_bytes.is_none()
        && (account.peak_charge_bytes.is_some() || account.tree_held_at_least_bytes == account.tree_held_at_most_bytes);
    Ok(Needs {
        target: enough.unwrap_or(peak).min(peak).max(must_fit),
        lower,
        upper: peak.max(must_fit),
        why: if is_exact {
            "runs without a limit, no budget".into()
        } else {
            "runs without a limit, no budget, by the upper bounds of what their processes held".into()
        },
    })
}

/// Why a run's figures are lower bounds.
fn cut_short(account: &RunAccount) -> Option<String> {
    let is_killed = account.oom_kills.is_some_and(|kills| kills > 0);
    let killed = || is_killed.then(|| "the kernel killed processes of it for lack of memory".to_string());
    let why = killed().or_else(|| account.cut_short.clone())?;
    Some(format!("{why}, and its figures are lower bounds"))
}

/// Why memory without which the container is killed may be missing from the figures.
fn missing(doubts: &[Doubt]) -> Option<String> {
    doubts.iter().find(|doubt| doubt.voids || doubt.may_kill()).map(|doubt| doubt.sentence.clone())
}

/// What tells the program apart from others, and its name.
fn program(record: &Record) -> (String, String) {
    let cgroup = record.runs.iter().find_map(|run| match &run.target {
        Target::Cgroup(path) => Some(path.as_str()),
        _ => None,
    });
    let process = || record.runs.iter().flat_map(|run| &run.processes).map(|process| process.command.as_str()).next();
    if let Some(program) = Program::of(&record.header.command) {
        return (program.key, label(&program.name));
    }
    let key = cgroup.or_else(process).unwrap_or_default();
    (key.into(), label(&Path::new(key).file_name().unwrap_or_default().to_string_lossy()))
}

/// As a container may be called: a label of DNS.
fn label(name: &str) -> String {
    let name = name.to_lowercase();
    let label: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(60).collect();
    let label = label.trim_matches('-');
    if label.is_empty() { "job".into() } else { label.into() }
}

/// The name, or with the first number behind it that makes it another than those.
fn unused<T>(name: &str, containers: &BTreeMap<String, T>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_string()).chain(numbered).find(|name| !containers.contains_key(name)).unwrap_or_default()
}

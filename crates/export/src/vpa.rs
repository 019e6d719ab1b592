//! A recommendation as the VerticalPodAutoscaler of Kubernetes gives one (`autoscaling.k8s.io/v1`), of memory alone: a budget
//! where there is one, else what a run without a limit needed.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use model::{Bytes, Program, RunRole, Target};
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
    let mut containers: BTreeMap<String, Needs> = BTreeMap::new();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for record in records {
        let needs = needs(record).ok_or(Error::NoNeeds)?;
        let (key, base) = program(record);
        let name = match names.get(&key) {
            Some(known) => known.clone(),
            None => unused(&base, &containers),
        };
        names.insert(key, name.clone());
        let needs = match containers.remove(&name) {
            Some(known) => known.and(needs),
            None => needs,
        };
        containers.insert(name, needs);
    }
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
}

fn needs(record: &Record) -> Option<Needs> {
    let unlimited = record.runs.iter().filter(|run| matches!(run.role, RunRole::Plain | RunRole::Reference));
    let of_runs = unlimited.filter_map(|run| of_run(record, run)).reduce(Needs::and);
    let answer = record.budget.as_ref().map(|report| (report, &report.answer));
    let Some((report, answer, budget)) =
        answer.and_then(|(report, answer)| Some((report, answer, answer.budget_bytes?)))
    else {
        return of_runs;
    };
    let percent = 100.0 * report.slowdown_target;
    let sure = if answer.confident { "confident" } else { "not sure" };
    Some(Needs {
        target: budget,
        lower: answer.smallest_passing_bytes.map(|passed| passed.min(budget)),
        upper: of_runs.map_or(budget, |all| all.upper.max(budget)),
        why: format!("budget within {percent} % of its run time ({sure})"),
    })
}

/// Of a run without a limit: up to where the file demand curve says that nothing would be read again, else all it took.
fn of_run(record: &Record, run: &model::Observation) -> Option<Needs> {
    let account = account::account(run, &record.header);
    let peak = account.peak_charge_bytes.or(account.tree_max_rss_bytes)?;
    let lower = account.floor_bytes.map(|floor| floor.min(peak));
    let demand = account.file_demand.filter(|demand| demand.lost_events == 0);
    let enough = demand.and_then(|demand| Some(demand.points.last()?.limit_bytes));
    Some(Needs {
        target: enough.unwrap_or(peak).min(peak).max(lower.unwrap_or(0)),
        lower,
        upper: peak,
        why: "runs without a limit, no budget".into(),
    })
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
fn unused(name: &str, containers: &BTreeMap<String, Needs>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_string()).chain(numbered).find(|name| !containers.contains_key(name)).unwrap_or_default()
}

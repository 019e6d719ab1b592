//! Folders of records, one for each task of a workflow: `DIR/RULE/TASK.bursar`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use model::{Program, RecordKind, RunRole};
use record::Record;
use report::{LeftOut, RuleTasks, Spread, Tasks};

use crate::measured::unfinished;

/// Folders within the named one that are entered.
const DEEPEST: usize = 8;

/// What one task showed.
struct Task {
    rule: String,
    failed: bool,
    peak_bytes: Option<u64>,
    floor_bytes: Option<u64>,
    wall_seconds: f64,
}

/// Whether all paths are folders that hold records, and so of tasks.
pub fn are_folders(paths: &[PathBuf]) -> bool {
    paths.iter().all(|path| path.is_dir() && !records_in(path, DEEPEST).is_empty())
}

/// The tasks of all records in these folders, by rule.
pub fn of_folders(folders: &[PathBuf]) -> Tasks {
    let (mut tasks, mut left_out) = (Vec::new(), Vec::new());
    for folder in folders {
        for path in records_in(folder, DEEPEST) {
            match of_record(&path, folder) {
                Ok(task) => tasks.push(task),
                Err(why) => {
                    let why = in_short(&format!("{why:#}"), &path);
                    left_out.push(LeftOut { path: path.display().to_string(), why });
                }
            }
        }
    }
    let mut by_rule: BTreeMap<&str, Vec<&Task>> = BTreeMap::new();
    for task in &tasks {
        by_rule.entry(&task.rule).or_default().push(task);
    }
    let rules = by_rule.iter().map(|(rule, tasks)| summed(rule, tasks)).collect();
    Tasks { rules, total: summed("", &tasks.iter().collect::<Vec<_>>()), left_out }
}

/// An error without the file's name, which stands before it, and without advice.
fn in_short(why: &str, path: &Path) -> String {
    let of_file = why.strip_prefix(&format!("'{}' ", path.display()));
    of_file.map_or(why.into(), |what| format!("it {}", what.split(';').next().unwrap_or_default()))
}

/// Records in a folder and in those within it, in order of their names. Links are not followed.
fn records_in(folder: &Path, deepest: usize) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut entries: Vec<_> = entries.filter_map(|entry| Some((entry.path(), entry.file_type().ok()?))).collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let mut found = Vec::new();
    for (path, kind) in entries {
        if kind.is_dir() && deepest > 0 {
            found.extend(records_in(&path, deepest - 1));
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "bursar") {
            found.push(path);
        }
    }
    found
}

fn of_record(path: &Path, folder: &Path) -> anyhow::Result<Task> {
    let record = Record::open(path)?;
    if !record.complete {
        bail!("it is still being written, or was cut off");
    }
    if record.header.kind != RecordKind::Run {
        bail!("it is no record of bursar run");
    }
    let Some(run) = record.runs.iter().find(|run| run.role == RunRole::Plain) else { bail!("it holds no run") };
    let account = account::account(run, &record.header);
    let within = path.parent().and_then(|parent| parent.strip_prefix(folder).ok());
    let rule = within.map(|within| within.display().to_string()).filter(|rule| !rule.is_empty());
    Ok(Task {
        rule: rule.or_else(|| Some(Program::of(&record.header.command)?.name)).unwrap_or_else(|| "-".into()),
        failed: unfinished(run, &account).is_some(),
        peak_bytes: account.peak_charge_bytes.or(account.tree_max_rss_bytes),
        floor_bytes: account.floor_bytes,
        wall_seconds: account.wall_seconds,
    })
}

fn summed(rule: &str, tasks: &[&Task]) -> RuleTasks {
    let ended = || tasks.iter().filter(|task| !task.failed);
    RuleTasks {
        rule: rule.into(),
        tasks: tasks.len(),
        failed: tasks.len() - ended().count(),
        peak_bytes: Spread::of(ended().filter_map(|task| task.peak_bytes).collect()),
        floor_bytes: Spread::of(ended().filter_map(|task| task.floor_bytes).collect()),
        wall_seconds: Spread::of(ended().map(|task| task.wall_seconds).collect()),
        total_seconds: tasks.iter().map(|task| task.wall_seconds).sum(),
    }
}

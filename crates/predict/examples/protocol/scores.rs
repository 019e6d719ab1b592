//! Waste and failures over traces.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::Kinds;
use crate::baselines::{Baseline, Task};

const GB_HOUR: f64 = 3600e9;

#[derive(Clone, Copy, Default)]
struct Score {
    /// Byte-seconds.
    waste: f64,
    /// Tasks of which a try failed.
    failed: usize,
}

impl Score {
    /// Adds a task, with the requests made for it.
    fn add(&mut self, task: &Task, mut given: f64, mut retry: impl FnMut(f64) -> f64) {
        self.failed += usize::from(given < task.peak_bytes);
        while given < task.peak_bytes {
            self.waste += given * task.seconds;
            given = retry(given);
        }
        self.waste += (given - task.peak_bytes) * task.seconds;
    }
}

/// Prints a table of waste and failures in each trace.
pub fn print(paths: &[String]) -> io::Result<()> {
    println!("| trace | method | waste (GB h) | beside use | failed | beside the best baseline |");
    println!("|---|---|---|---|---|---|");
    for path in paths {
        let kinds = read(path)?;
        let asked: usize = kinds.values().map(|tasks| tasks.len() - history(tasks)).sum();
        let used: f64 =
            kinds.values().flat_map(|tasks| &tasks[history(tasks)..]).map(|task| task.peak_bytes * task.seconds).sum();
        let mut least = f64::INFINITY;
        let row = |name: &str, score: Score, beside: &str| {
            let (waste, share) = (score.waste / GB_HOUR, score.waste / used);
            let failed = 100.0 * score.failed as f64 / asked as f64;
            println!(
                "| {path} | {name} | {waste:.2} | {share:.3} | {} of {asked} ({failed:.1} %) | {beside} |",
                score.failed
            );
        };
        for baseline in Baseline::ALL {
            let mut score = Score::default();
            for tasks in kinds.values() {
                for (index, task) in tasks.iter().enumerate().skip(history(tasks)) {
                    let past = &tasks[..index];
                    score.add(task, baseline.ask(past, task), |failed| baseline.retry(past, failed));
                }
            }
            least = least.min(score.waste);
            row(baseline.name(), score, "");
        }
        let mut score = Score::default();
        let mut predictor = Kinds::default();
        for (kind, tasks) in &kinds {
            for (index, task) in tasks.iter().enumerate() {
                if index >= history(tasks) {
                    let given = predictor.ask(kind, task.input_bytes, task.requested_bytes);
                    score.add(task, given, |failed| predictor.retry(failed));
                }
                predictor.learn(kind, task.input_bytes, task.peak_bytes, task.seconds);
            }
        }
        row("bursar", score, &format!("{:+.0} %", 100.0 * (score.waste / least - 1.0)));
    }
    Ok(())
}

/// So many tasks are learnt before the first is predicted.
fn history(tasks: &[Task]) -> usize {
    tasks.len() * 3 / 10
}

/// Tasks of each kind in order of completion.
pub fn read(path: &str) -> io::Result<BTreeMap<String, Vec<Task>>> {
    let text = fs::read_to_string(path)?;
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let mut kinds: BTreeMap<String, Vec<(f64, Task)>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let text = |name: &str| {
            let column = head.iter().position(|column| *column == name);
            column
                .and_then(|column| cells.get(column))
                .ok_or_else(|| io::Error::other(format!("{path}: no {name} in: {line}")))
        };
        let number =
            |name| text(name)?.parse().map_err(|error| io::Error::other(format!("{path}: {name}: {error}: {line}")));
        let task = Task {
            input_bytes: number("input_bytes")?,
            peak_bytes: number("peak_bytes")?,
            seconds: number("seconds")?,
            requested_bytes: number("requested_bytes")?,
        };
        kinds.entry((*text("task")?).to_owned()).or_default().push((number("completed")?, task));
    }
    let in_order = |mut tasks: Vec<(f64, Task)>| {
        tasks.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.input_bytes.total_cmp(&b.1.input_bytes)));
        tasks.into_iter().map(|(_, task)| task).collect()
    };
    Ok(kinds.into_iter().map(|(kind, tasks)| (kind, in_order(tasks))).collect())
}

//! Answers questions about the memory of tasks, one JSON object a line, on standard input and output.
//!
//! ```text
//! {"task": …, "input_bytes": …, "requested_bytes": …}                a task is about to start     -> {"bytes": N}
//! {"failed": N}                                                      N was too little             -> {"bytes": M}, M > N
//! {"task": …, "input_bytes": …, "peak_bytes": …, "seconds": …}       a task has ended             (no answer)
//! ```
//! `protocol score TRACE.csv…` reads traces with the columns task, input_bytes, peak_bytes, seconds, requested_bytes, submitted, completed,
//! and prints waste and failures beside four baselines. Each kind of task by itself, in order of completion: the first 30 % are history; the
//! rest are predicted one at a time, then learnt. Waste: (given − peak) × seconds where it was enough, given × seconds for each try that was
//! not.
//!
//! `protocol beyond HISTORY.csv…` prints what is asked for the largest input of each task, from the runs of smaller ones.
//!
//! `protocol speed` prints how long learning and asking take, by the number of past runs.

mod baselines;
mod beyond;
mod scores;
mod speed;

use std::collections::HashMap;
use std::io::{self, BufRead, Write};

use predict::{Confidence, History, Need, Run};
use serde_json::{Value, json};

/// Beyond the ladder, each retry is so much larger.
const LAST_RETRY_RATIO: f64 = 2.0;

/// All kinds, and the retries left of the last answer.
#[derive(Default)]
pub struct Kinds {
    histories: HashMap<String, History>,
    retries: Vec<f64>,
}

impl Kinds {
    /// What to ask for, in bytes. Without a past run it is what the user requests; with one or two, half more than the largest.
    pub fn ask(&mut self, task: &str, input_bytes: f64, requested_bytes: f64) -> f64 {
        let Some(history) = self.histories.get(task) else { return requested_bytes };
        match history.ask(&[input_bytes], None) {
            Ok(forecast) => {
                self.retries = forecast.retry_bytes;
                forecast.ask_bytes
            }
            Err(_) => {
                self.retries.clear();
                history.largest_bytes() * 1.5
            }
        }
    }

    /// What to ask for after a failure, in bytes.
    pub fn retry(&mut self, failed: f64) -> f64 {
        let larger = self.retries.iter().copied().find(|&bytes| bytes > failed);
        larger.unwrap_or(failed * LAST_RETRY_RATIO)
    }

    /// Learns a task that has ended.
    pub fn learn(&mut self, task: &str, input_bytes: f64, peak_bytes: f64, seconds: f64) {
        let history = self.histories.entry(task.to_owned()).or_insert_with(|| History::new(Confidence::default()));
        history.learn(Run { features: vec![input_bytes], need: Need::Exactly(peak_bytes), seconds });
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("score") => return scores::print(&arguments[1..]),
        Some("beyond") => return beyond::print(&arguments[1..]),
        Some("speed") => {
            speed::print();
            return Ok(());
        }
        _ => {}
    }
    let mut kinds = Kinds::default();
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let number = |name: &str| message[name].as_f64();
        let task = message["task"].as_str().unwrap_or_default();
        let answer = match (number("failed"), number("input_bytes"), number("peak_bytes"), number("requested_bytes")) {
            (Some(failed), ..) => kinds.retry(failed),
            (_, Some(input), Some(peak), _) => {
                kinds.learn(task, input, peak, number("seconds").unwrap_or(0.0));
                continue;
            }
            (_, Some(input), None, Some(requested)) => kinds.ask(task, input, requested),
            _ => return Err(io::Error::other(format!("not a message of the protocol: {message}"))),
        };
        writeln!(output, "{}", json!({ "bytes": answer.ceil() }))?;
        output.flush()?;
    }
    Ok(())
}

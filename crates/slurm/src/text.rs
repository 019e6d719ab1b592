//! What `sacct -P -o …` prints: a line of names, then a line for each job and each of its steps, fields between delimiters.

mod columns;
mod fields;
mod values;

use std::collections::HashMap;

use model::MemoryPer;

use crate::accounting::{LeftOut, Printed, PrintedJob, PrintedStep, ended};
use crate::error::Error;
use columns::Header;
use fields::Fields;
use values::{Size, count, seconds, size, time, tres};

/// What bursar asks sacct for. Names and order as sacct has them.
pub const COLUMNS: &str = "JobID,JobName,State,ElapsedRaw,MaxRSS,User,ReqMem,AllocTRES,NNodes,AllocCPUS,NTasks,TRESUsageInTot,Start,End,Comment";

/// A name that holds line ends is put together from at most so many lines.
const MOST_LINES: usize = 64;

/// Lines before the line of names: banners and warnings.
const MOST_LINES_BEFORE: usize = 50;

/// A line by the names of its fields, and where it stands.
struct Line<'a> {
    fields: Fields<'a>,
    number: usize,
}

/// The jobs of a text. `by` is the column that jobs are grouped by.
///
/// # Errors
/// If it has no line of column names, or lacks a column without which nothing can be said.
pub fn parse(text: &str, by: Option<&str>) -> Result<Printed, Error> {
    let lines: Vec<&str> = text.lines().collect();
    if lines.iter().all(|line| line.trim().is_empty()) {
        return Err(Error::Empty);
    }
    let (at, mut header) = Header::find(&lines[..lines.len().min(MOST_LINES_BEFORE)])?;
    header.check(by)?;
    let mut printed = Printed::default();
    let mut jobs = Jobs::default();
    let mut next = at + 1;
    while next < lines.len() {
        let number = next + 1;
        let line = lines[next];
        if line.trim().is_empty() {
            next += 1;
            continue;
        }
        // Files that were put together have more than one.
        let other = Header::of(line).filter(|other| other.check(by).is_ok());
        if let Some(other) = other {
            header = other;
            next += 1;
            continue;
        }
        let (fields, used) = header.read(&lines[next..], MOST_LINES);
        next += used;
        let place =
            if used > 1 { format!("lines {number} to {}", number + used - 1) } else { format!("line {number}") };
        let fields = match fields {
            Ok(fields) => fields,
            Err((reason, id)) => {
                printed.left_out.add(reason, place);
                // Of a job of which a line is not known, nothing may be said.
                jobs.broken.extend(id);
                continue;
            }
        };
        let line = Line { fields, number };
        match line.step_of() {
            Some(job) => {
                let job = job.to_string();
                if let Some(step) = step(&line, &mut printed) {
                    jobs.steps.push((job, number, step));
                }
            }
            None => match past_job(&line, by, &mut printed) {
                Ok(job) => jobs.add(job, number),
                Err(reason) => {
                    printed.left_out.add(reason, place);
                    jobs.left_out.push(line.id());
                }
            },
        }
    }
    printed.jobs = jobs.with_their_steps(&mut printed.left_out);
    Ok(printed)
}

#[derive(Default)]
struct Jobs {
    jobs: Vec<(PrintedJob, usize)>,
    /// Each with the id of its job and its line.
    steps: Vec<(String, usize, PrintedStep)>,
    /// Ids of jobs that are left out.
    left_out: Vec<String>,
    /// Ids at the start of lines that could not be read.
    broken: Vec<String>,
}

impl Jobs {
    fn add(&mut self, job: PrintedJob, line: usize) {
        self.jobs.push((job, line));
    }

    fn with_their_steps(self, left_out: &mut LeftOut) -> Vec<PrintedJob> {
        let mut jobs = self.jobs;
        let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, (job, _)) in jobs.iter().enumerate() {
            by_id.entry(job.id.clone()).or_default().push(at);
        }
        for (id, line, step) in self.steps {
            match by_id.get(&id) {
                None if self.left_out.contains(&id) => {}
                None => left_out.add("a step without the line of its job", format!("line {line}")),
                Some(attempts) => {
                    let at = of_attempts(attempts, &jobs, line, &step);
                    jobs[at].0.steps.push(step);
                }
            }
        }
        for id in &self.broken {
            let job = id.split('.').next().unwrap_or(id);
            for at in by_id.get(job).into_iter().flatten() {
                // A step without a figure: what it had is not known.
                jobs[*at].0.steps.push(PrintedStep { state: "UNKNOWN".into(), ..PrintedStep::default() });
            }
        }
        jobs.into_iter().map(|(job, _)| job).collect()
    }
}

/// Which of the attempts at a job a step belongs to: the one during which it began, else the last before its line.
fn of_attempts(attempts: &[usize], jobs: &[(PrintedJob, usize)], line: usize, step: &PrintedStep) -> usize {
    if let Some(start) = step.start_seconds.filter(|_| attempts.len() > 1) {
        let began = |at: &&usize| jobs[**at].0.start_seconds.is_some_and(|job| job <= start);
        let latest = attempts.iter().filter(began).max_by_key(|at| jobs[**at].0.start_seconds);
        if let Some(at) = latest {
            return *at;
        }
    }
    attempts.iter().rev().find(|at| jobs[**at].1 < line).copied().unwrap_or(attempts[0])
}

impl Line<'_> {
    /// Empty where the column is not there.
    fn get(&self, name: &str) -> &str {
        self.fields.get(name)
    }

    fn job_id(&self) -> &str {
        match self.get("jobid") {
            "" => self.get("jobidraw"),
            id => id,
        }
    }

    /// With its cluster, as far as it is known.
    fn id(&self) -> String {
        self.with_cluster(self.job_id().split('.').next().unwrap_or(""))
    }

    fn with_cluster(&self, id: &str) -> String {
        match self.get("cluster") {
            "" => id.to_string(),
            cluster => format!("{cluster}/{id}"),
        }
    }

    /// The id of its job, if it is a step.
    fn step_of(&self) -> Option<String> {
        self.job_id().contains('.').then(|| self.id())
    }

    fn bytes(&self, name: &str) -> Result<Option<Size>, String> {
        size(self.get(name)).map_err(|()| format!("for {} is no size", columns::printed(name)))
    }

    fn count(&self, name: &str) -> Result<Option<u64>, String> {
        count(self.get(name)).map_err(|()| format!("for {} is no number", columns::printed(name)))
    }
}

fn past_job(line: &Line<'_>, by: Option<&str>, printed: &mut Printed) -> Result<PrintedJob, String> {
    let state = line.get("state");
    if ended(state).is_none() {
        return Err("for State is no state of Slurm's".into());
    }
    let (nodes, cpus) = (count_or_one(line, "nnodes")?, count_or_one(line, "alloccpus")?);
    let (start, end) = (time(line.get("start")), time(line.get("end")));
    let elapsed = match [line.get("elapsedraw"), line.get("elapsed")].into_iter().find(|text| !text.is_empty()) {
        Some(text) => Some(seconds(text).ok_or("for Elapsed is no time")?),
        None => start.zip(end).map(|(start, end)| end.saturating_sub(start) as f64),
    };
    // Up to 20.11 a letter behind it tells whether it is of a node or of a CPU; later it is the job's total.
    let asked = line.get("reqmem");
    let (per, times) = match asked.chars().last() {
        Some('c') => (MemoryPer::Cpu, cpus),
        Some('n') => (MemoryPer::Node, nodes),
        _ => (MemoryPer::Node, 1),
    };
    let asked = size(asked.trim_end_matches(['c', 'n'])).map(|size| Some(size?.in_mib().saturating_mul(times)));
    let allocated = tres(line.get("alloctres"), "mem").map(|size| Some(size?.in_mib()));
    if asked.is_err() || allocated.is_err() {
        printed.unknown_requests += 1;
    }
    let reserved = allocated.ok().flatten().or(asked.ok().flatten());
    let column = |by: &str| line.get(by).to_string();
    let id = line.job_id();
    Ok(PrintedJob {
        id: line.id(),
        name: line.get("jobname").to_string(),
        comment: line.get("comment").to_string(),
        user: line.get("user").to_string(),
        state: state.to_string(),
        by: by.map(column),
        component: id.split_once('+').and_then(|(_, component)| component.parse().ok()).unwrap_or(0),
        elapsed_seconds: elapsed,
        start_seconds: start,
        nodes,
        cpus,
        per,
        reserved_bytes: reserved.filter(|bytes| *bytes > 0),
        steps: Vec::new(),
    })
}

fn count_or_one(line: &Line<'_>, name: &str) -> Result<u64, String> {
    Ok(line.count(name)?.unwrap_or(1).max(1))
}

/// `None`: it never ran, or it is the empty step in which Slurm puts what others bring into a job. A value that cannot be read leaves the step
/// without a figure.
fn step(line: &Line<'_>, printed: &mut Printed) -> Option<PrintedStep> {
    let mut rounded = false;
    let mut is_exact = true;
    let mut unread = Vec::new();
    let mut figure = |read: Result<Option<Size>, String>| match read {
        Ok(size) => size.and_then(|size| {
            rounded |= size.is_rough();
            is_exact &= size.is_exact();
            size.at_most()
        }),
        Err(reason) => {
            unread.push(reason);
            None
        }
    };
    let usage = |name: &'static str, kind: &'static str| {
        tres(line.get(name), kind).map_err(|()| format!("for {kind} of {} is no size", columns::printed(name)))
    };
    let largest = figure(line.bytes("maxrss"));
    let largest_of_tres = figure(usage("tresusageinmax", "mem"));
    let total = figure(usage("tresusageintot", "mem"));
    let virtual_bytes = figure(usage("tresusageintot", "vmem"));
    let is_broken = !unread.is_empty();
    for reason in unread {
        printed.left_out.add(reason, format!("line {}", line.number));
    }
    printed.rounded += u64::from(rounded);
    let largest = largest.or(largest_of_tres).or(total).filter(|bytes| *bytes > 0 && !is_broken);
    let state = line.get("state");
    let (start, end) = (line.get("start"), time(line.get("end")));
    let never_began = matches!(start, "Unknown" | "None") || state.starts_with("PENDING");
    let is_extern = line.job_id().ends_with(".extern") || line.job_id().ends_with(".ext+");
    if largest.is_none() && !is_broken && (is_extern || never_began) {
        return None;
    }
    Some(PrintedStep {
        id: line.job_id().to_string(),
        state: state.to_string(),
        start_seconds: time(start),
        end_seconds: end,
        nodes: line.count("nnodes").ok().flatten().unwrap_or(1).max(1),
        tasks: line.count("ntasks").ok().flatten().unwrap_or(1).max(1),
        largest_task_bytes: largest,
        tasks_bytes: total.filter(|bytes| *bytes > 0 && !is_broken),
        virtual_bytes,
        is_exact,
        allowed_bytes: tres(line.get("alloctres"), "mem").ok().flatten().map(Size::in_mib).filter(|bytes| *bytes > 0),
    })
}

#[cfg(test)]
pub(super) mod tests;

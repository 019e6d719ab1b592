//! What is the same in all forms that sacct prints.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::{JobEnd, MemoryPer, PastJob, PastStep};

use crate::kind::By;
use crate::meaning::{Evidence, Meaning};
use crate::version::Version;

/// Which jobs. Up to 22.05 `sacct --json` prints everybody's of all times, whatever it is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Whose; everybody's without.
    pub user: Option<String>,
    /// Seconds since 1970 when the oldest began.
    pub since_seconds: u64,
}

/// What sacct printed, before it is known what its figures mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    pub(crate) jobs: Vec<PrintedJob>,
    pub(crate) left_out: LeftOut,
    /// Jobs whose request could not be read.
    pub(crate) unknown_requests: u64,
    /// Figures that were rounded to more than 1 % of their value.
    pub(crate) rounded: u64,
    /// Of Slurm, if it is told.
    pub version: Option<Version>,
}

/// No machine has as much memory: such a figure is a mistake of the accounting.
const IMPOSSIBLE_BYTES: u64 = 1 << 50;

/// A job, or one attempt at it if it was requeued.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedJob {
    /// With its cluster, if that is known.
    pub id: String,
    pub name: String,
    pub comment: String,
    pub user: String,
    pub state: String,
    /// The value of the column that the user groups by.
    pub by: Option<String>,
    /// Of a heterogeneous job; 0 is the first.
    pub component: u64,
    pub elapsed_seconds: Option<f64>,
    /// Seconds since 1970; `None`: not printed, or not started.
    pub start_seconds: Option<u64>,
    pub nodes: u64,
    pub cpus: u64,
    pub per: MemoryPer,
    pub reserved_bytes: Option<u64>,
    pub steps: Vec<PrintedStep>,
}

/// A step that ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrintedStep {
    pub id: String,
    pub state: String,
    pub start_seconds: Option<u64>,
    pub end_seconds: Option<u64>,
    pub nodes: u64,
    pub tasks: u64,
    pub largest_task_bytes: Option<u64>,
    pub tasks_bytes: Option<u64>,
    /// Address space, or what the cgroup has in all.
    pub virtual_bytes: Option<u64>,
    /// The figures are not rounded to more than KiB.
    pub is_exact: bool,
    pub allowed_bytes: Option<u64>,
}

/// Lines or jobs that could not be used, by reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeftOut(BTreeMap<String, Vec<String>>);

/// The jobs, in the form that the model takes.
#[derive(Debug, Default, PartialEq)]
pub struct Accounting {
    /// Those that have ended.
    pub jobs: Vec<PastJob>,
    /// How many have not.
    pub unfinished: u64,
    /// Steps that were shorter than the sampling interval: their figures are taken for none.
    pub too_short: u64,
    /// Steps with a figure that no machine can have: it is taken for none.
    pub impossible: u64,
    /// Kinds whose names are no kind of job, as a UUID is none.
    pub nameless: BTreeSet<String>,
}

/// How a state is to be read; `None`: it is no state of Slurm's.
pub enum Ended {
    Yes(JobEnd),
    NotYet,
}

/// `CANCELLED by 1000` is how text says who did that; JSON may have several words.
pub fn ended(state: &str) -> Option<Ended> {
    let mut words = state.split_whitespace().map(|word| word.trim_end_matches('+'));
    let first = words.next()?;
    let end = match first {
        "COMPLETED" => Some(JobEnd::Completed),
        "OUT_OF_MEMORY" => Some(JobEnd::OutOfMemory),
        "FAILED" | "CANCELLED" | "TIMEOUT" | "NODE_FAIL" | "PREEMPTED" | "BOOT_FAIL" | "DEADLINE" | "REVOKED"
        | "LAUNCH_FAILED" | "RECONFIG_FAIL" | "REQUEUED" | "RESIZING" => Some(JobEnd::CutShort),
        _ => None,
    };
    let is_waiting = |word: &str| {
        matches!(
            word,
            "PENDING"
                | "RUNNING"
                | "SUSPENDED"
                | "COMPLETING"
                | "CONFIGURING"
                | "STOPPED"
                | "SIGNALING"
                | "STAGE_OUT"
                | "SPECIAL_EXIT"
                | "RESV_DEL_HOLD"
                | "REQUEUE_FED"
                | "REQUEUE_HOLD"
                | "POWER_UP_NODE"
                | "EXPEDITING"
        )
    };
    match end {
        _ if is_waiting(first) || words.any(is_waiting) => Some(Ended::NotYet),
        Some(end) => Some(Ended::Yes(end)),
        None => None,
    }
}

impl LeftOut {
    pub fn add(&mut self, reason: impl Into<String>, place: impl Into<String>) {
        self.0.entry(reason.into()).or_default().push(place.into());
    }

    pub fn len(&self) -> u64 {
        self.0.values().map(|places| places.len() as u64).sum()
    }

    /// A sentence for each reason.
    pub fn notes(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|(reason, places)| {
            let shown = places.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = places.len().saturating_sub(5);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("left out, {reason}: {shown}{more}")
        })
    }
}

impl Wanted {
    /// Whether a job is one of them, as far as its owner and its start are known.
    fn has(&self, job: &PrintedJob) -> bool {
        self.user.as_deref().is_none_or(|wanted| job.user.is_empty() || job.user == wanted)
            && job.start_seconds.is_none_or(|start| start == 0 || start >= self.since_seconds)
    }
}

impl Printed {
    /// Drops the jobs of others, and what was printed twice: a job that is in two files, or in two states.
    pub fn select(&mut self, wanted: &Wanted) {
        let mut seen: HashMap<(String, Option<u64>, Option<String>), usize> = HashMap::new();
        let mut kept: Vec<PrintedJob> = Vec::new();
        for job in std::mem::take(&mut self.jobs).into_iter().filter(|job| wanted.has(job)) {
            // Attempts at a job begin at different times. Where those are not printed, equal lines are one job.
            let line = job.start_seconds.is_none().then(|| format!("{} {:?}", job.state, job.elapsed_seconds));
            let key = (job.id.clone(), job.start_seconds, line);
            match seen.get(&key) {
                Some(at) if matches!(ended(&kept[*at].state), Some(Ended::NotYet)) => kept[*at] = job,
                Some(_) => {}
                None => {
                    seen.insert(key, kept.len());
                    kept.push(job);
                }
            }
        }
        for job in &mut kept {
            let mut ids = BTreeSet::new();
            job.steps.retain(|step| step.id.is_empty() || ids.insert((step.id.clone(), step.start_seconds)));
        }
        self.jobs = kept;
    }

    /// What the figures themselves show of who gathered them.
    pub fn evidence(&self) -> Evidence {
        let mut evidence = Evidence::default();
        for job in &self.jobs {
            for step in &job.steps {
                evidence.add(step, step.allowed_bytes.or(job.reserved_bytes));
            }
        }
        evidence
    }

    /// In the form that the model takes.
    pub fn past_jobs(&self, meaning: &Meaning, by: &By) -> Accounting {
        let interval = self.interval_seconds(meaning);
        let mut accounting = Accounting::default();
        let ended: Vec<(&PrintedJob, JobEnd)> = self
            .jobs
            .iter()
            .filter_map(|job| match ended(&job.state)? {
                Ended::Yes(end) => Some((job, end)),
                Ended::NotYet => None,
            })
            .collect();
        accounting.unfinished = (self.jobs.len() - ended.len()) as u64;
        let kinds = by.kinds(&ended.iter().map(|(job, _)| *job).collect::<Vec<_>>());
        for ((job, end), kind) in ended.into_iter().zip(kinds) {
            if kind.is_nameless {
                accounting.nameless.insert(kind.name.clone());
            }
            let mut steps = Vec::with_capacity(job.steps.len());
            for step in &job.steps {
                let is_short = step.is_shorter_than(interval);
                if is_short && step.largest_task_bytes.is_some() {
                    accounting.too_short += 1;
                }
                accounting.impossible += u64::from(step.is_impossible());
                steps.push(step.past_step(meaning, is_short));
            }
            // A step that was killed for lack of memory is a job that was, whatever its script made of it.
            let was_killed = steps.iter().any(|step| step.out_of_memory);
            accounting.jobs.push(PastJob {
                kind: kind.name,
                is_kind_guessed: kind.is_guessed,
                numbers: kind.numbers,
                name: job.name.clone(),
                figures: meaning.figures,
                end: if was_killed { JobEnd::OutOfMemory } else { end },
                elapsed_seconds: job.elapsed_seconds,
                nodes: job.nodes,
                cpus: job.cpus,
                per: job.per,
                reserved_bytes: job.reserved_bytes,
                steps,
            });
        }
        accounting
    }

    /// Steps that are no longer than this have a figure of one moment at most. What the site says; else as long as a step was that came to its end
    /// without a figure, up to Slurm's default of 30 s.
    fn interval_seconds(&self, meaning: &Meaning) -> Interval {
        if meaning.is_peak {
            return Interval::None;
        }
        if let Some(seconds) = meaning.interval_seconds.filter(|seconds| *seconds > 0) {
            return Interval::Known(seconds);
        }
        let steps = self.jobs.iter().flat_map(|job| &job.steps);
        let unmeasured = steps.filter(|step| step.largest_task_bytes.is_none() && step.state.starts_with("COMPLETED"));
        unmeasured.filter_map(PrintedStep::seconds).max().map_or(Interval::None, |most| Interval::AtLeast(most.min(30)))
    }
}

#[derive(Clone, Copy)]
enum Interval {
    None,
    Known(u64),
    AtLeast(u64),
}

impl PrintedStep {
    fn seconds(&self) -> Option<u64> {
        Some(self.end_seconds?.saturating_sub(self.start_seconds?))
    }

    fn is_shorter_than(&self, interval: Interval) -> bool {
        self.seconds().is_some_and(|seconds| match interval {
            Interval::None => false,
            Interval::Known(interval) => seconds < interval,
            Interval::AtLeast(least) => seconds <= least,
        })
    }

    fn is_impossible(&self) -> bool {
        self.largest_task_bytes.max(self.tasks_bytes).is_some_and(|bytes| bytes >= IMPOSSIBLE_BYTES)
    }

    /// A step without its times counts as beside all others.
    fn past_step(&self, meaning: &Meaning, is_short: bool) -> PastStep {
        let measured = |bytes: Option<u64>| bytes.filter(|bytes| *bytes > 0 && !is_short && !self.is_impossible());
        let beside = self.virtual_bytes.zip(self.tasks_bytes.or(self.largest_task_bytes));
        let beside = beside.map(|(all, heap)| all.saturating_sub(heap));
        let is_timeless = self.start_seconds.is_none() && self.end_seconds.is_none();
        PastStep {
            start_seconds: self.start_seconds.unwrap_or(0),
            end_seconds: self.end_seconds.unwrap_or(if is_timeless { 0 } else { u64::MAX }),
            nodes: self.nodes,
            tasks: self.tasks,
            largest_task_bytes: measured(self.largest_task_bytes.or(self.tasks_bytes)),
            tasks_bytes: measured(self.tasks_bytes),
            cache_bytes: beside.filter(|_| meaning.has_cache_beside && !is_short),
            allowed_bytes: self.allowed_bytes,
            out_of_memory: self.state.starts_with("OUT_OF_ME"),
        }
    }
}

//! What is the same in all that sacct prints.

use model::{JobEnd, MemoryPer, PastJob, PastStep};

use crate::cli::slurm::Gatherer;

/// Which jobs, and who measured them. Up to 22.05 `sacct --json` tells of everybody's and of all times, whatever it is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    pub user: Option<String>,
    /// Seconds since 1970 when the oldest began.
    pub since_seconds: u64,
    pub gatherer: Option<Gatherer>,
}

/// The jobs that sacct told of.
#[derive(Debug, Default, PartialEq)]
pub struct Accounting {
    /// Those that have ended.
    pub jobs: Vec<PastJob>,
    /// How many have not.
    pub unfinished: u64,
}

impl Accounting {
    /// Adds a job by how it ended: `CANCELLED by 1000` is how text says who did that. A step that was killed for want of memory is a job that was,
    /// whatever its script made of it.
    pub fn add(&mut self, state: &str, mut job: PastJob) {
        let end = match state.split(' ').next().unwrap_or(state) {
            "COMPLETED" => Some(JobEnd::Completed),
            "OUT_OF_MEMORY" => Some(JobEnd::OutOfMemory),
            "FAILED" | "CANCELLED" | "TIMEOUT" | "NODE_FAIL" | "PREEMPTED" | "BOOT_FAIL" | "DEADLINE" | "REVOKED" => {
                Some(JobEnd::CutShort)
            }
            _ => None,
        };
        match end {
            Some(_) if job.steps.iter().any(|step| step.out_of_memory) => job.end = JobEnd::OutOfMemory,
            Some(end) => job.end = end,
            None => {
                self.unfinished += 1;
                return;
            }
        }
        self.jobs.push(job);
    }
}

impl Wanted {
    /// Whether a job is one of them, as far as it tells whose and how old it is.
    pub fn has(&self, user: &str, start_seconds: Option<u64>) -> bool {
        self.user.as_deref().is_none_or(|wanted| user.is_empty() || user == wanted)
            && start_seconds.is_none_or(|start| start == 0 || start >= self.since_seconds)
    }
}

/// Page cache of a step: what a cgroup's gatherer calls virtual memory is its heap, its page cache and its swap.
pub fn cache_bytes(gatherer: Option<Gatherer>, memory: Option<u64>, virtual_memory: Option<u64>) -> Option<u64> {
    match gatherer {
        Some(Gatherer::Cgroup) => virtual_memory?.checked_sub(memory?),
        _ => None,
    }
}

/// A job of which only the name is known.
pub fn unknown(name: String) -> PastJob {
    PastJob {
        name,
        end: JobEnd::CutShort,
        elapsed_seconds: 0.0,
        nodes: 1,
        cpus: 1,
        per: MemoryPer::Node,
        reserved_bytes: None,
        steps: Vec::<PastStep>::new(),
    }
}

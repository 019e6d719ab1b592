//! What one run showed, before anything is made of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Evidence, FileDemand, ProcessRecord, Series};

/// What a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// `bursar run`: one or more equal runs.
    Run,
    /// `bursar run` of what runs already.
    Attach,
    /// `bursar budget`.
    Budget,
    /// `bursar watch`.
    Watch,
    /// `bursar attribute`: one or more runs.
    Attribute,
    /// `bursar faults`: one run, and one beside a load.
    Faults,
    /// `bursar advise run`, or `attach`.
    Advise,
}

/// The feature that most histories have: the total size of the input, bytes.
pub const INPUT_BYTES: &str = "input_bytes";

/// Where and when a record was made. Written once, first.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Header {
    /// The observed target.
    pub kind: RecordKind,
    /// bursar's version.
    pub bursar_version: String,
    /// Host name.
    pub host: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// `uname -r`.
    pub kernel: String,
    /// Processors online.
    pub cpus: u32,
    /// MemTotal.
    pub memory_bytes: u64,
    /// Page size.
    pub page_bytes: u64,
    /// The command with its arguments; empty for an attachment.
    pub command: Vec<String>,
    /// Where it was started.
    pub directory: String,
    /// Nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How the job is held and limited, such as `cgroup v1 memory controller`.
    pub placement: String,
    /// Whether the job may swap, and how: `no swap`, `MemorySwapMax=0`, `swap allowed`.
    pub swap: String,
    /// The options of the command as given, for `--resume` and for whoever reads this years later.
    pub options: BTreeMap<String, String>,
}

/// What a run was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunRole {
    /// A run of its own.
    Plain,
    /// An unlimited run that others are compared with.
    Reference,
    /// A run under a limit, to find the budget.
    Trial,
    /// A run for the comparison, at a limit that one of the methods names; Unlimited names none.
    Method,
    /// What one rank or one node showed of a run that stands before it in the record (merged by `bursar report`).
    Part,
}

/// Where a part of a run was recorded.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Origin {
    /// Host name.
    pub host: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Its number among the job's; `None`: all that ran there.
    pub rank: Option<u32>,
}

/// The observed target.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A command that bursar started.
    Command,
    /// One process that was there already.
    Process(i32),
    /// A process that was there already, with its descendants.
    Tree(i32),
    /// A cgroup that was there already.
    Cgroup(String),
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It exited.
    Status(i32),
    /// A signal ended it.
    Signal(i32),
    /// bursar ended it after `--timeout`.
    TimedOut,
    /// bursar ended it because it was already too slow.
    StoppedEarly,
    /// It was still running when bursar stopped looking.
    StillRunning,
}

impl Exit {
    /// The status a shell would report: its own, 128 + signal, 124 after a time-out.
    pub fn status(self) -> Option<i32> {
        match self {
            Exit::Status(status) => Some(status),
            Exit::Signal(signal) => Some(128 + signal),
            Exit::TimedOut => Some(124),
            Exit::StoppedEarly | Exit::StillRunning => None,
        }
    }

    /// The signal that ended it.
    pub fn signal(self) -> Option<i32> {
        match self {
            Exit::Signal(signal) => Some(signal),
            _ => None,
        }
    }
}

/// What `wait4` said of the command and all descendants it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Rusage {
    /// Largest process.
    pub max_rss_bytes: u64,
    /// User time, all of them.
    pub user_seconds: f64,
    /// System time, all of them.
    pub system_seconds: f64,
    /// Faults without I/O.
    pub minor_faults: u64,
    /// Faults with I/O.
    pub major_faults: u64,
    /// 512-byte blocks read.
    pub blocks_in: u64,
    /// 512-byte blocks written.
    pub blocks_out: u64,
}

/// Peaks and counts that the kernel itself kept for the job, so that sampling cannot miss them.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct KeptPeaks {
    /// `memory.peak` or `memory.max_usage_in_bytes`.
    pub charge_bytes: Option<u64>,
    /// The same of swap.
    pub swap_bytes: Option<u64>,
    /// The same of the hugetlb pools.
    pub hugetlb_bytes: Option<u64>,
    /// Processes killed for lack of memory, children included.
    pub oom_kills: Option<u64>,
    /// Times the charge met the limit.
    pub limit_hits: Option<u64>,
    /// Distinct bytes of file pages that the job brought into the page cache: its page cache never was larger. `None` where not
    /// every one was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_cached_bytes: Option<u64>,
}

/// Everything one run showed. Made by `sample` and `track`, kept in the record, read by the pure stages.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Observation {
    /// Number within the record, from 0.
    pub run: u32,
    /// Purpose of the run.
    pub role: RunRole,
    /// The observed target.
    pub target: Target,
    /// The limit it ran under.
    pub limit_bytes: Option<u64>,
    /// State of the page cache at the start, in words.
    pub cache_state: String,
    /// Nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// How it ended.
    pub exit: Exit,
    /// Start to end.
    pub wall_seconds: f64,
    /// What `wait4` said; `None` for attachments.
    pub rusage: Option<Rusage>,
    /// Peaks that the kernel kept.
    pub kept: KeptPeaks,
    /// Time lines.
    pub series: Vec<Series>,
    /// The processes, in order of their start.
    pub processes: Vec<ProcessRecord>,
    /// The page cache's part.
    pub file_demand: Option<FileDemand>,
    /// Which rung gave what: figure → rung.
    pub sources: BTreeMap<String, String>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
    /// Whether all that is of the job.
    #[serde(default)]
    pub evidence: Evidence,
    /// Of a part of a run: where it comes from. Else it is the record's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl Observation {
    /// A run of which nothing has been seen yet.
    pub fn begun(run: u32, role: RunRole, target: Target, cache_state: String, started_unix_ns: u64) -> Observation {
        Observation {
            run,
            role,
            target,
            limit_bytes: None,
            cache_state,
            started_unix_ns,
            exit: Exit::StillRunning,
            wall_seconds: 0.0,
            rusage: None,
            kept: KeptPeaks::default(),
            series: Vec::new(),
            processes: Vec::new(),
            file_demand: None,
            sources: BTreeMap::new(),
            notes: Vec::new(),
            evidence: Evidence::default(),
            origin: None,
        }
    }

    /// The job's series of that name.
    pub fn job_series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|s| s.process.is_none() && s.name == name)
    }

    /// The status a shell would report: its own, 128 + signal, 124 after a time-out. That of a target belongs to its parent.
    pub fn exit_status(&self) -> Option<i32> {
        self.exit.status().filter(|_| self.target == Target::Command)
    }
}

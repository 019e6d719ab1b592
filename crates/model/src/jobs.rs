//! Past jobs of a cluster, and what jobs of their name should ask for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a job ended, as far as its memory tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// It had all that it needed.
    Completed,
    /// It needed more than it was given.
    OutOfMemory,
    /// It failed, was cancelled or timed out: with more time it might have needed more.
    CutShort,
}

/// The unit for which a job's memory is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryPer {
    /// `--mem`
    Node,
    /// `--mem-per-cpu`
    Cpu,
}

/// How the memory of jobs depends on the numbers in which alone their names differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ByNumber {
    /// A larger number needs more.
    Grows,
    /// A larger number needs less.
    Falls,
    /// It differs greatly, in no order of the numbers.
    Differs,
}

/// What a job's measured memory holds: it depends on the plugin that gathers it and on the version of Slurm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Figures {
    /// Memory that the job needed. What lies beside it is in [`PastStep::cache_bytes`].
    #[default]
    Needed,
    /// The same, unless the plugin counts page cache: nothing shows which.
    MayHoldCache,
    /// The page cache is in it, so the need may be smaller.
    HoldCache,
}

/// A step of a past job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PastStep {
    /// Seconds since 1970.
    pub start_seconds: u64,
    /// The same; the next second begins a step that follows.
    pub end_seconds: u64,
    /// On how many it ran.
    pub nodes: u64,
    /// Its processes as Slurm started them.
    pub tasks: u64,
    /// Most memory that one of its tasks had. `None`: the accounting has no figure of this step.
    pub largest_task_bytes: Option<u64>,
    /// Sum of its tasks' peaks, each at its own time.
    pub tasks_bytes: Option<u64>,
    /// Page cache or shared memory beside it: the accounting does not distinguish them. `None`: not known.
    pub cache_bytes: Option<u64>,
    /// Memory that it was allowed, on all its nodes.
    pub allowed_bytes: Option<u64>,
    /// It was killed for lack of memory.
    pub out_of_memory: bool,
}

/// A job that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct PastJob {
    /// The name it was submitted with.
    pub name: String,
    /// The kind of job it is an instance of; often its name.
    pub kind: String,
    /// The kind is a guess: its names differ in nothing but numbers.
    pub is_kind_guessed: bool,
    /// The numbers in its name in which the names of its kind differ, in the order of the name.
    pub numbers: Vec<f64>,
    /// Contents of the figures of its steps.
    pub figures: Figures,
    /// Whether its need is known.
    pub end: JobEnd,
    /// From its start to its end. `None`: not known.
    pub elapsed_seconds: Option<f64>,
    /// How many it was given.
    pub nodes: u64,
    /// Of all its nodes.
    pub cpus: u64,
    /// The unit for which its memory was requested.
    pub per: MemoryPer,
    /// Memory that was reserved for it, on all its nodes.
    pub reserved_bytes: Option<u64>,
    /// What was started in it, its script with them.
    pub steps: Vec<PastStep>,
}

/// The request for jobs of one kind.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct JobMemory {
    /// The kind: the jobs' name, with `*` for what differs between instances.
    pub name: String,
    /// Job names that are of this kind.
    #[serde(default)]
    pub names: u64,
    /// The unit of the figures: a node, or a CPU.
    pub per: MemoryPer,
    /// Jobs whose memory is known; each task of an array is one.
    pub runs: u64,
    /// Those of them that were cut short: their figures are lower bounds.
    pub cut_short: u64,
    /// Those of these that ended for lack of memory.
    pub out_of_memory: u64,
    /// Least, middle and most memory of a run, page cache aside.
    pub min_bytes: u64,
    /// Half of the runs need no more. `None`: so many runs were cut short that it is unknown.
    pub median_bytes: Option<u64>,
    /// The wanted share of the runs needs no more.
    pub percentile_bytes: u64,
    /// Most memory of a run.
    pub max_bytes: u64,
    /// The run of `max_bytes` was cut short, so it needed more than that.
    #[serde(default)]
    pub max_is_lower_bound: bool,
    /// `mem_bytes` is only a lower bound, since the largest runs were cut short; so is `percentile_bytes` if it is `max_bytes`.
    pub is_lower_bound: bool,
    /// The most page cache or shared memory, beside that, of the wanted share of the runs. `None`: not known.
    pub cache_bytes: Option<u64>,
    /// Median request of the runs. `None`: not known.
    pub asked_bytes: Option<u64>,
    /// What to ask for: with the page cache or shared memory beside the need, up to what was asked for. `None`: no run came to its end, so it is
    /// more than `max_bytes`, and nobody knows how much more.
    pub mem_bytes: Option<u64>,
    /// The names of this kind differ in numbers, and memory goes with the number or differs greatly: `mem_bytes` is of the largest run. `None`: it is
    /// of the wanted share of the runs.
    #[serde(default)]
    pub by_number: Option<ByNumber>,
    /// Which of the numbers that differ in the names memory grows or falls with; 1 is the first.
    #[serde(default)]
    pub by_number_positions: Vec<u64>,
    /// `mem_bytes` holds page cache, so it is an upper bound of the need.
    #[serde(default)]
    pub is_upper_bound: bool,
    /// The request that keeps the page cache. `None`: not known.
    pub mem_with_cache_bytes: Option<u64>,
    /// The request if all of `cache_bytes` is page cache, and none of it shared memory. `None`: not known.
    #[serde(default)]
    pub mem_without_cache_bytes: Option<u64>,
    /// GiB times hours that the runs reserved. `None`: no run has both a known request and a known time.
    pub reserved_gib_hours: Option<f64>,
    /// What asking for `mem_bytes` would have saved of that; the runs that it would have killed are lost. Below 0 it costs. `None`: unknown.
    pub saved_gib_hours: Option<f64>,
    /// Runs that it would have killed for sure.
    pub killed: u64,
    /// Runs that it may have killed: runs that were cut short below it, and runs with page cache or shared memory for which it has no room.
    pub maybe_killed: u64,
    /// How likely the next run is to need more, if it is one of the kind.
    pub next_needs_more: f64,
}

impl JobMemory {
    /// The kind as it is called, which somebody else chose: it may hold what steers a terminal.
    pub fn label(&self) -> String {
        let name = if self.name.trim().is_empty() { "(no name)" } else { &self.name };
        let per = if self.per == MemoryPer::Cpu { " (per CPU)" } else { "" };
        format!("{name}{per}")
    }
}

/// `bursar recommend`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct JobsMemory {
    /// The share of the runs that must not be killed.
    pub percentile: f64,
    /// The plugin that gathered the figures: `jobacct_gather/linux`, `jobacct_gather/cgroup`. `None`: not known.
    pub gatherer: Option<String>,
    /// The version of Slurm that gathered the figures, such as `24.11.5`. `None`: not known.
    #[serde(default)]
    pub slurm_version: Option<String>,
    /// Why the answer is not sure, as sentences. They come before the answer.
    #[serde(default)]
    pub doubts: Vec<String>,
    /// Lines or jobs of the input that could not be used.
    #[serde(default)]
    pub left_out: u64,
    /// By name, those that would save most first.
    pub jobs: Vec<JobMemory>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
}

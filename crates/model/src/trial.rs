//! Runs under a limit and the answer made of them: what `bursar budget --json` prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Breakdown, Doubt, FileDemand};

/// A way to name a memory budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Peak of the process tree's RSS.
    #[serde(rename = "app-maxrss")]
    AppMaxRss,
    /// RSS of the largest process, as GNU time and `seff` report.
    #[serde(rename = "app-maxrss-largest")]
    AppMaxRssLargest,
    /// Peak of the job's pages on the kernel's lists.
    #[serde(rename = "sys-maxrss")]
    SysMaxRss,
    /// Growth of the machine's memory in use.
    Unlimited,
    /// The least memory within the slow-down.
    Bursar,
}

/// How a run under a limit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Within the slow-down, or run to its end (methods).
    Ok,
    /// Slower than allowed; if stopped early its ratio is a lower bound.
    TooSlow,
    /// The kernel killed one of its processes for lack of memory.
    Oom,
    /// `--timeout` ended it.
    Timeout,
    /// It failed by itself under this limit.
    Failed,
}

/// One run under a limit (or an unlimited one), measured.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Trial {
    /// The run's number within the record.
    pub run: u32,
    /// The method whose figure is the limit; `None`: a step of the search or an unlimited reference.
    pub method: Option<Method>,
    /// The limit; `None`: unlimited reference.
    pub limit_bytes: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its ratio is a lower bound, because it was stopped before its end.
    pub lower_bound: bool,
    /// Seconds it ran.
    pub wall_seconds: f64,
    /// User plus system time.
    pub cpu_seconds: Option<f64>,
    /// Of it, CPU time in the kernel: faults, reclaim, reading.
    #[serde(default)]
    pub system_seconds: Option<f64>,
    /// Seconds lost to memory: block I/O delay and pressure beyond the reference's; less noisy than wall time.
    pub stall_seconds: Option<f64>,
    /// `wall_seconds` over the reference's median.
    pub runtime_ratio: Option<f64>,
    /// The ratio predicted before the run.
    pub predicted_ratio: Option<f64>,
    /// Share of the tasks' life spent waiting for I/O.
    pub io_wait_share: Option<f64>,
    /// File pages read again, beyond what the references had: a cold start counts what the run before had cached.
    pub refaults: Option<u64>,
    /// Peak charge.
    pub peak_charge_bytes: Option<u64>,
    /// Parts of the peak.
    pub breakdown: Breakdown,
    /// The command's status.
    pub exit_status: Option<i32>,
    /// Why this run was made, as a sentence.
    pub why: String,
    /// Of a job over several nodes: each one's part. The memory figures above are then those of the node that had most.
    #[serde(default)]
    pub nodes: Vec<NodeRun>,
}

impl Trial {
    /// One of which nothing is known but its limit and how it ended.
    pub fn new(run: u32, limit_bytes: Option<u64>, outcome: Outcome) -> Trial {
        Trial {
            run,
            method: None,
            limit_bytes,
            outcome,
            lower_bound: false,
            wall_seconds: 0.0,
            cpu_seconds: None,
            system_seconds: None,
            stall_seconds: None,
            runtime_ratio: None,
            predicted_ratio: None,
            io_wait_share: None,
            refaults: None,
            peak_charge_bytes: None,
            breakdown: Breakdown::default(),
            exit_status: None,
            why: String::new(),
            nodes: Vec::new(),
        }
    }
}

/// What one node had of a run.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NodeRun {
    /// Its name.
    pub host: String,
    /// Seconds that the job ran there.
    pub wall_seconds: f64,
    /// Peak charge there.
    pub peak_charge_bytes: Option<u64>,
    /// Parts of the peak.
    pub breakdown: Breakdown,
    /// What could not be reclaimed there, at its peak.
    pub floor_bytes: Option<u64>,
    /// Processes killed there for lack of memory.
    pub oom_kills: Option<u64>,
    /// File pages read again there.
    pub refaults: Option<u64>,
    /// Share of the tasks' life spent waiting for I/O there.
    pub io_wait_share: Option<f64>,
}

/// What one node needs of a job over several.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct NodeNeed {
    /// Its name.
    pub host: String,
    /// The largest floor without a limit.
    pub floor_bytes: Option<u64>,
    /// The largest peak charge without a limit.
    pub peak_charge_bytes: Option<u64>,
    /// Median of how long the job ran there without a limit, in seconds.
    pub reference_seconds: Option<f64>,
    /// The largest peak charge under the smallest limit that passed.
    pub peak_at_passing_bytes: Option<u64>,
    /// Median of how long the job ran there under it, in seconds.
    pub seconds_at_passing: Option<f64>,
    /// Processes killed there for lack of memory, in all runs.
    pub oom_kills: Option<u64>,
}

/// The search's answer.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Answer {
    /// The smallest limit that is enough, margin included; null if none was found.
    pub budget_bytes: Option<u64>,
    /// The smallest limit that passed.
    pub smallest_passing_bytes: Option<u64>,
    /// The largest limit that failed.
    pub largest_failing_bytes: Option<u64>,
    /// Margin added to the smallest passing limit, from the spread of the observed peaks.
    pub margin_bytes: u64,
    /// Whether the answer is known to keep within the slow-down and to be close to the smallest such limit.
    pub confident: bool,
    /// Why the answer is confident or not, and the next step.
    pub reason: String,
}

/// One row of the comparison of methods.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MethodRow {
    /// The method.
    pub name: Method,
    /// The memory it names.
    pub memory_bytes: Option<u64>,
    /// What that memory is made of.
    pub breakdown: Breakdown,
    /// Memory consumed / memory required to complete without swapping.
    pub amplification: Option<f64>,
    /// Runs made at it.
    pub runs: u32,
    /// Median run time / reference's.
    pub runtime_ratio: Option<f64>,
    /// Standard deviation of its runs.
    pub runtime_stddev_seconds: Option<f64>,
    /// The predicted ratio.
    pub predicted_ratio: Option<f64>,
    /// Share of the tasks' life spent waiting for I/O.
    pub io_wait_share: Option<f64>,
    /// MEMSYS eq. 1.
    pub performance: Option<f64>,
    /// MEMSYS eq. 3.
    pub performance_per_gb: Option<f64>,
    /// How its runs ended.
    pub outcome: Option<Outcome>,
    /// Whether that memory is enough, judged as the trials of the search are: not by run time alone. `None`: not run.
    #[serde(default)]
    pub enough: Option<bool>,
    /// The ratio is a lower bound and the performance an upper one.
    pub lower_bound: bool,
}

/// What limits were, where nothing enforced them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitSource {
    /// The page cache was held to them from outside the kernel, and a run that grew beyond them was ended.
    Emulated,
}

/// Result of `bursar budget`. Field names are the stable contract of `--json`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BudgetReport {
    /// The answer, flattened: `budget_bytes`, `confident`, `reason` …
    #[serde(flatten)]
    pub answer: Answer,
    /// Allowed slow-down, 0.05 = 5 %.
    pub slowdown_target: f64,
    /// Median run time without a limit.
    pub reference_seconds: Option<f64>,
    /// Standard deviation of the run time where memory does not slow it down.
    pub reference_stddev_seconds: Option<f64>,
    /// Duration of the runs for the answer (references and search), in reference run times.
    pub run_times_used: Option<f64>,
    /// Duration of the methods' trials, in reference run times.
    pub compare_run_times: Option<f64>,
    /// The floor.
    pub floor_bytes: Option<u64>,
    /// Cgroup version and controller the limits were enforced by.
    pub placement: String,
    /// How limits were emulated; `None`: a cgroup or a Slurm step enforced them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_source: Option<LimitSource>,
    /// Swap policy the limits were enforced with.
    pub swap: String,
    /// The fast memory for which the budget is, with `--fast-tier`: `ram`, or a NUMA node; `None`: it is for all memory.
    #[serde(default)]
    pub fast_tier: Option<String>,
    /// Of a program that sizes itself by a setting: that with which it was measured at the answer, as `NAME=VALUE` of its environment.
    #[serde(default)]
    pub setting: Option<String>,
    /// State of the page cache that every trial started from.
    pub cache_state: String,
    /// The memory that other methods would give.
    pub methods: Vec<MethodRow>,
    /// Every run, in order.
    pub trials: Vec<Trial>,
    /// For a job over several nodes, which all have the same limit: the need of each node.
    #[serde(default)]
    pub nodes: Vec<NodeNeed>,
    /// Why the answer may not be about the job; the gravest first. With any, the answer is not confident.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// The file demand curve of the reference.
    pub file_demand: Option<FileDemand>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
}

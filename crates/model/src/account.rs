//! The account of one run: what `bursar run --json` prints.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Breakdown, BytesMoved, Detail, Doubt, FileDemand};

/// Page faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FaultCounts {
    /// Without I/O.
    pub minor: Option<u64>,
    /// With I/O.
    pub major: Option<u64>,
}

/// Reclaimed and refaulted pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FlowCounts {
    /// File pages refaulted after reclaim.
    pub refaults_file: Option<u64>,
    /// Anonymous pages refaulted after reclaim.
    pub refaults_anon: Option<u64>,
    /// Pages scanned by reclaim.
    pub scanned: Option<u64>,
    /// Pages taken by reclaim.
    pub reclaimed: Option<u64>,
}

/// The kernel's lists at the Sys-MaxRSS peak, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ListSizes {
    /// Active, anonymous.
    pub active_anon: Option<u64>,
    /// Inactive, anonymous.
    pub inactive_anon: Option<u64>,
    /// Active, file.
    pub active_file: Option<u64>,
    /// Inactive, file.
    pub inactive_file: Option<u64>,
}

/// Pressure stall information over the run, in seconds.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Pressure {
    /// Whose: `job` (its cgroup) or `system`.
    pub scope: Option<String>,
    /// Some task stalled on memory.
    pub memory_some_seconds: Option<f64>,
    /// All tasks stalled on memory.
    pub memory_full_seconds: Option<f64>,
    /// Some task stalled on I/O.
    pub io_some_seconds: Option<f64>,
    /// All tasks stalled on I/O.
    pub io_full_seconds: Option<f64>,
}

/// A figure over several equal runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (n - 1); 0 for one run.
    pub stddev: f64,
    /// Smallest.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub max: f64,
}

/// The account of one run. Field names are the stable contract of `--json`; absent figures are null.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RunAccount {
    /// The command's own, 128 + signal, 124 after a time-out; null while it runs.
    pub exit_status: Option<i32>,
    /// Start to end.
    pub wall_seconds: f64,
    /// User time.
    pub user_seconds: Option<f64>,
    /// System time.
    pub system_seconds: Option<f64>,
    /// Largest process, as `wait4` says.
    pub app_max_rss_bytes: Option<u64>,
    /// Peak of the sum over the process tree.
    pub tree_max_rss_bytes: Option<u64>,
    /// Peak of the tree's proportional set.
    pub tree_max_pss_bytes: Option<u64>,
    /// Lower bound of the memory of the process tree at its peak; memory that processes share counts once.
    #[serde(default)]
    pub tree_held_at_least_bytes: Option<u64>,
    /// Upper bound of the same. Both are equal if no memory is shared.
    #[serde(default)]
    pub tree_held_at_most_bytes: Option<u64>,
    /// Peak of the job's pages on the active and inactive lists.
    pub sys_max_rss_bytes: Option<u64>,
    /// The lists at that peak.
    pub sys_max_rss_lists: ListSizes,
    /// Growth of MemTotal - MemFree, whole machine.
    pub unlimited_bytes: Option<u64>,
    /// Peak of the charge.
    pub peak_charge_bytes: Option<u64>,
    /// Below it the job is killed, not slowed. Without a cgroup, where processes may share memory, a lower bound.
    pub floor_bytes: Option<u64>,
    /// The upper bound of the floor, where it is only bounded; null: `floor_bytes` is the figure.
    #[serde(default)]
    pub floor_at_most_bytes: Option<u64>,
    /// What `floor_bytes` was made of.
    #[serde(default)]
    pub floor_breakdown: Breakdown,
    /// Parts of the peak charge; they sum to it, except hugetlb. Without a cgroup: the most memory that the processes had.
    pub peak_breakdown: Breakdown,
    /// Lower bounds of these parts; null if `peak_breakdown` is of a charge.
    #[serde(default)]
    pub peak_breakdown_at_least: Breakdown,
    /// Finer lines at the same moment.
    pub peak_detail: Detail,
    /// What App-MaxRSS (the tree's sum) was made of, at its peak.
    pub app_max_rss_breakdown: Breakdown,
    /// What Sys-MaxRSS was made of.
    pub sys_max_rss_breakdown: Breakdown,
    /// Peak charge / floor.
    pub amplification: Option<f64>,
    /// Peak swap.
    pub swap_bytes: Option<u64>,
    /// Page faults.
    pub faults: FaultCounts,
    /// Reclaim and refaults.
    pub flow: FlowCounts,
    /// Share of the tasks' life spent waiting for block I/O, 0 to 1.
    pub io_wait_share: Option<f64>,
    /// Pressure.
    pub pressure: Pressure,
    /// Kills for lack of memory.
    pub oom_kills: Option<u64>,
    /// The limit it ran under.
    pub limit_bytes: Option<u64>,
    /// Processes seen.
    pub processes: Option<u64>,
    /// The page cache's part of the demand.
    pub file_demand: Option<FileDemand>,
    /// bursar's own CPU seconds.
    pub own_cpu_seconds: Option<f64>,
    /// bursar's own peak RSS.
    pub own_rss_bytes: Option<u64>,
    /// Bytes that the command read and wrote.
    #[serde(default)]
    pub moved: Option<BytesMoved>,
    /// What bursar itself held of the job's cgroup, which is taken off.
    #[serde(default)]
    pub own_charge_bytes: Option<u64>,
    /// What ended the command before its work was done, as a clause; its peak is then a lower bound. null: nothing that is known.
    #[serde(default)]
    pub cut_short: Option<String>,
    /// Why these figures may not be of the job; the gravest first.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// Which rung gave what.
    pub sources: BTreeMap<String, String>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
}

/// Less that was taken changes no figure.
const LEAST_LOST_BYTES: u64 = 1 << 20;

/// How the note begins that a peak which the kernel kept is above all samples. It changes no total, so short reports leave it out.
pub const KEPT_PEAK_NOTE: &str = "The kernel kept a peak charge of";

impl RunAccount {
    /// Whether a run without a limit lost memory that it had: it was reclaimed, swapped out or read again. Each of its file pages may be a
    /// refault once, if an earlier run had it; of mapped files more pages are brought in than are referenced.
    pub fn lost_without_limit(&self, page_bytes: u64) -> bool {
        let distinct = self.file_demand.as_ref().map_or(0, |demand| demand.distinct_bytes / page_bytes.max(1));
        let flow = &self.flow;
        let again = flow.refaults_file.map(|pages| pages.saturating_sub(2 * distinct));
        let pages = [again, flow.refaults_anon, flow.reclaimed].into_iter().flatten().max().unwrap_or(0);
        let bytes = self.swap_bytes.unwrap_or(0).max(pages.saturating_mul(page_bytes));
        self.limit_bytes.is_none() && bytes >= LEAST_LOST_BYTES
    }
}

impl Spread {
    /// Of one or more values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        if values.is_empty() {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let squares = sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        Some(Spread {
            mean,
            stddev: if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 },
            min: sorted[0],
            median: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
            max: sorted[n - 1],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_lost_without_a_limit_where_more_comes_back_than_was_there_before() {
        let of = |refaults: u64, limit_bytes| RunAccount {
            flow: FlowCounts { refaults_file: Some(refaults), ..Default::default() },
            file_demand: Some(FileDemand { distinct_bytes: 4096 * 1000, ..Default::default() }),
            limit_bytes,
            ..Default::default()
        };
        assert!(!of(2000, None).lost_without_limit(4096));
        assert!(of(2256, None).lost_without_limit(4096));
        assert!(!of(2256, Some(1)).lost_without_limit(4096));
        let swapped = RunAccount { swap_bytes: Some(1 << 20), ..Default::default() };
        assert!(swapped.lost_without_limit(4096) && !RunAccount::default().lost_without_limit(4096));
    }

    #[test]
    fn the_spread_of_several_runs() {
        let spread = Spread::of(&[3.0, 1.0, 2.0, 6.0]).unwrap();
        assert_eq!((spread.mean, spread.min, spread.median, spread.max), (3.0, 1.0, 2.5, 6.0));
        assert!((spread.stddev - (14.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Spread::of(&[2.0]).unwrap().stddev, 0.0);
        assert_eq!(Spread::of(&[]), None);
    }
}

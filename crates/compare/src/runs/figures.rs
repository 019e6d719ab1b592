//! The figures that are compared.

use model::{Bytes, Observation, RunAccount, names};
use schemars::JsonSchema;
use serde::Serialize;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// The peak of the charge, page cache included
    #[serde(rename = "peak_charge_bytes")]
    PeakCharge,
    /// The most heap
    #[serde(rename = "heap_bytes")]
    Heap,
    /// What cannot be reclaimed: must fit
    #[serde(rename = "floor_bytes")]
    Floor,
    /// The largest process
    #[serde(rename = "app_max_rss_bytes")]
    AppMaxRss,
    /// Page faults, minor and major
    PageFaults,
    /// Start to end
    #[serde(rename = "wall_seconds")]
    RunTime,
}

impl Figure {
    /// In the order in which they are shown.
    pub const ALL: [Figure; 6] =
        [Figure::PeakCharge, Figure::Heap, Figure::Floor, Figure::AppMaxRss, Figure::PageFaults, Figure::RunTime];

    /// The figures that decide against a baseline where none are named. Page cache is not in them: it depends on what was cached before.
    pub const OF_GROWTH: [Figure; 3] = [Figure::Heap, Figure::Floor, Figure::AppMaxRss];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Figure::PeakCharge => "peak charge",
            Figure::Heap => "heap",
            Figure::Floor => "floor",
            Figure::AppMaxRss => "App-MaxRSS",
            Figure::PageFaults => "page faults",
            Figure::RunTime => "run time",
        }
    }

    /// Of one run; `None`: unknown.
    pub fn of(self, run: &Observation, account: &RunAccount) -> Option<f64> {
        let bytes = match self {
            Figure::PeakCharge => account.peak_charge_bytes,
            Figure::Heap => heap(run, account).filter(|_| is_known(run, account)),
            // The moment of the floor may be missed where that of the heap was not; heap cannot be reclaimed.
            Figure::Floor if is_known(run, account) => {
                account.floor_bytes.map(|floor| floor.max(heap(run, account).unwrap_or(0)))
            }
            Figure::Floor => None,
            Figure::AppMaxRss => account.app_max_rss_bytes,
            Figure::PageFaults => {
                let faults = account.faults;
                faults.minor.map(|minor| minor + faults.major.unwrap_or(0))
            }
            Figure::RunTime => return Some(account.wall_seconds),
        };
        bytes.map(|bytes| bytes as f64)
    }

    /// Of one run, for a limit that it may not exceed. Where the samples missed the peak, heap and floor are between what they saw and the
    /// peak charge, which the kernel keeps: that decides where both are on one side of the limit.
    pub fn beside_limit(self, limit: f64, run: &Observation, account: &RunAccount) -> Option<f64> {
        let seen = match self {
            Figure::Heap => heap(run, account),
            Figure::Floor => account.floor_bytes.max(with_files_in_memory(run)),
            _ => None,
        };
        // Several processes may hold more than the largest of them.
        if self == Figure::AppMaxRss && (account.peak_charge_bytes.is_none() || !is_known(run, account)) {
            let held = account.tree_held_at_most_bytes.or(account.tree_max_rss_bytes);
            let most = [held, account.peak_charge_bytes].into_iter().flatten().min().map(|bytes| bytes as f64);
            return self.of(run, account).filter(|largest| *largest > limit || most.is_none_or(|most| most <= limit));
        }
        let at_least = || seen.map(|bytes| bytes as f64).filter(|bytes| *bytes > limit);
        let at_most = || account.peak_charge_bytes.map(|bytes| bytes as f64).filter(|bytes| *bytes <= limit);
        at_least().or_else(|| self.of(run, account)).or_else(|| seen.and_then(|_| at_most()))
    }

    /// Whether it is a size.
    pub fn is_bytes(self) -> bool {
        !matches!(self, Figure::PageFaults | Figure::RunTime)
    }

    /// Growth that is allowed where no tolerance is named: run times differ from machine to machine and from hour to hour.
    pub fn tolerance(self) -> f64 {
        if self == Figure::RunTime { 0.25 } else { 0.0 }
    }

    /// Growth over this baseline that does not count, whatever the noise. Memory is charged in batches, and what the loader and the
    /// environment take differs from day to day.
    pub fn least(self, baseline: f64) -> f64 {
        match self {
            Figure::PageFaults => 100.0,
            Figure::RunTime => 0.01,
            _ => (baseline / 200.0).max((256u64 << 10) as f64),
        }
    }

    /// A value, for people.
    pub fn text(self, value: f64) -> String {
        match self {
            Figure::PageFaults => format!("{value:.0}"),
            Figure::RunTime => model::seconds(value),
            _ => Bytes(value.round().max(0.0) as u64).to_string(),
        }
    }
}

/// So much may be charged and not yet used.
const BATCHES_BYTES: f64 = (512u64 << 10) as f64;

/// Whether a sample saw the run at its peak, but for what is charged in batches: heap and floor are known by samples alone, and of a short
/// run may be far too small.
fn samples_saw_the_peak(run: &Observation, account: &RunAccount) -> bool {
    let sampled = |name| run.job_series(name).and_then(model::Series::peak);
    let (kept, seen) = match run.kept.charge_bytes {
        Some(kept) => (Some(kept), sampled(names::CHARGE)),
        None => {
            let kernel = [names::PAGE_TABLES, names::SOCKETS].into_iter().filter_map(sampled).sum::<f64>();
            let seen = sampled(names::TREE_RSS).map(|rss| rss + kernel);
            (account.app_max_rss_bytes.max(account.tree_held_at_most_bytes), seen)
        }
    };
    kept.zip(seen).is_none_or(|(kept, seen)| {
        let kept = kept as f64;
        kept - seen <= (kept / 200.0).max((kept / 10.0).min(BATCHES_BYTES))
    })
}

/// So far apart may be the bounds of a figure that is taken for known: a shell beside the program has that.
const APART_BYTES: u64 = 512 << 10;

/// Whether heap and floor of a run are known: of one without a charge, where their bounds are next to each other, and samples saw the
/// peak or the processes told of it themselves.
fn is_known(run: &Observation, account: &RunAccount) -> bool {
    let is_one = |least: Option<u64>, most: Option<u64>| {
        least.zip(most).is_some_and(|(least, most)| most.saturating_sub(least) <= (most / 100).max(APART_BYTES))
    };
    let are_close = || {
        is_one(account.peak_breakdown_at_least.heap, account.peak_breakdown.heap)
            && is_one(account.floor_bytes, account.floor_at_most_bytes.or(account.floor_bytes))
    };
    let is_sampled = samples_saw_the_peak(run, account);
    match account.peak_charge_bytes {
        Some(_) => is_sampled,
        None => (is_sampled || account.doubts.is_empty()) && are_close(),
    }
}

/// Heap and files in memory that a run held at the same time at least, without those that were there before it: they are in no figure that is
/// summed over processes, and cannot be reclaimed.
fn with_files_in_memory(run: &Observation) -> Option<u64> {
    let facts = &run.evidence;
    let before = facts.shared_before.iter().chain(&facts.shared_opened);
    let before: u64 = before.filter_map(|file| file.bytes).sum();
    facts.with_files_in_memory_bytes.map(|bytes| bytes.saturating_sub(before))
}

/// The most heap at any time; what the samples missed is in the breakdown of the peak. Without what the program has given back.
fn heap(run: &Observation, account: &RunAccount) -> Option<u64> {
    let sampled = run.job_series(names::HEAP).and_then(model::Series::peak).map(|bytes| bytes as u64);
    let given_back = account.peak_detail.given_back.unwrap_or(0);
    let most = sampled.max(account.peak_breakdown.heap.map(|heap| heap.saturating_sub(given_back)));
    // Every program has some: none was seen before it began.
    most.filter(|bytes| *bytes > 0)
}

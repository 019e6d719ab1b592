//! Page faults of a run: how many of which kind, and how long they took.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a page fault was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// First touch of anonymous memory, served by a base page.
    Base,
    /// The same, by a folio between a base page and a huge page (mTHP).
    Large,
    /// The same, by a transparent huge page.
    Huge,
    /// Anonymous memory that was read before it was written: the zero page is mapped.
    Zero,
    /// A write to a page that is shared: it is copied, or taken over.
    Cow,
    /// A page of a file, through the page cache.
    File,
    /// A page of shared memory: tmpfs, memfd, System V, `MAP_SHARED | MAP_ANONYMOUS`.
    Shared,
    /// Anonymous memory that had been swapped out.
    Swap,
    /// A page of hugetlb's pools.
    Hugetlb,
    /// None of these: device memory, a page that another thread had just mapped.
    Other,
    /// The thread waited until a handler of userfaultfd had placed the page, or lifted its write protection.
    Userfaultfd,
}

impl FaultKind {
    /// All, in the order in which the BPF programs number them.
    pub const ALL: [FaultKind; 11] = [
        FaultKind::Base,
        FaultKind::Large,
        FaultKind::Huge,
        FaultKind::Zero,
        FaultKind::Cow,
        FaultKind::File,
        FaultKind::Shared,
        FaultKind::Swap,
        FaultKind::Hugetlb,
        FaultKind::Other,
        FaultKind::Userfaultfd,
    ];

    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Base => "base",
            FaultKind::Large => "large",
            FaultKind::Huge => "huge",
            FaultKind::Zero => "zero page",
            FaultKind::Cow => "copy on write",
            FaultKind::File => "file",
            FaultKind::Shared => "shared",
            FaultKind::Swap => "swap-in",
            FaultKind::Hugetlb => "hugetlb",
            FaultKind::Other => "other",
            FaultKind::Userfaultfd => "userfaultfd",
        }
    }
}

/// A system call that changes what memory a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryCall {
    /// mmap.
    Mmap,
    /// munmap.
    Munmap,
    /// mremap.
    Mremap,
    /// mprotect.
    Mprotect,
    /// brk.
    Brk,
    /// mlock, mlock2 and mlockall.
    Mlock,
    /// madvise with `MADV_POPULATE_READ` or `MADV_POPULATE_WRITE`.
    Populate,
    /// madvise with `MADV_COLLAPSE`.
    Collapse,
    /// madvise that gives memory back: `MADV_DONTNEED`, `MADV_FREE`, `MADV_REMOVE`, `MADV_COLD`, `MADV_PAGEOUT`.
    Release,
    /// Any other madvise.
    Advise,
    /// process_madvise.
    ProcessAdvise,
}

impl MemoryCall {
    /// All, in the order in which the BPF programs number them.
    pub const ALL: [MemoryCall; 11] = [
        MemoryCall::Mmap,
        MemoryCall::Munmap,
        MemoryCall::Mremap,
        MemoryCall::Mprotect,
        MemoryCall::Brk,
        MemoryCall::Mlock,
        MemoryCall::Populate,
        MemoryCall::Collapse,
        MemoryCall::Release,
        MemoryCall::Advise,
        MemoryCall::ProcessAdvise,
    ];

    /// As reports call it.
    pub fn name(self) -> &'static str {
        match self {
            MemoryCall::Mmap => "mmap",
            MemoryCall::Munmap => "munmap",
            MemoryCall::Mremap => "mremap",
            MemoryCall::Mprotect => "mprotect",
            MemoryCall::Brk => "brk",
            MemoryCall::Mlock => "mlock",
            MemoryCall::Populate => "madvise (populate)",
            MemoryCall::Collapse => "madvise (collapse)",
            MemoryCall::Release => "madvise (give back)",
            MemoryCall::Advise => "madvise (other)",
            MemoryCall::ProcessAdvise => "process_madvise",
        }
    }
}

/// The calls of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CallFigures {
    /// How many.
    pub count: u64,
    /// All of them, from entry to return, seconds.
    pub sum_seconds: f64,
    /// The longest, microseconds.
    pub max_us: f64,
    /// Bytes that the calls made present without a page fault, those that were there before among them.
    pub populated_bytes: u64,
    /// How many calls did that.
    pub populating_count: u64,
    /// How long these took, seconds.
    pub populating_seconds: f64,
    /// Bytes of memory that the kernel allocated within the calls, without page tables.
    pub allocated_bytes: u64,
    /// Time in direct compaction within the calls, outside of page faults, seconds.
    pub compaction_seconds: f64,
    /// In direct reclaim.
    pub reclaim_seconds: f64,
    /// Off the processor.
    pub off_cpu_seconds: f64,
}

/// How often which latency occurred. Linear below 64 ns, then 64 buckets to each power of two: a bucket's middle is at most
/// 0.8 % off any latency in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(from = "Vec<(u32, u64)>", into = "Vec<(u32, u64)>")]
pub struct LatencyHistogram(BTreeMap<u32, u64>);

const SUB_BUCKETS: u64 = 64;
const SUB_BUCKETS_LOG2: u32 = 6;
/// 2^41 ns are 36 minutes; what is longer is counted there.
const LARGEST_LOG2: u32 = 40;

impl LatencyHistogram {
    /// Buckets there are.
    pub const BUCKETS: usize = ((LARGEST_LOG2 - SUB_BUCKETS_LOG2 + 2) as usize) * SUB_BUCKETS as usize;

    /// The bucket of a latency in nanoseconds.
    pub fn bucket_of(ns: u64) -> u32 {
        match ns.checked_ilog2() {
            None => 0,
            Some(log2) if log2 < SUB_BUCKETS_LOG2 => ns as u32,
            Some(log2) if log2 > LARGEST_LOG2 => Self::BUCKETS as u32 - 1,
            Some(log2) => {
                let sub = (ns >> (log2 - SUB_BUCKETS_LOG2)) % SUB_BUCKETS;
                (log2 - SUB_BUCKETS_LOG2 + 1) * SUB_BUCKETS as u32 + sub as u32
            }
        }
    }

    /// The middle of a bucket, nanoseconds.
    fn middle(bucket: u32) -> f64 {
        let (octave, sub) = (bucket / SUB_BUCKETS as u32, u64::from(bucket) % SUB_BUCKETS);
        match octave {
            0 => sub as f64,
            octave => ((SUB_BUCKETS + sub) as f64 + 0.5) * 2f64.powi(octave as i32 - 1) - 0.5,
        }
    }

    /// Counts so many in a bucket.
    pub fn add(&mut self, bucket: u32, count: u64) {
        if count > 0 {
            *self.0.entry(bucket.min(Self::BUCKETS as u32 - 1)).or_default() += count;
        }
    }

    /// Counts all that another has counted.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        other.0.iter().for_each(|(bucket, count)| self.add(*bucket, *count));
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The latency that a share of all do not exceed, nanoseconds; `None` if there are none.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        self.0.iter().find_map(|(bucket, count)| {
            below += count;
            (below >= rank).then(|| Self::middle(*bucket))
        })
    }

    /// Mean, nanoseconds; as exact as the buckets.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().map(|(bucket, count)| Self::middle(*bucket) * *count as f64).sum();
        Some(sum / self.count() as f64).filter(|mean| mean.is_finite())
    }

    /// Standard deviation, nanoseconds; as exact as the buckets.
    pub fn stddev(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares = self.0.iter().map(|(bucket, count)| (Self::middle(*bucket) - mean).powi(2) * *count as f64);
        Some((squares.sum::<f64>() / self.count() as f64).sqrt())
    }

    /// Each latency that occurred, nanoseconds, with the share of all that took longer: 1 - CDF.
    pub fn tail(&self) -> Vec<(f64, f64)> {
        let count = self.count();
        let mut above = count;
        let step = |(bucket, of_bucket): (&u32, &u64)| {
            above -= of_bucket;
            (Self::middle(*bucket), above as f64 / count as f64)
        };
        self.0.iter().map(step).collect()
    }
}

impl From<Vec<(u32, u64)>> for LatencyHistogram {
    fn from(buckets: Vec<(u32, u64)>) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        buckets.into_iter().for_each(|(bucket, count)| histogram.add(bucket, count));
        histogram
    }
}

impl From<LatencyHistogram> for Vec<(u32, u64)> {
    fn from(histogram: LatencyHistogram) -> Vec<(u32, u64)> {
        histogram.0.into_iter().collect()
    }
}

/// The distribution of latencies, microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Latencies {
    /// Half of them take no longer.
    pub p50_us: Option<f64>,
    /// 99 %.
    pub p99_us: Option<f64>,
    /// 99.9 %.
    pub p999_us: Option<f64>,
    /// 99.999 %.
    pub p99999_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
    /// All of them, seconds.
    pub sum_seconds: Option<f64>,
    /// Mean.
    pub mean_us: Option<f64>,
    /// Standard deviation.
    pub stddev_us: Option<f64>,
}

impl Latencies {
    /// Of a histogram, with what is known exactly. `max_ns` and `sum_ns` are of the same faults.
    pub fn of(histogram: &LatencyHistogram, sum_ns: u64, max_ns: u64) -> Latencies {
        let max = max_ns as f64;
        let us = |ns: f64| (ns.min(max)).round() / 1e3;
        let quantile = |share| histogram.quantile(share).map(us);
        let count = histogram.count();
        let known = count > 0;
        Latencies {
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            p99999_us: quantile(0.99999),
            max_us: known.then_some(max / 1e3),
            sum_seconds: known.then_some(sum_ns as f64 / 1e9),
            mean_us: known.then(|| (sum_ns as f64 / count as f64).round() / 1e3),
            stddev_us: histogram.stddev().map(|ns| ns.round() / 1e3),
        }
    }
}

/// Faults that had something in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FaultShare {
    /// How many.
    pub count: u64,
    /// How long they took as a whole, seconds.
    pub sum_seconds: f64,
    /// How much of that was spent in what they had in common, seconds.
    pub part_seconds: f64,
}

/// Causes of waits within faults; `None`: not traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FaultCauses {
    /// Direct compaction of memory, within the fault.
    pub compaction: Option<FaultShare>,
    /// Direct reclaim, of the machine or under a cgroup's limit, within the fault.
    pub reclaim: Option<FaultShare>,
    /// A collapse of the same 2 MiB into a huge page that was under way.
    pub collapse: Option<FaultShare>,
    /// The thread did not run: it waited for a lock or for I/O, or another had the processor.
    pub off_cpu: Option<FaultShare>,
}

/// Faults that took longer than 50 µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SlowFaults {
    /// How many.
    pub count: u64,
    /// All of them, seconds.
    pub sum_seconds: f64,
    /// Of these: with compaction within.
    pub compaction: u64,
    /// With reclaim within.
    pub reclaim: u64,
    /// While the same 2 MiB were collapsed.
    pub collapse: u64,
    /// Off the processor for a time.
    pub off_cpu: u64,
}

/// Faults for which an allocation of one order was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OrderFaults {
    /// Pages of the largest allocation: 2^order. `None`: nothing was allocated.
    pub order: Option<u32>,
    /// How many.
    pub count: u64,
    /// All of them, seconds.
    pub sum_seconds: f64,
    /// The longest, microseconds.
    pub max_us: f64,
}

/// Faults of one kind, or all of them.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FaultFigures {
    /// How many.
    pub count: u64,
    /// How long they took, as the program would have seen it without bursar.
    #[serde(flatten)]
    pub latency: Latencies,
    /// The same without the time in which the thread did not run.
    pub on_cpu: Latencies,
    /// What following each of them cost beside that, microseconds; it is in no other figure.
    pub tracer_cost_us: Option<f64>,
    /// Of these, taken by the kernel on the program's behalf, such as by `read` into untouched memory.
    pub in_kernel_count: Option<u64>,
    /// Of these, major: with I/O, or tried again after a wait.
    pub major_count: Option<u64>,
    /// Those that were slow.
    pub over_50us: Option<SlowFaults>,
    /// What they waited for.
    #[serde(flatten)]
    pub causes: FaultCauses,
    /// By order of allocation, the smallest first.
    pub by_order: Vec<OrderFaults>,
    /// Of the latencies.
    #[serde(default, skip_serializing_if = "LatencyHistogram::is_empty")]
    pub histogram: LatencyHistogram,
}

/// Faults of a short time, one of many of equal length.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FaultMoment {
    /// Begin, seconds since the command's.
    pub seconds: f64,
    /// How many ended in it.
    pub count: u64,
    /// All of them; `None` where they are only counted.
    pub sum_seconds: Option<f64>,
    /// The longest, microseconds.
    pub max_us: Option<f64>,
}

/// One of the slowest faults.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SlowFault {
    /// Its end, seconds since the command's begin.
    pub seconds: f64,
    /// How long it took, microseconds.
    pub latency_us: f64,
    /// Of which off the processor.
    pub off_cpu_us: f64,
    /// In direct compaction.
    pub compaction_us: f64,
    /// In direct reclaim.
    pub reclaim_us: f64,
    /// Whether the same 2 MiB were collapsed meanwhile.
    pub collapse: bool,
    /// The address.
    pub address: u64,
    /// The process.
    pub pid: i32,
    /// The kind.
    pub kind: FaultKind,
    /// The largest allocation's.
    pub order: Option<u32>,
    /// Whether the kernel took it on the program's behalf.
    pub in_kernel: bool,
}

/// What following faults costs, as measured before the command began: first touches of a child of bursar's, followed and not;
/// of all of them the first quartile.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TracerCost {
    /// A base fault as a program sees it, not followed, microseconds.
    pub base_us: f64,
    /// The same while followed.
    pub traced_base_us: f64,
    /// A read that maps the zero page, not followed.
    pub zero_us: f64,
    /// The same while followed.
    pub traced_zero_us: f64,
    /// What each tracepoint within a fault adds to that.
    pub per_tracepoint_us: f64,
    /// Overhead of tracing that is subtracted from each latency.
    pub taken_out_us: f64,
    /// And for each tracepoint within the fault.
    pub taken_out_per_tracepoint_us: f64,
}

/// The faults of a run.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Faults {
    /// Which run of the record.
    pub run: u32,
    /// The load that ran beside it.
    pub beside: Option<String>,
    /// Where the figures come from.
    pub rung: String,
    /// Figures of the kinds that occurred. Empty on rungs that do not distinguish kinds.
    pub kinds: BTreeMap<FaultKind, FaultFigures>,
    /// All of them.
    pub overall: FaultFigures,
    /// System calls on memory by kind; those that occurred. Empty where they are not seen. None of their time is in the faults'.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<MemoryCall, CallFigures>,
    /// Faults after which no page was mapped: those that end in a signal, and those that a signal interrupted and that are then
    /// taken again.
    pub unfinished_count: Option<u64>,
    /// Faults whose begin was not traced, in no other figure.
    pub untimed_count: Option<u64>,
    /// What following them costs.
    pub tracer: Option<TracerCost>,
    /// Length of a moment, seconds.
    pub moment_seconds: f64,
    /// The faults over time; moments without any are left out.
    pub moments: Vec<FaultMoment>,
    /// The slowest, slowest first.
    pub slowest: Vec<SlowFault>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::default();
        values.iter().for_each(|ns| histogram.add(LatencyHistogram::bucket_of(*ns), 1));
        histogram
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut last = 0;
        for ns in (0..1 << 14).chain((14..45).flat_map(|log2| (0..256).map(move |step| (256 + step) << (log2 - 8)))) {
            let bucket = LatencyHistogram::bucket_of(ns);
            assert!(bucket == last || bucket == last + 1, "{ns} ns");
            last = bucket;
        }
        assert_eq!(last as usize, LatencyHistogram::BUCKETS - 1);
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        assert_eq!(Latencies::of(&LatencyHistogram::default(), 0, 0), Latencies::default());
    }

    #[test]
    fn the_tail_falls_to_nothing() {
        let tail = histogram(&[10, 10, 20, 40]).tail();
        assert_eq!(tail, [(10.0, 0.5), (20.0, 0.25), (40.0, 0.0)]);
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_one_percent_of_the_one_by_sorting(
            mut values in prop::collection::vec(1u64..1 << 38, 1..400), share in 0.0f64..=1.0
        ) {
            let found = histogram(&values).quantile(share).unwrap();
            values.sort_unstable();
            let rank = (share * values.len() as f64).ceil().max(1.0) as usize;
            let exact = values[rank - 1] as f64;
            prop_assert!((found - exact).abs() <= exact * 0.01, "{found} for {exact}");
        }

        #[test]
        fn mean_and_deviation_are_within_one_percent(values in prop::collection::vec(1u64..1 << 30, 1..400)) {
            let histogram = histogram(&values);
            let count = values.len() as f64;
            let mean = values.iter().sum::<u64>() as f64 / count;
            let deviation = (values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / count).sqrt();
            prop_assert!((histogram.mean().unwrap() - mean).abs() <= mean * 0.01);
            prop_assert!((histogram.stddev().unwrap() - deviation).abs() <= mean * 0.02);
        }

        #[test]
        fn merged_histograms_are_the_histogram_of_both(
            one in prop::collection::vec(1u64..1 << 38, 0..100), other in prop::collection::vec(1u64..1 << 38, 0..100)
        ) {
            let mut merged = histogram(&one);
            merged.merge(&histogram(&other));
            prop_assert_eq!(merged, histogram(&[one, other].concat()));
        }
    }
}

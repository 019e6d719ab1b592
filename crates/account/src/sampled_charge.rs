//! A charge of which only samples are known: that of a cgroup which the job shares with bursar and may only read. The kernel's peak of
//! such a cgroup is not the job's, and samples miss what lives for less than the time between two of them.

use model::{Observation, ProcessRecord, RunRole, names};

use crate::moment::peak;
use crate::{held, is_attached, told};

/// Processes that live for less are sampled a few times at most, seconds.
const SHORT_SECONDS: f64 = 0.5;
/// From so many samples on, files in memory and processes that report nothing are taken to be sampled.
const FEW_SAMPLES: usize = 10;
/// So much may be missing before the samples are no longer the peak, bytes, and one part in this of the charge.
const SLACK: u64 = 1 << 20;
const SLACK_PART: u64 = 50;

/// What cannot be reclaimed and the samples may have missed, bytes: heap of one process by its own word, heap of short processes that
/// lived at the same time, processes of a run of few samples that reported nothing, and files in memory that the processes reported. 0
/// where the kernel kept a peak, where nothing is charged, and of the runs of a search, which finds by its trials what is enough.
pub fn missed(run: &Observation) -> u64 {
    let charge = run.job_series(names::CHARGE).filter(|_| run.kept.charge_bytes.is_none());
    let Some(charge) = charge.filter(|_| !is_attached(run) && run.role == RunRole::Plain) else { return 0 };
    let has_few_samples = charge.points.len() < FEW_SAMPLES;
    let heap = peak(run, names::HEAP).unwrap_or(0);
    let of_one = told::largest_heap(run).map_or(0, |told| told.saturating_sub(heap));
    let short = |process: &ProcessRecord| {
        process.lifetime_seconds.filter(|seconds| *seconds < SHORT_SECONDS)?;
        Some(process.largest_seen?.most_heap_bytes.saturating_sub(process.largest_seen?.uncopied_bytes))
    };
    let of_short = held::together(run, short).saturating_sub(heap);
    let (untold, moved) = if has_few_samples { (told::untold(run), moved_in_memory(run)) } else { (0, None) };
    let files = run.evidence.files_in_memory.as_ref().and_then(|files| files.bytes).max(moved).unwrap_or(0);
    let of_files = files.saturating_sub(peak(run, names::SHARED).unwrap_or(0));
    of_one.max(of_short).saturating_add(untold).saturating_add(of_files)
}

/// What a run read and wrote in files in memory by calls: no more can have been in them.
fn moved_in_memory(run: &Observation) -> Option<u64> {
    let demand = run.file_demand.as_ref()?;
    demand.not_visible.iter().find(|(what, _)| what == "tmpfs")?.1
}

/// Whether the largest sample is not the peak.
pub fn is_incomplete(run: &Observation) -> bool {
    missed(run) > SLACK + peak(run, names::CHARGE).unwrap_or(0) / SLACK_PART
}

#[cfg(test)]
mod tests {
    use model::{ProcessKey, Resident, Series, Target, Unit};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// Samples of a shared cgroup found so much heap at most; the processes reported what they held, in pieces of 0.05 s.
    fn run(sampled_mib: u64, told_mib: &[u64]) -> Observation {
        let mut run = Observation::begun(0, RunRole::Plain, Target::Command, "as found".into(), 0);
        let series = |name: &str, mib: u64| Series {
            name: name.into(),
            process: None,
            unit: Unit::Bytes,
            rung: "cgroup v1 memory.stat".into(),
            points: vec![(0, 0.0), (100_000_000, (mib * MIB) as f64)],
        };
        run.series = [names::CHARGE, names::HEAP, names::TREE_RSS_ANON, names::TREE_RSS, names::TREE_HELD_LEAST]
            .map(|name| series(name, sampled_mib))
            .to_vec();
        run.processes = told_mib
            .iter()
            .zip(1..)
            .map(|(mib, pid)| {
                let held = Resident {
                    heap_bytes: mib * MIB,
                    all_bytes: mib * MIB,
                    most_heap_bytes: mib * MIB,
                    ..Resident::default()
                };
                let mut process = ProcessRecord::new(ProcessKey { pid, start_ticks: 1 }, "inside");
                (process.started_seconds, process.lifetime_seconds) = (Some(0.0), Some(0.05));
                (process.max_rss_bytes, process.largest_seen) = (Some(mib * MIB), Some(held));
                process
            })
            .collect();
        run
    }

    fn account(run: &Observation) -> (Option<u64>, Option<u64>, Option<u64>) {
        let account = crate::account(run, &crate::tests::header("no swap"));
        let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes / MIB);
        (mib(account.peak_charge_bytes), mib(account.floor_bytes), mib(account.floor_at_most_bytes))
    }

    #[test]
    fn a_sample_that_missed_the_peak_is_no_peak() {
        assert_eq!(account(&run(52, &[100])), (None, Some(100), None));
        assert_eq!(account(&run(92, &[50, 50, 50, 50])), (None, Some(92), Some(200)));
        assert_eq!(account(&run(100, &[100])).0, Some(100));
    }

    #[test]
    fn memfds_that_few_samples_saw_are_missing() {
        let mut written = run(40, &[1]);
        written.evidence.files_in_memory = Some(model::Named { name: "/memfd:x".into(), bytes: Some(80 * MIB) });
        assert_eq!(account(&written).0, None);
        let doubts = crate::account(&written, &crate::tests::header("no swap")).doubts;
        assert!(doubts.iter().any(|doubt| doubt.kind == model::DoubtKind::FilesInMemory), "{doubts:?}");
    }
}

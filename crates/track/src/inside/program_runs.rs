//! Each process's own statistics: `preload/abi.h`, `enum process_part`.

use std::collections::{BTreeMap, HashMap};

use linux::procfs;
use model::{OwnPid, ProcessKey, ProcessRecord, Resident};
use runtime_abi::{PROCESS_GOES_ON, ProcessPart};

/// The name of this source.
const SOURCE: &str = "inside";
/// Maximum number of programs. Statistics of any beyond are dropped.
const MAX_PROGRAMS: usize = 1 << 18;
/// Maximum number of heap samples.
const MAX_HEAP_SAMPLES: usize = 1 << 18;
/// Bytes that a process may still allocate after it wrote its end.
const AFTER_END_BYTES: u64 = 256 << 10;

/// One program of a process, or the child of a fork.
#[derive(Clone, Copy, Debug, Default)]
struct ProgramRun {
    parts: [Option<u64>; ProcessPart::ALL.len()],
}

impl ProgramRun {
    fn get(&self, part: ProcessPart) -> Option<u64> {
        self.parts[part as usize]
    }

    fn bytes(&self, pages: ProcessPart) -> Option<u64> {
        self.get(pages).map(|pages| pages.saturating_mul(procfs::page_bytes()))
    }

    fn began_ns(&self) -> u64 {
        self.get(ProcessPart::BeganNs).unwrap_or(0)
    }

    /// Whether the program wrote that it is about to exit or to exec.
    fn has_ended(&self) -> bool {
        self.get(ProcessPart::EndedNs).is_some()
    }

    fn goes_on(&self) -> bool {
        !self.has_ended() || self.get(ProcessPart::Status) == Some(PROCESS_GOES_ON as u64)
    }

    fn name(&self) -> String {
        let words = [ProcessPart::Name, ProcessPart::NameRest].map(|part| self.get(part).unwrap_or(0).to_le_bytes());
        runtime_abi::text(words.as_flattened())
    }
}

/// All programs, by the number under which each wrote.
#[derive(Debug, Default)]
pub(super) struct ProgramRuns {
    by_number: HashMap<u32, ProgramRun>,
    /// Samples of one process's heap, as (lower 32 bits of the CLOCK_MONOTONIC milliseconds, pages).
    heap_samples: Vec<(u32, u32)>,
}

impl ProgramRuns {
    /// Stores one part. A process that goes on after it wrote its end, as when exec failed, writes its end again later.
    pub(super) fn take(&mut self, number: u32, part: u32, value: u64) {
        let Some(part) = ProcessPart::from_number(part.into()) else { return };
        if part == ProcessPart::HeapAt {
            if self.heap_samples.len() < MAX_HEAP_SAMPLES {
                self.heap_samples.push(((value >> 32) as u32, value as u32));
            }
            return;
        }
        if self.by_number.len() < MAX_PROGRAMS || self.by_number.contains_key(&number) {
            self.by_number.entry(number).or_default().parts[part as usize] = Some(value);
        }
    }

    /// The part of `resident_bytes`, the kernel's figure for the largest resident size of one process, that is bursar's
    /// own: its library and its shared memory. 0 if no process reported such a peak.
    pub(super) fn own_bytes_in(&self, resident_bytes: u64) -> u64 {
        let own = |program: &ProgramRun| {
            let (own, peak) = (program.bytes(ProcessPart::Own)?, program.get(ProcessPart::PeakBytes)?);
            Some(own).filter(|own| resident_bytes.saturating_sub(peak.saturating_add(*own)) <= AFTER_END_BYTES)
        };
        let of_peaks =
            self.by_number.values().filter(|program| program.get(ProcessPart::PeakBytes) <= Some(resident_bytes));
        of_peaks.filter_map(own).max().unwrap_or(0).min(resident_bytes)
    }

    /// The heap of processes right before they released memory, as (nanoseconds since `origin_ns`, bytes), ordered by
    /// time.
    pub(super) fn heaps(&self, origin_ns: u64, now_ns: u64) -> Vec<(u64, u64)> {
        let now_ms = now_ns / 1_000_000;
        let at = |ms: u32| {
            let ago = (now_ms as u32).wrapping_sub(ms);
            (now_ms.saturating_sub(ago.into()) * 1_000_000).saturating_sub(origin_ns)
        };
        let mut heaps: Vec<(u64, u64)> =
            self.heap_samples.iter().map(|(ms, pages)| (at(*ms), u64::from(*pages) * procfs::page_bytes())).collect();
        heaps.sort_unstable();
        heaps
    }

    /// The processes, ordered by their start. `origin_ns` is the zero of their times.
    pub(super) fn records(&self, origin_ns: u64) -> Vec<ProcessRecord> {
        let mut by_pid: BTreeMap<u64, Vec<ProgramRun>> = BTreeMap::new();
        for program in self.by_number.values().copied() {
            if let Some(pid) = program.get(ProcessPart::Pid) {
                by_pid.entry(pid).or_default().push(program);
            }
        }
        let here = procfs::pid_namespace(std::process::id() as i32);
        let mut records = Vec::new();
        for (pid, mut program_runs) in by_pid {
            program_runs.sort_by_key(ProgramRun::began_ns);
            // What was written under a PID after that process ended belongs to another process.
            let processes = program_runs.chunk_by(|before, _| before.goes_on());
            records.extend(processes.map(|programs| record(pid, programs, origin_ns, here)));
        }
        records.sort_by_key(|record| (record.key.start_ticks, record.key.pid));
        records
    }
}

/// Makes one record of a process that ran these programs one after the other. `here`: bursar's PID namespace.
fn record(pid: u64, programs: &[ProgramRun], origin_ns: u64, here: Option<u32>) -> ProcessRecord {
    let (number, namespace) = (pid as i32, (pid >> 32) as u32);
    let last = programs.last().copied().unwrap_or_default();
    let began_ns = programs.first().map_or(0, ProgramRun::began_ns);
    let start_ticks = procfs::start_ticks(began_ns as f64 / 1e9);
    let known = Some(namespace).filter(|namespace| *namespace != 0);
    let is_here = known.is_none() || here.is_none() || known == here;
    let seconds = |us: Option<u64>| us.map(|us| us as f64 / 1e6);
    let latest = |part| programs.iter().rev().find_map(|program| program.get(part));
    let status = last.get(ProcessPart::Status).filter(|_| !last.goes_on());
    let largest = programs.iter().max_by_key(|program| program.get(ProcessPart::PeakBytes));
    let resident = |program: &ProgramRun| {
        let heap_bytes = program.bytes(ProcessPart::Heap)?;
        let all_bytes = program.bytes(ProcessPart::Resident)?.max(heap_bytes);
        let inherited_bytes = program.bytes(ProcessPart::Inherited).unwrap_or(0);
        Some(Resident {
            heap_bytes,
            all_bytes,
            may_share: program.get(ProcessPart::Shares) != Some(0),
            most_heap_bytes: program.bytes(ProcessPart::MostHeap)?.max(heap_bytes),
            inherited_bytes,
            // Each page is copied by its own fault, also within a huge page.
            uncopied_bytes: inherited_bytes.saturating_sub(program.bytes(ProcessPart::MinorFaults).unwrap_or(u64::MAX)),
        })
    };
    ProcessRecord {
        parent: last.get(ProcessPart::Parent).map(|pid| pid as i32).filter(|pid| *pid > 0),
        command: programs.iter().rev().map(ProgramRun::name).find(|name| !name.is_empty()).unwrap_or_default(),
        started_seconds: Some((began_ns as f64 - origin_ns as f64) / 1e9),
        lifetime_seconds: last
            .get(ProcessPart::EndedNs)
            .filter(|_| !last.goes_on())
            .map(|ended_ns| ended_ns.saturating_sub(began_ns) as f64 / 1e9),
        max_rss_bytes: largest.and_then(|program| program.get(ProcessPart::PeakBytes)),
        user_seconds: seconds(latest(ProcessPart::UserUs)),
        system_seconds: seconds(latest(ProcessPart::SystemUs)),
        minor_faults: latest(ProcessPart::MinorFaults),
        major_faults: latest(ProcessPart::MajorFaults),
        exit_status: status.and_then(|status| i32::try_from(status).ok()),
        // A program that wrote nothing leaves its memory unknown.
        largest_seen: largest.filter(|_| !last.goes_on()).and_then(resident),
        own: (!is_here).then_some(OwnPid { pid: number, namespace: known }),
        ..ProcessRecord::new(ProcessKey { pid: number, start_ticks }, SOURCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn recorded(parts: &[(u32, ProcessPart, u64)]) -> Vec<ProcessRecord> {
        let mut program_runs = ProgramRuns::default();
        parts.iter().for_each(|(number, part, value)| program_runs.take(*number, *part as u32, *value));
        program_runs.records(1_000_000_000)
    }

    #[test]
    fn heap_samples_have_times_of_the_run() {
        let mut program_runs = ProgramRuns::default();
        // Lower 32 bits of the milliseconds, which wrapped a second before.
        let (before, after) = (u64::from(u32::MAX), 1u64);
        for (ms, pages) in [(after, 512), (before, 256)] {
            program_runs.take(1, ProcessPart::HeapAt as u32, ms << 32 | pages);
        }
        let begin_ns = (1 << 32) * 1_000_000 - 500_000_000;
        let now_ns = (1 << 32) * 1_000_000 + 1_000_000_000;
        assert_eq!(program_runs.heaps(begin_ns, now_ns), [(499_000_000, MIB), (501_000_000, 2 * MIB)]);
        assert!(program_runs.records(0).is_empty());
    }

    #[test]
    fn execs_are_one_record_and_a_reused_pid_is_another() {
        use ProcessPart::*;
        let found = recorded(&[
            (1, Pid, 7),
            (1, BeganNs, 2_000_000_000),
            (1, PeakBytes, 3 * MIB),
            (1, Status, PROCESS_GOES_ON as u64),
            (1, EndedNs, 2_100_000_000),
            (2, Pid, 7),
            (2, BeganNs, 2_100_000_000),
            (2, PeakBytes, 5 * MIB),
            (2, Name, u64::from_le_bytes(*b"python3\0")),
            (2, Resident, 1024),
            (2, Heap, 512),
            (2, Shares, 0),
            (2, MostHeap, 768),
            (2, UserUs, 250_000),
            (2, Status, 3),
            (2, EndedNs, 2_500_000_000),
            (3, Pid, 7),
            (3, BeganNs, 9_000_000_000),
        ]);
        let [first, second] = found.as_slice() else { panic!("{found:#?}") };
        assert_eq!((first.started_seconds, first.lifetime_seconds), (Some(1.0), Some(0.5)));
        assert_eq!(
            (first.max_rss_bytes, first.exit_status, first.command.as_str()),
            (Some(5 * MIB), Some(3), "python3")
        );
        assert_eq!(
            first.largest_seen,
            Some(model::Resident {
                heap_bytes: 2 * MIB,
                all_bytes: 4 * MIB,
                may_share: false,
                most_heap_bytes: 3 * MIB,
                inherited_bytes: 0,
                uncopied_bytes: 0
            })
        );
        let killed = recorded(&[
            (1, Pid, 7),
            (1, PeakBytes, MIB),
            (1, Resident, 256),
            (1, Heap, 128),
            (1, Status, PROCESS_GOES_ON as u64),
            (1, EndedNs, 5),
        ]);
        assert_eq!(
            (killed[0].max_rss_bytes, killed[0].largest_seen),
            (Some(MIB), None),
            "it became a program that wrote nothing"
        );
        assert_eq!((second.started_seconds, second.lifetime_seconds, second.max_rss_bytes), (Some(8.0), None, None));
    }

    #[test]
    fn anything_a_process_writes_is_read_within_bounds() {
        let mut program_runs = ProgramRuns::default();
        for part in 0..40 {
            program_runs.take(1, part, u64::MAX);
        }
        let found = program_runs.records(u64::MAX);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].key.pid, found[0].exit_status), (-1, None));
        assert!(recorded(&[(1, ProcessPart::BeganNs, 5)]).is_empty(), "its PID is unknown");
    }
}

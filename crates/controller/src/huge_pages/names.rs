//! Names of a running process's memory ranges, as in profiles.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use advise::Mapping;
use advise::maps::{self, Area};
use history::build_id::build_id;
use linux::own_numbers::{OwnNumber, OwnNumbers, Seen};
use linux::procfs;

use advise::stats::{Decision, ProcessStats};

/// The processes, and the names of their memory.
pub struct Names {
    /// Name of bursar's library, whose memory is not part of the program.
    own: String,
    /// By PID; for the program that it runs now.
    processes: BTreeMap<i32, Process>,
    /// Sequence number of each process and program, by PID, start time and executable.
    numbers: BTreeMap<(i32, u64, PathBuf), u64>,
    /// Maps PIDs as processes see them to PIDs as bursar sees them.
    own_numbers: OwnNumbers,
    /// Build ID of files, by path.
    build_ids: RefCell<BTreeMap<PathBuf, Option<String>>>,
}

#[derive(Clone)]
struct Process {
    /// Its sequence number.
    number: u64,
    start: u64,
    executable: PathBuf,
    build_id: Option<String>,
    /// Anonymous mappings as reported by the runtime: begin → (end, mapping that the piece belongs to).
    from_runtime: BTreeMap<u64, (u64, Area)>,
    /// Number of the runtime's decisions decisions_taken in so far.
    decisions_taken: u64,
    /// All other mappings, from the kernel.
    from_kernel: Vec<Area>,
}

/// A process, and the program that it runs.
pub struct Named<'a> {
    /// Its sequence number.
    pub number: u64,
    /// File name of the executable.
    pub program: &'a str,
    /// Its build ID, if known.
    pub build_id: Option<String>,
}

impl Default for Names {
    /// For processes that have bursar's library.
    fn default() -> Names {
        let (processes, numbers, own_numbers, build_ids) = Default::default();
        Names { own: job::preload::Library::Runtime.name(), processes, numbers, own_numbers, build_ids }
    }
}

impl Names {
    /// Updates the processes (PID and start time) and the names of their memory.
    pub fn observe(&mut self, processes: impl Iterator<Item = (i32, u64)>, stats: &[ProcessStats]) {
        let stats: Vec<_> = stats.iter().filter_map(|stats| Some((self.seen(stats)?.pid, stats))).collect();
        for (pid, start) in processes {
            let Ok(executable) = std::fs::read_link(format!("/proc/{pid}/exe")) else { continue };
            let is_same = |process: &Process| process.start == start && process.executable == executable;
            if !self.processes.get(&pid).is_some_and(is_same) {
                let new = self.begun(pid, start, executable);
                self.processes.insert(pid, new);
            }
            self.name(pid, &stats);
        }
    }

    /// A process that was scanned.
    pub fn process(&self, pid: i32) -> Option<Named<'_>> {
        let process = self.processes.get(&pid)?;
        let program = process.executable.file_name()?.to_str()?;
        Some(Named { number: process.number, program, build_id: process.build_id.clone() })
    }

    /// A process that runs, or ran, this program, by the PID that it reported.
    pub fn program<'a>(&mut self, own: OwnNumber, executable: &'a Path) -> Option<Named<'a>> {
        let program = executable.file_name()?.to_str()?;
        // A process that was never scanned differs from all that were.
        let unseen = Seen { pid: own.pid, start_ticks: own.start_ticks };
        let Seen { pid, start_ticks } = self.own_numbers.find(own).unwrap_or(unseen);
        Some(Named { number: self.number(pid, start_ticks, executable), program, build_id: self.build_id(executable) })
    }

    /// The mapping at an address, and the offset in it.
    pub fn of(&self, pid: i32, region: u64) -> Option<(&Mapping, i64)> {
        let process = self.processes.get(&pid)?;
        // A region may begin before a mapping whose first page is in the middle of it.
        let middle = region + (1 << 20);
        let below = process.from_runtime.range(..=middle).next_back();
        let from_runtime = below.filter(|(_, (end, _))| middle < *end).map(|(_, (_, area))| area);
        let other = || process.from_kernel.iter().find(|area| (area.begin..area.end).contains(&middle));
        let area = from_runtime.or_else(other)?;
        Some((&area.mapping, region as i64 - area.begin as i64))
    }

    /// A child has the mappings of its parent until it becomes another program.
    fn begun(&mut self, pid: i32, start: u64, executable: PathBuf) -> Process {
        let parent = procfs::stat(pid).ok().and_then(|stat| self.processes.get(&stat.ppid));
        let parent = parent.filter(|parent| parent.executable == executable);
        let from_runtime = parent.map(|parent| parent.from_runtime.clone()).unwrap_or_default();
        let number = self.number(pid, start, &executable);
        let build_id = self.build_id(&executable);
        Process { number, start, executable, build_id, from_runtime, decisions_taken: 0, from_kernel: Vec::new() }
    }

    fn number(&mut self, pid: i32, start: u64, executable: &Path) -> u64 {
        let next = self.numbers.len() as u64;
        *self.numbers.entry((pid, start, executable.into())).or_insert(next)
    }

    fn seen(&mut self, stats: &ProcessStats) -> Option<Seen> {
        let own = OwnNumber { pid: stats.pid as i32, namespace: stats.namespace, start_ticks: stats.ticks };
        self.own_numbers.find(own)
    }

    fn name(&mut self, pid: i32, stats: &[(i32, &ProcessStats)]) {
        let Some(mut process) = self.processes.remove(&pid) else { return };
        let is_its =
            |(of, stats): &&(i32, &ProcessStats)| *of == pid && Path::new(&stats.executable) == process.executable;
        if let Some((_, stats)) = stats.iter().rev().find(is_its) {
            let new = stats.decisions.saturating_sub(process.decisions_taken).min(stats.last.len() as u64) as usize;
            stats.last[stats.last.len() - new..].iter().filter_map(area).for_each(|area| process.make(area));
            process.decisions_taken = stats.decisions;
        }
        // For a process that has just ended, the old names are as good.
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let executable = process.executable.to_string_lossy();
        let areas = maps::read(&text, &executable, |path| self.build_id(Path::new(path))).ok();
        if let Some(areas) = areas.filter(|_| !text.is_empty()) {
            process.from_kernel = areas.into_iter().filter(|area| self.is_known(&area.mapping)).collect();
        }
        self.processes.insert(pid, process);
    }

    /// Whether this mapping comes from the kernel: anonymous mappings come from the runtime.
    fn is_known(&self, mapping: &Mapping) -> bool {
        match mapping {
            Mapping::Mmap { .. } => false,
            Mapping::Object { object: Some(object), .. } => object.name != self.own,
            _ => true,
        }
    }

    fn build_id(&self, path: &Path) -> Option<String> {
        let read = || build_id(path).ok().flatten();
        self.build_ids.borrow_mut().entry(path.into()).or_insert_with(read).clone()
    }
}

impl Process {
    /// Adds a mapping, which replaces the overlapping parts of older ones.
    fn make(&mut self, new: Area) {
        let below = self.from_runtime.range(..new.end).rev().take_while(|(_, (end, _))| *end > new.begin);
        let overlapped: Vec<u64> = below.map(|(begin, _)| *begin).collect();
        for begin in overlapped {
            let Some((end, old)) = self.from_runtime.remove(&begin) else { continue };
            if end > new.end {
                self.from_runtime.insert(new.end, (end, old.clone()));
            }
            if begin < new.begin {
                self.from_runtime.insert(begin, (new.begin, old));
            }
        }
        self.from_runtime.insert(new.begin, (new.end, new));
    }
}

fn area(decision: &Decision) -> Option<Area> {
    let stats = &decision.explained;
    let class = Some(stats.which.parse().ok().filter(|_| stats.kind == "mmap")?);
    let begin = decision.address.checked_sub(stats.from)?;
    Some(Area {
        begin,
        end: decision.address.checked_add(stats.bytes)?,
        mapping: Mapping::Mmap { class, ordinal: stats.ordinal },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mapping_at_an_address_wins() {
        let mut process = Process {
            number: 1,
            start: 0,
            executable: "/bin/x".into(),
            build_id: None,
            from_runtime: BTreeMap::new(),
            decisions_taken: 0,
            from_kernel: Vec::new(),
        };
        let mapping = |ordinal| Mapping::Mmap { class: Some(22), ordinal: Some(ordinal) };
        for (ordinal, (begin, end)) in [(0, 10), (10, 20), (30, 40), (20, 30), (15, 35)].into_iter().enumerate() {
            process.make(Area { begin, end, mapping: mapping(ordinal as u64) });
        }
        let pieces = process.from_runtime.iter().map(|(begin, (end, area))| (*begin, *end, area.mapping.clone()));
        let expected = [(0, 10, mapping(0)), (10, 15, mapping(1)), (15, 35, mapping(4)), (35, 40, mapping(2))];
        assert_eq!(pieces.collect::<Vec<_>>(), expected);
        let mut names = Names::default();
        process.make(Area { begin: 8 << 20, end: 16 << 20, mapping: mapping(5) });
        names.processes.insert(7, process);
        let of = |region| names.of(7, region).map(|(mapping, offset)| (mapping.clone(), offset));
        assert_eq!(of(10 << 20), Some((mapping(5), 2 << 20)));
        assert_eq!((of(16 << 20), names.of(8, 0)), (None, None));
    }
}

//! What profiles call the memory of a running process.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use advise::Mapping;
use advise::maps::{self, Area};
use history::build_id::build_id;
use linux::own_numbers::{OwnNumber, OwnNumbers, Seen};
use linux::procfs;

use advise::told::{Decision, Told};

/// What processes are, and what their memory is called.
pub struct Names {
    /// The name of bursar's library, whose memory is no part of the program.
    own: String,
    /// By number of the process, since it runs what it runs.
    processes: BTreeMap<i32, Process>,
    /// Which of all that there have been each is, by number of the process, its start and what it runs.
    numbers: BTreeMap<(i32, u64, PathBuf), u64>,
    /// Which processes those are that tell of themselves.
    own_numbers: OwnNumbers,
    /// Of files, by path.
    build_ids: RefCell<BTreeMap<PathBuf, Option<String>>>,
}

#[derive(Clone)]
struct Process {
    /// Which of all that there have been.
    number: u64,
    start: u64,
    executable: PathBuf,
    build_id: Option<String>,
    /// Anonymous mappings as the runtime tells them: by where a piece begins, where it ends and what it is a piece of.
    made: BTreeMap<u64, (u64, Area)>,
    /// Decisions of the runtime that are taken in.
    taken: u64,
    /// All others, as the kernel tells them.
    others: Vec<Area>,
}

/// A process, and the program that it runs.
pub struct Named<'a> {
    /// Which of all that there have been.
    pub number: u64,
    /// The name of its file.
    pub program: &'a str,
    /// Its build, if that is known.
    pub build_id: Option<String>,
}

impl Default for Names {
    /// Of processes that have bursar's library.
    fn default() -> Names {
        let (processes, numbers, own_numbers, build_ids) = Default::default();
        Names { own: job::preload::Library::Runtime.name(), processes, numbers, own_numbers, build_ids }
    }
}

impl Names {
    /// Looks what processes there are, number and start time, and what their memory is called now.
    pub fn look(&mut self, processes: impl Iterator<Item = (i32, u64)>, told: &[Told]) {
        let told: Vec<_> = told.iter().filter_map(|told| Some((self.seen(told)?.pid, told))).collect();
        for (pid, start) in processes {
            let Ok(executable) = std::fs::read_link(format!("/proc/{pid}/exe")) else { continue };
            let is_same = |process: &Process| process.start == start && process.executable == executable;
            if !self.processes.get(&pid).is_some_and(is_same) {
                let new = self.begun(pid, start, executable);
                self.processes.insert(pid, new);
            }
            self.name(pid, &told);
        }
    }

    /// A process that was looked at.
    pub fn process(&self, pid: i32) -> Option<Named<'_>> {
        let process = self.processes.get(&pid)?;
        let program = process.executable.file_name()?.to_str()?;
        Some(Named { number: process.number, program, build_id: process.build_id.clone() })
    }

    /// A process that runs, or ran, this program, by what it says of itself.
    pub fn program<'a>(&mut self, own: OwnNumber, executable: &'a Path) -> Option<Named<'a>> {
        let program = executable.file_name()?.to_str()?;
        // One that was never looked at is another than all that were.
        let unseen = Seen { pid: own.pid, start_ticks: own.start_ticks };
        let Seen { pid, start_ticks } = self.own_numbers.find(own).unwrap_or(unseen);
        Some(Named { number: self.number(pid, start_ticks, executable), program, build_id: self.build_id(executable) })
    }

    /// What the memory at an address is called, and where in it that is.
    pub fn of(&self, pid: i32, region: u64) -> Option<(&Mapping, i64)> {
        let process = self.processes.get(&pid)?;
        // A region begins before a mapping whose first page is amid it.
        let middle = region + (1 << 20);
        let below = process.made.range(..=middle).next_back();
        let made = below.filter(|(_, (end, _))| middle < *end).map(|(_, (_, area))| area);
        let other = || process.others.iter().find(|area| (area.begin..area.end).contains(&middle));
        let area = made.or_else(other)?;
        Some((&area.mapping, region as i64 - area.begin as i64))
    }

    /// A child has what its parent had, until it becomes another program.
    fn begun(&mut self, pid: i32, start: u64, executable: PathBuf) -> Process {
        let parent = procfs::stat(pid).ok().and_then(|stat| self.processes.get(&stat.ppid));
        let parent = parent.filter(|parent| parent.executable == executable);
        let made = parent.map(|parent| parent.made.clone()).unwrap_or_default();
        let number = self.number(pid, start, &executable);
        let build_id = self.build_id(&executable);
        Process { number, start, executable, build_id, made, taken: 0, others: Vec::new() }
    }

    fn number(&mut self, pid: i32, start: u64, executable: &Path) -> u64 {
        let next = self.numbers.len() as u64;
        *self.numbers.entry((pid, start, executable.into())).or_insert(next)
    }

    fn seen(&mut self, told: &Told) -> Option<Seen> {
        let own = OwnNumber { pid: told.pid as i32, namespace: told.namespace, start_ticks: told.ticks };
        self.own_numbers.find(own)
    }

    fn name(&mut self, pid: i32, told: &[(i32, &Told)]) {
        let Some(mut process) = self.processes.remove(&pid) else { return };
        let is_its = |(of, told): &&(i32, &Told)| *of == pid && Path::new(&told.executable) == process.executable;
        if let Some((_, told)) = told.iter().rev().find(is_its) {
            let new = told.decisions.saturating_sub(process.taken).min(told.last.len() as u64) as usize;
            told.last[told.last.len() - new..].iter().filter_map(area).for_each(|area| process.make(area));
            process.taken = told.decisions;
        }
        // Of a process that has just ended, names from before are as good.
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let executable = process.executable.to_string_lossy();
        let areas = maps::read(&text, &executable, |path| self.build_id(Path::new(path))).ok();
        if let Some(areas) = areas.filter(|_| !text.is_empty()) {
            process.others = areas.into_iter().filter(|area| self.is_known(&area.mapping)).collect();
        }
        self.processes.insert(pid, process);
    }

    /// Of anonymous mappings the runtime tells.
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
    /// What was there before is not any more, as far as the new mapping goes.
    fn make(&mut self, new: Area) {
        let below = self.made.range(..new.end).rev().take_while(|(_, (end, _))| *end > new.begin);
        let overlapped: Vec<u64> = below.map(|(begin, _)| *begin).collect();
        for begin in overlapped {
            let Some((end, old)) = self.made.remove(&begin) else { continue };
            if end > new.end {
                self.made.insert(new.end, (end, old.clone()));
            }
            if begin < new.begin {
                self.made.insert(begin, (new.begin, old));
            }
        }
        self.made.insert(new.begin, (new.end, new));
    }
}

fn area(decision: &Decision) -> Option<Area> {
    let told = &decision.explained;
    let class = Some(told.which.parse().ok().filter(|_| told.kind == "mmap")?);
    let begin = decision.address.checked_sub(told.from)?;
    Some(Area {
        begin,
        end: decision.address.checked_add(told.bytes)?,
        mapping: Mapping::Mmap { class, ordinal: told.ordinal },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_made_in_the_same_place_the_last_is_there() {
        let mut process = Process {
            number: 1,
            start: 0,
            executable: "/bin/x".into(),
            build_id: None,
            made: BTreeMap::new(),
            taken: 0,
            others: Vec::new(),
        };
        let mapping = |ordinal| Mapping::Mmap { class: Some(22), ordinal: Some(ordinal) };
        for (ordinal, (begin, end)) in [(0, 10), (10, 20), (30, 40), (20, 30), (15, 35)].into_iter().enumerate() {
            process.make(Area { begin, end, mapping: mapping(ordinal as u64) });
        }
        let pieces = process.made.iter().map(|(begin, (end, area))| (*begin, *end, area.mapping.clone()));
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

//! What profiles call the memory of a running process.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use advise::Mapping;
use advise::maps::{self, Area};
use linux::procfs;

use super::super::build_id::build_id;
use super::super::told::{Decision, Told};

/// What processes are, and what their memory is called.
#[derive(Default)]
pub struct Names {
    /// By number of the process, since it runs what it runs.
    processes: BTreeMap<i32, Process>,
    /// That there have been so far.
    count: u64,
    /// Of files, by path.
    build_ids: RefCell<BTreeMap<PathBuf, Option<String>>>,
}

#[derive(Clone)]
struct Process {
    /// Which of all that there have been.
    number: u64,
    start: u64,
    executable: PathBuf,
    /// Anonymous mappings as the runtime tells them, in the order in which they were made.
    made: Vec<Area>,
    /// Decisions of the runtime that are taken in.
    taken: u64,
    /// All others, as the kernel tells them.
    others: Vec<Area>,
}

/// A process, and the program that it runs.
pub struct Named {
    /// Which of all that there have been.
    pub number: u64,
    pub program: String,
    pub build_id: Option<String>,
}

impl Names {
    /// Looks what processes there are, number and start time, and what their memory is called now.
    pub fn look(&mut self, processes: impl Iterator<Item = (i32, u64)>, told: &[Told]) {
        for (pid, start) in processes {
            let Ok(executable) = std::fs::read_link(format!("/proc/{pid}/exe")) else { continue };
            let is_same = |process: &Process| process.start == start && process.executable == executable;
            if !self.processes.get(&pid).is_some_and(is_same) {
                let new = self.begun(pid, start, executable);
                self.processes.insert(pid, new);
            }
            self.name(pid, told);
        }
    }

    /// A process that was looked at.
    pub fn process(&self, pid: i32) -> Option<Named> {
        let process = self.processes.get(&pid)?;
        let program = process.executable.file_name()?.to_string_lossy().into_owned();
        Some(Named { number: process.number, program, build_id: self.build_id(&process.executable) })
    }

    /// What the memory at an address is called, and where in it that is.
    pub fn of(&self, pid: i32, region: u64) -> Option<(&Mapping, i64)> {
        let process = self.processes.get(&pid)?;
        // A region begins before a mapping whose first page is amid it.
        let middle = region + (1 << 20);
        let holds = |area: &&Area| (area.begin..area.end).contains(&middle);
        let area = process.made.iter().rev().find(holds).or_else(|| process.others.iter().find(holds))?;
        Some((&area.mapping, region as i64 - area.begin as i64))
    }

    /// A child has what its parent had, until it becomes another program.
    fn begun(&mut self, pid: i32, start: u64, executable: PathBuf) -> Process {
        let parent = procfs::stat(pid).ok().and_then(|stat| self.processes.get(&stat.ppid));
        let parent = parent.filter(|parent| parent.executable == executable);
        let made = parent.map(|parent| parent.made.clone()).unwrap_or_default();
        self.count += 1;
        Process { number: self.count, start, executable, made, taken: 0, others: Vec::new() }
    }

    fn name(&mut self, pid: i32, told: &[Told]) {
        let Some(mut process) = self.processes.remove(&pid) else { return };
        let is_its = |told: &&Told| told.pid == pid as u64 && Path::new(&told.executable) == process.executable;
        if let Some(told) = told.iter().rev().find(is_its) {
            let new = told.decisions.saturating_sub(process.taken).min(told.last.len() as u64) as usize;
            process.made.extend(told.last[told.last.len() - new..].iter().filter_map(area));
            process.taken = told.decisions;
        }
        // Of a process that has just ended, names from before are as good.
        if let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/maps"))
            && let Ok(areas) =
                maps::read(&text, &process.executable.to_string_lossy(), |path| self.build_id(Path::new(path)))
        {
            process.others = areas.into_iter().filter(|area| !matches!(area.mapping, Mapping::Mmap { .. })).collect();
        }
        self.processes.insert(pid, process);
    }

    fn build_id(&self, path: &Path) -> Option<String> {
        let read = || build_id(path).ok().flatten();
        self.build_ids.borrow_mut().entry(path.into()).or_insert_with(read).clone()
    }
}

fn area(decision: &Decision) -> Option<Area> {
    let told = &decision.explained;
    let class = Some(told.which.parse().ok().filter(|_| told.kind == "mmap")?);
    let begin = decision.address - told.from;
    Some(Area { begin, end: decision.address + told.bytes, mapping: Mapping::Mmap { class, ordinal: told.ordinal } })
}

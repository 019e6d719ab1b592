//! The state of the page cache that every trial starts from.
//!
//! The page cache is charged to whoever brought it in first (trap 1 of the notes): a file that somebody else has cached
//! costs a trial nothing and hides the need. So the files a command reads are evicted before each run, one by one or all
//! of the machine's, unless the person wants them left as found; and what the trial itself cached is reclaimed with its cgroup.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use linux::pages::mappings;
use linux::{cache, procfs};
use model::{Answer, Bytes, DoubtKind, FileDemand, Observation, RunAccount};
use serde::{Deserialize, Serialize};

/// Below this, what others have cached decides nothing.
const NEGLIGIBLE: u64 = 1 << 20;

/// How each run finds the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// The command's files are evicted, others left.
    Evicted,
    /// The whole machine's page cache is dropped.
    Dropped,
    /// Nothing is done.
    AsFound,
}

/// Keeps the state the same for every run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cache {
    start: Start,
    files: BTreeSet<PathBuf>,
}

impl Cache {
    /// Files named on the command line are taken to be read; others are learned from the first run.
    pub fn new(start: Start, command: &[OsString]) -> Cache {
        let named = command.iter().skip(1).map(PathBuf::from).filter(|path| path.is_file());
        Cache { start, files: named.filter_map(|path| path.canonicalize().ok()).collect() }
    }

    /// A file that every run reads, if there is one.
    pub fn also(&mut self, path: Option<&Path>) {
        self.files.extend(path.map(Path::to_path_buf));
    }

    /// The state in words, for the answer.
    pub fn describe(&self) -> String {
        match self.start {
            Start::Evicted => {
                "cold: its own pages reclaimed after each run, the files that it is known to read evicted before".into()
            }
            Start::Dropped => "cold: the whole machine's page cache dropped before each run".into(),
            Start::AsFound => "as found: its own pages reclaimed after each run, what others cached left there".into(),
        }
    }

    /// Makes the state, before a run.
    pub fn prepare(&self) -> anyhow::Result<()> {
        match self.start {
            Start::AsFound => Ok(()),
            Start::Dropped => cache::drop_caches().context("--drop-caches is not possible"),
            Start::Evicted => {
                for file in &self.files {
                    // A file that is gone, or not ours to open, is not in the way.
                    let _ = cache::evict(file);
                }
                Ok(())
            }
        }
    }

    /// Learns from a run which of its files somebody else had cached. `true`: there are new ones that matter, so that the
    /// run was helped and should not be compared with those that follow.
    pub fn learn(&mut self, demand: &FileDemand) -> bool {
        if self.start != Start::Evicted {
            return false;
        }
        let found = demand.foreign.iter().filter_map(|file| Some((file.path.as_deref()?, file.cached_bytes)));
        let new: u64 = found.filter(|(path, _)| self.files.insert(path.into())).map(|(_, bytes)| bytes).sum();
        new >= NEGLIGIBLE && new >= demand.distinct_bytes / 50
    }

    /// Whether a run read much less from the storage than it referenced, where nothing tells which of its files were cached before.
    pub fn was_warm(&self, run: &Observation) -> bool {
        let known = run.evidence.emulated.zip(run.evidence.moved).zip(run.file_demand.as_ref());
        let Some(((emulated, moved), demand)) = known.filter(|_| self.start == Start::Evicted) else { return false };
        let read =
            demand.distinct_bytes.saturating_sub(demand.written_only_bytes).saturating_sub(emulated.mapped_bytes);
        let cached = read.min(moved.read).saturating_sub(moved.storage_read);
        cached >= NEGLIGIBLE && cached >= demand.distinct_bytes / 50
    }

    /// The same by what it has mapped, where no reference was seen and its files were cached before.
    pub fn learn_mapped(&mut self, run: &Observation, account: &RunAccount, mapped: BTreeSet<PathBuf>) -> bool {
        let is_helped = account.doubts.iter().any(|doubt| doubt.kind == DoubtKind::CachedBefore);
        if self.start != Start::Evicted || run.file_demand.is_some() || !is_helped {
            return false;
        }
        let known = self.files.len();
        self.files.extend(mapped);
        self.files.len() > known
    }
}

/// The files that processes of the job have mapped now.
pub fn mapped_files() -> BTreeSet<PathBuf> {
    let living = procfs::descendants(std::process::id() as i32);
    let mappings = living.into_iter().filter_map(|pid| mappings(pid).ok()).flatten();
    let paths: BTreeSet<PathBuf> = mappings.map(|mapping| mapping.name.into()).collect();
    paths.into_iter().filter(|path| path.is_absolute() && path.is_file()).collect()
}

/// What was cached before and is charged elsewhere, as a sentence.
pub fn foreign_note(demand: &FileDemand) -> Option<String> {
    let bytes = foreign_bytes(demand);
    let matters = bytes >= NEGLIGIBLE && bytes >= demand.distinct_bytes / 20;
    let largest = demand.foreign.first().filter(|_| matters)?;
    let name = largest.path.clone().unwrap_or_else(|| format!("inode {} of device {}", largest.inode, largest.device));
    Some(format!(
        "{} of what it read was in the page cache before and is charged elsewhere ({name} and {} more): under a limit \
         it may get that for nothing, and need more on another day.",
        Bytes(bytes),
        demand.foreign.len() - 1
    ))
}

/// The same where it is no small part of the answer: less does not make it doubtful.
pub fn foreign_warning(demand: &FileDemand, answer: &Answer) -> Option<String> {
    let matters = account::evidence::matters(foreign_bytes(demand), answer.budget_bytes.unwrap_or(0));
    foreign_note(demand).filter(|_| matters)
}

fn foreign_bytes(demand: &FileDemand) -> u64 {
    demand.foreign.iter().map(|file| file.cached_bytes).sum()
}

#[cfg(test)]
mod tests {
    use model::ForeignFile;

    use super::*;

    fn demand(cached_bytes: u64) -> FileDemand {
        let file = ForeignFile { path: Some("/data/x".into()), device: 1, inode: 2, cached_bytes };
        FileDemand { distinct_bytes: 100 << 20, foreign: vec![file], ..Default::default() }
    }

    #[test]
    fn a_file_that_others_cached_is_learned_once() {
        let mut cache = Cache::new(Start::Evicted, &[]);
        assert!(cache.learn(&demand(50 << 20)));
        assert!(!cache.learn(&demand(50 << 20)));
    }

    #[test]
    fn many_small_files_matter_together() {
        let one =
            |i: u64| ForeignFile { path: Some(format!("/lib/{i}")), device: 1, inode: i, cached_bytes: 300 << 10 };
        let demand = FileDemand { distinct_bytes: 40 << 20, foreign: (0..20).map(one).collect(), ..Default::default() };
        let mut cache = Cache::new(Start::Evicted, &[]);
        assert!(cache.learn(&demand));
        assert_eq!(cache.files.len(), 20);
    }

    #[test]
    fn small_files_and_a_state_left_as_found_are_not_learned() {
        assert!(!Cache::new(Start::Evicted, &[]).learn(&demand(64 << 10)));
        assert!(!Cache::new(Start::AsFound, &[]).learn(&demand(50 << 20)));
    }

    #[test]
    fn files_named_on_the_command_line_are_known_from_the_start() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let command = ["cat".into(), file.path().into(), "--flag".into()];
        assert_eq!(Cache::new(Start::Evicted, &command).files.len(), 1);
    }

    #[test]
    fn a_childs_program_is_among_what_is_mapped() {
        let mut child = std::process::Command::new("sleep").arg("20").spawn().unwrap();
        let program = std::fs::canonicalize(format!("/proc/{}/exe", child.id())).unwrap();
        // The kernel's list of children may lack one while others of this process end, as those of other tests do (proc_tid_children(5)).
        let is_found = (0..100).any(|_| mapped_files().contains(&program));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_found, "{program:?}");
    }

    #[test]
    fn what_is_charged_elsewhere_is_told() {
        assert!(foreign_note(&demand(50 << 20)).unwrap().contains("/data/x and 0 more"));
        assert_eq!(foreign_note(&demand(1)), None);
    }

    #[test]
    fn what_is_a_small_part_of_the_answer_is_no_warning() {
        let demand = FileDemand { distinct_bytes: 20 << 20, ..demand(3 << 20) };
        let answer = |mib: u64| Answer { budget_bytes: Some(mib << 20), ..Answer::default() };
        assert!(foreign_note(&demand).is_some());
        assert!(foreign_warning(&demand, &answer(20)).is_some());
        assert_eq!(foreign_warning(&demand, &answer(31)), None);
    }
}

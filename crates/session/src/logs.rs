//! The folder that the processes of a run leave their logs in, and its end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use attribute::{ProcessLog, Reader};
use job::Forwarding;
use linux::secure_file::{Folder as Directory, PRIVATE_FOLDER, temporary_base};
use record::{Frames, HEADER_BYTES};
use rustix::fs::{Access, access};

use crate::launch::Launcher;
use crate::rank::Rank;
use crate::say::tell;
use crate::spool::{self, Spool};
use history::state::state_folder;

/// How long the first rank waits for those that end after it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long for those that have not been seen to begin: they are on a node that does not see the folder.
const PATIENCE_WITH_STRANGERS: Duration = Duration::from_secs(1);
/// How often it looks.
const TICK: Duration = Duration::from_millis(20);

/// A folder of logs.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// What is to be removed.
    parts: Vec<PathBuf>,
}

/// What is in one.
#[derive(Debug)]
pub struct Found {
    /// Those of processes, as far as they are whole.
    pub logs: Vec<ProcessLog>,
    /// Logs that could not be read, and why.
    pub troubles: Vec<String>,
}

impl Folder {
    /// Beside the record, so that all nodes see it if they see that: a new one, or the one that all ranks of a job know.
    /// What root starts on this node alone has one elsewhere, which whoever it becomes can write to, and a link to it.
    pub fn create(record: Option<&Path>, rank: Option<&Rank>, launcher: Option<Launcher>) -> anyhow::Result<Folder> {
        let (parent, name) = match record {
            Some(record) => {
                let parent = record.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
                (parent.to_path_buf(), record.file_name().unwrap_or_default().to_string_lossy().into_owned())
            }
            None => {
                let state = state_folder().ok().filter(|folder| access(folder, Access::WRITE_OK).is_ok());
                let parent = state.or_else(|| temporary_base().ok()).unwrap_or_else(std::env::temp_dir);
                (parent, "attribute".into())
            }
        };
        let failed =
            || format!("no folder for the logs can be made in {}; name another place by --record", parent.display());
        let path = match rank {
            Some(rank) => {
                let name = format!("{name}.{}.run", rank.job);
                let made =
                    Directory::open(&parent).and_then(|parent| parent.create_folder(name.as_ref(), PRIVATE_FOLDER));
                // Without it the first rank does not wait for us.
                let _ = made.with_context(failed)?.create_or_open(format!("rank-{}.begun", rank.number).as_ref());
                parent.join(name)
            }
            None => {
                let beside = Directory::open(&parent).with_context(failed)?;
                let prefix = format!("{name}.");
                if launcher.is_none() && rustix::process::geteuid().is_root() {
                    let (whole, path) = Spool::create("bursar-attribute-")?.keep();
                    // Without it bursar must live to tell where they are.
                    let link = beside.link_to(&path, &prefix, ".run").map(|link| parent.join(link));
                    return Ok(Folder { path, parts: link.into_iter().chain([whole]).collect() });
                }
                parent.join(beside.new_folder(&prefix, ".run").with_context(failed)?.0)
            }
        };
        let path = path.canonicalize().with_context(failed)?;
        Ok(Folder { parts: vec![path.clone()], path })
    }

    /// None, where none can be made: nothing is in it.
    pub fn nowhere() -> Folder {
        Folder { path: PathBuf::new(), parts: Vec::new() }
    }

    /// Whether it takes memory: it does not stay unless it is needed.
    pub fn is_in_memory(&self) -> bool {
        self.path.starts_with("/dev/shm")
    }

    /// One that a run has left.
    pub fn left(path: &Path) -> anyhow::Result<Folder> {
        if !path.is_dir() {
            bail!("{} is no folder; name the one that a run has left, RECORD.….run", path.display());
        }
        Ok(Folder { path: path.into(), parts: vec![path.into()] })
    }

    /// Where processes write to.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells the first rank that there is nothing more to come from this one.
    pub fn tell_end(&self, rank: &Rank) {
        // Without it the first rank waits a little longer.
        let name = format!("rank-{}.ended", rank.number);
        let _ = Directory::open(&self.path).and_then(|folder| folder.create_or_open(name.as_ref()));
    }

    /// Waits until all other ranks have told their end, or somebody wants us to end. A sentence if some have not.
    pub fn wait_for_others(&self, rank: &Rank, signals: &Forwarding) -> Option<String> {
        let begun = Instant::now();
        loop {
            let has = |n: u32, what: &str| self.path.join(format!("rank-{n}.{what}")).exists();
            let absent: Vec<u32> = (0..rank.ranks).filter(|n| !has(*n, "ended")).collect();
            if absent.is_empty() {
                return None;
            }
            let patience = if absent.iter().any(|n| has(*n, "begun")) { PATIENCE } else { PATIENCE_WITH_STRANGERS };
            if begun.elapsed() > patience || signals.interrupted() {
                let absent = absent.len();
                return Some(format!(
                    "{absent} of {} ranks had not ended when the first was told, or leave their logs where it does not see \
                     them; `bursar report FOLDER…` brings the folders of all nodes together, and \
                     `bursar attribute -- mpirun …` needs none.",
                    rank.ranks
                ));
            }
            std::thread::sleep(TICK);
        }
    }

    /// Every log in it.
    pub fn read(&self) -> Found {
        let mut found = Found { logs: Vec::new(), troubles: Vec::new() };
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|end| end == "log")) {
            match read(path) {
                Ok(log) => found.logs.push(log),
                Err(error) => found.troubles.push(format!("{}: {error}", path.display())),
            }
        }
        found
    }

    /// It is in the record now.
    pub fn remove(self) {
        for part in self.parts {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_dir_all(part);
        }
    }

    /// It stays.
    pub fn tell_where(self) {
        if self.parts.is_empty() {
            return;
        }
        tell!("bursar: the logs are kept; to report them: bursar report {}", self.path.display());
    }
}

/// Every log of several folders, which must be of one job: the ranks in each share a world with those before, and no rank is
/// there twice.
pub fn of_one_job(folders: &[Folder]) -> anyhow::Result<Found> {
    let mut all = Found { logs: Vec::new(), troubles: Vec::new() };
    for folder in folders {
        let found = folder.read();
        let name = folder.path.display();
        let (before, here) = (ranks(&all.logs), ranks(&found.logs));
        let worlds = |ranks: &Ranks| ranks.keys().map(|(world, _)| world.clone()).collect::<BTreeSet<_>>();
        if !before.is_empty() && !here.is_empty() && worlds(&before).is_disjoint(&worlds(&here)) {
            bail!("{name} holds the ranks of another job than the folder before it");
        }
        let elsewhere = |(key, host): &(&(String, u32), &String)| before.get(*key).is_some_and(|other| other != *host);
        if let Some(((_, rank), host)) = here.iter().find(elsewhere) {
            bail!("{name} holds rank {rank} on {host}, which the folder before it has on another host");
        }
        for log in found.logs {
            match all.logs.iter_mut().find(|known| is_same(known, &log)) {
                // MPI has brought it to the first rank's node as far as it was at MPI_Finalize.
                Some(known) if known.ended.is_none() => *known = log,
                Some(_) => {}
                None => all.logs.push(log),
            }
        }
        all.troubles.extend(found.troubles);
    }
    Ok(all)
}

/// Whether two logs are of one process.
fn is_same(a: &ProcessLog, b: &ProcessLog) -> bool {
    a.started.is_same_process(&b.started) && a.started.unix_ns == b.started.unix_ns
}

/// World and rank → host.
type Ranks = BTreeMap<(String, u32), String>;

fn ranks(logs: &[ProcessLog]) -> Ranks {
    let key = |log: &ProcessLog| Some(((log.started.world.clone(), log.started.rank?), log.started.host.clone()));
    logs.iter().filter_map(key).collect()
}

/// The log of one process, as far as it is whole.
fn read(path: &Path) -> anyhow::Result<ProcessLog> {
    let mut input = BufReader::new(spool::open(path)?);
    let mut header = Vec::new();
    (&mut input).take(HEADER_BYTES).read_to_end(&mut header)?;
    let mut reader = Reader::begin(&header)?;
    let mut frames = Frames::new(input);
    while let Some(payload) = frames.next()? {
        if !reader.take(payload) {
            break;
        }
    }
    Ok(reader.end(frames.good_bytes() == path.metadata()?.len())?)
}

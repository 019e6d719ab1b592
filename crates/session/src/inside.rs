//! Running a command with the library in it, to its end. What its processes tell is in a folder afterwards.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use job::preload::{self, Library};
use job::{Command, Forwarding, Output, Prepared};
use linux::perf::Counter;
use model::Exit;

use crate::launch::{Launch, Launcher, launch};
use crate::rank::Rank;
use crate::spool::{self, PerhapsSpool, without_library};
use crate::status::{OWN_FAILURE, Status};
use crate::unseen::{self, Purpose};

/// How often it is looked which processes there are, where that matters.
const TICK: Duration = Duration::from_millis(20);
/// No process tells as much; what is larger is read in part, and does not parse.
const LARGEST: u64 = 64 << 20;

/// A command that ran with the library in it, or without.
pub struct Inside {
    /// The launcher that the command is, if it is one.
    pub launcher: Option<Launcher>,
    /// How it ended.
    pub exit: Exit,
    /// From its first instruction to its end.
    pub wall_seconds: f64,
    /// What bursar took before.
    pub before_exec_seconds: f64,
    /// Processor time in user space, of it and all that it has waited for.
    pub user_seconds: f64,
    /// From user space, in all its processes on this node; `None`: refused, or not below us.
    pub page_faults: Option<u64>,
    /// Why it ran without, as a sentence.
    kept_out: Option<String>,
}

/// Runs the command to its end, with variables that the library reads, of which one names the folder; without a folder or a
/// place for the library it runs without. `look` is called from time to time, with its PID.
pub fn run(
    command: &[OsString],
    purpose: Purpose,
    variables: Vec<(String, OsString)>,
    folder: &PerhapsSpool,
    begun: Instant,
    mut look: Option<&mut dyn FnMut(i32)>,
) -> anyhow::Result<Inside> {
    let launcher = Launcher::of(command);
    let trouble = folder.trouble().map(String::from);
    let library = match unseen::sanitizer(command, launcher, purpose).or(trouble) {
        Some(why) => Err(why),
        None => preload::unpack(Library::Runtime).map_err(|error| without_library(&error.to_string())),
    };
    let Launch { words, environment } = match &library {
        Ok(library) => launch(command, launcher, library, variables),
        Err(_) => Launch { words: command.to_vec(), environment: Vec::new() },
    };
    let kept_out = library.err();
    let prepared = Prepared::new(&Command { words, environment, output: Output::Inherited, cgroup: None })?;
    let signals = Forwarding::start()?;
    // Slurm's daemons start what `srun` is asked for: it is not below us.
    let is_ours = launcher != Some(Launcher::Srun);
    let mut faults = Counter::page_faults_from_exec(prepared.pid()).ok().filter(|_| is_ours);
    let before_exec_seconds = begun.elapsed().as_secs_f64();
    let running = prepared.go(&signals)?;
    let patience = if look.is_some() { TICK } else { Duration::from_secs(3600) };
    let (ended, wall_seconds) = loop {
        if let Some(ended) = running.wait(patience)? {
            break ended;
        }
        if let Some(look) = &mut look {
            look(running.pid());
        }
    };
    signals.set_target(0);
    let page_faults = faults.as_mut().map(Counter::read);
    let user_seconds = ended.rusage.user_seconds;
    Ok(Inside { launcher, exit: ended.exit, wall_seconds, before_exec_seconds, user_seconds, page_faults, kept_out })
}

impl Inside {
    /// What bursar ends with.
    pub fn status(&self) -> Status {
        match self.exit {
            Exit::Status(code) => Status::Code(code),
            Exit::Signal(signal) => Status::Signal(signal),
            Exit::TimedOut | Exit::StoppedEarly | Exit::StillRunning => Status::Code(OWN_FAILURE),
        }
    }

    /// Why the command ran without the library, as a sentence; its children may have told what they did with it.
    pub fn why_without(&self, command: &[OsString], purpose: Purpose, has_told: bool) -> Option<String> {
        let of_file =
            || unseen::obstacle(command, self.launcher, purpose).filter(|_| !has_told || self.launcher.is_none());
        self.kept_out.clone().or_else(of_file)
    }

    /// The rank that ran, if its launcher is not below us.
    pub fn rank(&self) -> Option<Rank> {
        Rank::find().filter(|_| self.launcher.is_none())
    }
}

/// What files of the folder hold that the processes wrote in it, by the beginning of their names; `Err`: a sentence for
/// each that cannot be read. Those of processes that were killed before they had told anything are left out.
pub fn told<T, E: Display>(
    folder: &Path,
    prefix: &str,
    parse: impl Fn(&[u8]) -> Result<Option<T>, E>,
) -> (Vec<T>, Vec<String>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    paths.sort();
    let (mut told, mut troubles) = (Vec::new(), Vec::new());
    for path in paths {
        match contents(&path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| parse(&bytes).map_err(|error| error.to_string()))
        {
            Ok(one) => told.extend(one),
            Err(error) => troubles.push(format!("{}: {error}", path.display())),
        }
    }
    (told, troubles)
}

fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    spool::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Each rank has its launcher, and a file of its own.
pub fn of_rank(path: &Path, rank: Option<&Rank>) -> PathBuf {
    match rank {
        Some(rank) if path != Path::new("-") => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}", rank.number));
            name.into()
        }
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_ranks_stand_side_by_side() {
        let rank = Rank { number: 3, ranks: 4, job: "j".into() };
        assert_eq!(of_rank(Path::new("a.json"), Some(&rank)), Path::new("a.json.3"));
        assert_eq!(of_rank(Path::new("-"), Some(&rank)), Path::new("-"));
        assert_eq!(of_rank(Path::new("a.json"), None), Path::new("a.json"));
    }
}

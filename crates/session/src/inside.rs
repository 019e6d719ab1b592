//! Runs a command with bursar's library preloaded, to its end. Its processes write their statistics to a folder.

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

/// Interval between calls of `on_tick`.
const TICK: Duration = Duration::from_millis(20);
/// Larger than any statistics file. A larger file is cut off here, so it does not parse.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The result of a command that ran with or without the library.
pub struct Inside {
    /// The launcher, if the command is one.
    pub launcher: Option<Launcher>,
    /// Exit status or signal of the command.
    pub exit: Exit,
    /// From `exec` to the end of the command.
    pub wall_seconds: f64,
    /// Time that bursar took before `exec`.
    pub before_exec_seconds: f64,
    /// User CPU time of the command and of the children it waited for.
    pub user_seconds: f64,
    /// Page faults in user space, in all processes of the command on this node. `None`: the kernel refused the counter, or the
    /// processes are no descendants of bursar.
    pub page_faults: Option<u64>,
    /// Why the command ran without the library, as a sentence.
    kept_out: Option<String>,
}

/// Runs the command to its end, with the library and the environment `variables` that it reads (one names the folder).
/// If the folder or the library's file cannot be created, the command runs without the library. `on_tick` is called every
/// `TICK` with the command's PID.
pub fn run(
    command: &[OsString],
    purpose: Purpose,
    variables: Vec<(String, OsString)>,
    folder: &PerhapsSpool,
    begun: Instant,
    mut on_tick: Option<&mut dyn FnMut(i32)>,
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
    // Slurm's daemons start the processes of `srun`: they are no descendants of bursar.
    let is_ours = launcher != Some(Launcher::Srun);
    let mut faults = Counter::page_faults_from_exec(prepared.pid()).ok().filter(|_| is_ours);
    let before_exec_seconds = begun.elapsed().as_secs_f64();
    let running = prepared.go(&signals)?;
    let patience = if on_tick.is_some() { TICK } else { Duration::from_secs(3600) };
    let (ended, wall_seconds) = loop {
        if let Some(ended) = running.wait(patience)? {
            break ended;
        }
        if let Some(on_tick) = &mut on_tick {
            on_tick(running.pid());
        }
    };
    signals.set_target(0);
    let page_faults = faults.as_mut().map(Counter::read);
    let user_seconds = ended.rusage.user_seconds;
    Ok(Inside { launcher, exit: ended.exit, wall_seconds, before_exec_seconds, user_seconds, page_faults, kept_out })
}

impl Inside {
    /// bursar's exit status.
    pub fn status(&self) -> Status {
        match self.exit {
            Exit::Status(code) => Status::Code(code),
            Exit::Signal(signal) => Status::Signal(signal),
            Exit::TimedOut | Exit::StoppedEarly | Exit::StillRunning => Status::Code(OWN_FAILURE),
        }
    }

    /// Why the command ran without the library, as a sentence. `has_stats`: a process of the command wrote statistics, so at least
    /// one child of a launcher loaded the library.
    pub fn why_without(&self, command: &[OsString], purpose: Purpose, has_stats: bool) -> Option<String> {
        let of_file =
            || unseen::obstacle(command, self.launcher, purpose).filter(|_| !has_stats || self.launcher.is_none());
        self.kept_out.clone().or_else(of_file)
    }

    /// The rank of this run, if a launcher started bursar.
    pub fn rank(&self) -> Option<Rank> {
        Rank::find().filter(|_| self.launcher.is_none())
    }
}

/// Parses each file of `folder` whose name starts with `prefix`. Returns the values in the order of the file names, and a sentence
/// for each file that cannot be read. `parse` returns `Ok(None)` for a file whose process was killed before it wrote its results.
pub fn read_files<T, E: Display>(
    folder: &Path,
    prefix: &str,
    parse: impl Fn(&[u8]) -> Result<Option<T>, E>,
) -> (Vec<T>, Vec<String>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    paths.sort();
    let (mut parsed, mut troubles) = (Vec::new(), Vec::new());
    for path in paths {
        match contents(&path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| parse(&bytes).map_err(|error| error.to_string()))
        {
            Ok(one) => parsed.extend(one),
            Err(error) => troubles.push(format!("{}: {error}", path.display())),
        }
    }
    (parsed, troubles)
}

fn contents(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    spool::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The path of a rank's own file: the rank's number is appended, except to `-`.
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
    fn each_rank_writes_a_file_of_its_own() {
        let rank = Rank { number: 3, ranks: 4, job: "j".into() };
        assert_eq!(of_rank(Path::new("a.json"), Some(&rank)), Path::new("a.json.3"));
        assert_eq!(of_rank(Path::new("-"), Some(&rank)), Path::new("-"));
        assert_eq!(of_rank(Path::new("a.json"), None), Path::new("a.json"));
    }
}

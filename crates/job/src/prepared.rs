//! A job that is about to start.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use linux::cgroup::Cgroup;
use linux::children::{self, Awaited};
use linux::{limits, scheduling, signals, standard_output};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::missing;
use crate::stub::Stub;
use crate::{Error, Forwarding, Running};

/// What the stub reports in place of a PID where the command could not come into its cgroup.
const NO_CGROUP: i32 = -1;

/// What is to be started.
#[derive(Debug)]
pub struct Command {
    /// The program and its arguments; the program is looked for on `PATH`.
    pub words: Vec<OsString>,
    /// What is set in its environment beside what it inherits.
    pub environment: Vec<(String, OsString)>,
    /// Where what it prints goes.
    pub output: Output,
    /// Where it begins to run; `None`: where we are.
    pub cgroup: Option<Cgroup>,
}

/// The command's standard streams.
#[derive(Debug)]
pub enum Output {
    /// Ours: the command reads and writes as if bursar were not there.
    Inherited,
    /// Output is `/dev/null`; what it writes to its standard error goes to the file.
    Quiet {
        /// What it reads; `None`: `/dev/null`.
        input: Option<File>,
        /// Receives the standard error.
        errors: File,
    },
    /// Input is `/dev/null`; what it writes goes to the file.
    Kept {
        /// Receives standard output and standard error.
        both: File,
    },
}

/// A stub that waits to become the command. Dropped without [`Prepared::go`], it ends without having run anything.
#[derive(Debug)]
pub struct Prepared {
    stub: Child,
    _awaited: Awaited,
    go: File,
    report: File,
    name: String,
}

impl Prepared {
    /// Starts the stub. What this process has changed of itself since its start the command does not inherit: it ignores
    /// the signals that were ignored then, such as SIGHUP under `nohup`, and has the limits, the closed standard streams
    /// and the scheduling policy of then. Its environment is ours, byte for byte, with what is set put in place or added.
    ///
    /// # Errors
    /// [`Error::Stub`] if the stub cannot be executed, neither from memory nor from `TMPDIR`.
    pub fn new(command: &Command) -> Result<Prepared, Error> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| Error::system("make a pipe")(e.into()));
        let (go_reader, go_writer) = pipe()?;
        let (report_reader, report_writer) = pipe()?;
        for end in [&go_reader, &report_writer] {
            fcntl_setfd(end, FdFlags::empty()).map_err(|e| Error::system("hand a pipe on")(e.into()))?;
        }
        let into = command.cgroup.as_ref().and_then(Cgroup::v2_directory).unwrap_or(Path::new(""));
        let tasks = command.cgroup.as_ref().map(Cgroup::v1_tasks).unwrap_or_default();
        let set: Vec<OsString> = command.environment.iter().map(assignment).collect();
        let closed = match &command.output {
            Output::Inherited => standard_output::closed_at_start(),
            Output::Quiet { .. } | Output::Kept { .. } => 0,
        };
        let start = |stub: &Stub| {
            let mut start = std::process::Command::new(stub.path());
            start.arg(go_reader.as_raw_fd().to_string()).arg(report_writer.as_raw_fd().to_string());
            start.arg(format!("{:x}", signals::ignored_at_start())).arg(closed.to_string());
            start.arg(limits::to_put_back()).arg(signals::of_parents_death().to_string());
            start.arg(scheduling::to_put_back());
            start.arg(into).arg(tasks.len().to_string()).args(&tasks);
            start.arg(set.len().to_string()).args(&set).args(&command.words);
            match &command.output {
                Output::Inherited => &mut start,
                Output::Quiet { input, errors } => {
                    let input = input.as_ref().map(File::try_clone).transpose()?;
                    start
                        .stdin(input.map_or_else(Stdio::null, Stdio::from))
                        .stdout(Stdio::null())
                        .stderr(errors.try_clone()?)
                }
                Output::Kept { both } => start.stdin(Stdio::null()).stdout(both.try_clone()?).stderr(both.try_clone()?),
            };
            children::spawn(&mut start)
        };
        let (stub, awaited) = Stub::in_memory()
            .and_then(|stub| start(&stub))
            .or_else(|_| Stub::on_disk().and_then(|stub| start(&stub)))
            .map_err(Error::Stub)?;
        let name = command.words.first().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Prepared { stub, _awaited: awaited, go: go_writer.into(), report: report_reader.into(), name })
    }

    /// The stub's PID. The command is a fork of it, and so is in its session and process group.
    pub fn pid(&self) -> i32 {
        self.stub.id() as i32
    }

    /// Lets the stub become the command, whose the signals are from now on that are sent to us.
    ///
    /// # Errors
    /// [`Error::NotFound`] and [`Error::NotExecutable`] as a shell would tell them apart. [`Error::Killed`] under a limit in which
    /// not even the stub has room. [`Error::System`] where it may not come into its cgroup.
    pub fn go(self, signals: &Forwarding) -> Result<Running, Error> {
        signals.expect_command();
        let running = self.begin().inspect_err(|_| signals.set_target(0))?;
        signals.set_target(running.pid());
        Ok(running)
    }

    fn begin(mut self) -> Result<Running, Error> {
        let started = Instant::now();
        // A command that ends at once is not taken for an orphan before its PID is known.
        let _hold = children::hold();
        let told = self.go.write_all(b"g");
        let pid = self.read_word().map_err(Error::system("learn the command's PID"))?;
        let awaited = pid.map(children::awaited);
        let ended = self.stub.wait().map_err(Error::system("wait for the helper process"))?;
        let failed = self.read_word().map_err(Error::system("learn whether the command started"))?;
        let Some((pid, awaited)) = pid.zip(awaited).filter(|(pid, _)| *pid > 0) else {
            // A fork that says nothing was killed as well, and nothing but SIGKILL can do that to it so early.
            let killed = ended.signal().or((ended.success() && told.is_ok()).then_some(Signal::KILL.as_raw()));
            return Err(match (failed.map(io::Error::from_raw_os_error), killed) {
                (Some(source), _) if pid == Some(NO_CGROUP) => {
                    Error::System { doing: "put the command into its cgroup", source }
                }
                (Some(source), _) => Error::System { doing: "fork the command", source },
                (None, Some(signal)) => Error::Killed { command: self.name, signal },
                (None, None) => Error::System {
                    doing: "start the command",
                    source: told.err().unwrap_or(io::ErrorKind::UnexpectedEof.into()),
                },
            });
        };
        match failed.map(io::Error::from_raw_os_error) {
            None => Ok(Running::new(pid, started, awaited)),
            Some(source) => {
                linux::wait::wait4(pid, true).map_err(Error::system("wait for the command"))?;
                let command = self.name;
                Err(match source.kind() {
                    io::ErrorKind::NotFound => match missing::interpreter(&command) {
                        Some(interpreter) => Error::NoInterpreter { command, interpreter },
                        None => Error::NotFound { command },
                    },
                    io::ErrorKind::PermissionDenied if missing::is_nowhere(&command) => Error::NotFound { command },
                    _ => Error::NotExecutable { command, source },
                })
            }
        }
    }

    /// One int of the stub's report; `None` at its end.
    fn read_word(&mut self) -> io::Result<Option<i32>> {
        let mut word = [0; 4];
        match self.report.read_exact(&mut word) {
            Ok(()) => Ok(Some(i32::from_ne_bytes(word))),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(e),
        }
    }
}

fn assignment((name, value): &(String, OsString)) -> OsString {
    [OsStr::new(name), OsStr::new("="), value].into_iter().collect()
}

//! Why a job could not be started or waited for.

use std::io;

fn not_found(command: &str) -> String {
    if command.is_empty() {
        return "the command is an empty word, which names no program: write the program to run first, as in bursar run -- ./solver".to_string();
    }
    if command.starts_with('-') {
        return format!("{command}: command not found; options of bursar go before --, the command after it");
    }
    format!("{command}: command not found; check the spelling, or give its path")
}

/// No other call fails so here than one that starts a process or a thread.
/// A person's signal says nothing of a limit.
fn of_limit(signal: i32) -> &'static str {
    if signal == rustix::process::Signal::KILL.as_raw() { "; is its limit too small for any program?" } else { "" }
}

fn limit_hint(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::WouldBlock => format!(": {}", linux::limits::processes()),
        _ => String::new(),
    }
}

fn stub_hint(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::WouldBlock => limit_hint(source),
        _ => "; is /proc mounted, is TMPDIR on a file system without noexec, and may files be as large (ulimit -f)?"
            .into(),
    }
}

/// A job's failure, with the exit status a shell would give it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such command: status 127.
    #[error("{}", not_found(command))]
    NotFound {
        /// As it was given.
        command: String,
    },
    /// The command is there, but not what it is to be executed by: status 126.
    #[error(
        "{command}: cannot be executed, because {interpreter}, which its file names as its interpreter or loader, does not exist; install it, or correct the file"
    )]
    NoInterpreter {
        /// As it was given.
        command: String,
        /// The path that the file names.
        interpreter: String,
    },
    /// The command is there but could not be executed: status 126.
    #[error("{command}: cannot be executed: {source}; is it a program for this machine with its x bit set?")]
    NotExecutable {
        /// As it was given.
        command: String,
        /// What `execve` said.
        source: io::Error,
    },
    /// What was to become the command was killed before that: 128 + signal.
    #[error("{command}: killed by signal {signal} before it began{}", of_limit(*signal))]
    Killed {
        /// As it was given.
        command: String,
        /// What killed it.
        signal: i32,
    },
    /// The stub could not be put anywhere from which it may be executed.
    #[error("could not start the helper process that starts the command: {0}{hint}", hint = stub_hint(.0))]
    Stub(io::Error),
    /// The library that runs inside the command could not be put anywhere from which it may be loaded.
    #[error(
        "could not unpack the library that runs inside the command: {0}; set XDG_CACHE_HOME to a folder of yours, on a file system without noexec"
    )]
    Preload(io::Error),
    /// A system call failed that does not fail on a healthy system.
    #[error("could not {doing}: {source}{hint}", hint = limit_hint(source))]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Error {
    /// As a shell where it is the command's, 125 for bursar's own failures.
    pub fn exit_status(&self) -> i32 {
        match self {
            Error::NotFound { .. } => 127,
            Error::NotExecutable { .. } | Error::NoInterpreter { .. } => 126,
            Error::Killed { signal, .. } => 128 + signal,
            Error::Stub(_) | Error::Preload(_) | Error::System { .. } => 125,
        }
    }

    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { doing, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_command_is_said_to_be_empty() {
        let said = |command: &str| Error::NotFound { command: command.into() }.to_string();
        assert!(said("").starts_with("the command is an empty word"));
        assert_eq!(said("solvr"), "solvr: command not found; check the spelling, or give its path");
    }

    #[test]
    fn an_option_in_the_place_of_the_command_is_recognised() {
        let error = Error::NotFound { command: "--limit".into() }.to_string();
        assert_eq!(error, "--limit: command not found; options of bursar go before --, the command after it");
    }
}

//! How bursar itself ends.

use model::{Exit, Observation};

/// The command's own end, or ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Exit with this.
    Code(i32),
    /// End by this signal, as the command did.
    Signal(i32),
}

/// What bursar was doing when a signal asked it to end.
#[derive(Debug)]
pub struct Interrupted {
    /// Which.
    pub signal: i32,
    /// "reading standard input"
    pub what: &'static str,
}

impl std::error::Error for Interrupted {}

impl std::fmt::Display for Interrupted {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "interrupted while {}", self.what)
    }
}

/// bursar's own failure.
pub const OWN_FAILURE: i32 = 125;

impl Status {
    /// Exit with this.
    pub fn of(code: i32) -> Status {
        Status::Code(code)
    }

    /// Of what ended with an error.
    pub fn of_error(error: &anyhow::Error) -> Status {
        match (error.downcast_ref::<Interrupted>(), error.downcast_ref::<job::Error>()) {
            (Some(interrupted), _) => Status::Signal(interrupted.signal),
            (None, Some(error)) => Status::of(error.exit_status()),
            (None, None) => Status::of(OWN_FAILURE),
        }
    }

    /// As a shell tells it.
    pub fn code(self) -> i32 {
        match self {
            Status::Code(code) => code,
            Status::Signal(signal) => 128 + signal,
        }
    }

    /// Ends this process.
    pub fn end(self) -> ! {
        match self {
            Status::Code(code) => std::process::exit(code),
            Status::Signal(signal) => std::process::exit(job::end_like(signal)),
        }
    }
}

/// How bursar ends after a run.
pub fn ended(observation: &Observation) -> Status {
    match observation.exit {
        Exit::Signal(signal) => Status::Signal(signal),
        _ => Status::of(observation.exit_status().unwrap_or(0)),
    }
}

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

/// bursar's own failure.
pub const OWN_FAILURE: i32 = 125;

impl Status {
    /// After Ctrl-C.
    pub const INTERRUPTED: Status = Status::Signal(2);

    /// Exit with this.
    pub fn of(code: i32) -> Status {
        Status::Code(code)
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

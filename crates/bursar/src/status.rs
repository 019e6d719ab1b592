//! How bursar itself ends.

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

    pub fn of(code: i32) -> Status {
        Status::Code(code)
    }

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

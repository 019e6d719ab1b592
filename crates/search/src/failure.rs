//! A run that failed, and whether its limit may be the reason.

use std::time::Duration;

use model::{Bytes, Exit, Observation};
use session::status::Status;

/// What programs and runtimes print when they get no memory, in lower case.
const LACK_OF_MEMORY: [&str; 17] = [
    "cannot allocate memory",
    "can't allocate memory",
    "could not allocate",
    "unable to allocate",
    "failed to allocate",
    "cannot allocate vector",
    "memory allocation of",
    "allocation failed",
    "bad_alloc",
    "memoryerror",
    "outofmemory",
    "out of memory",
    "memory exhausted",
    "not enough memory",
    "insufficient memory",
    "no memory",
    "enomem",
];

const SIGKILL: i32 = 9;

/// A run that failed.
#[derive(Debug)]
pub struct Failure {
    /// How it ended, as bursar then does.
    pub status: Status,
    /// The end of its standard error.
    pub errors: String,
    /// Its limit, in bytes.
    limit_bytes: Option<u64>,
    /// Its number, from 1, and how many of those before succeeded.
    run: usize,
    succeeded: usize,
    /// Whether the run before was killed or stopped under its limit, so that it could not clean up.
    is_after_a_killed_run: bool,
    /// The `--timeout` that ended it.
    timeout: Option<Duration>,
}

impl Failure {
    /// Of a run that is not yet among `before`.
    pub fn of(
        observation: &Observation,
        errors: String,
        before: &[Observation],
        limit_bytes: Option<u64>,
        timeout: Option<Duration>,
    ) -> Failure {
        let status = match observation.exit {
            Exit::Signal(signal) => Status::Signal(signal),
            _ => Status::of(observation.exit_status().unwrap_or(1)),
        };
        let succeeded = before.iter().filter(|run| run.exit == Exit::Status(0)).count();
        let was_killed = |run: &Observation| {
            run.kept.oom_kills.is_some_and(|kills| kills > 0)
                || matches!(run.exit, Exit::Signal(_) | Exit::StoppedEarly)
        };
        Failure {
            status,
            errors,
            limit_bytes,
            run: before.len() + 1,
            succeeded,
            is_after_a_killed_run: before.last().is_some_and(was_killed),
            timeout: timeout.filter(|_| observation.exit == Exit::TimedOut),
        }
    }

    /// The number of the run in its record, from 0.
    pub fn number(&self) -> u32 {
        self.run as u32 - 1
    }

    /// Whether it would have gone on.
    pub fn is_timed_out(&self) -> bool {
        self.timeout.is_some()
    }

    /// Whether it says itself that it got no memory. (What the kernel killed is counted by the kernel.)
    pub fn is_for_lack_of_memory(&self) -> bool {
        let errors = self.errors.to_lowercase();
        self.status.code() == Status::Signal(SIGKILL).code()
            || LACK_OF_MEMORY.iter().any(|words| errors.contains(words))
    }

    /// Whether another run failed in the same way.
    pub fn is_like(&self, other: &Failure) -> bool {
        self.status.code() == other.status.code() && self.errors.lines().last() == other.errors.lines().last()
    }

    /// How it ended, in words.
    pub fn how(&self) -> String {
        format!("status {}", self.status.code())
    }

    /// Why the search ends with it, as a sentence.
    pub fn sentence(&self) -> String {
        let how = self.how();
        if let Some(timeout) = self.timeout {
            return format!(
                "run {}, without any limit, was ended after {}, as --timeout says: give a longer one, or none, for the search compares \
                 runs under limits with one that comes to its end",
                self.run,
                report::seconds(timeout.as_secs_f64())
            );
        }
        let prepare = match self.is_after_a_killed_run {
            true => format!(
                "Run {} was killed at its limit, and may have left something behind. Remove that before each run: --prepare 'rm -rf OUT'",
                self.run - 1
            ),
            false => "If it finds what an earlier run left behind, remove that before each run: --prepare 'rm -rf OUT'"
                .into(),
        };
        match (self.limit_bytes, self.succeeded, self.run) {
            (Some(limit), ..) => format!(
                "run {} failed under its limit of {} ({how}, its error is above) without a sign of too little memory, and the next run \
                 failed without a limit: its limit was not the reason. {prepare}",
                self.run,
                Bytes(limit)
            ),
            (None, 0, _) => {
                format!("the command fails without any limit ({how}), so there is nothing to find out about one")
            }
            (None, 1, 2) => format!("run 1 succeeded and run 2 failed ({how}), both without a limit. {prepare}"),
            (None, succeeded, run) => format!(
                "{succeeded} of the runs before succeeded and run {run} failed ({how}) without a limit. {prepare}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: i32, errors: &str) -> Failure {
        Failure {
            status: Status::of(status),
            errors: errors.into(),
            limit_bytes: Some(1 << 20),
            run: 3,
            succeeded: 2,
            is_after_a_killed_run: false,
            timeout: None,
        }
    }

    #[test]
    fn runtimes_that_get_no_memory_are_recognised() {
        for errors in [
            "sort: memory exhausted",
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "Traceback (most recent call last):\nMemoryError",
            "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 763. MiB for an array",
            "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space",
            "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
            "sh: 0: Cannot fork\nsh: fork: Cannot allocate memory",
            "Error: cannot allocate vector of size 7.6 Mb",
            "memory allocation of 1073741824 bytes failed",
            "duckdb.duckdb.OutOfMemoryException: Out of Memory Error: failed to pin block",
        ] {
            assert!(failure(1, errors).is_for_lack_of_memory(), "{errors}");
        }
        assert!(failure(137, "").is_for_lack_of_memory());
    }

    #[test]
    fn other_failures_are_no_lack_of_memory() {
        for errors in ["gzip: big.txt.gz already exists", "mkdir: cannot create directory: File exists", ""] {
            assert!(!failure(2, errors).is_for_lack_of_memory(), "{errors}");
        }
        assert!(failure(2, "x\nlocked").is_like(&failure(2, "y\nlocked")));
        assert!(!failure(2, "x").is_like(&failure(1, "x")));
    }
}

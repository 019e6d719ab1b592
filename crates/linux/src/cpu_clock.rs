//! CPU time of a process, over all its threads.

use std::time::Duration;

use crate::Error;

/// The CPU clock of a process.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    /// Of a process.
    ///
    /// # Errors
    /// [`Error::Gone`] if it ended.
    pub fn of(pid: i32) -> Result<CpuClock, Error> {
        let mut clock = 0;
        // SAFETY: writes a clock id to our variable.
        let failed = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
        if failed == 0 { Ok(CpuClock(clock)) } else { Err(Error::Gone(pid)) }
    }

    /// CPU time used so far; `None`: the process has ended.
    pub fn now(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes a time to our variable.
        let failed = unsafe { libc::clock_gettime(self.0, &mut time) };
        (failed == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_uses_time_and_one_that_ended_has_no_clock() {
        let own = CpuClock::of(std::process::id() as i32).unwrap();
        let before = own.now().unwrap();
        while own.now().unwrap() < before + Duration::from_millis(2) {}
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let clock = CpuClock::of(child.id() as i32).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(clock.now(), None);
        assert!(CpuClock::of(child.id() as i32).is_err());
    }
}

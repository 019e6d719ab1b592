//! Hardware events of processes that know nothing of it, through `perf_event_open`.

mod walk_cycles;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

use libbpf_sys::{
    PERF_COUNT_HW_CACHE_DTLB, PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_OP_READ,
    PERF_COUNT_HW_CACHE_RESULT_ACCESS, PERF_COUNT_HW_CACHE_RESULT_MISS, PERF_COUNT_SW_PAGE_FAULTS,
    PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_PAGE_FAULTS_MIN, PERF_FLAG_FD_CLOEXEC, PERF_TYPE_HW_CACHE,
    PERF_TYPE_SOFTWARE, perf_event_attr,
};

use crate::{Error, procfs};

pub use walk_cycles::WalkCycles;

/// What a processor counts of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Reads whose page was not in the data TLB.
    DtlbMisses,
    /// Reads of the first cache.
    L1References,
    /// Reads that missed the last cache: perf has no name for the second.
    CacheMisses,
}

impl Event {
    /// All.
    pub const ALL: [Event; 3] = [Event::DtlbMisses, Event::L1References, Event::CacheMisses];

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Event::DtlbMisses => "DTLB misses",
            Event::L1References => "L1 references",
            Event::CacheMisses => "last-level cache misses",
        }
    }

    fn config(self) -> u64 {
        let (cache, result) = match self {
            Event::DtlbMisses => (PERF_COUNT_HW_CACHE_DTLB, PERF_COUNT_HW_CACHE_RESULT_MISS),
            Event::L1References => (PERF_COUNT_HW_CACHE_L1D, PERF_COUNT_HW_CACHE_RESULT_ACCESS),
            Event::CacheMisses => (PERF_COUNT_HW_CACHE_LL, PERF_COUNT_HW_CACHE_RESULT_MISS),
        };
        u64::from(cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | result << 16)
    }
}

/// Why nothing is counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The kernel refused all of them.
    #[error("perf_event_open refuses them: {0}")]
    Refused(io::Error),
    /// A virtual machine may offer counters that stand still.
    #[error("the counters can be opened and do not count")]
    Still,
}

/// The events that this machine counts.
///
/// # Errors
/// Why it counts none.
pub fn available() -> Result<Vec<Event>, Unavailable> {
    let mut refused = None;
    let mut counting = Vec::new();
    for event in Event::ALL {
        match open(0, PERF_TYPE_HW_CACHE, event.config(), Mode::User, Begin::Now) {
            Ok(mut counter) => {
                // More pages than any TLB has entries, more lines than a first cache holds.
                let memory = vec![1u8; 64 << 20];
                let sum: u64 = memory.iter().step_by(4096).map(|byte| u64::from(*byte)).sum();
                std::hint::black_box(sum);
                if read(&mut counter) > 0 {
                    counting.push(event);
                }
            }
            Err(error) => refused = Some(error),
        }
    }
    match (counting.is_empty(), refused) {
        (false, _) => Ok(counting),
        (true, Some(error)) => Err(Unavailable::Refused(error)),
        (true, None) => Err(Unavailable::Still),
    }
}

/// Counts one event of a process and of all that it starts from now on.
#[derive(Debug)]
pub struct Counter(Vec<File>);

/// From when on an event is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    Now,
    /// When the process, or what it starts, becomes another program.
    Exec,
}

impl Counter {
    /// Counts the page faults of what a process is to become, or to start: from the next `exec` on, in user space alone.
    ///
    /// # Errors
    /// What the kernel says; it may be told to refuse (`kernel.perf_event_paranoid`).
    pub fn page_faults_from_exec(pid: i32) -> io::Result<Counter> {
        let faults = PERF_COUNT_SW_PAGE_FAULTS.into();
        Ok(Counter(vec![open(pid, PERF_TYPE_SOFTWARE, faults, Mode::User, Begin::Exec)?]))
    }

    /// The same of faults without and with I/O.
    ///
    /// # Errors
    /// As [`Counter::page_faults_from_exec`].
    pub fn minor_and_major_faults_from_exec(pid: i32) -> io::Result<[Counter; 2]> {
        let of = |config: u32| open(pid, PERF_TYPE_SOFTWARE, config.into(), Mode::User, Begin::Exec);
        let (minor, major) = (of(PERF_COUNT_SW_PAGE_FAULTS_MIN)?, of(PERF_COUNT_SW_PAGE_FAULTS_MAJ)?);
        Ok([Counter(vec![minor]), Counter(vec![major])])
    }

    /// Begins to count, in all threads there are.
    ///
    /// # Errors
    /// [`Error::Gone`] if it ended, or may not be counted.
    pub fn of(pid: i32, event: Event) -> Result<Counter, Error> {
        let counters: Vec<File> = procfs::tasks(pid)?
            .into_iter()
            .filter_map(|task| open(task, PERF_TYPE_HW_CACHE, event.config(), Mode::User, Begin::Now).ok())
            .collect();
        if counters.is_empty() { Err(Error::Gone(pid)) } else { Ok(Counter(counters)) }
    }

    /// How many there were since it began, in what it started since, too.
    pub fn read(&mut self) -> u64 {
        self.0.iter_mut().map(read).sum()
    }
}

/// In what an event is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In user space alone.
    User,
    /// In system calls, too.
    Kernel,
}

/// Whether a process may be told its own page faults.
///
/// # Errors
/// Why not.
pub fn page_faults(mode: Mode) -> io::Result<()> {
    open(0, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS.into(), mode, Begin::Now).map(drop)
}

/// An event that is raised for every single fault on a processor, for a program to be attached to. `config`: which software
/// event.
///
/// # Errors
/// What the kernel says; `ENODEV` of a processor that is offline.
pub(crate) fn each_of_processor(processor: i32, config: u64) -> io::Result<File> {
    let mut attributes = attributes(PERF_TYPE_SOFTWARE, config);
    attributes.__bindgen_anon_1.sample_period = 1;
    const ANY_TASK: i32 = -1;
    open_on(ANY_TASK, processor, &attributes)
}

fn open(task: i32, kind: u32, config: u64, mode: Mode, begin: Begin) -> io::Result<File> {
    let mut attributes = attributes(kind, config);
    attributes.set_inherit(1);
    attributes.set_exclude_kernel((mode == Mode::User).into());
    attributes.set_exclude_hv(1);
    attributes.set_disabled((begin == Begin::Exec).into());
    attributes.set_enable_on_exec((begin == Begin::Exec).into());
    const ANY_PROCESSOR: i32 = -1;
    open_on(task, ANY_PROCESSOR, &attributes)
}

fn attributes(kind: u32, config: u64) -> perf_event_attr {
    perf_event_attr { type_: kind, size: size_of::<perf_event_attr>() as u32, config, ..Default::default() }
}

fn open_on(task: i32, processor: i32, attributes: &perf_event_attr) -> io::Result<File> {
    const NO_GROUP: i32 = -1;
    // SAFETY: the attributes live through the call, and say how large they are.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const *attributes,
            task,
            processor,
            NO_GROUP,
            libc::c_ulong::from(PERF_FLAG_FD_CLOEXEC),
        )
    };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { File::from_raw_fd(descriptor as i32) })
}

fn read(counter: &mut File) -> u64 {
    let mut bytes = [0; 8];
    counter.read_exact(&mut bytes).map_or(0, |()| u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_available_counts_and_what_is_not_has_a_reason() {
        match available() {
            Ok(events) => {
                let mut counter = Counter::of(std::process::id() as i32, events[0]).unwrap();
                let memory = vec![1u8; 64 << 20];
                std::hint::black_box(memory.iter().step_by(4096).filter(|byte| **byte == 1).count());
                assert!(counter.read() > 0);
            }
            Err(why) => assert!(!why.to_string().is_empty()),
        }
    }

    #[test]
    fn page_faults_are_counted_from_exec_on_in_what_is_started_too() {
        let mut waiting = std::process::Command::new("sh");
        let waiting = waiting.args(["-c", "read word; sh -c 'exec true'"]).stdin(std::process::Stdio::piped());
        let mut waiting = waiting.spawn().unwrap();
        match Counter::page_faults_from_exec(waiting.id() as i32) {
            Ok(mut counter) => {
                drop(waiting.stdin.take());
                assert!(waiting.wait().unwrap().success());
                assert!(counter.read() > 10, "a program faults its own pages in");
            }
            Err(why) => assert_eq!(why.kind(), io::ErrorKind::PermissionDenied),
        }
    }

    #[test]
    fn a_process_that_is_not_there_is_gone() {
        assert!(matches!(Counter::of(4_194_304, Event::DtlbMisses), Err(Error::Gone(_))));
    }
}

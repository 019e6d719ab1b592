//! Hardware events of other processes, through `perf_event_open`.

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

/// Memory events that a processor counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Loads that missed the data TLB.
    DtlbMisses,
    /// Loads of the L1 cache.
    L1References,
    /// Loads that missed the last-level cache; perf has no name for the L2 cache.
    CacheMisses,
}

impl Event {
    /// All events.
    pub const ALL: [Event; 3] = [Event::DtlbMisses, Event::L1References, Event::CacheMisses];

    /// Its common name.
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

/// Why nothing can be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The kernel refused all events.
    #[error("perf_event_open refuses them: {0}")]
    Refused(io::Error),
    /// The counters of a virtual machine may not advance.
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
                // More pages than a TLB has entries, and more lines than an L1 cache holds.
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

/// Counts one event of a process and of all processes and threads that it starts from now on.
#[derive(Debug)]
pub struct Counter(Vec<File>);

/// When counting begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    Now,
    /// When the process, or a child of it, calls exec.
    Exec,
}

impl Counter {
    /// Counts the page faults of a process and its children from the next `exec` on, only in user space.
    ///
    /// # Errors
    /// The kernel's error; `kernel.perf_event_paranoid` may forbid it.
    pub fn page_faults_from_exec(pid: i32) -> io::Result<Counter> {
        let faults = PERF_COUNT_SW_PAGE_FAULTS.into();
        Ok(Counter(vec![open(pid, PERF_TYPE_SOFTWARE, faults, Mode::User, Begin::Exec)?]))
    }

    /// The same, separately for faults without and with I/O.
    ///
    /// # Errors
    /// As [`Counter::page_faults_from_exec`].
    pub fn minor_and_major_faults_from_exec(pid: i32) -> io::Result<[Counter; 2]> {
        let of = |config: u32| open(pid, PERF_TYPE_SOFTWARE, config.into(), Mode::User, Begin::Exec);
        let (minor, major) = (of(PERF_COUNT_SW_PAGE_FAULTS_MIN)?, of(PERF_COUNT_SW_PAGE_FAULTS_MAJ)?);
        Ok([Counter(vec![minor]), Counter(vec![major])])
    }

    /// Begins to count in all current threads.
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

    /// The count since the begin, including children started since.
    pub fn read(&mut self) -> u64 {
        self.0.iter_mut().map(read).sum()
    }
}

/// The modes in which an event is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only in user space.
    User,
    /// Also in system calls.
    Kernel,
}

/// Whether a process may count its own page faults.
///
/// # Errors
/// The reason.
pub fn page_faults(mode: Mode) -> io::Result<()> {
    open(0, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS.into(), mode, Begin::Now).map(drop)
}

/// An event for every single fault on a processor, to attach a program to. `config`: the software event.
///
/// # Errors
/// The kernel's error; `ENODEV` if the processor is offline.
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
    // SAFETY: the attributes live through the call and contain their size.
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
    // SAFETY: a new descriptor that only this code owns.
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
    fn events_are_counted_or_there_is_a_reason() {
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
    fn page_faults_are_counted_from_exec_on_also_in_children() {
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

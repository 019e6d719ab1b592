//! The BPF programs: loading them, following processes with them, and what they tell.
//!
//! The programs are tp_btf only. On Linux 6.12 and later they see the page cache through the filemap tracepoints; on older
//! kernels through the results of the system calls (x86-64 only, and mapped files are not seen); where neither is there
//! only processes are followed. See `bpf/job.bpf.c` for what is merged in the kernel.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Typedef;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, PrintLevel, RingBuffer, RingBufferBuilder};

/// Why the programs do not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The binary holds no programs.
    #[error("this bursar was built without BPF programs: {0}; install clang and build it again")]
    NotBuilt(&'static str),
    /// The kernel does not describe its types.
    #[error("this kernel has no /sys/kernel/btf/vmlinux; one built with CONFIG_DEBUG_INFO_BTF has")]
    NoBtf,
    /// The kernel refused.
    #[error("the kernel refused bursar's BPF programs: {0}; they need root, or CAP_BPF and CAP_PERFMON")]
    Refused(libbpf_rs::Error),
    /// A process could not be followed.
    #[error("process {pid} cannot be followed: {source}")]
    Follow {
        /// Which process.
        pid: i32,
        /// Why.
        source: libbpf_rs::Error,
    },
    /// What was seen could not be read.
    #[error("what the BPF programs saw could not be read: {0}")]
    Read(libbpf_rs::Error),
}

/// How much of the page cache's references is seen, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Every read, write and fault, through the filemap tracepoints (Linux 6.12).
    Filemap,
    /// Reads and writes by system calls; no mapped files. Slows every system call of the machine a little.
    Syscalls,
    /// Processes only.
    Processes,
}

/// How a page was referenced; the same as in `model`.
pub use model::ReferenceKind;

/// Which file: an inode of a device, and which of the files that had its number one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Inode number.
    pub inode: u64,
    /// The superblock's device, as the kernel holds it: major << 20 | minor. btrfs and overlayfs show other numbers in `stat`.
    pub device: u32,
    /// Generation of the inode number.
    pub generation: u32,
}

/// A process that was forked within the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork<'a> {
    /// The child.
    pub pid: i32,
    /// Its parent.
    pub parent: i32,
    /// Start, CLOCK_MONOTONIC nanoseconds.
    pub start_ns: u64,
    /// Start, CLOCK_BOOTTIME nanoseconds.
    pub start_boottime_ns: u64,
    /// Command name, the parent's still.
    pub command: &'a [u8],
}

/// What a process had used when its last thread exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit<'a> {
    /// The process.
    pub pid: i32,
    /// Its parent at that moment.
    pub parent: i32,
    /// As `wait` tells it: signal in the low 7 bits, status in bits 8 to 15.
    pub code: u32,
    /// When, CLOCK_MONOTONIC nanoseconds.
    pub t_ns: u64,
    /// Start, CLOCK_MONOTONIC nanoseconds.
    pub start_ns: u64,
    /// Start, CLOCK_BOOTTIME nanoseconds.
    pub start_boottime_ns: u64,
    /// Peak RSS in pages as `wait4` tells it, what it was before an exec included.
    pub max_rss_pages: u64,
    /// User time by ticks, nanoseconds; that of threads which were still being taken down may be missing, see [`Threads`].
    pub user_ns: u64,
    /// System time by ticks, nanoseconds.
    pub system_ns: u64,
    /// User and system time, exact.
    pub runtime_ns: u64,
    /// Faults without I/O.
    pub minor_faults: u64,
    /// Faults with I/O.
    pub major_faults: u64,
    /// Command name.
    pub command: &'a [u8],
}

/// Sums over the threads of a process that exited while it was followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Time waited for block I/O, nanoseconds; `None` if none of them was accounted for.
    pub delay_ns: Option<u64>,
    /// Their lifetimes, nanoseconds.
    pub life_ns: u64,
    /// User time by ticks, nanoseconds.
    pub user_ns: u64,
    /// System time by ticks, nanoseconds.
    pub system_ns: u64,
    /// User and system time, exact.
    pub runtime_ns: u64,
    /// Faults without I/O.
    pub minor_faults: u64,
    /// Faults with I/O.
    pub major_faults: u64,
    dead: bool,
}

/// What the programs tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Pages of a file were referenced.
    Reference {
        /// Which file.
        file: FileKey,
        /// CLOCK_MONOTONIC nanoseconds.
        t_ns: u64,
        /// First page.
        first: u64,
        /// How many, at least 1.
        pages: u32,
        /// How.
        kind: ReferenceKind,
    },
    /// Pages of a file were brought into the page cache by the job.
    Added {
        /// Which file.
        file: FileKey,
        /// First page.
        first: u64,
        /// How many.
        pages: u32,
    },
    /// A file is referenced for the first time. Its names within its file system, leaf first, each ended by NUL; empty if
    /// it has none.
    File {
        /// Which file.
        file: FileKey,
        /// The names.
        names: &'a [u8],
    },
    /// A process was forked.
    Fork(Fork<'a>),
    /// A process executed a program.
    Exec {
        /// Which.
        pid: i32,
        /// Its command name now.
        command: &'a [u8],
    },
    /// A process has exited.
    Exit(Exit<'a>),
}

/// File accesses that are no visible references, of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Its name: `O_DIRECT`, `dax`, `tmpfs` …
    pub name: &'static str,
    /// Bytes read and written so; `None` if only the use itself was seen.
    pub bytes: Option<u64>,
}

/// Follows further processes; may be used from any thread.
#[derive(Debug)]
pub struct Follower {
    processes: MapHandle,
}

/// The loaded programs. They stop when it is dropped.
pub struct Observer<'a> {
    ring: RingBuffer<'a>,
    links: Vec<Link>,
    object: Object,
    rung: Rung,
    dead: Rc<RefCell<Vec<i32>>>,
}

/// Whether the programs load here, and which rung they reach.
pub fn available() -> Result<Rung, Error> {
    Observer::open(|_| ()).map(|observer| observer.rung)
}

#[cfg(bpf_object)]
fn object() -> Result<&'static [u8], Error> {
    Ok(include_bytes!(concat!(env!("OUT_DIR"), "/job.bpf.o")))
}

#[cfg(not(bpf_object))]
fn object() -> Result<&'static [u8], Error> {
    Err(Error::NotBuilt(include_str!(concat!(env!("OUT_DIR"), "/bpf-missing.txt"))))
}

/// Program → tracepoint, and the best rung that needs it. The rungs below do without or with others.
const PROGRAMS: [(&str, &str, &[Rung]); 14] = {
    use Rung::{Filemap, Processes, Syscalls};
    const ALL: &[Rung] = &[Filemap, Syscalls, Processes];
    const FILES: &[Rung] = &[Filemap, Syscalls];
    const BEST: &[Rung] = &[Filemap];
    [
        ("process_forks", "sched_process_fork", ALL),
        ("process_executes", "sched_process_exec", ALL),
        ("thread_exits", "sched_process_exit", ALL),
        ("page_added", "mm_filemap_add_to_page_cache", FILES),
        ("pages_read", "mm_filemap_get_pages", BEST),
        ("page_faulted", "mm_filemap_fault", BEST),
        ("pages_mapped", "mm_filemap_map_pages", BEST),
        ("page_dirtied", "writeback_dirty_folio", BEST),
        ("call_returns", "sys_exit", &[Syscalls]),
        // Optional: see `OPTIONAL`.
        ("ext4_writes", "ext4_write_end", BEST),
        ("ext4_writes_delayed", "ext4_da_write_end", BEST),
        ("xfs_writes", "xfs_file_buffered_write", BEST),
        ("direct_begins", "iomap_dio_rw_begin", BEST),
        ("", "", &[]),
    ]
};

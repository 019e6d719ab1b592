//! The BPF programs: loading them, following processes, and their events.
//!
//! On Linux 6.12 and later the programs observe the page cache through the filemap tracepoints. On older x86-64 kernels they use the
//! results of system calls, without mapped files; elsewhere they only follow processes. See `bpf/references.bpf.h` for the events merged in
//! the kernel.

use std::cell::RefCell;
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, RingBuffer, RingBufferBuilder};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::btf::{self, Types};
use crate::capability::{Capability, Sets};
use crate::procfs;

/// Why the programs cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The binary contains no programs.
    #[error("this bursar was built without BPF programs: {0}")]
    NotBuilt(&'static str),
    /// The kernel has no BTF.
    #[error("this kernel has no /sys/kernel/btf/vmlinux; one built with CONFIG_DEBUG_INFO_BTF has")]
    NoBtf,
    /// Waiting for events failed.
    #[error("waiting for the BPF programs' events failed: {0}")]
    Wait(std::io::Error),
    /// The kernel refused.
    #[error(
        "the kernel refused bursar's BPF programs: {0}; they need CAP_BPF and CAP_PERFMON, and a kernel that is not locked down"
    )]
    Refused(libbpf_rs::Error),
    /// A process could not be followed.
    #[error("process {pid} cannot be followed: {source}")]
    Follow {
        /// Its PID.
        pid: i32,
        /// The cause.
        source: libbpf_rs::Error,
    },
    /// Reading the events failed.
    #[error("the events of the BPF programs could not be read: {0}")]
    Read(libbpf_rs::Error),
}

/// How many of the page cache references are visible, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Every read, write and fault, through the filemap tracepoints (Linux 6.12).
    Filemap,
    /// Reads and writes by system calls, without mapped files. Slows every system call of the machine slightly.
    Syscalls,
    /// Processes only.
    Processes,
}

/// How a page was referenced, as in `model`.
pub use model::ReferenceKind;

pub use model::OwnPid;

/// A file: an inode of a device, with a generation, because inode numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Inode number.
    pub inode: u64,
    /// The superblock's device as the kernel stores it: major << 20 | minor. For btrfs and overlayfs, `stat` shows other numbers.
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
    /// Its PID in its own PID namespace.
    pub own: OwnPid,
    /// Start, CLOCK_MONOTONIC nanoseconds.
    pub start_ns: u64,
    /// Start, CLOCK_BOOTTIME nanoseconds.
    pub start_boottime_ns: u64,
    /// Command name; still the parent's.
    pub command: &'a [u8],
}

/// Usage of a process when its last thread exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit<'a> {
    /// The process.
    pub pid: i32,
    /// Its parent at that moment.
    pub parent: i32,
    /// Its PID in its own PID namespace.
    pub own: OwnPid,
    /// Its PID in the initial namespace.
    key: u32,
    /// The status as in `wait`: signal in the low 7 bits, exit status in bits 8 to 15.
    pub code: u32,
    /// When, CLOCK_MONOTONIC nanoseconds.
    pub t_ns: u64,
    /// Start, CLOCK_MONOTONIC nanoseconds.
    pub start_ns: u64,
    /// Start, CLOCK_BOOTTIME nanoseconds.
    pub start_boottime_ns: u64,
    /// Peak RSS in pages as in `wait4`, including the time before an exec.
    pub max_rss_pages: u64,
    /// User time by ticks, nanoseconds; may lack threads that were still exiting, see [`Threads`].
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
    /// Time waited for block I/O, nanoseconds; `None` without delay accounting.
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

/// An event of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Pages of a file were referenced, or removed from the page cache.
    Reference {
        /// The file.
        file: FileKey,
        /// CLOCK_MONOTONIC nanoseconds. Events of different tasks may be out of order by some pages, see `bpf/references.bpf.h`.
        t_ns: u64,
        /// First page.
        first: u64,
        /// Number of pages, at least 1.
        pages: u32,
        /// The kind of reference.
        kind: ReferenceKind,
    },
    /// The job brought pages of a file into the page cache.
    Added {
        /// The file.
        file: FileKey,
        /// First page.
        first: u64,
        /// Number of pages.
        pages: u32,
    },
    /// The first reference to a file. Its path components within its file system, leaf first, each ended by NUL; empty if it has none.
    File {
        /// The file.
        file: FileKey,
        /// The names.
        names: &'a [u8],
    },
    /// A process was forked.
    Fork(Fork<'a>),
    /// A process executed a program.
    Exec {
        /// Its PID.
        pid: i32,
        /// Its new command name.
        command: &'a [u8],
    },
    /// A process has exited.
    Exit(Exit<'a>),
}

/// File accesses of one kind that are not visible as references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Its name: `O_DIRECT`, `dax`, `tmpfs` …
    pub name: &'static str,
    /// Bytes read and written this way; `None` if only their occurrence is known.
    pub bytes: Option<u64>,
}

/// Adds processes to be followed; may be used from any thread.
#[derive(Debug)]
pub struct Follower {
    processes: MapHandle,
    /// For a PID namespace of our own: the processes to be followed, by our PIDs.
    wanted: Option<MapHandle>,
    waker: Arc<OwnedFd>,
}

/// The loaded and attached programs. They report nothing until a process is followed, and stop when this is dropped.
pub struct Programs {
    /// `None` while they are detached.
    links: Vec<Link>,
    /// The programs in use.
    serving: Vec<&'static str>,
    object: Object,
    rung: Rung,
    waker: Arc<OwnedFd>,
}

/// The programs and the reader of their events.
pub struct Observer<'a> {
    ring: RingBuffer<'a>,
    programs: Programs,
    /// Our PID and the kernel's.
    exited: Rc<RefCell<Vec<(i32, u32)>>>,
}

/// Whether this process has the capabilities that the programs need.
pub fn may_load() -> bool {
    let effective = Sets::own().effective;
    effective.has(Capability::SysAdmin) || effective.has(Capability::Bpf) && effective.has(Capability::PerfMon)
}

/// Whether the system call itself is refused, independent of capabilities, as by a container's seccomp filter.
pub fn is_refused() -> bool {
    const BPF_PROG_GET_NEXT_ID: libc::c_int = 11;
    let mut attributes = [u64::MAX; 2];
    // SAFETY: the call accesses only the array, within its length. There is no program after the last one: ENOENT.
    let status =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_GET_NEXT_ID, &raw mut attributes, size_of_val(&attributes)) };
    let refusals = [libc::EPERM, libc::EACCES, libc::ENOSYS];
    status < 0 && std::io::Error::last_os_error().raw_os_error().is_some_and(|error| refusals.contains(&error))
}

/// Whether the programs load here, and on which rung.
pub fn available() -> Result<Rung, Error> {
    Programs::load(Rung::Filemap).map(|programs| programs.rung)
}

#[cfg(bpf_object)]
fn object() -> Result<&'static [u8], Error> {
    Ok(include_bytes!(concat!(env!("OUT_DIR"), "/job.bpf.o")))
}

#[cfg(not(bpf_object))]
fn object() -> Result<&'static [u8], Error> {
    Err(Error::NotBuilt(include_str!(concat!(env!("OUT_DIR"), "/bpf-missing.txt"))))
}

/// A program, the tracepoint it needs, the rungs that use it, and whether they work without it.
struct Program {
    name: &'static str,
    tracepoint: &'static str,
    rungs: &'static [Rung],
    optional: bool,
}

const PROGRAMS: [Program; 14] = {
    use Rung::{Filemap, Processes, Syscalls};
    const fn needed(name: &'static str, tracepoint: &'static str, rungs: &'static [Rung]) -> Program {
        Program { name, tracepoint, rungs, optional: false }
    }
    const fn optional(name: &'static str, tracepoint: &'static str) -> Program {
        Program { name, tracepoint, rungs: &[Filemap], optional: true }
    }
    [
        needed("process_forks", "sched_process_fork", &[Filemap, Syscalls, Processes]),
        needed("process_executes", "sched_process_exec", &[Filemap, Syscalls, Processes]),
        needed("thread_exits", "sched_process_exit", &[Filemap, Syscalls, Processes]),
        needed("page_added", "mm_filemap_add_to_page_cache", &[Filemap, Syscalls]),
        needed("pages_read", "mm_filemap_get_pages", &[Filemap]),
        needed("page_faulted", "mm_filemap_fault", &[Filemap]),
        needed("pages_mapped", "mm_filemap_map_pages", &[Filemap]),
        needed("page_dirtied", "writeback_dirty_folio", &[Filemap]),
        needed("call_returns", "sys_exit", &[Syscalls]),
        optional("page_removed", "mm_filemap_delete_from_page_cache"),
        optional("ext4_writes", "ext4_write_end"),
        optional("ext4_writes_delayed", "ext4_da_write_end"),
        optional("xfs_writes", "xfs_file_buffered_write"),
        optional("direct_begins", "iomap_dio_rw_begin"),
    ]
};

/// Names of accesses that are not visible, by `enum class` of `bpf/job.h`.
const CLASSES: [&str; 17] = [
    "page cache",
    "O_DIRECT",
    "dax",
    "tmpfs",
    "ramfs",
    "hugetlbfs",
    "nfs",
    "cifs",
    "9p",
    "fuse",
    "ceph",
    "afs",
    "lustre",
    "gpfs",
    "zfs",
    "beegfs",
    "32-bit system calls",
];

impl Programs {
    /// Loads and attaches the programs on the best possible rung, starting with `best`. Takes some 25 ms.
    pub fn load(best: Rung) -> Result<Programs, Error> {
        let bytes = object()?;
        let kernel = Types::of_kernel().map_err(|_| Error::NoBtf)?;
        let there = tracepoints_there(&kernel);
        let mut refused = None;
        for rung in [Rung::Filemap, Rung::Syscalls, Rung::Processes] {
            let needs_missing = PROGRAMS
                .iter()
                .zip(&there)
                .any(|(program, there)| program.rungs.contains(&rung) && !program.optional && !there);
            if rung < best || needs_missing {
                continue;
            }
            let programs = PROGRAMS.iter().zip(&there);
            let serving = programs.filter(|(program, there)| **there && program.rungs.contains(&rung));
            let serving: Vec<_> = serving.map(|(program, _)| program.name).collect();
            let loaded = load(bytes, &kernel, rung, &serving);
            match loaded.and_then(|mut object| Ok((attach(&mut object, &serving)?, object))) {
                Ok((links, object)) => {
                    let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(|errno| Error::Wait(errno.into()))?);
                    return Ok(Programs { links, serving, object, rung, waker });
                }
                Err(error) => {
                    tracing::debug!("rung {rung:?}: {error}");
                    refused = Some(error);
                }
            }
        }
        Err(refused.map_or(Error::NoBtf, Error::Refused))
    }

    /// A handle that adds processes.
    pub fn follower(&self) -> Result<Follower, Error> {
        let wanted = procfs::inner_pid_namespace().map(|_| map(&self.object, "wanted")).transpose()?;
        Ok(Follower { processes: map(&self.object, "processes")?, wanted, waker: Arc::clone(&self.waker) })
    }

    /// Begins to read events. `sink` is called only from [`Observer::poll`] and [`Observer::finish`].
    pub fn observe<'a>(self, mut sink: impl FnMut(Event<'_>) + 'a) -> Result<Observer<'a>, Error> {
        let exited = Rc::new(RefCell::new(Vec::new()));
        let gone = Rc::clone(&exited);
        let mut builder = RingBufferBuilder::new();
        let events = map(&self.object, "events")?;
        builder
            .add(&events, move |bytes| {
                if let Some(event) = Event::read(bytes) {
                    if let Event::Exit(exit) = event {
                        gone.borrow_mut().push((exit.pid, exit.key));
                    }
                    sink(event);
                }
                0
            })
            .map_err(Error::Read)?;
        let ring = builder.build().map_err(Error::Read)?;
        Ok(Observer { ring, programs: self, exited })
    }
}

impl Observer<'_> {
    /// The rung in use.
    pub fn rung(&self) -> Rung {
        self.programs.rung
    }

    /// Waits for many events, a wake-up or the timeout, then passes on all events. Returns the sums over the threads of processes whose
    /// exit the previous poll reported: by now even threads that exited at the same time have been added.
    pub fn poll(&self, timeout: Duration) -> Result<Vec<(i32, Threads)>, Error> {
        let exited = self.exited.take();
        // SAFETY: the descriptor belongs to the ring, which lives as long as self.
        let ring = unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) };
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let mut ready = [PollFd::new(&ring, PollFlags::IN), PollFd::new(&*self.programs.waker, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => self.ring.consume().map_err(Error::Read)?,
            Err(errno) => return Err(Error::Wait(errno.into())),
        }
        self.collect(exited)
    }

    fn collect(&self, exited: Vec<(i32, u32)>) -> Result<Vec<(i32, Threads)>, Error> {
        let mut sums = Vec::new();
        if exited.is_empty() {
            return Ok(sums);
        }
        let processes = map(&self.programs.object, "processes")?;
        for (pid, key) in exited {
            let key = key.to_ne_bytes();
            let Ok(Some(value)) = processes.lookup(&key, MapFlags::ANY) else { continue };
            let threads = Threads::read(&value);
            // Unless the PID was reused meanwhile.
            if threads.dead {
                sums.push((pid, threads));
                let _ = processes.delete(&key);
            }
        }
        Ok(sums)
    }

    /// Detaches the programs, so that they cost nothing, and stops following all processes. Unread events are lost.
    pub fn pause(&mut self) -> Result<(), Error> {
        self.programs.links.clear();
        for name in ["processes", "tasks", "wanted"] {
            let map = map(&self.programs.object, name)?;
            for key in map.keys() {
                let _ = map.delete(&key);
            }
        }
        Ok(())
    }

    /// Attaches the programs again, if they are detached; processes must be followed anew. Takes 6 to 17 ms, of which 1.5 ms are CPU time.
    pub fn resume(&mut self) -> Result<(), Error> {
        let Programs { links, serving, object, .. } = &mut self.programs;
        if links.is_empty() {
            *links = attach(object, serving).map_err(Error::Refused)?;
        }
        Ok(())
    }

    /// Stops the programs and passes on the remaining events.
    pub fn finish(mut self) -> Result<Remains, Error> {
        self.programs.links.clear();
        self.ring.consume().map_err(Error::Read)?;
        let exited = self.collect(self.exited.take())?;
        let tasks = map(&self.programs.object, "tasks")?;
        let (mut added, mut references) = (Vec::new(), Vec::new());
        for value in tasks.keys().filter_map(|key| tasks.lookup(&key, MapFlags::ANY).ok().flatten()) {
            let mut value = Fields(&value);
            let (inode, first, device, generation) = (value.u64(), value.u64(), value.u32(), value.u32());
            let pages = value.u64() as u32;
            if pages > 0 {
                added.push(Event::Added { file: FileKey { inode, device, generation }, first, pages });
            }
            let (inode, first, device, generation) = (value.u64(), value.u64(), value.u32(), value.u32());
            let (t_ns, pages, kind) = (value.u64(), value.u32(), reference_kind(value.u32()));
            if pages > 0 {
                let file = FileKey { inode, device, generation };
                references.push((t_ns, Event::Reference { file, t_ns, first, pages, kind }));
            }
        }
        references.sort_by_key(|(t_ns, _)| *t_ns);
        added.extend(references.into_iter().map(|(_, reference)| reference));
        let hidden_map = map(&self.programs.object, "hidden")?;
        let mut hidden = Vec::new();
        for (class, name) in CLASSES.iter().enumerate().skip(1) {
            let value = hidden_map.lookup(&(class as u32).to_ne_bytes(), MapFlags::ANY).map_err(Error::Read)?;
            let value = value.unwrap_or_default();
            let mut value = Fields(&value);
            let (uses, bytes, unknown) = (value.u64(), value.u64(), value.u64());
            if uses > 0 {
                hidden.push(Hidden { name, bytes: (unknown == 0).then_some(bytes) });
            }
        }
        Ok(Remains { lost_events: self.lost_events()?, hidden, exited, untold: added })
    }

    /// Number of events lost so far because the ring was full.
    pub fn lost_events(&self) -> Result<u64, Error> {
        let lost =
            map(&self.programs.object, "lost")?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(Error::Read)?;
        Ok(Fields(&lost.unwrap_or_default()).u64())
    }
}

/// The remaining results after the programs have stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Number of lost events.
    pub lost_events: u64,
    /// Accesses that were not visible.
    pub hidden: Vec<Hidden>,
    /// Sums of the processes that exited last.
    pub exited: Vec<(i32, Threads)>,
    /// Threads' sums of tasks that still live.
    pub untold: Vec<Event<'static>>,
}

impl Follower {
    /// Ends the current wait of [`Observer::poll`], and all later ones.
    pub fn wake(&self) {
        let _ = rustix::io::write(&*self.waker, &1u64.to_ne_bytes());
    }

    /// Adds a process to the job, with all its later forks.
    pub fn follow(&self, pid: i32) -> Result<(), Error> {
        let fresh = [0u8; PROCESS_BYTES];
        let (map, fresh) = match &self.wanted {
            Some(wanted) => (wanted, &fresh[..4]),
            None => (&self.processes, &fresh[..]),
        };
        map.update(&pid.to_ne_bytes(), fresh, MapFlags::NO_EXIST)
            .or_else(|error| if error.kind() == libbpf_rs::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
            .map_err(|source| Error::Follow { pid, source })
    }

    /// The living processes of the job.
    pub fn living(&self) -> Vec<i32> {
        let pid = |key: Vec<u8>| {
            let value = self.processes.lookup(&key, MapFlags::ANY).ok().flatten()?;
            let own = Fields(value.get(PID_AT..).unwrap_or_default()).u32();
            let pid = if own == 0 { Fields(&key).u32() } else { own };
            (!Threads::read(&value).dead).then_some(pid as i32)
        };
        let followed = self.processes.keys().filter_map(pid);
        let wanted = self.wanted.iter().flat_map(|wanted| wanted.keys().map(|key| Fields(&key).u32() as i32));
        followed.chain(wanted).collect()
    }
}

impl fmt::Debug for Observer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("rung", &self.programs.rung).finish_non_exhaustive()
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::Filemap => "filemap tracepoints",
            Rung::Syscalls => "system call tracepoint",
            Rung::Processes => "process tracepoints",
        })
    }
}

/// `struct process` of `bpf/members.bpf.h`.
const PROCESS_BYTES: usize = 80;
/// The offset of our PID in it.
const PID_AT: usize = 72;

impl Threads {
    fn read(bytes: &[u8]) -> Threads {
        let mut value = Fields(bytes);
        let delay = value.u64();
        Threads {
            life_ns: value.u64(),
            user_ns: value.u64(),
            system_ns: value.u64(),
            runtime_ns: value.u64(),
            minor_faults: value.u64(),
            major_faults: value.u64(),
            delay_ns: (value.u32() != 0).then_some(delay),
            dead: value.u32() != 0,
        }
    }
}

impl<'a> Event<'a> {
    /// `None` for an unknown type, which only another version of the programs could send.
    fn read(bytes: &'a [u8]) -> Option<Event<'a>> {
        let mut event = Fields(bytes);
        let kind = event.u32();
        Some(match kind & 0xff {
            1 => {
                let (device, inode, t_ns, first) = (event.u32(), event.u64(), event.u64(), event.u64());
                let (pages, generation) = (event.u32(), event.u32());
                let kind = reference_kind(kind >> 8);
                Event::Reference { file: FileKey { inode, device, generation }, t_ns, first, pages, kind }
            }
            2 => {
                let (device, inode, first) = (event.u32(), event.u64(), event.u64());
                let (pages, generation) = (event.u32(), event.u32());
                Event::Added { file: FileKey { inode, device, generation }, first, pages }
            }
            3 => {
                let (device, inode, generation) = (event.u32(), event.u64(), event.u32());
                let length = event.u32() as usize;
                Event::File { file: FileKey { inode, device, generation }, names: event.0.get(..length)? }
            }
            4 => {
                let (pid, parent) = (event.u32() as i32, event.u32() as i32);
                let (own, _) = (event.own_pid(), event.u32());
                let (start_ns, start_boottime_ns) = (event.u64(), event.u64());
                Event::Fork(Fork { pid, parent, own, start_ns, start_boottime_ns, command: event.name() })
            }
            5 => Event::Exec { pid: event.u32() as i32, command: event.name() },
            6 => Event::Exit(Exit {
                pid: event.u32() as i32,
                parent: event.u32() as i32,
                code: event.u32(),
                own: event.own_pid(),
                key: event.u32(),
                t_ns: (event.u32(), event.u64()).1,
                start_ns: event.u64(),
                start_boottime_ns: event.u64(),
                max_rss_pages: event.u64(),
                user_ns: event.u64(),
                system_ns: event.u64(),
                runtime_ns: event.u64(),
                minor_faults: event.u64(),
                major_faults: event.u64(),
                command: event.name(),
            }),
            _ => return None,
        })
    }
}

fn reference_kind(kind: u32) -> ReferenceKind {
    match kind {
        0 => ReferenceKind::Read,
        1 => ReferenceKind::Write,
        3 => ReferenceKind::Removal,
        _ => ReferenceKind::Fault,
    }
}

/// Reads consecutive fields of a C structure; fields beyond its end read as 0.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((chunk, rest)) => {
                self.0 = rest;
                *chunk
            }
            None => [0; N],
        }
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    fn own_pid(&mut self) -> OwnPid {
        OwnPid { pid: self.u32() as i32, namespace: Some(self.u32()) }
    }

    /// A command name: up to 16 bytes, ended by NUL.
    fn name(&self) -> &'a [u8] {
        let name = self.0.get(..16).unwrap_or(self.0);
        name.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// For each program, whether its tracepoint exists.
fn tracepoints_there(kernel: &Types) -> Vec<bool> {
    let names = PROGRAMS.each_ref().map(|program| program.tracepoint);
    kernel.tracepoints(&names).into_iter().zip(names).map(|(is_there, name)| is_there || in_module(name)).collect()
}

/// Whether the tracepoint is in a loaded module: its name begins with the module's.
fn in_module(tracepoint: &str) -> bool {
    let module = tracepoint.split('_').next().unwrap_or_default();
    std::path::Path::new("/sys/kernel/btf").join(module).exists()
}

fn load(bytes: &[u8], kernel: &Types, rung: Rung, serving: &[&str]) -> Result<Object, libbpf_rs::Error> {
    let mut opened = btf::open(bytes, kernel)?;
    let open = opened.object();
    let wanted = |name: &str| serving.contains(&name);
    for mut program in open.progs_mut() {
        let wanted = program.name().to_str().is_some_and(wanted);
        program.set_autoload(wanted);
    }
    for mut map in open.maps_mut() {
        if map.name() == ".rodata.settings" {
            let settings = [
                wanted("ext4_writes") && wanted("ext4_writes_delayed"),
                wanted("xfs_writes"),
                wanted("direct_begins") || rung == Rung::Syscalls,
            ];
            let page_shift = procfs::page_bytes().trailing_zeros() as u8;
            let settings = settings.map(u8::from).into_iter().chain([page_shift]);
            let namespace = procfs::inner_pid_namespace().unwrap_or(0).to_ne_bytes();
            let settings = settings.chain(namespace);
            if let Some(value) = map.initial_value_mut() {
                value.iter_mut().zip(settings).for_each(|(byte, setting)| *byte = setting);
            }
        }
    }
    opened.load()
}

fn attach(object: &mut Object, serving: &[&str]) -> Result<Vec<Link>, libbpf_rs::Error> {
    let programs = object.progs_mut();
    let serving = programs.filter(|program| program.name().to_str().is_some_and(|name| serving.contains(&name)));
    serving.map(|program| program.attach()).collect()
}

pub(crate) fn map(object: &Object, name: &str) -> Result<MapHandle, Error> {
    let map = object.maps().find(|map| map.name() == name).expect("the program's map of that name");
    MapHandle::try_from(&map).map_err(Error::Read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_ends_at_nul() {
        let mut bytes = vec![5, 0, 0, 0, 7, 0, 0, 0];
        bytes.extend_from_slice(b"make\0garbage....");
        assert_eq!(Event::read(&bytes), Some(Event::Exec { pid: 7, command: b"make" }));
    }

    #[test]
    fn a_cut_or_unknown_event_causes_no_panic() {
        assert_eq!(Event::read(&[]), None);
        assert_eq!(Event::read(&[99, 0, 0, 0]), None);
        assert_eq!(Event::read(&[3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, b'a']), None);
    }
}

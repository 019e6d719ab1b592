//! Reads Accessed bits from the page tables of a process by BPF programs (`bpf/pages.bpf.c`). x86-64, Linux 6.1.

use std::io::Read;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use libbpf_rs::{AsRawLibbpf, Iter, Link, MapCore, MapHandle, Object, ProgramInput, ProgramMut};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::Frames;
use crate::btf::{self, Types};
use crate::{bpf, file, procfs};

/// `MOST_ADDRESSES` of `bpf/pages.h`.
pub const MOST_ADDRESSES: usize = 32768;
/// Size that one PMD entry maps.
pub const REGION_BYTES: u64 = 2 << 20;
/// End of user addresses, with four and with five levels of page tables.
const SPACE_END: [(u32, u64); 2] = [(4, 1 << 47), (5, 1 << 56)];

/// The programs that report swap-ins, and their tracepoints.
const FAULTS: [(&str, &str); 2] = [("user_faults", "page_fault_user"), ("kernel_faults", "page_fault_kernel")];
/// The program that reports DAMON's results, and its tracepoint.
const GUESTS: (&str, &str) = ("guest_accesses", "damon_aggregated");

/// Why page tables cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The binary contains no programs.
    #[error("this bursar was built without BPF programs: {0}")]
    NotBuilt(&'static str),
    /// Not an x86-64 processor.
    #[error("page tables are read on x86-64 only")]
    Processor,
    /// The kernel cannot run an iterator over one task.
    #[error("Linux {0} cannot iterate over the memory of one process by BPF; Linux 6.1 can")]
    OldKernel(String),
    /// The kernel has no BTF.
    #[error("this kernel has no /sys/kernel/btf/vmlinux; one built with CONFIG_DEBUG_INFO_BTF has")]
    NoBtf,
    /// The kernel refused.
    #[error("the kernel refused the BPF program that reads page tables: {0}; it needs CAP_BPF and CAP_PERFMON")]
    Refused(libbpf_rs::Error),
    /// The direct map was not found.
    #[error("page tables were not found in this kernel's memory ({0}), as where that is encrypted")]
    NotFound(&'static str),
    /// The programs' results cannot be read.
    #[error(transparent)]
    Bpf(#[from] bpf::Error),
    /// A scan failed.
    #[error("page tables could not be read: {0}")]
    Look(std::io::Error),
}

/// Reads page tables.
pub struct Tables {
    object: Object,
    window: NonNull<Window>,
    end: u64,
}

/// A process whose tables are read.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    task: u64,
    start: u64,
}

/// The state of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State(u8);

/// 2 MiB of addresses with any page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first address.
    pub start: u64,
    /// [`State::is_huge`] if one entry maps all of it; else its pages' states are not included.
    pub state: State,
}

/// `struct window` of `bpf/pages.h`.
#[repr(C)]
struct Window {
    base: u64,
    memory: u64,
    levels: u32,
    count: u32,
    task: u64,
    start: u64,
    cursor: u64,
    end: u64,
    frame: u64,
    space: u64,
    accessed: u64,
    level: u64,
    lost: u64,
    targets: u64,
    thread: u32,
    pid_namespace: u32,
    addresses: [u64; MOST_ADDRESSES],
    states: [u8; MOST_ADDRESSES],
    table: [u64; 512],
}

impl State {
    /// Whether a page is mapped here.
    pub fn is_mapped(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether it was accessed since its bit was last cleared.
    pub fn is_accessed(self) -> bool {
        self.0 & 2 != 0
    }

    /// Whether one entry, with one Accessed bit, maps 2 MiB.
    pub fn is_huge(self) -> bool {
        self.0 & 4 != 0
    }

    /// The same state with another Accessed bit.
    pub fn with_accessed(self, is_accessed: bool) -> State {
        State(self.0 & !2 | u8::from(is_accessed) << 1)
    }

    /// Whether it is swapped out or being migrated.
    pub fn is_away(self) -> bool {
        self.0 & 8 != 0
    }
}

/// Whether page tables can be read here.
///
/// # Errors
/// The reason.
pub fn available() -> Result<(), Error> {
    Tables::open().map(|_| ())
}

#[cfg(bpf_object)]
fn object() -> Result<&'static [u8], Error> {
    Ok(include_bytes!(concat!(env!("OUT_DIR"), "/pages.bpf.o")))
}

#[cfg(not(bpf_object))]
fn object() -> Result<&'static [u8], Error> {
    Err(Error::NotBuilt(include_str!(concat!(env!("OUT_DIR"), "/bpf-missing.txt"))))
}

impl Tables {
    /// Loads the programs and finds the kernel's direct map. Takes some milliseconds.
    ///
    /// # Errors
    /// The reason why page tables cannot be read here.
    pub fn open() -> Result<Tables, Error> {
        if !cfg!(target_arch = "x86_64") {
            return Err(Error::Processor);
        }
        let bytes = object()?;
        if procfs::kernel_version() < (6, 1) {
            return Err(Error::OldKernel(procfs::kernel_release()));
        }
        let kernel = Types::of_kernel().map_err(|_| Error::NoBtf)?;
        let mut opened = btf::open(bytes, &kernel).map_err(Error::Refused)?;
        let optional = [FAULTS[0], FAULTS[1], GUESTS];
        let there = kernel.tracepoints(&optional.map(|(_, tracepoint)| tracepoint));
        for mut program in opened.object().progs_mut() {
            let at = optional.iter().position(|(name, _)| program.name() == *name);
            program.set_autoload(at.is_none_or(|at| there[at]));
        }
        let object = opened.load().map_err(Error::Refused)?;
        let window = map_window(&object)?;
        let mut tables = Tables { object, window, end: 0 };
        tables.window_mut().pid_namespace = procfs::inner_pid_namespace().unwrap_or(0);
        tables.end = tables.find_base()?;
        Ok(tables)
    }

    /// Prepares to read the tables of the process that this thread belongs to.
    ///
    /// # Errors
    /// [`Error::Refused`]; [`Error::Look`] if the thread has ended.
    pub fn target(&mut self, thread: i32) -> Result<Target, Error> {
        let mut of = libbpf_sys::bpf_iter_link_info::default();
        of.task.tid = thread as u32;
        let options = libbpf_sys::bpf_iter_attach_opts {
            sz: size_of::<libbpf_sys::bpf_iter_attach_opts>() as libbpf_sys::size_t,
            link_info: &raw mut of,
            link_info_len: size_of_val(&of) as u32,
            ..Default::default()
        };
        let program = program(&self.object, "find_task").as_libbpf_object();
        // SAFETY: the program is loaded and outlives the call, as do the options.
        let link = unsafe { libbpf_sys::bpf_program__attach_iter(program.as_ptr(), &raw const options) };
        let link = NonNull::new(link)
            .ok_or_else(|| Error::Refused(libbpf_rs::Error::from(std::io::Error::last_os_error())))?;
        // SAFETY: a new link that only this code owns.
        let link: Link = unsafe { Link::from_ptr(link) };
        let window = self.window_mut();
        (window.task, window.start) = (0, 0);
        let mut iterator = Iter::new(&link).map_err(|error| Error::Look(std::io::Error::other(error)))?;
        let _ = iterator.read(&mut [0u8; 8]);
        let window = self.window_mut();
        match window.task {
            0 => Err(Error::Look(std::io::Error::from_raw_os_error(libc::ESRCH))),
            task => Ok(Target { task, start: window.start }),
        }
    }

    /// Scans up to [`MOST_ADDRESSES`] addresses, best in rising order. Returns a number that identifies the address space, which changes at
    /// an exec; `None` if the thread has no address space any more.
    ///
    /// # Errors
    /// [`Error::Look`].
    pub fn look(&mut self, target: &Target, addresses: &[u64], states: &mut Vec<State>) -> Result<Option<u64>, Error> {
        let count = addresses.len().min(MOST_ADDRESSES);
        let window = self.window_mut();
        window.addresses[..count].copy_from_slice(&addresses[..count]);
        window.count = count as u32;
        self.run(target, "look_at_pages")?;
        states.clear();
        let window = self.window_mut();
        states.extend(window.states[..count].iter().map(|state| State(*state)));
        Ok((window.space != 0).then_some(window.space))
    }

    /// The number that identifies a target's address space, as in [`Tables::look`]; `None` if it has none any more.
    ///
    /// # Errors
    /// [`Error::Look`].
    pub fn space(&mut self, target: &Target) -> Result<Option<u64>, Error> {
        self.look(target, &[], &mut Vec::new())
    }

    /// All regions of 2 MiB with mapped pages, by address.
    ///
    /// # Errors
    /// [`Error::Look`].
    pub fn regions(&mut self, target: &Target) -> Result<Vec<Region>, Error> {
        let mut found = Vec::new();
        let mut from = 0;
        while from < self.end {
            let end = self.end;
            let window = self.window_mut();
            (window.cursor, window.end, window.count) = (from, end, 0);
            self.run(target, "list_regions")?;
            let window = self.window_mut();
            // No progress: the process is gone.
            if window.space == 0 || window.cursor <= from {
                break;
            }
            let listed = (window.count as usize).min(MOST_ADDRESSES);
            let listed = window.addresses[..listed].iter().zip(&window.states);
            found.extend(listed.map(|(start, state)| Region { start: *start, state: State(*state) }));
            from = window.cursor;
        }
        Ok(found)
    }

    /// Number of 4 KiB pages of the whole process accessed since their bits were cleared; 0 if it is gone.
    ///
    /// # Errors
    /// [`Error::Look`].
    pub fn accessed(&mut self, target: &Target) -> Result<u64, Error> {
        let end = self.end;
        let window = self.window_mut();
        (window.cursor, window.end, window.accessed) = (0, end, 0);
        while self.window_mut().cursor < end {
            let from = self.window_mut().cursor;
            self.run(target, "count_accessed")?;
            if self.window_mut().cursor <= from {
                break;
            }
        }
        Ok(self.window_mut().accessed)
    }

    /// Samples swap-ins: of each 2^level neighbouring pages one is reported, see [`super::Returns`]: the one that has, for each of the
    /// `level` lowest bits of its number n, bit i equal to bit 0 of SplitMix64's finalizer of (n >> (i + 1)) ^ (i << 58).
    pub fn tell_one_of(&mut self, level: u32) {
        self.window_mut().level = level.into();
    }

    /// Number of swap-ins lost so far because the ring was full.
    pub fn lost(&self) -> u64 {
        // SAFETY: mapped as long as self; a word that the programs increment meanwhile.
        unsafe { (&raw const (*self.window.as_ptr()).lost).read_volatile() }
    }

    /// One of the programs' maps.
    pub(super) fn map(&self, name: &str) -> Result<MapHandle, Error> {
        Ok(bpf::map(&self.object, name)?)
    }

    /// Attaches the programs that report swap-ins.
    pub(super) fn attach_to_faults(&self) -> Result<Vec<Link>, Error> {
        FAULTS.iter().map(|(name, _)| program(&self.object, name).attach().map_err(Error::Refused)).collect()
    }

    /// Attaches the program that reports DAMON's results.
    pub(super) fn attach_to_damon(&self) -> Result<Link, Error> {
        program(&self.object, GUESTS.0).attach().map_err(Error::Refused)
    }

    /// Selects the reported DAMON results: those of this kdamond, for the targets of this mask, see [`super::Accesses`].
    pub fn tell_of(&mut self, thread: i32, targets: u64) {
        let window = self.window_mut();
        (window.thread, window.targets) = (thread as u32, targets);
    }

    /// Walks to a page of our own whose frame is known. Returns the end of user addresses.
    fn find_base(&mut self) -> Result<u64, Error> {
        let memory = end_of_memory().ok_or(Error::NotFound("/proc/iomem does not show where memory ends"))?;
        let own = [1u8; 1];
        let address = std::hint::black_box(own.as_ptr()) as u64;
        let frame = Frames::of(std::process::id() as i32).ok().and_then(|frames| frames.at(address));
        let frame = frame
            .filter(|frame| frame.number != 0)
            .ok_or(Error::NotFound("/proc/self/pagemap shows no page frames"))?;
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let target = self.target(thread)?;
        for (levels, end) in SPACE_END {
            let window = self.window_mut();
            (window.base, window.memory, window.levels) = (0, memory, levels);
            (window.cursor, window.frame) = (address, frame.number);
            self.run(&target, "find_base")?;
            if self.window_mut().base != 0 {
                return Ok(end);
            }
        }
        Err(Error::NotFound("no place of theirs leads to a page of our own"))
    }

    fn run(&mut self, target: &Target, name: &str) -> Result<(), Error> {
        let window = self.window_mut();
        (window.task, window.start) = (target.task, target.start);
        let ran = program(&self.object, name).test_run(ProgramInput::default());
        ran.map(|_| ()).map_err(|error| Error::Look(std::io::Error::other(error)))
    }

    fn window_mut(&mut self) -> &mut Window {
        // SAFETY: mapped as long as self. Besides this code only the programs write it: within `run`, and the swap-in counter, which is
        // only read here.
        unsafe { self.window.as_mut() }
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // SAFETY: mapped by `map_window`, and not used after this.
        let _ = unsafe { munmap(self.window.as_ptr().cast(), size_of::<Window>()) };
    }
}

fn program<'a>(object: &'a Object, name: &str) -> ProgramMut<'a> {
    object.progs_mut().find(|program| program.name() == name).expect("the program of that name")
}

/// Maps the programs' only variable.
fn map_window(object: &Object) -> Result<NonNull<Window>, Error> {
    let map = object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss")).expect("the program's variable");
    // SAFETY: a new mapping of a map with the size and layout of its only variable.
    let at = unsafe {
        mmap(
            std::ptr::null_mut(),
            size_of::<Window>(),
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            map.as_fd(),
            0,
        )
    };
    let at = at.map_err(|errno| Error::Look(errno.into()))?;
    Ok(NonNull::new(at.cast()).expect("mappings are never at 0"))
}

/// The end of the last memory range; `None` without the right to know it.
fn end_of_memory() -> Option<u64> {
    let text = file::read_if_present(std::path::Path::new("/proc/iomem"))?;
    let ends = text.lines().filter(|line| line.ends_with(": System RAM")).filter_map(|line| {
        let (_, rest) = line.trim_start().split_once('-')?;
        u64::from_str_radix(rest.split(' ').next()?, 16).ok()
    });
    ends.max().filter(|end| *end != 0).map(|end| end + 1)
}

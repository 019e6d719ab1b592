//! `/proc` of processes and of the machine.
//!
//! `stat` and `status` are read several times a second for hundreds of processes, so they are parsed here without allocating more than the
//! text; the `procfs` crate reads the rest.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use model::BytesMoved;
use rustix::time::{ClockId, clock_gettime};

use crate::{Error, file};

/// `/proc/PID/stat`. Times are in clock ticks ([`ticks_per_second`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Process or thread id.
    pub pid: i32,
    /// Command name, at most 15 bytes.
    pub comm: String,
    /// `R`, `S`, `D`, `Z` …
    pub state: char,
    /// Parent.
    pub ppid: i32,
    /// Whether it is a kernel thread, which has no memory of its own.
    pub is_kernel: bool,
    /// Faults without I/O.
    pub minflt: u64,
    /// Faults with I/O.
    pub majflt: u64,
    /// User time in ticks.
    pub utime: u64,
    /// System time in ticks.
    pub stime: u64,
    /// User and system time of reaped children and their descendants, in ticks.
    pub reaped_time: u64,
    /// The user time of these.
    pub reaped_user_time: u64,
    /// Page faults of reaped children and their descendants. Every program has at least one.
    pub reaped_faults: u64,
    /// Threads.
    pub num_threads: u64,
    /// Start in ticks since boot ([`start_seconds`]).
    pub starttime: u64,
    /// Resident set in pages; may lag slightly (proc(5)).
    pub rss_pages: u64,
    /// The start address of the stack: two processes share it if one is a fork of the other and neither has called exec since. 0 where it
    /// is not readable.
    pub stack_start: u64,
    /// Time that this one thread waited for block I/O, in ticks. 0 while delay accounting is off.
    pub blkio_delay_ticks: Option<u64>,
}

/// `/proc/PID/status`, in bytes except `threads` and `own_pid`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Peak resident set of this program image.
    pub vm_hwm: Option<u64>,
    /// Resident set.
    pub vm_rss: Option<u64>,
    /// Anonymous part of it.
    pub rss_anon: Option<u64>,
    /// File part of it.
    pub rss_file: Option<u64>,
    /// Shared memory part of it.
    pub rss_shmem: Option<u64>,
    /// Locked by `mlock`.
    pub vm_lck: Option<u64>,
    /// Pinned for drivers.
    pub vm_pin: Option<u64>,
    /// Swapped out.
    pub vm_swap: Option<u64>,
    /// Page tables.
    pub vm_pte: Option<u64>,
    /// Pages of the hugetlb pools; not part of the resident set.
    pub hugetlb_pages: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Its PID in its own PID namespace, if that is not the one of this `/proc`.
    pub own_pid: Option<i32>,
}

/// The number of the initial PID namespace (`PROC_PID_INIT_INO`).
pub const FIRST_PID_NAMESPACE: u32 = 0xEFFF_FFFC;

/// `/proc/PID/smaps_rollup`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmapsRollup {
    /// Resident set.
    pub rss: Option<u64>,
    /// Proportional set.
    pub pss: Option<u64>,
    /// Its anonymous part.
    pub pss_anon: Option<u64>,
    /// Its file part.
    pub pss_file: Option<u64>,
    /// Its shared memory part.
    pub pss_shmem: Option<u64>,
    /// Locked, proportionally.
    pub locked: Option<u64>,
    /// Swapped out.
    pub swap: Option<u64>,
    /// Swapped out, proportionally.
    pub swap_pss: Option<u64>,
    /// hugetlb pages of this process only.
    pub private_hugetlb: Option<u64>,
    /// hugetlb pages shared with others.
    pub shared_hugetlb: Option<u64>,
}

/// The machine's memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meminfo {
    /// MemTotal.
    pub total: u64,
    /// MemFree.
    pub free: u64,
    /// SReclaimable: reclaimable kernel objects (Linux 2.6.19).
    pub slab_reclaimable: Option<u64>,
    /// SwapTotal.
    pub swap_total: u64,
    /// SwapFree.
    pub swap_free: u64,
}

/// Whether /proc is mounted: without it nothing is known of any process.
pub fn is_mounted() -> bool {
    Path::new("/proc/self/stat").exists()
}

/// Figures of a process: sums over its threads, except [`Stat::blkio_delay_ticks`].
///
/// # Errors
/// [`Error::Gone`] if it ended.
pub fn stat(pid: i32) -> Result<Stat, Error> {
    read_stat(pid, format!("/proc/{pid}/stat").into())
}

/// Figures of one thread.
///
/// # Errors
/// [`Error::Gone`] if it ended.
pub fn task_stat(pid: i32, tid: i32) -> Result<Stat, Error> {
    read_stat(tid, format!("/proc/{pid}/task/{tid}/stat").into())
}

/// Memory figures of a process; for kernel threads and zombies all but `threads` are `None`.
///
/// # Errors
/// [`Error::Gone`] if it ended.
pub fn status(pid: i32) -> Result<Status, Error> {
    let text = read(pid, Path::new(&format!("/proc/{pid}/status")))?;
    Ok(parse_status(&String::from_utf8_lossy(&text)))
}

/// The process of a thread; `None` if the thread has ended.
pub fn process_of_thread(tid: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// The number of our PID namespace, unless it is the initial one: PIDs in the kernel then differ from ours.
pub fn inner_pid_namespace() -> Option<u32> {
    pid_namespace(std::process::id() as i32).filter(|own| *own != FIRST_PID_NAMESPACE)
}

/// The number of a process's PID namespace; `None` for another user's process, or an ended one.
pub fn pid_namespace(pid: i32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(format!("/proc/{pid}/ns/pid")).ok().and_then(|found| u32::try_from(found.ino()).ok())
}

/// Bytes read and written by a process and its reaped children; also of a zombie. `None` where it is not readable: another user's process,
/// or a kernel without I/O accounting.
pub fn moved(pid: i32) -> Option<BytesMoved> {
    parse_io(&std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?)
}

/// Bytes read and written by the children that this process has reaped, and by its ended threads. Since Linux 6.18 the kernel shows those
/// of a zombie only to root, but adds them to the process that reaps it.
pub fn moved_by_children() -> Option<BytesMoved> {
    let io = |path: &Path| parse_io(&std::fs::read_to_string(path).ok()?);
    let all = io(Path::new("/proc/self/io"))?;
    let own: Vec<BytesMoved> = tasks(std::process::id() as i32)
        .ok()?
        .into_iter()
        .filter_map(|task| io(&PathBuf::from(format!("/proc/self/task/{task}/io"))))
        .collect();
    let less = |of: fn(&BytesMoved) -> u64| of(&all).saturating_sub(own.iter().map(of).sum());
    Some(BytesMoved {
        read: less(|moved| moved.read),
        written: less(|moved| moved.written),
        storage_read: less(|moved| moved.storage_read),
        storage_written: less(|moved| moved.storage_written),
    })
}

fn parse_io(text: &str) -> Option<BytesMoved> {
    let line = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse::<u64>().ok())
    };
    Some(BytesMoved {
        read: line("rchar")?,
        written: line("wchar")?,
        storage_read: line("read_bytes")?,
        storage_written: line("write_bytes")?,
    })
}

/// Whether this process is a session leader: closing the terminal signals only the leader. `getsid` does not name a leader outside of the
/// PID namespace (pid_namespaces(7)); `false` there, and where it is not readable.
pub fn leads_session() -> bool {
    let own = ::procfs::process::Process::myself().and_then(|process| process.stat());
    own.is_ok_and(|own| own.session == own.pid)
}

/// The proportional set. Holds the target's mmap lock for about 10 ms per GB, so do not call it often. Needs ptrace rights.
///
/// # Errors
/// [`Error::Gone`] if it ended, [`Error::Read`] if it belongs to another user, or before Linux 4.14.
pub fn smaps_rollup(pid: i32) -> Result<SmapsRollup, Error> {
    let text = read(pid, Path::new(&format!("/proc/{pid}/smaps_rollup")))?;
    Ok(parse_smaps_rollup(&String::from_utf8_lossy(&text)))
}

/// The threads of a process.
///
/// # Errors
/// [`Error::Gone`] if it ended.
pub fn tasks(pid: i32) -> Result<Vec<i32>, Error> {
    numbered_entries(&PathBuf::from(format!("/proc/{pid}/task"))).map_err(|source| gone_or_read(pid, "task", source))
}

/// The direct children of `pid`.
pub fn children(pid: i32) -> Vec<i32> {
    descendants_by(pid, false)
}

/// The descendants of `pid`, without itself. A process whose parent ended before the scan belongs to init by then and is not found.
pub fn descendants(pid: i32) -> Vec<i32> {
    descendants_by(pid, true)
}

/// All process ids.
pub fn processes() -> Vec<i32> {
    numbered_entries(Path::new("/proc")).unwrap_or_default()
}

/// The most recent PID of this PID namespace.
pub fn newest_pid() -> Option<i32> {
    file::read_if_present(Path::new("/proc/loadavg"))?.split_whitespace().last()?.parse().ok()
}

/// Memory of the machine (not of a container).
///
/// # Errors
/// [`Error::Read`] without `/proc`.
pub fn meminfo() -> Result<Meminfo, Error> {
    use ::procfs::Current;
    let path = "/proc/meminfo";
    let info = ::procfs::Meminfo::current()
        .map_err(|error| Error::Read { path: path.into(), source: io::Error::other(error) })?;
    Ok(Meminfo {
        total: info.mem_total,
        free: info.mem_free,
        slab_reclaimable: info.s_reclaimable,
        swap_total: info.swap_total,
        swap_free: info.swap_free,
    })
}

/// Size of a name in the kernel's dentry cache, bytes (struct dentry).
const DENTRY_BYTES: u64 = 192;
/// Size of an inode of a file system on a disk, bytes (ext4 1.1 KiB, XFS 1.0 KiB, Btrfs 1.1 KiB).
const INODE_BYTES: u64 = 1100;

/// Memory of the machine's cached names and inodes, from their numbers (proc_sys_fs(5)) and usual sizes; `None` without `/proc/sys/fs`.
pub fn names_bytes() -> Option<u64> {
    let first = |path: &str| file::read_if_present(Path::new(path))?.split_whitespace().next()?.parse::<u64>().ok();
    Some(first("/proc/sys/fs/dentry-state")? * DENTRY_BYTES + first("/proc/sys/fs/inode-nr")? * INODE_BYTES)
}

/// Identity of this boot; start ticks and counters are comparable only within one.
///
/// # Errors
/// [`Error::Read`] without `/proc`.
pub fn boot_id() -> Result<String, Error> {
    Ok(file::read(Path::new("/proc/sys/kernel/random/boot_id"))?.trim().to_string())
}

/// A random name that cannot be guessed: `/proc/sys/kernel/random/uuid`, a new one each time.
///
/// # Errors
/// [`Error::Read`] without `/proc`.
pub fn uuid() -> Result<String, Error> {
    Ok(file::read(Path::new("/proc/sys/kernel/random/uuid"))?.trim().to_string())
}

/// The host's name.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// `uname -r`.
pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Major and minor version of the running kernel; (0, 0) if its name does not begin with them.
pub fn kernel_version() -> (u32, u32) {
    let release = kernel_release();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Clock ticks per second of `/proc` times.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Ticks as seconds.
pub fn seconds_of(ticks: u64) -> f64 {
    ticks as f64 / ticks_per_second() as f64
}

/// Page size in bytes.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// When a process started, in seconds of CLOCK_MONOTONIC. Start ticks include suspended time, which that clock excludes; so the result is
/// exact only for processes started since the last suspend.
pub fn start_seconds(start_ticks: u64) -> f64 {
    seconds_of(start_ticks) - (seconds(ClockId::Boottime) - seconds(ClockId::Monotonic))
}

/// The start ticks of a process that started at this time, in seconds of CLOCK_MONOTONIC: the reverse of [`start_seconds`].
pub fn start_ticks(start_seconds: f64) -> u64 {
    let since_boot = start_seconds + seconds(ClockId::Boottime) - seconds(ClockId::Monotonic);
    (since_boot * ticks_per_second() as f64).max(0.0) as u64
}

/// CLOCK_MONOTONIC now, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn read_stat(pid: i32, path: PathBuf) -> Result<Stat, Error> {
    let text = read(pid, &path)?;
    let text = String::from_utf8_lossy(&text);
    parse_stat(&text).ok_or_else(|| Error::Format { path, line: text.into_owned() })
}

pub(crate) fn read(pid: i32, path: &Path) -> Result<Vec<u8>, Error> {
    let mut text = Vec::with_capacity(4096);
    match std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut text)) {
        Ok(_) => Ok(text),
        Err(source) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Err(gone_or_read(pid, &name, source))
        }
    }
}

/// If only the file of a process is missing, the kernel is old; if the process's folder is missing, the process has ended.
fn gone_or_read(pid: i32, name: &str, source: io::Error) -> Error {
    let vanished = match source.raw_os_error() {
        Some(libc::ESRCH) => true,
        Some(libc::ENOENT) => !Path::new(&format!("/proc/{pid}")).exists() || name == "stat",
        _ => false,
    };
    if vanished { Error::Gone(pid) } else { Error::Read { path: format!("/proc/{pid}/{name}").into(), source } }
}

fn numbered_entries(dir: &Path) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        found.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(found)
}

/// `children` files need CONFIG_PROC_CHILDREN; without it, the parent of every process is read.
fn descendants_by(pid: i32, all: bool) -> Vec<i32> {
    let mut found = Vec::new();
    if Path::new("/proc/self/task").join(std::process::id().to_string()).join("children").exists() {
        let mut open = vec![pid];
        while let Some(parent) = open.pop() {
            for tid in tasks(parent).unwrap_or_default() {
                let text = file::read_if_present(Path::new(&format!("/proc/{parent}/task/{tid}/children")));
                let started: Vec<i32> =
                    text.iter().flat_map(|text| text.split_whitespace()).filter_map(|word| word.parse().ok()).collect();
                if all {
                    open.extend(&started);
                }
                found.extend(started);
            }
        }
        return found;
    }
    let parents: Vec<(i32, i32)> =
        processes().into_iter().filter_map(|child| Some((child, stat(child).ok()?.ppid))).collect();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        for (child, _) in parents.iter().filter(|(child, of)| *of == parent && *child != pid) {
            if all {
                open.push(*child);
            }
            found.push(*child);
        }
    }
    found
}

/// `include/linux/sched.h`; the flags are field 9 of proc_pid_stat(5).
const PF_KTHREAD: u64 = 0x0020_0000;

fn parse_stat(text: &str) -> Option<Stat> {
    // A command name may contain anything, also `) R 1`: the last parenthesis ends it.
    let (head, tail) = text.rsplit_once(") ")?;
    let (pid, comm) = head.split_once(" (")?;
    let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
    // Numbered as in proc_pid_stat(5), where the state is field 3.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        pid: pid.parse().ok()?,
        comm: comm.to_string(),
        state: fields.first()?.chars().next()?,
        ppid: fields.get(1)?.parse().ok()?,
        is_kernel: field(9)? & PF_KTHREAD != 0,
        minflt: field(10)?,
        majflt: field(12)?,
        utime: field(14)?,
        stime: field(15)?,
        reaped_time: field(16)? + field(17)?,
        reaped_user_time: field(16)?,
        reaped_faults: field(11)? + field(13)?,
        num_threads: field(20)?,
        starttime: field(22)?,
        rss_pages: field(24)?,
        stack_start: field(28).unwrap_or(0),
        blkio_delay_ticks: field(42),
    })
}

fn parse_status(text: &str) -> Status {
    let mut status = Status::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let slot = match key {
            "VmHWM" => &mut status.vm_hwm,
            "VmRSS" => &mut status.vm_rss,
            "RssAnon" => &mut status.rss_anon,
            "RssFile" => &mut status.rss_file,
            "RssShmem" => &mut status.rss_shmem,
            "VmLck" => &mut status.vm_lck,
            "VmPin" => &mut status.vm_pin,
            "VmSwap" => &mut status.vm_swap,
            "VmPTE" => &mut status.vm_pte,
            "HugetlbPages" => &mut status.hugetlb_pages,
            "Threads" => &mut status.threads,
            "NSpid" => {
                // Outermost namespace first; the first is the PID used here.
                status.own_pid = value.split_whitespace().skip(1).last().and_then(|pid| pid.parse().ok());
                continue;
            }
            _ => continue,
        };
        *slot = quantity(value);
    }
    status
}

fn parse_smaps_rollup(text: &str) -> SmapsRollup {
    let mut rollup = SmapsRollup::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let slot = match key {
            "Rss" => &mut rollup.rss,
            "Pss" => &mut rollup.pss,
            "Pss_Anon" => &mut rollup.pss_anon,
            "Pss_File" => &mut rollup.pss_file,
            "Pss_Shmem" => &mut rollup.pss_shmem,
            "Locked" => &mut rollup.locked,
            "Swap" => &mut rollup.swap,
            "SwapPss" => &mut rollup.swap_pss,
            "Private_Hugetlb" => &mut rollup.private_hugetlb,
            "Shared_Hugetlb" => &mut rollup.shared_hugetlb,
            _ => continue,
        };
        *slot = quantity(value);
    }
    rollup
}

/// Parses `  1696 kB` in bytes, or a bare number.
fn quantity(value: &str) -> Option<u64> {
    let value = value.trim();
    match value.strip_suffix(" kB") {
        Some(kibibytes) => kibibytes.trim().parse::<u64>().ok()?.checked_mul(1024),
        None => value.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_may_hold_parentheses_and_spaces() {
        let text = "77 (a) R 1 (b) S 5 77 77 0 -1 4194560 123 20 4 1 7 8 5 6 20 0 3 0 4242 3133440 424 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 9 0 0 0\n";
        let stat = parse_stat(text).unwrap();
        assert_eq!((stat.comm.as_str(), stat.state, stat.ppid), ("a) R 1 (b", 'S', 5));
        assert_eq!((stat.minflt, stat.majflt, stat.utime, stat.stime, stat.reaped_time), (123, 4, 7, 8, 11));
        assert_eq!(stat.reaped_faults, 21);
        assert_eq!((stat.num_threads, stat.starttime, stat.rss_pages), (3, 4242, 424));
        assert_eq!(stat.blkio_delay_ticks, Some(9));
    }

    #[test]
    fn fields_that_an_old_kernel_lacks_are_absent() {
        let short = "77 (a) S 5 77 77 0 -1 4194560 123 20 4 1 7 8 0 0 20 0 3 0 4242 3133440 424 1 1 1 0 0\n";
        assert_eq!(parse_stat(short).unwrap().blkio_delay_ticks, None);
        assert_eq!(parse_stat("77 (a"), None);
        let nested = Status { own_pid: Some(1), ..Status::default() };
        assert_eq!(parse_status("NSpid:\t4711\t12\t1\n"), nested);
        assert_eq!(parse_status("NSpid:\t4711\n"), Status::default());
        assert_eq!(parse_status("VmRSS:\t  16 kB\nVmLck: x kB\n"), Status { vm_rss: Some(16384), ..Status::default() });
        assert_eq!(parse_smaps_rollup("Pss: 3 kB\n").pss, Some(3072));
        assert_eq!(parse_smaps_rollup("Pss: 3 kB\n").pss_anon, None);
    }

    #[test]
    fn recorded_files_of_another_kernel_read_the_same() {
        let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees/debian-6.1-v2/plain/proc/197");
        let text = |name: &str| std::fs::read_to_string(job.join(name)).unwrap();
        let (stat, status) = (parse_stat(&text("stat")).unwrap(), parse_status(&text("status")));
        let rollup = parse_smaps_rollup(&text("smaps_rollup"));
        // The counters of `status` lag by up to 64 pages per thread and kind (proc(5)); the rollup walks the page tables.
        let near = |bytes: u64| bytes.abs_diff(rollup.rss.unwrap()) < 3 * 64 * 4096;
        assert!(near(stat.rss_pages * 4096) && near(status.vm_rss.unwrap()));
        assert_eq!(
            status.rss_anon.unwrap() + status.rss_file.unwrap() + status.rss_shmem.unwrap(),
            status.vm_rss.unwrap()
        );
        assert!(status.rss_anon.unwrap() >= 24 << 20 && rollup.pss <= rollup.rss);
        assert_eq!((status.vm_lck, status.vm_pin, status.hugetlb_pages), (Some(0), Some(0), Some(0)));
    }

    #[test]
    fn this_process_reads_itself() {
        let pid = std::process::id() as i32;
        let own = stat(pid).unwrap();
        assert_eq!(own.pid, pid);
        assert!(own.rss_pages > 0 && own.num_threads >= 1);
        let status = status(pid).unwrap();
        assert!(status.vm_hwm >= status.rss_anon && status.vm_rss.is_some());
        assert!(smaps_rollup(pid).unwrap().pss.unwrap() > 0);
        assert!(tasks(pid).unwrap().len() >= own.num_threads as usize - 1);
        let started = start_seconds(own.starttime);
        let age = seconds(ClockId::Monotonic) - started;
        assert!((-0.1..3600.0).contains(&age), "started {age} s ago");
    }

    #[test]
    fn a_vanished_process_is_gone_not_an_error_of_reading() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id() as i32;
        child.wait().unwrap();
        assert!(matches!(stat(pid), Err(Error::Gone(gone)) if gone == pid));
        assert!(matches!(status(pid), Err(Error::Gone(_))));
        assert!(matches!(smaps_rollup(pid), Err(Error::Gone(_))));
        assert!(matches!(tasks(pid), Err(Error::Gone(_))));
        assert!(descendants(pid).is_empty());
    }

    #[test]
    fn descendants_are_found_through_their_parents() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 600 & wait"]).spawn().unwrap();
        let pid = child.id() as i32;
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(240);
        let sleep = loop {
            let found = descendants(pid);
            if found.iter().any(|p| stat(*p).is_ok_and(|stat| stat.comm == "sleep")) {
                break found[0];
            }
            assert!(std::time::Instant::now() < deadline, "the grandchild was not found");
        };
        assert!(children(std::process::id() as i32).contains(&pid));
        assert!(!children(std::process::id() as i32).contains(&sleep));
        assert!(descendants(std::process::id() as i32).contains(&sleep));
        rustix::process::kill_process(rustix::process::Pid::from_raw(sleep).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
        child.wait().unwrap();
    }
}

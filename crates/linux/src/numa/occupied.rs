//! Occupies the free memory of a node.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_ulong};
use std::path::Path;
use std::time::Duration;
use std::{io, ptr, thread};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap_anonymous, munmap};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::{MPOL_BIND, Mask, directory, field};
use crate::{Error, file, procfs};

/// Maximum taken at once before the free memory is read again, because other programs take memory meanwhile.
const AT_ONCE: u64 = 64 << 20;
/// Unit of occupied memory: a huge page on most machines.
const UNIT: u64 = 2 << 20;
/// Memory freed by others becomes free with delay: the state has settled after this many checks without more to take.
const SETTLED: u32 = 3;
const LOOK: Duration = Duration::from_millis(20);
/// Below this size, no more is taken.
const LATER: u64 = 256 << 20;

/// While this lives, a node has little free memory; further allocations come from other nodes.
///
/// Each processor keeps lists of free small and huge pages, up to the low watermark each: after a program's end they hold much of its
/// memory. The kernel allocates from them only while the zone has more than its watermark outside of them. Taking memory on each processor
/// in turn empties the lists, so that the remaining memory is available on every processor.
#[derive(Debug)]
pub struct Occupied {
    memory: *mut std::ffi::c_void,
    bytes: usize,
    /// The end of the part taken so far.
    taken: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Occupied {}

impl Occupied {
    /// Takes all free memory of a node except `bytes`, and except what the kernel keeps below its low watermark; also memory that becomes
    /// free meanwhile. Takes about a second for 4 GiB.
    ///
    /// # Errors
    /// [`Error::Read`] without such a node; [`Error::System`] if the memory cannot be locked (`RLIMIT_MEMLOCK`) or allocated.
    pub fn leaving(node: u32, bytes: u64) -> Result<Occupied, Error> {
        let left = bytes.saturating_add(low_watermark(node)?);
        // In a thread of its own, because it moves from processor to processor.
        let taken = thread::scope(|scope| {
            let taking = thread::Builder::new().spawn_scoped(scope, || Occupied::all_but(node, left));
            Ok(taking.map_err(|source| Error::System { what: "starting a thread".into(), source })?.join())
        });
        taken?.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn all_but(node: u32, left: u64) -> Result<Occupied, Error> {
        let too_much = || Ok::<u64, Error>(free(node)?.saturating_sub(left) / UNIT * UNIT);
        let now = too_much()?;
        if now == 0 {
            return Ok(Occupied { memory: ptr::null_mut(), bytes: 0, taken: 0 });
        }
        let mut occupied = Occupied::reserve(node, (now + LATER) as usize)?;
        let mut settled = 0;
        while settled < SETTLED && occupied.taken < occupied.bytes {
            if too_much()? == 0 {
                settled += 1;
                thread::sleep(LOOK);
                continue;
            }
            settled = 0;
            for processor in of_processors(&zones()?, node).into_keys().filter(|processor| may_run_on(*processor)) {
                for size in [Advice::LinuxHugepage, Advice::LinuxNoHugepage] {
                    let listed = of_processors(&zones()?, node).get(&processor).copied().unwrap_or(0);
                    occupied.take(node, listed.min(too_much()?), size)?;
                }
            }
            occupied.take(node, too_much()?.min(AT_ONCE), Advice::LinuxNoHugepage)?;
        }
        Ok(occupied)
    }

    /// Reserves addresses, without memory.
    fn reserve(node: u32, bytes: usize) -> Result<Occupied, Error> {
        let bytes = bytes + UNIT as usize;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let memory = unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let memory = memory.map_err(|error| failed("mmap", node, error.into()))?;
        let occupied = Occupied { memory, bytes, taken: memory.addr().next_multiple_of(UNIT as usize) - memory.addr() };
        let mask = Mask::of(node);
        // SAFETY: our own mapping, and the mask lives through the call.
        let status = unsafe {
            libc::syscall(libc::SYS_mbind, memory, bytes, MPOL_BIND, mask.words(), mask.bits(), 0 as c_ulong) as c_int
        };
        if status != 0 {
            return Err(failed("mbind", node, io::Error::last_os_error()));
        }
        Ok(occupied)
    }

    /// Takes this much more memory in whole units, in pages of this size, as far as addresses are reserved.
    fn take(&mut self, node: u32, bytes: u64, size: Advice) -> Result<(), Error> {
        let bytes = (bytes as usize).min(self.bytes - self.taken) / UNIT as usize * UNIT as usize;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: within our own mapping. A kernel without huge pages refuses the advice.
        let locked = unsafe {
            let memory = self.memory.byte_add(self.taken);
            let _ = madvise(memory, bytes, size);
            mlock(memory, bytes)
        };
        locked.map_err(|error| failed("mlock", node, error.into()))?;
        self.taken += bytes;
        Ok(())
    }
}

fn failed(what: &str, node: u32, source: io::Error) -> Error {
    Error::System { what: format!("{what} of node {node}"), source }
}

/// Moves this thread to a processor. Its cpuset may forbid it, and then the job's does, too.
fn may_run_on(processor: usize) -> bool {
    let mut wanted = CpuSet::new();
    if processor >= CpuSet::MAX_CPU {
        return false;
    }
    wanted.set(processor);
    sched_setaffinity(None, &wanted).is_ok()
}

impl Drop for Occupied {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: our own mapping, without references.
            let _ = unsafe { munmap(self.memory, self.bytes) };
        }
    }
}

/// Free memory, including the processors' lists, from which the kernel allocates as its watermarks allow.
fn free(node: u32) -> Result<u64, Error> {
    let text = file::read(&directory(node).join("meminfo"))?;
    let listed: u64 = of_processors(&zones()?, node).values().sum();
    Ok(field(&text, "MemFree:").unwrap_or(0) + listed)
}

/// The low watermark of a node's zones, below which the kernel allocates elsewhere.
fn low_watermark(node: u32) -> Result<u64, Error> {
    Ok(figures(&zones()?, node, "low").iter().map(|(_, pages)| pages * procfs::page_bytes()).sum())
}

/// Bytes of a node's zones in each processor's list.
fn of_processors(zoneinfo: &str, node: u32) -> BTreeMap<usize, u64> {
    let mut lists = BTreeMap::new();
    for (processor, pages) in figures(zoneinfo, node, "count:") {
        *lists.entry(processor).or_default() += pages * procfs::page_bytes();
    }
    lists
}

fn zones() -> Result<String, Error> {
    file::read(Path::new("/proc/zoneinfo"))
}

/// A figure's values in each of a node's zones, with the processor for per-processor figures.
fn figures(zoneinfo: &str, node: u32, name: &str) -> Vec<(usize, u64)> {
    let mut is_of_node = false;
    let mut processor = 0;
    let mut found = Vec::new();
    for line in zoneinfo.lines() {
        if let Some(rest) = line.strip_prefix("Node ") {
            is_of_node = rest.split(',').next() == Some(&node.to_string());
        }
        let mut words = line.split_whitespace();
        let word = words.next();
        let Some(value) = words.next().and_then(|number| number.parse::<u64>().ok()) else { continue };
        if word == Some("cpu:") {
            processor = value as usize;
        }
        if is_of_node && word == Some(name) {
            found.push((processor, value));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_all_takes_nothing_and_a_missing_node_is_reported() {
        assert_eq!(Occupied::leaving(0, u64::MAX).unwrap().bytes, 0);
        assert!(Occupied::leaving(1000, 0).unwrap_err().to_string().contains("node1000"));
    }

    #[test]
    fn figures_are_those_of_the_nodes_zones() {
        let text = "Node 0, zone      DMA\n  pages free     3840\n        min      10\n        low      13\n\
            Node 0, zone   Normal\n        low      500\n  nr_low 7\n  pagesets\n    cpu: 0\n              count: 63\n\
            \x20   cpu: 1\n              count: 7\nNode 1, zone   Normal\n        low      900\n";
        let lows = |node| figures(text, node, "low").iter().map(|(_, pages)| *pages).collect::<Vec<_>>();
        assert_eq!([0, 1, 2].map(lows), [vec![13, 500], vec![900], vec![]]);
        let page = procfs::page_bytes();
        assert_eq!(of_processors(text, 0), [(0, 63 * page), (1, 7 * page)].into());
        assert_eq!(of_processors(text, 1), BTreeMap::new());
    }

    #[test]
    fn occupied_memory_is_released_again() {
        let before = free(0).unwrap();
        // Other programs allocate and free memory meanwhile.
        let much = 512 << 20;
        if before < 2 * much {
            return;
        }
        let occupied = Occupied::leaving(0, before - much).unwrap();
        if occupied.bytes == 0 {
            return;
        }
        let resident = || procfs::stat(std::process::id() as i32).unwrap().rss_pages * procfs::page_bytes();
        let with = resident();
        drop(occupied);
        assert!(with - resident() >= 128 << 20, "{with}");
    }
}

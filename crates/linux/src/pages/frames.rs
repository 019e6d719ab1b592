//! Predicts the effect of `MADV_COLD` on a page from `/proc/PID/pagemap` and `/proc/kpageflags`, see
//! Documentation/admin-guide/mm/pagemap.rst.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::{Error, procfs};

const FRAME: u64 = (1 << 55) - 1;
const EXCLUSIVE: u64 = 1 << 56;
const PRESENT: u64 = 1 << 63;
const LRU: u64 = 1 << 5;
const COMPOUND_HEAD: u64 = 1 << 15;
const COMPOUND_TAIL: u64 = 1 << 16;
const HUGETLB: u64 = 1 << 17;
/// Maximum size of a folio that is searched for, in pages: 2 MiB.
const MOST_FOLIO: u64 = 512;

/// The page maps of one process.
#[derive(Debug)]
pub struct Frames {
    pagemap: File,
    flags: Option<File>,
}

/// A present page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its page frame number; 0 if this user may not know it.
    pub number: u64,
    /// Whether it is mapped only once.
    pub exclusive: bool,
    /// Whether it is a hugetlb page, whose Accessed bits cannot be cleared.
    pub pool: bool,
    /// Whether it is on none of the kernel's LRU lists: a processor keeps the last pages it has faulted in, up to 31, to itself until there
    /// are more. `MADV_COLD` silently skips them.
    pub unlisted: bool,
    /// The addresses of its folio, if the folio is mapped as a whole.
    pub folio: Range<u64>,
}

impl Frames {
    /// The page maps of a process.
    ///
    /// # Errors
    /// [`Error::Gone`] if it ended, [`Error::Read`] if it belongs to another user.
    pub fn of(pid: i32) -> Result<Frames, Error> {
        let path = format!("/proc/{pid}/pagemap");
        let pagemap = File::open(&path).map_err(|source| match source.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => Error::Gone(pid),
            _ => Error::Read { path: path.into(), source },
        })?;
        Ok(Frames { pagemap, flags: File::open("/proc/kpageflags").ok() })
    }

    /// The page at an address; `None` if there is none, or the process is gone.
    pub fn at(&self, address: u64) -> Option<Frame> {
        let page = procfs::page_bytes();
        let entry = number(&self.pagemap, address / page)?;
        (entry & PRESENT != 0).then(|| {
            let number = entry & FRAME;
            let flags = self.flags(number);
            let unlisted = flags.is_some_and(|flags| flags & (LRU | COMPOUND_TAIL) == 0);
            let flags = flags.unwrap_or(0);
            let (before, after) = self.neighbours(number, flags).unwrap_or((0, 1));
            let folio = address.saturating_sub(before * page)..address + after * page;
            Frame { number, exclusive: entry & EXCLUSIVE != 0, pool: flags & HUGETLB != 0, unlisted, folio }
        })
    }

    fn flags(&self, frame: u64) -> Option<u64> {
        number(self.flags.as_ref().filter(|_| frame != 0)?, frame)
    }

    /// Numbers of pages of the same folio before this one, which has these flags, and from this one on.
    fn neighbours(&self, frame: u64, flags: u64) -> Option<(u64, u64)> {
        if flags & (COMPOUND_HEAD | COMPOUND_TAIL) == 0 {
            return None;
        }
        let flags = self.flags.as_ref()?;
        let first = frame.saturating_sub(MOST_FOLIO - 1);
        let mut around = vec![0u8; 8 * 2 * MOST_FOLIO as usize];
        let read = flags.read_at(&mut around, 8 * first).ok()?;
        let around: Vec<u64> = around[..read]
            .chunks_exact(8)
            .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
            .collect();
        let own = (frame - first) as usize;
        let before = around[..=own].iter().rev().take_while(|flags| *flags & COMPOUND_TAIL != 0).count();
        let after = around[own + 1..].iter().take_while(|flags| *flags & COMPOUND_TAIL != 0).count();
        Some((before as u64, 1 + after as u64))
    }
}

fn number(file: &File, index: u64) -> Option<u64> {
    let mut bytes = [0u8; 8];
    file.read_exact_at(&mut bytes, 8 * index).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    use rustix::thread::{CpuSet, sched_setaffinity};

    use super::*;

    const PAGES: usize = 4;

    /// Just touched pages, before and after advice on the processor that touched them; the advice flushes that processor's list.
    fn touched_and_advised(frames: &Frames) -> [Vec<bool>; 2] {
        let bytes = PAGES * procfs::page_bytes() as usize;
        let (readable, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a mapping of its own, unmapped below.
        unsafe {
            let memory = mmap_anonymous(std::ptr::null_mut(), bytes, readable, private).unwrap();
            let pages = (0..PAGES).map(|page| memory.byte_add(page * procfs::page_bytes() as usize));
            pages.clone().for_each(|page| page.cast::<u8>().write_volatile(1));
            let unlisted = || pages.clone().map(|page| frames.at(page as u64).unwrap().unlisted).collect();
            let touched = unlisted();
            madvise(memory, bytes, Advice::LinuxCold).unwrap();
            let advised = unlisted();
            munmap(memory, bytes).unwrap();
            [touched, advised]
        }
    }

    #[test]
    fn the_last_faulted_pages_are_not_on_the_lru_lists() {
        let mut first = CpuSet::new();
        first.set(0);
        let frames = Frames::of(std::process::id() as i32).unwrap();
        if frames.flags(1).is_none() || sched_setaffinity(None, &first).is_err() {
            eprintln!("skipped: needs /proc/kpageflags and processor 0");
            return;
        }
        // Other activity on that processor may have flushed the list earlier.
        let seen = (0..1000).map(|_| touched_and_advised(&frames));
        let kept = |[touched, advised]: &[Vec<bool>; 2]| touched.contains(&true) && !advised.contains(&true);
        assert!(seen.into_iter().any(|seen| kept(&seen)));
    }
}

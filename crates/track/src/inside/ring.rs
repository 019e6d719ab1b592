//! The shared memory that the library writes to. Any process of the job can write anything there, so every value is
//! checked against its bounds.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use linux::shared_words::SharedWords;
use runtime_abi::{
    REFERENCE_FILE_BYTES, REFERENCE_MAGIC, REFERENCE_RING, REFERENCE_RING_AT, REFERENCE_RUNS, REFERENCE_RUNS_AT,
    ReferenceHead, ReferenceKind, ReferenceRun,
};

/// Entries of the ring.
pub(super) const ENTRIES: u64 = REFERENCE_RING as u64;

/// Maximum number of pages of one entry.
const MAX_PAGES: u64 = 0x1fff;

/// One entry of the ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) file: u32,
    /// The number of the part for [`ReferenceKind::File`] and [`ReferenceKind::Process`].
    pub(super) pages: u32,
    pub(super) kind: ReferenceKind,
    /// The first page and the time, or the value of the part.
    pub(super) place: u64,
}

/// The shared memory, and how far it was read.
#[derive(Debug)]
pub(super) struct Ring {
    memory: SharedWords,
    tail: u64,
}

impl Ring {
    pub(super) fn create() -> io::Result<Ring> {
        let ring = Ring { memory: SharedWords::create("bursar-references", REFERENCE_FILE_BYTES / 8)?, tail: 0 };
        ring.word(ReferenceHead::BYTES_AT).store(REFERENCE_FILE_BYTES as u64, Ordering::Relaxed);
        ring.word(ReferenceHead::MAGIC_AT).store(u64::from_le_bytes(REFERENCE_MAGIC), Ordering::Release);
        Ok(ring)
    }

    /// The path by which the job's processes open it.
    pub(super) fn path(&self) -> PathBuf {
        self.memory.path()
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.memory.words()[at / 8]
    }

    fn load(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    /// Passes all complete entries to `take` and returns their count. Stops at the first incomplete entry.
    pub(super) fn drain(&mut self, take: &mut dyn FnMut(Entry)) -> u64 {
        let begin = self.tail;
        // The head may hold any number: never read more than fits.
        let end = begin.wrapping_add(self.load(ReferenceHead::HEAD_AT).wrapping_sub(begin).min(ENTRIES));
        while self.tail != end {
            let at = REFERENCE_RING_AT + (self.tail % ENTRIES) as usize * 16;
            let what = self.load(at);
            if what >> 48 != (self.tail / ENTRIES + 1) & 0xffff {
                break;
            }
            let place = self.load(at + 8);
            if let Some(kind) = ReferenceKind::from_number(what >> 45 & 7) {
                take(Entry { file: what as u32, pages: (what >> 32 & MAX_PAGES) as u32, kind, place });
            }
            self.tail = self.tail.wrapping_add(1);
        }
        self.word(ReferenceHead::TAIL_AT).store(self.tail, Ordering::Release);
        self.tail.wrapping_sub(begin)
    }

    /// Passes to `take` what the threads had not yet put into the ring. Call it when the job has ended. Returns the
    /// bytes that the threads have read, and the number of entries that were never completed.
    pub(super) fn drain_runs(&self, take: &mut dyn FnMut(Entry)) -> (u64, u64) {
        let runs = self.load(ReferenceHead::RUNS_AT).saturating_add(1).min(REFERENCE_RUNS as u64) as usize;
        let mut read_bytes = 0u64;
        for run in 0..runs {
            let at = REFERENCE_RUNS_AT + run * ReferenceRun::BYTES;
            let (file_pages, kind_ms) = (self.load(at + ReferenceRun::FILE_AT), self.load(at + ReferenceRun::KIND_AT));
            read_bytes = read_bytes.saturating_add(self.load(at + ReferenceRun::READ_BYTES_AT));
            let pages = ((file_pages >> 32) as u32).min(MAX_PAGES as u32);
            let Some(kind) = ReferenceKind::from_number(kind_ms & 0xffff_ffff) else { continue };
            if pages > 0 && !matches!(kind, ReferenceKind::File | ReferenceKind::Process | ReferenceKind::InMemory) {
                let first = self.load(at + ReferenceRun::FIRST_PAGE_AT) & ((1 << 40) - 1);
                take(Entry { file: file_pages as u32, pages, kind, place: first | kind_ms >> 32 << 40 });
            }
        }
        let unfinished = self.load(ReferenceHead::HEAD_AT).wrapping_sub(self.tail).min(ENTRIES);
        (read_bytes, unfinished)
    }

    /// Makes processes that read or write files wait until this time, in milliseconds of the clock; 0 for no wait.
    pub(super) fn hold(&self, until_ms: u64) {
        self.word(ReferenceHead::HOLD_UNTIL_MS_AT).store(until_ms & 0xffff_ffff, Ordering::Relaxed);
    }

    /// Asks the library to note the paths of files.
    pub(super) fn want_paths(&self) {
        self.word(ReferenceHead::WANTS_PATHS_AT).store(1, Ordering::Relaxed);
    }

    pub(super) fn lost(&self) -> u64 {
        self.load(ReferenceHead::LOST_AT)
    }

    pub(super) fn programs(&self) -> u64 {
        self.load(ReferenceHead::PROCESSES_AT).saturating_sub(self.load(ReferenceHead::UNPATCHED_AT))
    }

    /// How many of [`Ring::programs`] have noted the pages touched of what the loader had mapped.
    pub(super) fn ended(&self) -> u64 {
        self.load(ReferenceHead::ENDED_AT)
    }

    /// How many of [`Ring::programs`] had loaded liburing by their end.
    pub(super) fn with_io_uring(&self) -> u64 {
        self.load(ReferenceHead::WITH_IO_URING_AT)
    }

    /// Bytes by which pipes were enlarged.
    pub(super) fn pipe_bytes(&self) -> u64 {
        self.load(ReferenceHead::PIPE_BYTES_AT)
    }

    /// Hidden bytes, indexed by class.
    pub(super) fn hidden_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        (0..).map(|class| self.load(ReferenceHead::HIDDEN_BYTES_AT + class * 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(ring: &Ring, number: u64, what: u64, place: u64) {
        let at = REFERENCE_RING_AT + (number % ENTRIES) as usize * 16;
        ring.word(at + 8).store(place, Ordering::Relaxed);
        ring.word(at).store(what | (number / ENTRIES + 1) << 48, Ordering::Relaxed);
    }

    #[test]
    fn reads_entries_up_to_the_first_incomplete_one() {
        let mut ring = Ring::create().unwrap();
        put(&ring, 0, 7 | 3 << 32 | 1 << 45, 5);
        put(&ring, 2, 9 | 1 << 32, 6);
        ring.word(ReferenceHead::HEAD_AT).store(3, Ordering::Relaxed);
        let mut found = Vec::new();
        assert_eq!(ring.drain(&mut |entry| found.push(entry)), 1);
        assert_eq!(found, [Entry { file: 7, pages: 3, kind: ReferenceKind::Write, place: 5 }]);
        put(&ring, 1, 8 | 1 << 32, 6);
        assert_eq!(ring.drain(&mut |entry| found.push(entry)), 2);
        assert_eq!(ring.load(ReferenceHead::TAIL_AT), 3);
        assert_eq!(found[1].file, 8);
    }

    #[test]
    fn anything_the_job_writes_is_read_within_bounds() {
        let mut ring = Ring::create().unwrap();
        ring.memory.words()[2..].iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        assert_eq!(ring.drain(&mut |_| ()), 0);
        let (read_bytes, unfinished) = ring.drain_runs(&mut |entry| assert!(entry.pages <= 0x1fff));
        assert_eq!((read_bytes, unfinished), (u64::MAX, ENTRIES));
        assert_eq!(ring.hidden_bytes().take(16).count(), 16);
    }
}

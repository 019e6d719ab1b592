//! Memory for measurements.

use std::os::fd::AsFd;
use std::ptr;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

use super::faults;

/// The size of a region: a huge page.
const HUGE_BYTES: usize = 2 << 20;
/// The pages of a region.
pub const PAGES: usize = HUGE_BYTES / PAGE_BYTES;
const PAGE_BYTES: usize = 4 << 10;

/// Consecutive regions, aligned to huge pages.
pub struct Region {
    mapped: *mut u8,
    mapped_bytes: usize,
    first: *mut u8,
    bytes: usize,
}

// SAFETY: memory without other references, accessed by whole bytes, whose content does not matter.
unsafe impl Sync for Region {}

impl Region {
    /// This many regions of unpopulated anonymous memory.
    pub fn new(regions: usize) -> Option<Region> {
        let mapped_bytes = (regions + 1) * HUGE_BYTES;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), mapped_bytes, prot, MapFlags::PRIVATE) };
        let mapped = mapped.ok()?.cast::<u8>();
        let first = mapped.map_addr(|address| address.next_multiple_of(HUGE_BYTES));
        Some(Region { mapped, mapped_bytes, first, bytes: regions * HUGE_BYTES })
    }

    /// One region of a privately mapped memfd, whose pages are copied on write.
    pub fn of_private_file() -> Option<Region> {
        let file = memfd_create("bursar", MemfdFlags::CLOEXEC).ok()?;
        ftruncate(&file, HUGE_BYTES as u64).ok()?;
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, at an address that the kernel chooses; the mapping keeps the file.
        let first = unsafe { mmap(ptr::null_mut(), HUGE_BYTES, prot, flags, file.as_fd(), 0) }.ok()?.cast::<u8>();
        Some(Region { mapped: first, mapped_bytes: HUGE_BYTES, first, bytes: HUGE_BYTES })
    }

    /// madvise on all regions; `None` if the kernel refuses.
    pub fn advise(&self, advice: libc::c_int) -> Option<()> {
        self.madvise(0, self.bytes, advice)
    }

    /// madvise on one region.
    pub fn advise_region(&self, number: usize, advice: libc::c_int) -> Option<()> {
        self.madvise(number * HUGE_BYTES, HUGE_BYTES, advice)
    }

    /// madvise on the first page.
    pub fn advise_page(&self, advice: libc::c_int) -> Option<()> {
        self.madvise(0, PAGE_BYTES, advice)
    }

    fn madvise(&self, offset: usize, bytes: usize, advice: libc::c_int) -> Option<()> {
        // SAFETY: the range is within the mapping; no code relies on content that the advice may drop.
        (unsafe { libc::madvise(self.first.add(offset).cast(), bytes, advice) } == 0).then_some(())
    }

    /// Writes to the first page of a region.
    pub fn touch_region(&self, number: usize) {
        // SAFETY: the region is within the mapping.
        unsafe { self.first.add(number * HUGE_BYTES).write_volatile(1) };
    }

    /// Writes to each of the first pages.
    pub fn touch(&self, pages: usize) {
        // SAFETY: the pages are within the mapping.
        (0..pages).for_each(|page| unsafe { self.first.add(page * PAGE_BYTES).write_volatile(1) });
    }

    /// Reads from each of the first pages.
    pub fn read(&self, pages: usize) {
        for page in 0..pages {
            // SAFETY: the pages are within the mapping.
            unsafe { self.first.add(page * PAGE_BYTES).read_volatile() };
        }
    }

    /// Writes random data to half of each of the first pages.
    pub fn fill(&self, pages: usize) {
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for word in (0..pages * PAGE_BYTES / 8).filter(|word| word * 8 % PAGE_BYTES < PAGE_BYTES / 2) {
            random = next(random);
            // SAFETY: the words are within the mapping, which is aligned.
            unsafe { self.first.cast::<u64>().add(word).write_volatile(random) };
        }
    }

    /// Zeroes a region.
    pub fn zero(&self, number: usize) {
        // SAFETY: the region is within the mapping.
        unsafe { ptr::write_bytes(self.first.add(number * HUGE_BYTES), 0, HUGE_BYTES) };
        std::hint::black_box(self.first);
    }

    /// Whether touching the first page of each region populates the rest. Touches all.
    pub fn is_huge(&self) -> bool {
        let before = faults().minor;
        self.touch(self.bytes / PAGE_BYTES);
        faults().minor == before
    }

    /// The memory as words.
    pub fn words(&self) -> &[u64] {
        // SAFETY: the mapping is aligned, any bytes are valid words, and nothing writes to them while they are borrowed.
        unsafe { std::slice::from_raw_parts(self.first.cast(), self.bytes / 8) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: our own mapping, without remaining borrows.
        let _ = unsafe { munmap(self.mapped.cast(), self.mapped_bytes) };
    }
}

/// The next number of a pseudo-random sequence (xorshift).
pub fn next(mut random: u64) -> u64 {
    random ^= random << 13;
    random ^= random >> 7;
    random ^ random << 17
}

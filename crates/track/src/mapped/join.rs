//! Joins references from tracepoints and from scans of mapped pages into one sequence.

use std::collections::{HashMap, VecDeque};
use std::iter::Peekable;

use foldhash::fast::RandomState;
use model::{FileReference, ReferenceKind};

use super::Mapped;
use crate::files::kernel_device;
use crate::pages::choice::{chosen, chosen_within};
use crate::references::{Iter, References};
use crate::{Tracked, TrackedFile};

/// A fault also maps the pages around it, and the next fault of a neighbour may map the same pages again. If a page
/// faults again after this many pages, it was unmapped meanwhile, or another process maps it.
const ONE_FAULT_PAGES: u64 = 4096;

/// References in order of time. In files whose mapped pages were scanned, one page stands for 2^level neighbours. If
/// that page faults, all of them are taken to fault, and faults of the others are dropped. If a scan finds it accessed,
/// all are taken to be referenced. A page counts once between two scans, except for faults that are [`ONE_FAULT_PAGES`]
/// apart. Its first fault and its first scan are one reference, since the event of a fault may arrive late. All other
/// references stay as the tracepoints show them.
#[derive(Debug)]
pub struct Joined<'a> {
    traced: Peekable<Iter<'a>>,
    scanned: Peekable<Iter<'a>>,
    level: u32,
    scans: &'a [u64],
    /// The number of each scanned file in the sequence.
    numbers: Vec<Option<u32>>,
    is_scanned: Vec<bool>,
    pages: HashMap<(u32, u64), PageState, RandomState>,
    /// Pages in the tracepoints' references so far; a page counts each time.
    traced_pages: u64,
    /// Output references made from the last input run.
    ready: VecDeque<FileReference>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PageState {
    faulted: Option<Faulted>,
    was_scanned: bool,
}

/// The last fault of a page.
#[derive(Clone, Copy, Debug)]
struct Faulted {
    t_ns: u64,
    /// [`Joined::traced_pages`] at that time.
    traced_pages: u64,
}

impl Tracked {
    /// All references, including those found by scans of mapped pages.
    pub fn joined<'a>(&'a self, mapped: &'a Mapped) -> Joined<'a> {
        Joined::of(&self.references, &self.files, self.sees_faults(), mapped)
    }
}

impl<'a> Joined<'a> {
    /// `sees_faults`: whether the tracepoints show faults. If so, a scanned file that is not in `files` is one of them
    /// under another name, and its scanned references are dropped.
    fn of(traced: &'a References, files: &[TrackedFile], sees_faults: bool, mapped: &'a Mapped) -> Joined<'a> {
        let mut further = files.len() as u32..;
        let number = |(device, inode): &(u32, u64)| {
            find(files, *device, *inode).or_else(|| further.next().filter(|_| !sees_faults))
        };
        let numbers: Vec<Option<u32>> = mapped.files.iter().map(number).collect();
        let mut is_scanned = vec![false; files.len()];
        numbers
            .iter()
            .flatten()
            .for_each(|number| is_scanned.get_mut(*number as usize).into_iter().for_each(|is| *is = true));
        Joined {
            traced: traced.iter().peekable(),
            scanned: mapped.references.iter().peekable(),
            level: mapped.level,
            scans: &mapped.scans,
            numbers,
            is_scanned,
            pages: HashMap::default(),
            traced_pages: 0,
            ready: VecDeque::new(),
        }
    }

    fn take_traced(&mut self, run: FileReference) {
        self.traced_pages += u64::from(run.pages);
        let is_sampled = run.kind == ReferenceKind::Fault && self.is_scanned.get(run.file as usize) == Some(&true);
        if !is_sampled {
            self.ready.push_back(run);
            return;
        }
        let since = self.scanned_before(run.t_ns);
        for page in chosen_within(run.first_page, run.first_page + u64::from(run.pages), self.level) {
            let group = page >> self.level;
            let seen = self.pages.entry((run.file, group)).or_default();
            let before = seen.faulted.replace(Faulted { t_ns: run.t_ns, traced_pages: self.traced_pages });
            let is_counted = before.map_or(seen.was_scanned, |before| {
                before.t_ns >= since && self.traced_pages - before.traced_pages < ONE_FAULT_PAGES
            });
            if !is_counted {
                self.ready.push_back(self.whole(run, group));
            }
        }
    }

    fn take_scanned(&mut self, run: FileReference) {
        let Some(file) = self.numbers.get(run.file as usize).copied().flatten() else { return };
        let since = self.scanned_before(run.t_ns);
        for page in run.first_page..run.first_page + u64::from(run.pages) {
            let group = page >> self.level;
            // Skip pages that left the sample: pages are chosen less densely as more is mapped.
            if chosen(group, self.level) != page {
                continue;
            }
            let seen = self.pages.entry((file, group)).or_default();
            let was_scanned = std::mem::replace(&mut seen.was_scanned, true);
            let is_counted = seen.faulted.is_some_and(|faulted| faulted.t_ns >= since || !was_scanned);
            if !is_counted {
                self.ready.push_back(self.whole(FileReference { file, ..run }, group));
            }
        }
    }

    fn scanned_before(&self, t_ns: u64) -> u64 {
        let after = self.scans.partition_point(|scan| *scan < t_ns);
        after.checked_sub(1).map_or(0, |before| self.scans[before])
    }

    fn whole(&self, run: FileReference, group: u64) -> FileReference {
        FileReference { first_page: group << self.level, pages: 1 << self.level, ..run }
    }
}

impl Iterator for Joined<'_> {
    type Item = FileReference;

    fn next(&mut self) -> Option<FileReference> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            let is_scanned_next = match (self.traced.peek(), self.scanned.peek()) {
                (Some(traced), Some(scanned)) => scanned.t_ns < traced.t_ns,
                (None, None) => return None,
                (_, scanned) => scanned.is_some(),
            };
            match is_scanned_next {
                true => self.scanned.next().into_iter().for_each(|run| self.take_scanned(run)),
                false => self.traced.next().into_iter().for_each(|run| self.take_traced(run)),
            }
        }
    }
}

/// Finds a file by the numbers in `maps`. On overlayfs the device there is not that of the underlying file system,
/// which holds the pages.
fn find(files: &[TrackedFile], device: u32, inode: u64) -> Option<u32> {
    let exact = files.iter().rposition(|file| file.inode == inode && kernel_device(file.device) == device);
    let mut same_inode = files.iter().enumerate().filter(|(_, file)| file.inode == inode);
    let only = same_inode.next().filter(|_| device >> 20 == 0 && same_inode.next().is_none());
    exact.or(only.map(|(number, _)| number)).map(|number| number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: TrackedFile = TrackedFile { device: 8 << 8 | 1, inode: 7, path: None };
    const LEVEL: u32 = 4;

    fn run(t_ns: u64, first_page: u64, pages: u32, kind: ReferenceKind) -> FileReference {
        FileReference { t_ns, file: 0, first_page, pages, kind }
    }

    fn references(runs: impl IntoIterator<Item = FileReference>) -> References {
        let mut references = References::default();
        runs.into_iter().for_each(|run| references.push(run));
        references
    }

    /// Scans at these times, each of which found these sampled pages accessed.
    fn scanned(scans: &[(u64, std::ops::Range<u64>)]) -> Mapped {
        let runs = scans.iter().flat_map(|(t_ns, pages)| {
            chosen_within(pages.start, pages.end, LEVEL).map(|page| run(*t_ns, page, 1, ReferenceKind::Fault))
        });
        Mapped {
            references: references(runs),
            files: vec![(8 << 20 | 1, 7)],
            level: LEVEL,
            scans: scans.iter().map(|(t_ns, _)| *t_ns).collect(),
            ..Mapped::default()
        }
    }

    /// Times and pages of the joined references.
    fn joined(traced: &References, files: &[TrackedFile], mapped: &Mapped) -> Vec<(u64, u64)> {
        Joined::of(traced, files, true, mapped).map(|run| (run.t_ns, u64::from(run.pages))).collect()
    }

    fn pages_at(joined: &[(u64, u64)], t_ns: u64) -> u64 {
        joined.iter().filter(|(at, _)| *at == t_ns).map(|(_, pages)| pages).sum()
    }

    #[test]
    fn a_fault_and_the_scan_after_it_are_one_reference() {
        let traced = references([run(5, 0, 256, ReferenceKind::Fault), run(6, 0, 256, ReferenceKind::Fault)]);
        let mapped = scanned(&[(10, 0..512), (20, 0..512), (30, 0..512)]);
        let found = joined(&traced, &[FILE], &mapped);
        let at = [5, 6, 10, 20, 30].map(|t_ns| pages_at(&found, t_ns));
        assert_eq!(at, [256, 0, 256, 512, 512]);
    }

    #[test]
    fn each_new_fault_between_two_scans_is_a_reference() {
        let passes = [3, 4, 5, 6].map(|t_ns| run(t_ns, 0, 8192, ReferenceKind::Fault));
        let found = joined(&references(passes), &[FILE], &scanned(&[(2, 0..0), (10, 0..8192), (20, 0..0)]));
        assert_eq!([3, 4, 5, 6, 10].map(|t_ns| pages_at(&found, t_ns)), [8192, 8192, 8192, 8192, 0]);
    }

    #[test]
    fn a_first_fault_after_its_scan_does_not_count_again() {
        let traced = references([run(12, 0, 256, ReferenceKind::Fault), run(25, 0, 256, ReferenceKind::Fault)]);
        let found = joined(&traced, &[FILE], &scanned(&[(10, 0..256), (20, 0..0), (30, 0..256)]));
        assert_eq!([10, 12, 25, 30].map(|t_ns| pages_at(&found, t_ns)), [256, 0, 256, 0]);
    }

    #[test]
    fn reads_and_faults_of_other_files_stay() {
        let traced = references([
            run(5, 3, 2, ReferenceKind::Read),
            FileReference { file: 1, ..run(6, 3, 2, ReferenceKind::Fault) },
        ]);
        let files = [FILE, TrackedFile { inode: 8, ..FILE }];
        assert_eq!(joined(&traced, &files, &scanned(&[(10, 0..16)])), [(5, 2), (6, 2), (10, 16)]);
    }

    #[test]
    fn only_overlayfs_files_are_found_by_inode_alone() {
        let mapped = |device| Mapped { files: vec![(device, 7)], ..scanned(&[(10, 0..16)]) };
        assert_eq!(joined(&References::default(), &[FILE], &mapped(50)), [(10, 16)]);
        assert_eq!(joined(&References::default(), &[FILE], &mapped(8 << 20 | 2)), []);
    }
}

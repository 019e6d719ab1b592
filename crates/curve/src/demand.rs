//! The page cache's part of the demand: refaults at every limit, from one run without a limit.

use model::{DemandPoint, FileDemand, FileReference, ReferenceKind};

use crate::corners::keep_corners;
use crate::histogram::Histogram;
use crate::lru::Lru;
use crate::slots::Slots;
use crate::stratified::Stratified;

/// Maximum number of tracked pages. With more distinct pages, a share of them is tracked.
const TRACKED_PAGES: usize = 128 << 10;

/// Points of a curve, and the maximum error between them as a part of the most refaults.
const MAX_POINTS: usize = 512;
const CURVE_ERROR: f64 = 0.001;

/// Maximum number of peaks of unreclaimable memory considered: each one squeezed the page cache.
const MAX_SQUEEZES: usize = 64;

/// After this many references to tracked pages, tracking drops every other page, so that a run of hours costs little
/// more than one of seconds: at 15 million references a second, the first halving comes after 4 ms.
const TAKEN_REFERENCES: u32 = 1 << 16;

/// With fewer tracked pages the curve would be too coarse. With this many, a cliff among randomly referenced pages is
/// found to about 2.2 % (one over the square root).
const MIN_TRACKED_PAGES: usize = 2048;

/// Bit of a page's tag: the page has been read. The other bits hold the limit, in pages, that would have kept it
/// through the squeezes since its last reference.
const READ: u32 = 1 << 31;

/// The file demand curve of a run. `references` in order of time; `unreclaimable` is the rest of the job's charge that
/// could not be reclaimed, as (nanoseconds, bytes) in order of time.
///
/// A page referenced again is still cached under limit L if, ever since its last reference, the unreclaimable memory
/// and the pages referenced after it fitted into L together with it. Otherwise it is read again: a refault. The first
/// read of a page is no refault. Neither is a write, which finds its page or creates it: only a read must wait for the
/// disk. Both make the page the last referenced. Removed pages leave their room to later ones.
///
/// The curve is exact to 0.1 % in either axis (more only if 512 points do not suffice) for up to 131 072 distinct pages
/// and 65 536 references. Beyond that, it is made from the share of the pages in `sampled_share` (as in SHARDS;
/// Waldspurger et al., FAST '15; but the same share of every MiB), of at least 2048 pages. Memory stays below 10 MiB in
/// any case. The caller fills in what the references do not contain (`foreign`, `not_visible`, `lost_events`, `rung`).
pub fn file_demand(
    references: impl Iterator<Item = FileReference>,
    unreclaimable: &[(u64, u64)],
    page_bytes: u64,
) -> FileDemand {
    demand_tracking(TRACKED_PAGES, references, unreclaimable, page_bytes)
}

fn demand_tracking(
    most: usize,
    references: impl Iterator<Item = FileReference>,
    unreclaimable: &[(u64, u64)],
    page_bytes: u64,
) -> FileDemand {
    let mut pages = Pages::new(most);
    let mut held = Unreclaimable::new(unreclaimable, page_bytes);
    let mut referenced = 0u64;
    for reference in references {
        for squeeze in held.squeezes_until(reference.t_ns) {
            pages.squeeze(squeeze);
        }
        let held = held.pages_at(reference.t_ns);
        pages.make_room_for(held);
        if reference.kind == ReferenceKind::Removal {
            pages.remove(&reference, held);
        } else {
            referenced += reference.pages as u64;
            pages.reference(&reference, held);
        }
    }
    let distinct = pages.distinct() * page_bytes;
    FileDemand {
        referenced_bytes: referenced * page_bytes,
        distinct_bytes: distinct,
        written_only_bytes: pages.written_only() * page_bytes,
        points: curve(&pages.needs, held.most_bytes(), page_bytes),
        sampled_share: pages.share(),
        ..FileDemand::default()
    }
}

/// The page cache as an LRU stack.
struct Pages {
    stack: Lru<Slots, u32>,
    most: usize,
    tracked: Stratified,
    /// References to tracked pages since the last halving.
    taken: u32,
    needs: Histogram,
    /// Unreclaimable pages that have taken the room of removed pages, or that were there before those were removed.
    held: u64,
    /// Number of removed pages.
    removed: u64,
    /// Number of these that had only been written.
    removed_unread: u64,
}

impl Pages {
    fn new(most: usize) -> Pages {
        Pages {
            stack: Lru::new(),
            most,
            tracked: Stratified::all(),
            taken: 0,
            needs: Histogram::default(),
            held: 0,
            removed: 0,
            removed_unread: 0,
        }
    }

    /// Growing unreclaimable memory first takes the room of removed pages.
    fn make_room_for(&mut self, held: u64) {
        let halvings = self.tracked.halvings();
        let taken = self.stack.take_room((held.saturating_sub(self.held) >> halvings) as usize);
        self.held += (taken as u64) << halvings;
    }

    fn remove(&mut self, reference: &FileReference, held: u64) {
        self.held = held;
        let Pages { stack, tracked, removed, removed_unread, .. } = self;
        let halvings = tracked.halvings();
        tracked.of_run(key_of(reference), reference.pages.into(), |page| {
            if let Some(tag) = stack.remove(page) {
                *removed += 1 << halvings;
                *removed_unread += u64::from(tag & READ == 0) << halvings;
            }
        });
    }

    fn reference(&mut self, reference: &FileReference, held: u64) {
        let first = key_of(reference);
        let reads = reference.kind != ReferenceKind::Write;
        let Pages { stack, tracked, taken, needs, .. } = self;
        let halvings = tracked.halvings();
        tracked.of_run(first, reference.pages.into(), |page| {
            let (distance, tag) = stack.touch(page);
            let squeezed = (*tag & !READ) as u64;
            *tag = (*tag | if reads { READ } else { 0 }) & READ;
            if let Some(distance) = distance.filter(|_| reads) {
                let need = held + ((distance + 1) << halvings);
                needs.add(need.max(squeezed), 1 << halvings);
            }
            *taken += 1;
        });
        if self.taken > TAKEN_REFERENCES && self.stack.len() > 2 * MIN_TRACKED_PAGES {
            self.halve();
        }
        while self.stack.len() > self.most {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.taken = 0;
        self.tracked.halve();
        self.stack.retain(|page| self.tracked.has(page));
    }

    /// Unreclaimable memory had a peak of `held` pages: every page in the stack needed a limit that held both.
    fn squeeze(&mut self, held: u64) {
        let halvings = self.tracked.halvings();
        self.stack.for_each_depth(|depth, tag| {
            let need = (held + ((depth + 1) << halvings)).min(!READ as u64) as u32;
            *tag = *tag & READ | need.max(*tag & !READ);
        });
    }

    fn distinct(&self) -> u64 {
        self.removed + ((self.stack.len() as u64) << self.tracked.halvings())
    }

    fn written_only(&self) -> u64 {
        let unread = self.stack.tags().filter(|tag| tag & READ == 0).count() as u64;
        self.removed_unread + (unread << self.tracked.halvings())
    }

    fn share(&self) -> f64 {
        0.5f64.powi(self.tracked.halvings() as i32)
    }
}

/// Key of its first page.
fn key_of(reference: &FileReference) -> u64 {
    u64::from(reference.file) << 40 ^ reference.first_page
}

/// Unreclaimable memory over time, in pages.
struct Unreclaimable {
    points: Vec<(u64, u64)>,
    next: usize,
    squeezes: Vec<(u64, u64)>,
    next_squeeze: usize,
    page_bytes: u64,
}

impl Unreclaimable {
    fn new(unreclaimable: &[(u64, u64)], page_bytes: u64) -> Unreclaimable {
        let points: Vec<_> = unreclaimable.iter().map(|(t, bytes)| (*t, bytes.div_ceil(page_bytes))).collect();
        let squeezes = peaks(&points, MAX_SQUEEZES);
        Unreclaimable { points, next: 0, squeezes, next_squeeze: 0, page_bytes }
    }

    /// Unreclaimable pages at a time, which must not be before that of the last call. Uses the larger of the samples
    /// before and after: programs allocate and free at once, at an unknown time between the two.
    fn pages_at(&mut self, t_ns: u64) -> u64 {
        while self.points.get(self.next).is_some_and(|(t, _)| *t <= t_ns) {
            self.next += 1;
        }
        let around = &self.points[self.next.saturating_sub(1)..self.points.len().min(self.next + 1)];
        around.iter().map(|(_, held)| *held).max().unwrap_or(0)
    }

    fn squeezes_until(&mut self, t_ns: u64) -> impl Iterator<Item = u64> {
        let from = self.next_squeeze;
        while self.squeezes.get(self.next_squeeze).is_some_and(|(t, _)| *t <= t_ns) {
            self.next_squeeze += 1;
        }
        self.squeezes[from..self.next_squeeze].iter().map(|(_, held)| *held)
    }

    fn most_bytes(&self) -> u64 {
        self.points.iter().map(|(_, held)| held * self.page_bytes).max().unwrap_or(0)
    }
}

/// The local peaks after which the line falls by more than a hundredth of its maximum; by more, if there are too many.
fn peaks(points: &[(u64, u64)], most: usize) -> Vec<(u64, u64)> {
    let highest = points.iter().map(|(_, held)| *held).max().unwrap_or(0);
    let mut fall = highest / 100 + 1;
    loop {
        let peaks = peaks_before_falls(points, fall);
        if peaks.len() <= most {
            return peaks;
        }
        fall *= 2;
    }
}

fn peaks_before_falls(points: &[(u64, u64)], fall: u64) -> Vec<(u64, u64)> {
    let mut peaks = Vec::new();
    let (mut peak, mut lowest): (Option<(u64, u64)>, u64) = (None, 0);
    for point in points {
        match peak {
            Some((_, held)) if point.1 + fall < held => {
                peaks.extend(peak.take());
                lowest = point.1;
            }
            Some((_, held)) if point.1 >= held => peak = Some(*point),
            Some(_) => {}
            None if point.1 > lowest => peak = Some(*point),
            None => lowest = point.1,
        }
    }
    peaks
}

/// Refaults by limit: falls by a step at each limit that some pages need; drawn from the floor on.
fn curve(needs: &Histogram, floor_bytes: u64, page_bytes: u64) -> Vec<DemandPoint> {
    let total: u64 = needs.needs().map(|(_, _, weight)| weight).sum();
    let floor = floor_bytes.div_ceil(page_bytes);
    let mut left = total;
    let mut line: Vec<(u64, u64)> = Vec::new();
    let mut draw = |limit: u64, left: u64| match line.last_mut() {
        Some((at, refaults)) if *at == limit => *refaults = left,
        _ => line.push((limit, left)),
    };
    for (too_little, enough, weight) in needs.needs() {
        if enough > floor {
            draw(floor.max(too_little), left);
        }
        left -= weight;
        draw(enough.max(floor), left);
    }
    if line.is_empty() {
        line.push((floor, 0));
    }
    let from_floor = line[0].0 > floor;
    let first = from_floor.then_some((floor, line[0].1));
    let points: Vec<_> = first
        .into_iter()
        .chain(line)
        .map(|(limit, refaults)| DemandPoint { limit_bytes: limit * page_bytes, refault_bytes: refaults * page_bytes })
        .collect();
    let most = points[0].refault_bytes as f64;
    keep_corners(&points, most * CURVE_ERROR, MAX_POINTS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = 4096;
    const MIB: u64 = 1 << 20;

    fn read(t_ns: u64, first_page: u64, pages: u32) -> FileReference {
        FileReference { t_ns, file: 0, first_page, pages, kind: ReferenceKind::Read }
    }

    /// Reads `mib` of one file `times` times, a mebibyte at a time, one per millisecond.
    fn looping(mib: u64, times: u64) -> impl Iterator<Item = FileReference> {
        (0..mib * times).map(move |i| read(i * 1_000_000, i % mib * 256, 256))
    }

    #[test]
    fn a_loop_beside_a_heap_has_a_cliff_where_both_fit() {
        let demand = file_demand(looping(30, 6), &[(0, 10 * MIB)], PAGE);
        assert_eq!(demand.sampled_share, 1.0);
        assert_eq!(demand.referenced_bytes, 180 * MIB);
        assert_eq!(demand.distinct_bytes, 30 * MIB);
        assert_eq!(demand.written_only_bytes, 0);
        assert_eq!(demand.points[0].limit_bytes, 10 * MIB);
        for limit in [0, 11, 25, 39] {
            assert_eq!(demand.refault_bytes_at(limit * MIB), Some(150 * MIB), "{limit}");
        }
        assert_eq!(demand.refault_bytes_at(41 * MIB), Some(0));
        assert!(demand.points.len() <= 4, "{:?}", demand.points);
    }

    #[test]
    fn a_long_run_is_sampled_and_keeps_its_cliff() {
        let demand = file_demand(looping(300, 100), &[(0, 100 * MIB)], PAGE);
        assert!(
            demand.sampled_share < 1.0 && demand.sampled_share * 300.0 * 256.0 >= 2048.0,
            "{}",
            demand.sampled_share
        );
        assert_eq!(demand.referenced_bytes, 30_000 * MIB);
        let at = |limit: u64| demand.refault_bytes_at(limit * MIB).unwrap() as f64 / (29_700 * MIB) as f64;
        assert!((at(385) - 1.0).abs() < 0.03, "{}", at(385));
        assert!(at(412) < 0.05, "{}", at(412));
    }

    #[test]
    fn a_heap_counts_from_the_sample_before_it() {
        let heap = [(0, MIB), (60_000_000, 24 * MIB), (200_000_000, 24 * MIB)];
        let demand = file_demand(looping(30, 6), &heap, PAGE);
        assert_eq!(demand.refault_bytes_at(53 * MIB), Some(150 * MIB));
        assert_eq!(demand.refault_bytes_at(55 * MIB), Some(0));
    }

    #[test]
    fn a_heap_between_two_reads_squeezes_the_cache() {
        let heap = [(0, MIB), (99_000_000, MIB), (100_000_000, 500 * MIB), (101_000_000, MIB)];
        let second = looping(50, 1).map(|r| FileReference { t_ns: r.t_ns + 200_000_000, ..r });
        let demand = file_demand(looping(50, 1).chain(second), &heap, PAGE);
        assert_eq!(demand.refault_bytes_at(500 * MIB), Some(50 * MIB));
        // Only pages that the heap pushed out are read again: when the second read comes, there is room.
        assert!(demand.refault_bytes_at(525 * MIB).unwrap().abs_diff(25 * MIB) < MIB, "{demand:?}");
        assert!(demand.points.len() <= 6, "a slope takes few points: {demand:?}");
        assert_eq!(demand.refault_bytes_at(551 * MIB), Some(0));
    }

    #[test]
    fn pages_read_after_a_squeeze_do_not_need_its_room() {
        let heap = [(0, 500 * MIB), (1_000_000, MIB)];
        let later = looping(100, 2).map(|r| FileReference { t_ns: r.t_ns + 100_000_000, ..r });
        let demand = file_demand(std::iter::once(read(0, 9_000_000, 1)).chain(later), &heap, PAGE);
        assert_eq!(demand.points, [DemandPoint { limit_bytes: 500 * MIB, refault_bytes: 0 }]);
    }

    #[test]
    fn writes_are_references_but_no_refaults() {
        let writes = looping(50, 3).map(|r| FileReference { kind: ReferenceKind::Write, ..r });
        let demand = file_demand(writes, &[], PAGE);
        assert_eq!(demand.written_only_bytes, 50 * MIB);
        assert_eq!(demand.points, [DemandPoint { limit_bytes: 0, refault_bytes: 0 }]);

        let between =
            looping(10, 1).chain(looping(20, 1).map(|r| FileReference { file: 1, kind: ReferenceKind::Write, ..r }));
        let demand = file_demand(between.chain(looping(10, 1)), &[], PAGE);
        assert_eq!(demand.refault_bytes_at(29 * MIB), Some(10 * MIB));
        assert_eq!(demand.refault_bytes_at(30 * MIB), Some(0));
        assert_eq!(demand.written_only_bytes, 20 * MIB);
    }

    fn removed(t_ns: u64, file: u32, mib: u32) -> FileReference {
        FileReference { file, kind: ReferenceKind::Removal, ..read(t_ns, 0, mib * 256) }
    }

    #[test]
    fn removed_files_take_no_room() {
        let mut references = looping(10, 1).collect::<Vec<_>>();
        for file in 1..=8 {
            let written = looping(40, 1).map(|r| FileReference { file, kind: ReferenceKind::Write, ..r });
            references.extend(written.chain(looping(40, 1).map(|r| FileReference { file, ..r })));
            references.push(removed(0, file, 40));
        }
        references.extend(looping(10, 1));
        let demand = file_demand(references.into_iter(), &[], PAGE);
        assert_eq!(demand.refault_bytes_at(39 * MIB), Some(330 * MIB));
        assert_eq!(demand.refault_bytes_at(40 * MIB), Some(10 * MIB));
        assert_eq!(demand.refault_bytes_at(50 * MIB), Some(0));
        assert_eq!((demand.distinct_bytes, demand.written_only_bytes), (330 * MIB, 0));
    }

    #[test]
    fn a_heap_takes_the_room_of_removed_files() {
        let temporary = looping(100, 1).map(|r| FileReference { file: 1, ..r });
        let later = looping(10, 1).map(|r| FileReference { t_ns: r.t_ns + 300_000_000, ..r });
        let references = looping(10, 1).chain(temporary).chain([removed(100_000_000, 1, 100)]).chain(later);
        let heap = [(0, 0), (150_000_000, 0), (250_000_000, 60 * MIB), (400_000_000, 60 * MIB)];
        let demand = file_demand(references, &heap, PAGE);
        assert_eq!(demand.refault_bytes_at(105 * MIB), Some(5 * MIB));
        assert_eq!(demand.refault_bytes_at(110 * MIB), Some(0));
    }

    #[test]
    fn no_references_give_a_curve_of_one_point() {
        let demand = file_demand(std::iter::empty(), &[(0, 3 * PAGE)], PAGE);
        assert_eq!(demand.points, [DemandPoint { limit_bytes: 3 * PAGE, refault_bytes: 0 }]);
        assert_eq!(demand.sampled_share, 1.0);
    }

    #[test]
    fn sampling_many_pages_keeps_the_cliff() {
        let demand = demand_tracking(16 << 10, looping(1000, 3), &[(0, 10 * MIB)], PAGE);
        assert!(demand.sampled_share < 0.1, "{}", demand.sampled_share);
        let near = |bytes: u64, truth: u64| (bytes as f64 / truth as f64 - 1.0).abs() < 0.03;
        assert!(near(demand.distinct_bytes, 1000 * MIB), "{}", demand.distinct_bytes);
        assert!(near(demand.refault_bytes_at(900 * MIB).unwrap(), 2000 * MIB));
        assert_eq!(demand.refault_bytes_at(1045 * MIB), Some(0));
    }

    #[test]
    fn peaks_are_followed_by_falls() {
        let points: Vec<_> = [1, 5, 3, 9, 9, 8, 2, 4, 4].iter().enumerate().map(|(t, v)| (t as u64, *v)).collect();
        assert_eq!(peaks_before_falls(&points, 0), [(1, 5), (4, 9)]);
        assert_eq!(peaks_before_falls(&points, 2), [(4, 9)]);
    }

    proptest! {
        #[test]
        fn the_curve_matches_an_lru_beside_the_heap(
            accesses in prop::collection::vec((0u64..60, 1u32..5, prop::bool::weighted(0.1)), 1..300),
            heap in 0u64..20,
        ) {
            let references = accesses.iter().enumerate().map(|(t, (page, pages, removed))| {
                let kind = if *removed { ReferenceKind::Removal } else { ReferenceKind::Read };
                FileReference { kind, ..read(t as u64, *page, *pages) }
            });
            let demand = file_demand(references, &[(0, heap * PAGE)], PAGE);
            for limit in heap..heap + 70 {
                let (mut cache, mut seen) = (Vec::new(), std::collections::HashSet::new());
                let mut refaults = 0;
                let pages = accesses.iter().flat_map(|(page, pages, removed)| {
                    (*page..page + *pages as u64).map(move |page| (page, *removed))
                });
                for (page, removed) in pages {
                    let hit = cache.iter().position(|p| *p == page);
                    if let Some(hit) = hit {
                        cache.remove(hit);
                    }
                    if removed {
                        seen.remove(&page);
                        continue;
                    }
                    refaults += (hit.is_none() && !seen.insert(page)) as u64;
                    cache.insert(0, page);
                    cache.truncate((limit - heap) as usize);
                }
                let total = demand.points[0].refault_bytes as f64;
                let off = demand.refault_bytes_at(limit * PAGE).unwrap() as f64 - (refaults * PAGE) as f64;
                prop_assert!(off.abs() <= total * CURVE_ERROR + 1.0, "limit {limit}: off by {off}");
            }
            prop_assert_eq!(demand.points.last().unwrap().refault_bytes, 0);
        }
    }
}

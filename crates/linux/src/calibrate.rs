//! Measures the costs of memory management on this machine.
//!
//! Takes some tenths of a second, on memory and a thread of its own, without root. All memory is touched, dropped and touched again before
//! timing, because the host of a virtual machine may have reclaimed idle memory, whose first touch costs up to a hundred times as much.
//! Figures are medians of CPU time, so that other programs do not count.

mod region;
mod walks;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::Costs;

use crate::core_cache;
use region::{PAGES, Region};

/// Rounds of each measurement.
const ROUNDS: usize = 5;

/// Rounds of measurements on many regions.
const HUGE_ROUNDS: usize = 3;

/// Regions populated one after the other, so that zeroed memory is in no cache.
const REGIONS: usize = 16;

/// Number of present pages at which the constant part of a collapse is measured.
const FEW: usize = 64;

/// Number of pages swapped out and in.
const SWAPPED: usize = 128;

/// Assumed share of the last-level cache, which other programs use, too.
const LAST_SHARE: f64 = 0.25;

/// The costs of this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// All costs.
    pub costs: Costs,
    /// The costs that could not be measured here, by their names in [`Costs`], with the reason. Their values are those of
    /// [`Costs::reference`], or for the last-level cache a quarter of its size.
    pub assumed: Vec<(&'static str, &'static str)>,
    /// Whether another measurement would have the same gaps; `false`: the time was too short for all of them.
    pub complete: bool,
}

/// Measures the costs. Costs that cannot be measured are assumed and reported; so are those whose measurement has not begun after
/// `longest`. An idle machine takes some tenths of a second.
pub fn measure(longest: Duration) -> Calibration {
    let ends = Instant::now() + longest;
    let all = || {
        let _thp = HugeAllowed::for_this_process();
        let calibration = Calibration { costs: assumed(), assumed: Vec::new(), complete: true };
        let mut measuring = Measuring { calibration, ends };
        measuring.all();
        measuring.calibration
    };
    // Without a thread nothing can be measured.
    let nothing = || Calibration { costs: assumed(), assumed: Vec::new(), complete: false };
    thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, all).ok()?.join().ok()).unwrap_or_else(nothing)
}

/// The assumed costs.
fn assumed() -> Costs {
    Costs { last_cache_bytes: LAST_SHARE * core_cache::last_bytes() as f64, ..Costs::reference() }
}

/// The name of a cost, and its field.
type Place = (&'static str, fn(&mut Costs) -> &mut f64);

struct Measuring {
    calibration: Calibration,
    ends: Instant,
}

impl Measuring {
    fn all(&mut self) {
        const NO_MEMORY: &str = "the kernel gave no memory to measure with";
        const NO_HUGE: &str = "the kernel gives no huge pages at first touch: none is free, or THP is off";
        const NO_COLLAPSE: &str = "the kernel did not collapse: it is older than Linux 6.1, or no huge page is free";
        const NO_WALKS: &str = "it takes 1 GiB for a moment, of 8 GiB that are free, half of it in huge pages";
        const NO_SWAP: &str = "there is no swap";
        self.take([("base_fault_ns", |costs| &mut costs.base_fault_ns)], NO_MEMORY, || Some([median(base_fault)?]));
        self.take([("cow_ns", |costs| &mut costs.cow_ns)], NO_MEMORY, || Some([median(copy)?]));
        self.take(
            [
                ("huge_fault_ns", |costs| &mut costs.huge_fault_ns),
                ("zero_ns", |costs| &mut costs.zero_ns),
                ("pool_page_ns", |costs| &mut costs.pool_page_ns),
            ],
            NO_HUGE,
            huge_fault,
        );
        self.take([("populate_huge_ns", |costs| &mut costs.populate_huge_ns)], NO_HUGE, || Some([populate()?]));
        self.take([("split_ns", |costs| &mut costs.split_ns)], NO_HUGE, || Some([median(split)?]));
        self.take(
            [
                ("collapse_base_ns", |costs| &mut costs.collapse_base_ns),
                ("collapse_page_ns", |costs| &mut costs.collapse_page_ns),
                ("collapse_stall_ns", |costs| &mut costs.collapse_stall_ns),
            ],
            NO_COLLAPSE,
            collapses,
        );
        self.take(
            [("page_out_ns", |costs| &mut costs.page_out_ns), ("page_in_ns", |costs| &mut costs.page_in_ns)],
            NO_SWAP,
            swap,
        );
        // The longest measurement comes last, so that all others begin in time.
        self.take(
            [
                ("walk_dependent_ns", |costs| &mut costs.walk_dependent_ns),
                ("walk_near_dependent_ns", |costs| &mut costs.walk_near_dependent_ns),
                ("walk_memory_dependent_ns", |costs| &mut costs.walk_memory_dependent_ns),
                ("access_dependent_ns", |costs| &mut costs.access_dependent_ns),
                ("walk_independent_ns", |costs| &mut costs.walk_independent_ns),
                ("walk_near_independent_ns", |costs| &mut costs.walk_near_independent_ns),
                ("walk_memory_independent_ns", |costs| &mut costs.walk_memory_independent_ns),
                ("access_independent_ns", |costs| &mut costs.access_independent_ns),
                ("last_cache_bytes", |costs| &mut costs.last_cache_bytes),
            ],
            NO_WALKS,
            walks::measured,
        );
    }

    fn take<const N: usize>(
        &mut self,
        places: [Place; N],
        why: &'static str,
        measure: impl FnOnce() -> Option<[f64; N]>,
    ) {
        const NO_TIME: &str = "the machine was too busy to measure it soon enough";
        let Calibration { costs, assumed, complete } = &mut self.calibration;
        let in_time = Instant::now() < self.ends;
        *complete &= in_time;
        match in_time.then(measure).flatten() {
            Some(figures) => places.into_iter().zip(figures).for_each(|((_, place), ns)| *place(costs) = ns),
            None => assumed.extend(places.map(|(name, _)| (name, if in_time { why } else { NO_TIME }))),
        }
    }
}

/// The median of a few rounds, of which the first is a warm-up; `None` if any fails.
fn median(round: impl Fn() -> Option<f64>) -> Option<f64> {
    round()?;
    (0..ROUNDS).map(|_| round()).collect::<Option<Vec<f64>>>().map(middle)
}

fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn base_fault() -> Option<f64> {
    let region = Region::new(1)?;
    region.advise(libc::MADV_NOHUGEPAGE)?;
    region.touch(PAGES);
    region.advise(libc::MADV_DONTNEED)?;
    Some(processor_ns(|| region.touch(PAGES)) / PAGES as f64)
}

/// A huge page fault, its zeroing, and the rest, as for a page that was zeroed before.
fn huge_fault() -> Option<[f64; 3]> {
    let fault = huge(|regions, number| {
        regions.touch_region(number);
        Some(())
    })?;
    let zero = zero()?.min(fault);
    Some([fault, zero, fault - zero])
}

fn populate() -> Option<f64> {
    huge(|regions, number| regions.advise_region(number, libc::MADV_POPULATE_WRITE))
}

/// The time to make a huge page, when the previously zeroed ones have left the caches.
fn huge(make: impl Fn(&Region, usize) -> Option<()>) -> Option<f64> {
    let regions = Region::new(REGIONS)?;
    regions.advise(libc::MADV_HUGEPAGE)?;
    let timed = |number| {
        let mut made = None;
        let ns = processor_ns(|| made = make(&regions, number));
        made.map(|()| ns)
    };
    // Other programs may have taken memory that a round dropped; new memory may have been idle.
    let round = |_| {
        regions.touch(REGIONS * PAGES);
        regions.advise(libc::MADV_DONTNEED)?;
        (0..REGIONS).map(timed).collect::<Option<Vec<f64>>>().map(middle)
    };
    let rounds = (0..HUGE_ROUNDS).map(round).collect::<Option<Vec<f64>>>()?;
    regions.is_huge().then(|| rounds.into_iter().fold(f64::INFINITY, f64::min))
}

fn zero() -> Option<f64> {
    let regions = Region::new(REGIONS)?;
    regions.touch(REGIONS * PAGES);
    Some(middle((0..REGIONS).map(|number| processor_ns(|| regions.zero(number))).collect()))
}

/// A write to a page of a privately mapped file: the copy is like that of a page shared since a fork.
fn copy() -> Option<f64> {
    let region = Region::of_private_file()?;
    region.read(PAGES);
    Some(processor_ns(|| region.touch(PAGES)) / PAGES as f64)
}

/// The constant cost of a collapse, its cost per page, and how long other threads wait for one.
fn collapses() -> Option<[f64; 3]> {
    let (few, all) = (median(|| collapse(FEW))?, median(|| collapse(PAGES))?);
    let page = (all - few).max(0.0) / (PAGES - FEW) as f64;
    let base = (few - FEW as f64 * page).max(0.0);
    // A thread that touches the region waits for the collapse; longer waits were for a processor.
    Some([base, page, median(stall)?.min(all)])
}

fn collapse(present: usize) -> Option<f64> {
    let region = ready_to_collapse(present)?;
    let mut done = None;
    let ns = processor_ns(|| done = region.advise(libc::MADV_COLLAPSE));
    done.map(|()| ns)
}

/// The longest time that another thread's reads of the region stop during a collapse. With a single processor it waits for the whole
/// collapse.
fn stall() -> Option<f64> {
    let region = ready_to_collapse(PAGES)?;
    if thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
        let begun = Instant::now();
        region.advise(libc::MADV_COLLAPSE)?;
        return Some(begun.elapsed().as_nanos() as f64);
    }
    let (reads, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let reader = thread::Builder::new().spawn_scoped(scope, || {
            let mut longest = 0;
            let mut last = Instant::now();
            while !ended.load(Ordering::Acquire) {
                region.read(1);
                let now = Instant::now();
                longest = longest.max(now.duration_since(last).as_nanos());
                last = now;
                reads.store(true, Ordering::Release);
            }
            longest as f64
        });
        let reader = reader.ok()?;
        while !reads.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let done = region.advise(libc::MADV_COLLAPSE);
        ended.store(true, Ordering::Release);
        let longest = reader.join().ok()?;
        done.map(|()| longest)
    })
}

/// Advice on a single page of a huge page splits the huge page.
fn split() -> Option<f64> {
    let region = Region::new(1)?;
    region.advise(libc::MADV_HUGEPAGE)?;
    region.touch(1);
    if !region.is_huge() {
        return None;
    }
    let mut done = None;
    let ns = processor_ns(|| done = region.advise_page(libc::MADV_COLD));
    done.map(|()| ns)
}

/// Cost of swapping out and in, per page; `None` where pages are not swapped out.
fn swap() -> Option<[f64; 2]> {
    let region = Region::new(1)?;
    region.advise(libc::MADV_NOHUGEPAGE)?;
    let pair = || {
        region.fill(SWAPPED);
        let mut done = None;
        let out = processor_ns(|| done = region.advise(libc::MADV_PAGEOUT));
        done?;
        let before = faults().major;
        let begun = Instant::now();
        region.read(SWAPPED);
        let back = begun.elapsed().as_nanos() as f64;
        (faults().major > before).then_some([out / SWAPPED as f64, back / SWAPPED as f64])
    };
    // Waiting for a disk counts, waiting for a processor does not: the shortest time has the least of it.
    let rounds = (0..ROUNDS).map(|_| pair()).collect::<Option<Vec<[f64; 2]>>>()?;
    rounds.into_iter().reduce(|least, round| [least[0].min(round[0]), least[1].min(round[1])])
}

/// Populates 4 KiB pages, then allows huge pages again.
fn ready_to_collapse(present: usize) -> Option<Region> {
    let region = Region::new(1)?;
    region.advise(libc::MADV_NOHUGEPAGE)?;
    region.touch(present);
    region.advise(libc::MADV_HUGEPAGE)?;
    Some(region)
}

struct Faults {
    minor: i64,
    major: i64,
}

/// The counts of this thread.
fn faults() -> Faults {
    // SAFETY: the structure consists of numbers, for which zero bytes are valid; the kernel writes only within it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    Faults { minor: usage.ru_minflt, major: usage.ru_majflt }
}

/// CPU time of a function, nanoseconds.
fn processor_ns(what: impl FnOnce()) -> f64 {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    };
    let begun = now();
    what();
    now() - begun
}

/// Allows huge pages to this process while it lives: its parent may have disabled them (PR_SET_THP_DISABLE) for other programs.
struct HugeAllowed {
    before: libc::c_int,
}

impl HugeAllowed {
    fn for_this_process() -> HugeAllowed {
        // SAFETY: neither call accesses memory of this process.
        let before = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) };
        if before == 1 {
            unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0) };
        }
        HugeAllowed { before }
    }
}

impl Drop for HugeAllowed {
    fn drop(&mut self) {
        if self.before == 1 {
            // SAFETY: as above.
            unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_is_measured_or_has_a_reason() {
        let Calibration { costs, assumed, .. } = measure(Duration::from_secs(10));
        let value = serde_json::to_value(&costs).unwrap();
        let costs = value.as_object().unwrap();
        assert!(costs.values().all(|one| one.as_f64().is_some_and(|one| (0.0..1e9).contains(&one))), "{costs:?}");
        for (name, why) in assumed {
            assert!(costs.contains_key(name) && !why.is_empty(), "{name}: {why}");
        }
    }

    #[test]
    fn without_time_all_costs_are_assumed_and_reported() {
        let Calibration { costs, assumed: names, complete } = measure(Duration::ZERO);
        assert_eq!((costs, complete), (assumed(), false));
        assert_eq!(names.len(), 21);
        assert!(names.iter().all(|(_, why)| why.contains("too busy")), "{names:?}");
    }

    #[test]
    fn a_region_is_huge_only_when_one_fault_made_all_of_it() {
        let region = Region::new(1).unwrap();
        region.advise(libc::MADV_NOHUGEPAGE).unwrap();
        region.touch(1);
        assert!(!region.is_huge());
    }

    #[test]
    fn mapped_memory_is_unmapped() {
        let mapped = || std::fs::read_to_string("/proc/thread-self/maps").unwrap().lines().count();
        let before = mapped();
        for _ in 0..100 {
            Region::new(3).unwrap().touch(1);
        }
        assert!(mapped() <= before + 50, "{before}");
    }
}

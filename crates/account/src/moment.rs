//! Series read across: all lines at one moment.

use model::{HUGETLB_CHARGED, Observation, STOCKS_BYTES, names};

use crate::is_attached;

/// The job's figures at one moment, in bytes.
pub struct Moment<'a> {
    run: &'a Observation,
    t_ns: u64,
}

impl<'a> Moment<'a> {
    /// That moment.
    pub fn at(run: &'a Observation, t_ns: u64) -> Moment<'a> {
        Moment { run, t_ns }
    }

    /// The moment at which `measure` is largest, among the samples of the series named; the first of equals.
    pub fn of_the_largest(
        run: &'a Observation,
        sampled_with: &str,
        measure: impl Fn(&Moment) -> Option<u64>,
    ) -> Option<(Moment<'a>, u64)> {
        let points = &run.job_series(sampled_with)?.points;
        let mut largest: Option<(u64, u64)> = None;
        for (t_ns, _) in points {
            let value = measure(&Moment::at(run, *t_ns));
            if let Some(value) = value.filter(|value| largest.is_none_or(|(_, peak)| *value > peak)) {
                largest = Some((*t_ns, value));
            }
        }
        largest.map(|(t_ns, value)| (Moment::at(run, t_ns), value))
    }

    /// When it is, in nanoseconds since the run began.
    pub fn t_ns(&self) -> u64 {
        self.t_ns
    }

    /// Whether the job ran at that moment. Before, there is only what it is started from; after, only the page cache that
    /// it leaves behind.
    pub fn has_job(&self) -> bool {
        self.t_ns > 0 && self.get(names::PROCESSES) != Some(0)
    }

    /// The value in force.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.run.job_series(name)?.at(self.t_ns).map(|v| v.max(0.0) as u64)
    }

    /// The kernel's line of the charge: what the kernel names as such, and whatever else is charged beyond heap, file and
    /// shared (per-processor stocks, objects without a line of their own), but for [`unmapped`](Moment::unmapped) heap.
    pub fn kernel(&self) -> Option<u64> {
        self.get(names::KERNEL).max(self.rest().map(|rest| rest - self.unmapped()))
    }

    /// Heap that is charged and in no line of the kernel's, for no process has it mapped any more: what a process is giving back at
    /// this moment, as when it ends, and what was [`given_back`](Moment::given_back) in parts. It is on the kernel's lists until it is
    /// freed.
    pub fn unmapped(&self) -> u64 {
        let beyond_all_lines = || Some(self.rest()?.saturating_sub(self.get(names::KERNEL)?));
        let on_lists_alone = || {
            let lists = self.get(names::ACTIVE_ANON)? + self.get(names::INACTIVE_ANON)?;
            let unevictable = self.get(names::UNEVICTABLE).unwrap_or(0);
            Some((lists + unevictable).saturating_sub(self.get(names::HEAP)? + self.get(names::SHARED)?))
        };
        beyond_all_lines().zip(on_lists_alone()).map_or(0, |(beyond, on_lists)| beyond.min(on_lists))
    }

    /// Parts of transparent huge pages that the program has given back. They stay charged until memory is short: then the kernel
    /// splits the huge pages and frees the parts (Documentation/mm/transhuge.rst, deferred_split_folio). It counts the huge pages that
    /// wait for it; records of older versions do not have that count, and there all unmapped heap is taken for such.
    pub fn given_back(&self) -> u64 {
        let may_have_had_huge = || self.run.job_series(names::HUGE_PAGES).map(|_| u64::MAX);
        let parted = self.run.job_series(names::SYSTEM_PARTED_HUGE_PAGES).and_then(|series| {
            let before = series.points.first().filter(|_| !is_attached(self.run)).map_or(0.0, |(_, bytes)| *bytes);
            Some((series.at(self.t_ns)? - before).max(0.0) as u64)
        });
        let bytes = self.unmapped().min(parted.or_else(may_have_had_huge).unwrap_or(0));
        if bytes > STOCKS_BYTES { bytes } else { 0 }
    }

    /// Kernel memory that somebody holds: what is named, else what the other lines leave. Stocks are given back when
    /// memory is short, and charge and lines are not read at quite the same moment.
    pub fn kernel_held(&self) -> Option<u64> {
        self.get(names::KERNEL).or_else(|| self.rest())
    }

    /// Kernel objects that reclaim can take, such as the names and inodes of files. cgroup v2 counts them. On v1 they are
    /// the kernel memory that the cgroup still holds when its last process has ended, or the objects of its page cache if
    /// these are more; but never more than the machine's reclaimable objects have grown by, nor than what page
    /// tables and stacks leave of the job's kernel memory.
    pub fn slab_reclaimable(&self) -> Option<u64> {
        self.get(names::SLAB_RECLAIMABLE).or_else(|| {
            // Since the least before: meanwhile other programs may have given some back.
            let growth = |name: &str| {
                let until_now = self.run.job_series(name)?.points.iter().take_while(|(t_ns, _)| *t_ns <= self.t_ns);
                let least = until_now.map(|(_, bytes)| *bytes).reduce(f64::min)?.max(0.0) as u64;
                Some(self.get(name)?.saturating_sub(least))
            };
            // Slabs that were half empty take in more without growing: the objects' own numbers show that.
            let grown = growth(names::SYSTEM_SLAB_RECLAIMABLE).max(growth(names::SYSTEM_NAMES))?;
            // Objects of the page cache go with it, so the end does not show them if files were removed.
            let of_cache = self.get(names::FILE).map_or(0, |file| (file as f64 * CACHE_METADATA) as u64);
            let stacks = self.get(names::TASKS).unwrap_or(0) * STACK;
            let of_processes = self.get(names::PAGE_TABLES).unwrap_or(0) + stacks;
            let reclaimable = left_by_all(self.run)?.max(of_cache).min(grown);
            Some(reclaimable.min(self.get(names::KERNEL)?.saturating_sub(of_processes)))
        })
    }

    /// Pages of hugetlb's pools that are part of the charge, as they are on cgroup v2 mounted with `memory_hugetlb_accounting`.
    pub fn hugetlb_charged(&self) -> u64 {
        let is_charged = self.run.job_series(names::HUGETLB).is_some_and(|series| series.rung == HUGETLB_CHARGED);
        self.get(names::HUGETLB).filter(|_| is_charged).unwrap_or(0)
    }

    fn rest(&self) -> Option<u64> {
        let others = self.get(names::HEAP)? + self.get(names::FILE)? + self.get(names::SHARED)?;
        Some(self.get(names::CHARGE)?.saturating_sub(others + self.hugetlb_charged()))
    }
}

/// A thread's stack in the kernel, bytes (x86-64, arm64).
const STACK: u64 = 16 << 10;

/// Kernel objects that go with the page cache, as a share of it: an xa_node of 576 bytes for 64 pages, and on ext4 a
/// buffer_head of 104 bytes for each page that was written.
const CACHE_METADATA: f64 = (576.0 / 64.0 + 104.0) / 4096.0;

/// Kernel memory that a cgroup held at the last sample, if none of its processes lived any more.
fn left_by_all(run: &Observation) -> Option<u64> {
    let (_, processes) = run.job_series(names::PROCESSES)?.points.last()?;
    let (_, left) = run.job_series(names::KERNEL)?.points.last()?;
    (*processes == 0.0).then_some(left.max(0.0) as u64)
}

/// The largest value of one series, in bytes.
pub fn peak(run: &Observation, name: &str) -> Option<u64> {
    run.job_series(name)?.peak().map(|v| v.max(0.0) as u64)
}

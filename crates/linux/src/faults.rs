//! Page faults, timed by BPF (`bpf/faults.bpf.c`) or, without root, only counted by perf events.

mod calibrate;
mod counted;

use std::os::fd::{AsRawFd, IntoRawFd};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object};
use libbpf_sys::{PERF_COUNT_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_PAGE_FAULTS_MIN};
use model::{
    CallFigures, FaultCauses, FaultFigures, FaultKind, FaultMoment, FaultShare, Faults, Latencies, LatencyHistogram,
    MemoryCall, OrderFaults, SlowFault, SlowFaults, TracerCost,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::bpf::map;
use crate::btf::{self, Types};
use crate::{bpf, file, perf, procfs};

pub use counted::Counted;

/// The source of [`Tracer`]'s figures.
pub const RUNG: &str = "exception tracepoints and fault events (BPF)";

/// Why faults cannot be timed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The BPF programs cannot be used.
    #[error(transparent)]
    Bpf(#[from] bpf::Error),
    /// The start of a fault is not visible.
    #[error("this kernel does not have the tracepoint {0}, which is x86's")]
    NoTracepoint(&'static str),
    /// The end of a fault is not visible.
    #[error("perf_event_open refuses the events that end a fault: {0}; they need CAP_PERFMON")]
    NoEvents(std::io::Error),
    /// The tracer's own cost could not be measured.
    #[error("the cost of tracing faults could not be measured: {0}")]
    Calibration(std::io::Error),
}

/// The programs, loaded and attached; they stop when this is dropped.
pub struct Tracer {
    object: Object,
    links: Vec<Link>,
    cost: TracerCost,
    timeline: Timeline,
    /// The last moment that was read.
    last_moment: u64,
}

/// A tracepoint, the program on it, and whether faults can be timed without it.
const PROGRAMS: [(&str, &str, bool); 18] = [
    ("thread_starts", "sched_process_fork", true),
    ("thread_executes", "sched_process_exec", true),
    ("thread_exits", "sched_process_exit", true),
    ("user_faults", "page_fault_user", true),
    ("kernel_faults", "page_fault_kernel", true),
    ("page_allocated", "mm_page_alloc", true),
    ("task_switches", "sched_switch", true),
    ("rss_changes", "rss_stat", false),
    ("compaction_begins", "mm_compaction_begin", false),
    ("compaction_ends", "mm_compaction_end", false),
    ("reclaim_begins", "mm_vmscan_direct_reclaim_begin", false),
    ("reclaim_ends", "mm_vmscan_direct_reclaim_end", false),
    ("group_reclaim_begins", "mm_vmscan_memcg_reclaim_begin", false),
    ("group_reclaim_ends", "mm_vmscan_memcg_reclaim_end", false),
    ("collapse_begins", "mm_collapse_huge_page_isolate", false),
    ("collapse_ends", "mm_collapse_huge_page", false),
    ("call_begins", "sys_enter", false),
    ("call_ends", "sys_exit", false),
];

/// The programs on perf events, and the events.
const ENDS: [(&str, u32); 2] =
    [("minor_fault_ends", PERF_COUNT_SW_PAGE_FAULTS_MIN), ("major_fault_ends", PERF_COUNT_SW_PAGE_FAULTS_MAJ)];

/// `bpf/faults.h`.
const KINDS: usize = FaultKind::ALL.len();
const CAUSES: usize = 4;
const HISTOGRAMS: usize = 3;
const ORDERS: usize = 12;
const ORDER_NONE: u8 = ORDERS as u8 - 1;
const MOMENTS: u64 = 1024;
const MOMENT_LOG2: u32 = 23;
const SLOWEST: usize = 64;
/// `struct thread` of `bpf/faults.bpf.c`.
const THREAD_MAP: &str = "threads";

#[cfg(bpf_object)]
fn object() -> Result<&'static [u8], Error> {
    Ok(include_bytes!(concat!(env!("OUT_DIR"), "/faults.bpf.o")))
}

#[cfg(not(bpf_object))]
fn object() -> Result<&'static [u8], Error> {
    Err(bpf::Error::NotBuilt(include_str!(concat!(env!("OUT_DIR"), "/bpf-missing.txt"))).into())
}

/// Whether faults can be timed here.
///
/// # Errors
/// Why not.
pub fn available() -> Result<(), Error> {
    let object = load()?;
    attach(&object).map(drop)
}

impl Tracer {
    /// Loads the programs, measures their cost and attaches them. No process is followed yet.
    ///
    /// # Errors
    /// Why faults cannot be timed here.
    pub fn load() -> Result<Tracer, Error> {
        let object = load()?;
        let (links, cost) = calibrate::calibrate(&object)?;
        let last_moment = procfs::monotonic_ns() >> MOMENT_LOG2;
        Ok(Tracer { object, links, cost, timeline: Timeline::default(), last_moment })
    }

    /// Times the faults of this process from now on, with those of all threads and processes that it starts.
    ///
    /// # Errors
    /// [`bpf::Error::Follow`].
    pub fn follow(&self, pid: i32) -> Result<(), Error> {
        follow(&self.object, pid)
    }

    /// Reads the faults over time; must be called every few seconds, else the time line lacks some.
    ///
    /// # Errors
    /// [`bpf::Error::Read`].
    pub fn poll(&mut self) -> Result<(), Error> {
        self.take_moments(procfs::monotonic_ns() >> MOMENT_LOG2)
    }

    /// Reads the moments before `end`.
    fn take_moments(&mut self, end: u64) -> Result<(), Error> {
        let moments = map(&self.object, "moments")?;
        for number in self.last_moment.max(end.saturating_sub(MOMENTS))..end {
            for values in per_cpu(&moments, (number % MOMENTS) as u32)? {
                let mut values = Words(&values);
                if values.next() == number {
                    self.timeline.add(number, [values.next(), values.next(), values.next()]);
                }
            }
        }
        self.last_moment = end;
        Ok(())
    }

    /// Stops, and returns the results. Times are since `origin_ns` of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// [`bpf::Error::Read`].
    pub fn finish(mut self, origin_ns: u64) -> Result<Faults, Error> {
        self.links.clear();
        self.take_moments((procfs::monotonic_ns() >> MOMENT_LOG2) + 1)?;
        let mut faults = Faults { rung: RUNG.into(), tracer: Some(self.cost), ..Faults::default() };
        let mut all = Raw::default();
        for (number, kind) in (0u32..).zip(FaultKind::ALL) {
            let raw = Raw::read(&self.object, number)?;
            if raw.count > 0 {
                faults.kinds.insert(kind, raw.figures(&self.cost));
                all.merge(&raw);
            }
        }
        faults.overall = all.figures(&self.cost);
        for (number, call) in (0u32..).zip(MemoryCall::ALL) {
            faults.calls.extend(calls(&self.object, number)?.map(|figures| (call, figures)));
        }
        let missed = map(&self.object, "missed")?;
        let sum = |what| Ok::<u64, Error>(per_cpu(&missed, what)?.iter().map(|value| Words(value).next()).sum());
        faults.unfinished_count = Some(sum(0)?);
        faults.untimed_count = Some(sum(1)?);
        match sum(2)? {
            0 => {}
            threads => faults.notes.push(format!("{threads} threads could not be followed; their faults are missing.")),
        }
        (faults.moment_seconds, faults.moments) = self.timeline.finish(origin_ns);
        for values in per_cpu(&map(&self.object, "slowest")?, 0)? {
            faults.slowest.extend(slowest(&values, origin_ns));
        }
        faults.slowest.sort_by(|a, b| b.latency_us.total_cmp(&a.latency_us));
        faults.slowest.truncate(SLOWEST);
        Ok(faults)
    }
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("cost", &self.cost).finish_non_exhaustive()
    }
}

fn load() -> Result<Object, Error> {
    let bytes = object()?;
    let kernel = Types::of_kernel().map_err(|_| bpf::Error::NoBtf)?;
    let mut there = kernel.tracepoints(&PROGRAMS.map(|(_, tracepoint, _)| tracepoint));
    for ((_, tracepoint, needed), there) in PROGRAMS.iter().zip(&there) {
        if *needed && !there {
            return Err(Error::NoTracepoint(tracepoint));
        }
    }
    if !has_swap() {
        // Every fault passes this program, and only swap-ins are reported by it.
        let swap_ins = PROGRAMS.iter().zip(&mut there).find(|((name, ..), _)| *name == "rss_changes");
        swap_ins.into_iter().for_each(|(_, there)| *there = false);
    }
    let mut opened = btf::open(bytes, &kernel).map_err(bpf::Error::Refused)?;
    for mut program in opened.object().progs_mut() {
        let at = PROGRAMS.iter().position(|(name, ..)| program.name() == *name);
        program.set_autoload(at.is_none_or(|at| there[at]));
    }
    opened.load().map_err(|error| bpf::Error::Refused(error).into())
}

/// Below its heading, `/proc/swaps` has a line for each device.
fn has_swap() -> bool {
    file::read_if_present(std::path::Path::new("/proc/swaps")).is_none_or(|swaps| swaps.lines().count() > 1)
}

fn attach(object: &Object) -> Result<Vec<Link>, Error> {
    let mut links = Vec::new();
    for program in object.progs_mut() {
        let end = ENDS.iter().find(|(name, _)| program.name() == *name);
        let Some((_, event)) = end else {
            if program.autoload() {
                links.push(program.attach().map_err(bpf::Error::Refused)?);
            }
            continue;
        };
        let processors = libbpf_rs::num_possible_cpus().map_err(bpf::Error::Refused)?;
        for processor in 0..processors as i32 {
            let event = match perf::each_of_processor(processor, (*event).into()) {
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                event => event.map_err(Error::NoEvents)?,
            };
            // From here on the link owns the descriptor.
            links.push(program.attach_perf_event(event.into_raw_fd()).map_err(bpf::Error::Refused)?);
        }
    }
    Ok(links)
}

fn per_cpu(map: &MapHandle, key: u32) -> Result<Vec<Vec<u8>>, Error> {
    Ok(map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY).map_err(bpf::Error::Read)?.unwrap_or_default())
}

fn follow(object: &Object, pid: i32) -> Result<(), Error> {
    let refused = |source| bpf::Error::Follow { pid, source };
    let thread = Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let thread = thread.map_err(|errno| refused(std::io::Error::from(errno).into()))?;
    let threads = map(object, THREAD_MAP)?;
    let fresh = vec![0; threads.value_size() as usize];
    threads.update(&thread.as_raw_fd().to_ne_bytes(), &fresh, MapFlags::ANY).map_err(refused)?;
    Ok(())
}

/// `struct settings`.
fn set(object: &Object, fixed_ns: i64, inner_ns: u64) -> Result<(), Error> {
    let huge = file::read_if_present(std::path::Path::new("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"));
    let huge: u64 = huge.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(2 << 20);
    let order = (huge / procfs::page_bytes()).max(1).ilog2();
    let namespace = procfs::inner_pid_namespace().unwrap_or(0);
    let mut value: Vec<u8> = [fixed_ns.to_ne_bytes(), inner_ns.to_ne_bytes()].concat();
    value.extend([order, namespace].map(u32::to_ne_bytes).concat());
    Ok(map(object, "settings")?.update(&0u32.to_ne_bytes(), &value, MapFlags::ANY).map_err(bpf::Error::Read)?)
}

/// Reads consecutive u64s of a C structure; those beyond its end read as 0.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn next(&mut self) -> u64 {
        match self.0.split_first_chunk() {
            Some((chunk, rest)) => {
                self.0 = rest;
                u64::from_ne_bytes(*chunk)
            }
            None => 0,
        }
    }
}

/// `struct figures` and the histograms of a kind, summed over the processors.
#[derive(Default)]
struct Raw {
    count: u64,
    sum_ns: u64,
    max_ns: u64,
    max_on_cpu_ns: u64,
    in_kernel: u64,
    major: u64,
    inner: u64,
    slow_count: u64,
    slow_sum_ns: u64,
    slow_causes: [u64; CAUSES],
    /// Count, sum and part.
    causes: [[u64; 3]; CAUSES],
    /// Count, sum and maximum.
    orders: [[u64; 3]; ORDERS],
    histograms: [LatencyHistogram; HISTOGRAMS],
}

impl Raw {
    fn read(object: &Object, kind: u32) -> Result<Raw, Error> {
        let mut raw = Raw::default();
        for values in per_cpu(&map(object, "figures")?, kind)? {
            let mut values = Words(&values);
            let mut next = || values.next();
            raw.merge(&Raw {
                count: next(),
                sum_ns: next(),
                max_ns: next(),
                max_on_cpu_ns: next(),
                in_kernel: next(),
                major: next(),
                inner: next(),
                slow_count: next(),
                slow_sum_ns: next(),
                slow_causes: std::array::from_fn(|_| next()),
                causes: std::array::from_fn(|_| std::array::from_fn(|_| next())),
                orders: std::array::from_fn(|_| std::array::from_fn(|_| next())),
                histograms: Default::default(),
            });
        }
        if raw.count == 0 {
            return Ok(raw);
        }
        let histograms = map(object, "histograms")?;
        for (which, histogram) in (0u32..).zip(&mut raw.histograms) {
            for values in per_cpu(&histograms, kind * HISTOGRAMS as u32 + which)? {
                let mut values = Words(&values);
                (0..LatencyHistogram::BUCKETS as u32).for_each(|bucket| histogram.add(bucket, values.next()));
            }
        }
        Ok(raw)
    }

    fn merge(&mut self, other: &Raw) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.max_on_cpu_ns = self.max_on_cpu_ns.max(other.max_on_cpu_ns);
        self.in_kernel += other.in_kernel;
        self.major += other.major;
        self.inner += other.inner;
        self.slow_count += other.slow_count;
        self.slow_sum_ns += other.slow_sum_ns;
        for cause in 0..CAUSES {
            self.slow_causes[cause] += other.slow_causes[cause];
            (0..3).for_each(|at| self.causes[cause][at] += other.causes[cause][at]);
        }
        for (own, other) in self.orders.iter_mut().zip(&other.orders) {
            *own = [own[0] + other[0], own[1] + other[1], own[2].max(other[2])];
        }
        self.histograms.iter_mut().zip(&other.histograms).for_each(|(own, other)| own.merge(other));
    }

    fn figures(&self, cost: &TracerCost) -> FaultFigures {
        let [undisturbed, disturbed, disturbed_on_cpu] = &self.histograms;
        let both = |other: &LatencyHistogram| {
            let mut both = undisturbed.clone();
            both.merge(other);
            both
        };
        let (histogram, on_cpu) = (both(disturbed), both(disturbed_on_cpu));
        let seconds = |ns: u64| ns as f64 / 1e9;
        let share = |cause: usize| {
            let [count, sum, part] = self.causes[cause];
            Some(FaultShare { count, sum_seconds: seconds(sum), part_seconds: seconds(part) })
        };
        let order = |(order, [count, sum, max]): (u32, [u64; 3])| OrderFaults {
            order: (order != u32::from(ORDER_NONE)).then_some(order),
            count,
            sum_seconds: seconds(sum),
            max_us: max as f64 / 1e3,
        };
        FaultFigures {
            count: self.count,
            latency: Latencies::of(&histogram, self.sum_ns, self.max_ns),
            on_cpu: Latencies::of(&on_cpu, self.sum_ns.saturating_sub(self.causes[3][2]), self.max_on_cpu_ns),
            tracer_cost_us: (self.count > 0).then(|| calibrate::cost_us(cost, self.inner as f64 / self.count as f64)),
            in_kernel_count: Some(self.in_kernel),
            major_count: Some(self.major),
            over_50us: Some(SlowFaults {
                count: self.slow_count,
                sum_seconds: seconds(self.slow_sum_ns),
                compaction: self.slow_causes[0],
                reclaim: self.slow_causes[1],
                collapse: self.slow_causes[2],
                off_cpu: self.slow_causes[3],
            }),
            causes: FaultCauses { compaction: share(0), reclaim: share(1), collapse: share(2), off_cpu: share(3) },
            by_order: (0u32..).zip(self.orders).filter(|(_, of)| of[0] > 0).map(order).collect(),
            histogram,
        }
    }
}

/// `struct call_figures` of a kind of call, summed over the processors; `None`: no calls.
fn calls(object: &Object, kind: u32) -> Result<Option<CallFigures>, Error> {
    let mut sum = CallFigures::default();
    let seconds = |ns: u64| ns as f64 / 1e9;
    for values in per_cpu(&map(object, "calls")?, kind)? {
        let mut words = Words(&values);
        sum.count += words.next();
        sum.sum_seconds += seconds(words.next());
        sum.max_us = sum.max_us.max(words.next() as f64 / 1e3);
        sum.populated_bytes += words.next();
        sum.allocated_bytes += words.next() * procfs::page_bytes();
        sum.populating_count += words.next();
        sum.populating_seconds += seconds(words.next());
        sum.compaction_seconds += seconds(words.next());
        sum.reclaim_seconds += seconds(words.next());
        let _collapse = words.next();
        sum.off_cpu_seconds += seconds(words.next());
    }
    Ok((sum.count > 0).then_some(sum))
}

/// `struct slowest`.
fn slowest(bytes: &[u8], origin_ns: u64) -> Vec<SlowFault> {
    let mut words = Words(bytes);
    let (_floor, used) = (words.next(), words.next() as u32);
    let us = |ns: u64| ns as f64 / 1e3;
    let fault = |_| {
        let (end, latency, address) = (words.next(), words.next(), words.next());
        let parts: [u64; CAUSES] = std::array::from_fn(|_| words.next());
        let [a, b, c, d, kind, order, causes, in_kernel] = words.next().to_ne_bytes();
        SlowFault {
            seconds: end.saturating_sub(origin_ns) as f64 / 1e9,
            latency_us: us(latency),
            off_cpu_us: us(parts[3]),
            compaction_us: us(parts[0]),
            reclaim_us: us(parts[1]),
            collapse: causes & 4 != 0,
            address,
            pid: i32::from_ne_bytes([a, b, c, d]),
            kind: *FaultKind::ALL.get(usize::from(kind)).unwrap_or(&FaultKind::Other),
            order: (order != ORDER_NONE).then_some(order.into()),
            in_kernel: in_kernel != 0,
        }
    };
    (0..used.min(SLOWEST as u32)).map(fault).collect()
}

/// Faults over time: in the programs' resolution while that fits, then half as fine each time.
#[derive(Default)]
struct Timeline {
    first: Option<u64>,
    /// Each moment is 2^this of the programs' moments.
    coarseness: u32,
    moments: Vec<[u64; 3]>,
}

impl Timeline {
    const MOST: usize = 4096;

    /// Count, sum and maximum of a moment.
    fn add(&mut self, number: u64, [count, sum, max]: [u64; 3]) {
        let first = *self.first.get_or_insert(number);
        let mut at = (number.saturating_sub(first) >> self.coarseness) as usize;
        while at >= Self::MOST {
            let join = |two: &[[u64; 3]]| {
                let sum = |at: usize| two.iter().map(|one| one[at]).sum();
                [sum(0), sum(1), two.iter().map(|one| one[2]).max().unwrap_or(0)]
            };
            self.moments = self.moments.chunks(2).map(join).collect();
            self.coarseness += 1;
            at /= 2;
        }
        if at >= self.moments.len() {
            self.moments.resize(at + 1, [0; 3]);
        }
        let own = &mut self.moments[at];
        *own = [own[0] + count, own[1] + sum, own[2].max(max)];
    }

    /// The length of a moment in seconds, and the moments with faults.
    fn finish(self, origin_ns: u64) -> (f64, Vec<FaultMoment>) {
        let length_ns = 1u64 << (MOMENT_LOG2 + self.coarseness);
        let first_ns = self.first.unwrap_or(0) << MOMENT_LOG2;
        let moment = |(at, [count, sum, max]): (u64, [u64; 3])| FaultMoment {
            seconds: (first_ns + at * length_ns).saturating_sub(origin_ns) as f64 / 1e9,
            count,
            sum_seconds: Some(sum as f64 / 1e9),
            max_us: Some(max as f64 / 1e3),
        };
        let moments = (0u64..).zip(self.moments).filter(|(_, of)| of[0] > 0).map(moment).collect();
        (length_ns as f64 / 1e9, moments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_time_line_becomes_coarser_and_loses_nothing() {
        let mut timeline = Timeline::default();
        let numbers = (0..3 * Timeline::MOST as u64).chain([1 << 20]);
        let seen = numbers.clone().inspect(|number| timeline.add(1000 + number, [1, 10, *number])).count() as u64;
        let (length, moments) = timeline.finish(1000 << MOMENT_LOG2);
        assert!(moments.len() <= Timeline::MOST && length > 1.0);
        assert_eq!(moments.iter().map(|moment| moment.count).sum::<u64>(), seen);
        let last = moments.last().unwrap();
        assert_eq!((last.count, last.max_us), (1, Some((1 << 20) as f64 / 1e3)));
        assert!((last.seconds - ((1u64 << 20) << MOMENT_LOG2) as f64 / 1e9).abs() <= length);
        assert_eq!(moments[0].seconds, 0.0);
    }

    #[test]
    fn cut_structures_cause_no_panic() {
        assert_eq!(slowest(&[], 0), []);
        let mut one = vec![0; 16];
        one[8] = 1;
        assert_eq!(slowest(&one, 7)[0].latency_us, 0.0);
    }

    #[test]
    fn faults_are_timed_or_there_is_a_reason() {
        if let Err(why) = available() {
            assert!(!why.to_string().is_empty());
        }
    }
}

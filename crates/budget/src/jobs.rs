//! Requests for jobs, from the memory that past jobs of their kind needed.
//!
//! A completed run shows what it needed. A run that was killed for lack of memory, failed, was cancelled or timed out gives only a lower
//! bound. Leaving those out would make the answer too small, and so would taking the bounds as needs. Therefore the share of runs that need
//! at most a given amount is estimated like survival times: by the product-limit estimator (Kaplan and Meier, 1958).

use std::collections::{BTreeMap, BTreeSet};

use model::{ByNumber, Figures, JobEnd, JobMemory, MemoryPer, PastJob, PastStep};

use crate::round_up;

/// The request is this many times the measured need: the accounting samples, by default every 30 s, and its figures lack kernel memory
/// (page tables, sockets, a little cache).
const MARGIN: f64 = 1.1;

/// More than any machine has; bounds the figures of a broken accounting.
const MOST: u64 = 1 << 60;

const GIB_HOUR: f64 = (1u64 << 30) as f64 * 3600.0;

/// What one run needed per node or per CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Its peak.
    pub bytes: u64,
    /// Whether that is a lower bound.
    pub is_bound: bool,
}

/// A run, per node or per CPU as its kind requests memory.
struct Run {
    /// Its peak by the accounting.
    need: Need,
    /// What it should have requested, with the margin; a lower bound if it did not complete.
    ask: Need,
    /// It surely needed this.
    least_bytes: u64,
    /// It surely needed no more than this, if it completed.
    most_bytes: u64,
    end: JobEnd,
    holds_cache: bool,
    cache_bytes: Option<u64>,
    asked_bytes: Option<u64>,
    /// The minimum with which the job starts.
    start_bytes: u64,
    /// Nodes or CPUs, times seconds; `None`: its duration is unknown.
    unit_seconds: Option<f64>,
}

/// The recommendations from past jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recommended {
    /// By kind; those that save most come first.
    pub jobs: Vec<JobMemory>,
    /// Ended jobs without figures in the accounting.
    pub unmeasured: usize,
    /// Jobs with figures for only some steps: the needs of the other steps, and so of the job, are unknown.
    pub partly_measured: usize,
    /// Kinds of several names that differ only in numbers.
    pub numbered: Vec<Numbered>,
    /// Other kinds whose largest run needed several times the median.
    pub uneven: Vec<String>,
}

/// A kind of names that differ only in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbered {
    /// The name with `*` for the number.
    pub kind: String,
    /// The number of names.
    pub names: usize,
    /// How memory depends on the number; `None`: it does not.
    pub by_number: Option<ByNumber>,
    /// Which of the numbers memory grows or falls with; 0 is the first.
    pub positions: Vec<usize>,
    /// How many numbers vary in the names.
    pub numbers: usize,
    /// The name with the smallest need, and the maximum of its runs.
    pub least: (String, u64),
    /// The name with the largest need.
    pub most: (String, u64),
}

/// Memory of names or runs differs greatly if one needs this many times what another does …
const UNEVEN_TIMES: u64 = 4;

/// … and this many bytes more.
const UNEVEN_BYTES: u64 = 64 << 20;

/// Memory goes with the number in the names if the correlation of their ranks is at least this …
const IN_ORDER: f64 = 0.8;

/// … and, unless memory differs greatly, if there are at least this many names.
const FEWEST_IN_ORDER: usize = 4;

/// With fewer names nothing is known about an order.
const FEWEST_NUMBERED: usize = 3;

/// Rank correlations of independent values are within this many times 1 / √(names − 1) in 95 % of all cases.
const CHANCE: f64 = 1.96;

/// The minimum request per node: `MinRAMSpace` of Slurm's cgroup.conf, 30 MiB. Below it Slurm sets no limit, because slurmstepd, which
/// starts the job inside it, would be killed.
pub const LEAST_JOB_BYTES: u64 = 30 << 20;

enum Measured {
    Whole(Run),
    Partly,
    Not,
}

/// Requests for each kind with which this share of its runs is not killed.
pub fn recommend(jobs: &[PastJob], percentile: f64) -> Recommended {
    let mut kinds: BTreeMap<(&str, MemoryPer), Vec<(&PastJob, Run)>> = BTreeMap::new();
    let mut found = Recommended::default();
    for job in jobs {
        match run(job) {
            Measured::Whole(run) => kinds.entry((&job.kind, job.per)).or_default().push((job, run)),
            Measured::Partly => found.partly_measured += 1,
            Measured::Not => found.unmeasured += 1,
        }
    }
    for ((kind, per), runs) in kinds {
        let numbered = numbered(kind, &runs);
        let by_number = numbered.as_ref().and_then(|found| found.by_number);
        let positions = numbered.iter().flat_map(|found| &found.positions).map(|at| *at as u64 + 1).collect();
        let job = of_kind(kind, per, &runs, percentile, by_number);
        let job = JobMemory { by_number_positions: positions, ..job };
        let is_uneven = job.median_bytes.is_some_and(|median| differ_greatly(median, job.max_bytes));
        if by_number.is_none() && is_uneven {
            found.uneven.push(kind.to_string());
        }
        found.numbered.extend(numbered);
        found.jobs.push(job);
    }
    found.jobs.sort_by(|a, b| b.saved_gib_hours.unwrap_or(0.0).total_cmp(&a.saved_gib_hours.unwrap_or(0.0)));
    found
}

/// For a kind whose names differ in numbers; `None`: another kind, or one with a single name.
fn numbered(kind: &str, runs: &[(&PastJob, Run)]) -> Option<Numbered> {
    let mut names: BTreeMap<&str, (&[f64], u64)> = BTreeMap::new();
    for (job, run) in runs.iter().filter(|(job, _)| job.is_kind_guessed) {
        let (_, most) = names.entry(&job.name).or_insert((&job.numbers, 0));
        *most = run.most_bytes.max(*most);
    }
    let least = names.iter().min_by_key(|(_, (_, bytes))| *bytes)?;
    let most = names.iter().max_by_key(|(_, (_, bytes))| *bytes)?;
    let of = |(name, (_, bytes)): (&&str, &(&[f64], u64))| (name.to_string(), *bytes);
    let (by_number, positions) = by_number(&names.values().copied().collect::<Vec<_>>());
    let found = Numbered {
        kind: kind.to_string(),
        names: names.len(),
        by_number,
        positions,
        numbers: names.values().map(|(numbers, _)| numbers.len()).max().unwrap_or(0),
        least: of(least),
        most: of(most),
    };
    (found.names > 1).then_some(found)
}

/// How memory depends on the numbers, given the numbers of each name and the maximum of its runs; and on which of the numbers.
fn by_number(names: &[(&[f64], u64)]) -> (Option<ByNumber>, Vec<usize>) {
    let least = names.iter().map(|(_, bytes)| *bytes).min().unwrap_or(0);
    let most = names.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    // Differences within the margin do not matter.
    let matters = with_margin(least) < most;
    if names.len() < FEWEST_NUMBERED {
        return (matters.then_some(ByNumber::Differs), Vec::new());
    }
    let is_uneven = differ_greatly(least, most);
    // A few names may be in order by chance.
    let can_be_in_order = is_uneven || (names.len() >= FEWEST_IN_ORDER && matters);
    let in_order = if can_be_in_order { in_order(names) } else { Vec::new() };
    for (by_number, grows) in [(ByNumber::Grows, true), (ByNumber::Falls, false)] {
        let positions: Vec<usize> =
            in_order.iter().filter(|order| (order.correlation > 0.0) == grows).map(|order| order.position).collect();
        if !positions.is_empty() {
            return (Some(by_number), positions);
        }
    }
    (is_uneven.then_some(ByNumber::Differs), Vec::new())
}

/// The rank correlation of memory with one of the numbers.
struct Order {
    position: usize,
    correlation: f64,
    /// The same relative to its maximum: names with an equal number share its rank, but not their memory.
    share: f64,
}

/// The numbers that memory goes with: each by itself, else several that explain it together, such as a grid of parameters.
fn in_order(names: &[(&[f64], u64)]) -> Vec<Order> {
    let numbers = names.iter().map(|(numbers, _)| numbers.len()).min().unwrap_or(0);
    let memory = ranks(&names.iter().map(|(_, bytes)| *bytes as f64).collect::<Vec<_>>());
    let distinct: Vec<f64> = (0..names.len()).map(|rank| rank as f64).collect();
    let order = |position: usize| {
        let mut numbers = ranks(&names.iter().map(|(numbers, _)| numbers[position]).collect::<Vec<_>>());
        let correlation_found = correlation(&numbers, &memory);
        numbers.sort_by(f64::total_cmp);
        let at_most = correlation(&numbers, &distinct);
        let share = if at_most > 0.0 { correlation_found / at_most } else { 0.0 };
        Order { position, correlation: correlation_found, share }
    };
    let chance = CHANCE / (names.len().max(2) as f64 - 1.0).sqrt();
    let is_alone = |order: &Order| {
        let size = order.correlation.abs();
        size >= IN_ORDER || (size >= chance && order.share.abs() >= IN_ORDER)
    };
    let (alone, others): (Vec<Order>, Vec<Order>) = (0..numbers).map(order).partition(is_alone);
    if !alone.is_empty() {
        return alone;
    }
    let together: Vec<Order> = others.into_iter().filter(|order| order.correlation.abs() >= chance).collect();
    let explained: f64 = together.iter().map(|order| order.correlation.powi(2)).sum();
    if together.len() > 1 && explained >= IN_ORDER.powi(2) { together } else { Vec::new() }
}

/// The rank of each value; equal values get the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other.total_cmp(value).is_lt());
        let up_to = sorted.partition_point(|other| other.total_cmp(value).is_le());
        (below + up_to) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

/// Pearson's correlation; of ranks it is Spearman's. 0 if one of them is constant.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(a, b)| of(a - mean_a, b - mean_b)).sum::<f64>();
    let (both, squares) = (sum(&|a, b| a * b), sum(&|a, _| a * a) * sum(&|_, b| b * b));
    if squares > 0.0 { both / squares.sqrt() } else { 0.0 }
}

fn differ_greatly(small: u64, large: u64) -> bool {
    large >= small.saturating_mul(UNEVEN_TIMES) && large - small.min(large) >= UNEVEN_BYTES
}

fn of_kind(
    name: &str,
    per: MemoryPer,
    all: &[(&PastJob, Run)],
    percentile: f64,
    by_number: Option<ByNumber>,
) -> JobMemory {
    let names: BTreeSet<&str> = all.iter().map(|(job, _)| job.name.as_str()).collect();
    let runs: Vec<&Run> = all.iter().map(|(_, run)| run).collect();
    let needs: Vec<Need> = runs.iter().map(|run| run.need).collect();
    let caches: Vec<Need> =
        runs.iter().filter_map(|run| run.cache_bytes).map(|bytes| Need { bytes, is_bound: false }).collect();
    let mut asked: Vec<u64> = runs.iter().filter_map(|run| run.asked_bytes).collect();
    asked.sort_unstable();
    let wanted = quantile(&needs, percentile);
    let largest = needs.iter().map(|need| need.bytes).max().unwrap_or(0);
    let cache_bytes = quantile(&caches, percentile);
    let cut_short = needs.iter().filter(|need| need.is_bound).count();
    // Where memory goes with the number, the runs above the share are those of certain names, which would be killed each time.
    let share = if by_number.is_some() { 1.0 } else { percentile };
    let mem_bytes = (cut_short < runs.len()).then(|| ask_of_kind(&runs, share));
    let killed = mem_bytes.map_or(0, |mem| runs.iter().filter(|run| run.is_killed(mem)).count());
    let maybe = mem_bytes
        .map_or(runs.len(), |mem| runs.iter().filter(|run| !run.is_killed(mem) && run.may_be_killed(mem)).count());
    // For the same share as `mem_bytes`, so that the difference is page cache and not another share of the runs.
    let without_cache = mem_bytes.map(|mem| {
        let need = quantile(&needs, share).unwrap_or(largest);
        with_margin(need).max(start_bytes(&runs)).min(mem)
    });
    JobMemory {
        name: name.to_string(),
        names: names.len() as u64,
        per,
        runs: runs.len() as u64,
        cut_short: cut_short as u64,
        out_of_memory: runs.iter().filter(|run| run.end == JobEnd::OutOfMemory).count() as u64,
        min_bytes: needs.iter().map(|need| need.bytes).min().unwrap_or(0),
        median_bytes: quantile(&needs, 0.5),
        percentile_bytes: wanted.unwrap_or(largest),
        max_bytes: largest,
        max_is_lower_bound: needs.iter().any(|need| need.is_bound && need.bytes == largest),
        is_lower_bound: wanted.is_none() || quantile(&needs, share).is_none(),
        cache_bytes,
        asked_bytes: asked.get(asked.len() / 2).copied(),
        mem_bytes,
        by_number,
        by_number_positions: Vec::new(),
        is_upper_bound: mem_bytes.is_some() && (mem_bytes > without_cache || runs.iter().any(|run| run.holds_cache)),
        mem_with_cache_bytes: cache_bytes.and(mem_bytes),
        mem_without_cache_bytes: cache_bytes.and(without_cache),
        reserved_gib_hours: gib_hours(runs.iter().map(|run| run.reserved())),
        saved_gib_hours: mem_bytes.and_then(|mem| gib_hours(runs.iter().map(|run| run.saved(mem)))),
        killed: killed as u64,
        maybe_killed: maybe as u64,
        // Laplace's rule: of n runs and the next one, each is equally likely to be the largest.
        next_needs_more: (killed + 1) as f64 / (runs.len() - maybe + 1) as f64,
    }
}

/// The sum of the known values, in bytes times seconds.
fn gib_hours(of_runs: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    of_runs.flatten().reduce(|sum, more| sum + more).map(|sum| sum / GIB_HOUR)
}

/// The request with which this share of the runs is not killed, as far as they show.
fn ask_of_kind(runs: &[&Run], share: f64) -> u64 {
    let asks: Vec<Need> = runs.iter().map(|run| run.ask).collect();
    let largest = asks.iter().map(|ask| ask.bytes).max().unwrap_or(0);
    quantile(&asks, share).unwrap_or(largest).max(start_bytes(runs))
}

/// The minimum for jobs of the kind to start: less than [`LEAST_JOB_BYTES`] if a run with less completed.
fn start_bytes(runs: &[&Run]) -> u64 {
    let completed = runs.iter().filter(|run| run.end == JobEnd::Completed);
    let proven = completed.filter_map(|run| run.asked_bytes).min().unwrap_or(u64::MAX);
    let start = runs.iter().map(|run| run.start_bytes).max().unwrap_or(0);
    round_up(start.min(proven))
}

/// The request for a need, in whole MiB.
pub fn with_margin(bytes: u64) -> u64 {
    round_up(((bytes.min(MOST) as f64 * MARGIN) as u64).max(1))
}

impl Run {
    fn is_killed(&self, mem_bytes: u64) -> bool {
        match self.end {
            // It was killed at that limit, so it would be at any smaller one.
            JobEnd::OutOfMemory => self.need.bytes >= mem_bytes,
            JobEnd::Completed | JobEnd::CutShort => self.least_bytes > mem_bytes,
        }
    }

    fn may_be_killed(&self, mem_bytes: u64) -> bool {
        self.need.is_bound || self.most_bytes > mem_bytes
    }

    /// Bytes times seconds.
    fn reserved(&self) -> Option<f64> {
        Some(self.asked_bytes? as f64 * self.unit_seconds?)
    }

    /// Bytes times seconds. A run that is killed is assumed to use its whole duration first, and to run again with its old request.
    fn saved(&self, mem_bytes: u64) -> Option<f64> {
        let mem = mem_bytes as f64 * self.unit_seconds?;
        let reserved = self.reserved()?;
        Some(if self.is_killed(mem_bytes) { -mem } else { reserved - mem })
    }
}

/// A job, per node or per CPU.
fn run(job: &PastJob) -> Measured {
    let (nodes, cpus) = (job.nodes.max(1), job.cpus.max(1));
    // Requests per CPU share a node's memory.
    let per_unit = |node_bytes: u64| match job.per {
        MemoryPer::Node => node_bytes,
        MemoryPer::Cpu => {
            (u128::from(node_bytes) * u128::from(nodes)).div_ceil(u128::from(cpus)).min(u128::from(u64::MAX)) as u64
        }
    };
    let asked = job.reserved_bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes / nodes);
    let measured = most_at_once(&job.steps, node_bytes);
    // A step may have a smaller limit than the job.
    let refused = job.steps.iter().filter(|step| step.out_of_memory);
    let refused = refused.filter_map(|step| Some(step.allowed_bytes? / step.nodes.max(1))).max();
    let bytes = match job.end {
        JobEnd::OutOfMemory => measured.max(refused.or(asked)),
        JobEnd::Completed | JobEnd::CutShort => measured,
    };
    let Some(bytes) = bytes else { return Measured::Not };
    let is_blind = |step: &PastStep| step.largest_task_bytes.is_none() && !step.out_of_memory;
    // A job that was killed needed more than its limit, whatever the figures of its steps are.
    if job.end != JobEnd::OutOfMemory && job.steps.iter().any(is_blind) {
        return Measured::Partly;
    }
    let beside = |step: &PastStep| step.cache_bytes.unwrap_or(0) / step.nodes.max(1);
    let most = most_at_once(&job.steps, |step| Some(node_bytes(step)?.saturating_add(beside(step))));
    // Page cache fills any limit and is reclaimable: a job needs none of it beyond its request.
    let most = most.map(|most| most.min(bytes.max(asked.unwrap_or(u64::MAX)))).unwrap_or(bytes).max(bytes);
    let is_bound = job.end != JobEnd::Completed;
    let [bytes, most] = [bytes, most].map(per_unit);
    let asked = asked.map(per_unit);
    Measured::Whole(Run {
        need: Need { bytes, is_bound },
        ask: Need { bytes: ask_bytes(job, bytes, most, asked), is_bound },
        least_bytes: if job.figures == Figures::HoldCache { 0 } else { bytes },
        most_bytes: most,
        end: job.end,
        holds_cache: job.figures == Figures::HoldCache && job.end != JobEnd::OutOfMemory,
        cache_bytes: most_at_once(&job.steps, |step| Some(step.cache_bytes? / step.nodes.max(1))).map(per_unit),
        asked_bytes: asked,
        start_bytes: per_unit(LEAST_JOB_BYTES),
        unit_seconds: job
            .elapsed_seconds
            .map(|seconds| seconds * if job.per == MemoryPer::Node { nodes } else { cpus } as f64),
    })
}

/// The request that a run should have made. Page cache is no reason to request more than a run that completed.
fn ask_bytes(job: &PastJob, need: u64, most: u64, asked: Option<u64>) -> u64 {
    match (job.end, asked.map(round_up)) {
        (JobEnd::OutOfMemory, _) => with_margin(need),
        (_, None) => with_margin(most),
        (_, Some(asked)) if job.figures == Figures::Needed => with_margin(most).min(asked.max(with_margin(need))),
        (_, Some(asked)) => with_margin(most).min(asked),
    }
}

/// Peak of a step on one of its nodes: all tasks at their largest, spread evenly over the nodes; per-node peaks and the peak of their sum
/// are unknown.
pub fn node_bytes(step: &PastStep) -> Option<u64> {
    let largest = step.largest_task_bytes?;
    let each_largest = largest.saturating_mul(step.tasks.max(1).div_ceil(step.nodes.max(1)));
    Some(step.tasks_bytes.map_or(each_largest, |sum| sum.clamp(largest, each_largest)))
}

/// The peak of simultaneous steps; a step that starts in the second in which another ended follows it.
pub fn most_at_once(steps: &[PastStep], bytes: impl Fn(&PastStep) -> Option<u64>) -> Option<u64> {
    let mut events: Vec<(u64, bool, u64)> = Vec::with_capacity(2 * steps.len());
    for step in steps {
        let Some(bytes) = bytes(step) else { continue };
        let end = step.end_seconds.max(step.start_seconds.saturating_add(1));
        events.extend([(step.start_seconds, true, bytes), (end, false, bytes)]);
    }
    events.sort_unstable();
    let (mut now, mut most) = (0u64, None);
    for (_, begins, bytes) in events {
        now = if begins { now.saturating_add(bytes) } else { now.saturating_sub(bytes) };
        most = most.max(Some(now));
    }
    most
}

/// The smallest memory that is enough for this share of the runs, by the product-limit estimator. `None`: the largest runs were cut short,
/// so it is unknown.
pub fn quantile(needs: &[Need], share: f64) -> Option<u64> {
    enough_for(needs).into_iter().find(|(_, enough)| *enough >= share - 1e-9).map(|(bytes, _)| bytes)
}

/// The share of the runs for which each known need is enough.
pub fn enough_for(needs: &[Need]) -> Vec<(u64, f64)> {
    let mut sorted = needs.to_vec();
    // A run that was cut short at a known need needs more than that.
    sorted.sort_unstable_by_key(|need| (need.bytes, need.is_bound));
    let mut more = 1.0;
    let mut enough: Vec<(u64, f64)> = Vec::new();
    for (at, need) in sorted.iter().enumerate().filter(|(_, need)| !need.is_bound) {
        let left = (sorted.len() - at) as f64;
        more *= (left - 1.0) / left;
        match enough.last_mut() {
            Some(last) if last.0 == need.bytes => last.1 = 1.0 - more,
            _ => enough.push((need.bytes, 1.0 - more)),
        }
    }
    enough
}

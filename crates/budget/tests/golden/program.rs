//! Simulated programs, each made from its number alone. Only additions, multiplications, divisions and square roots are used, so that
//! every machine computes the same numbers.

use budget::{Evidence, Measured, MethodMemory, Progress, Reference, Settings, judge, ratio_at_least, watch};
use model::{Breakdown, DemandPoint, FileDemand, Method, Outcome, Trial};

pub const MIB: u64 = 1 << 20;

/// Random numbers (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// At least 0, below 1.
    pub fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.unit()
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.unit() * (times as f64) < 1.0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[(self.unit() * from.len() as f64) as usize % from.len()]
    }
}

/// Run time over that without a limit, by limit.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The floor alone matters.
    Floor,
    /// `times` as long below `knee_mib`.
    Knee { knee_mib: u64, times: f64 },
    /// Two knees.
    Stairs { low_mib: u64, high_mib: u64, times: f64 },
    /// `lost` more at the floor, falling evenly to nothing at `end_mib`.
    Slope { end_mib: u64, lost: f64 },
    /// As a garbage collector: the fourth power of `scale_mib` over the limit.
    Collector { scale_mib: u64 },
}

/// What is simulated besides the shape.
pub struct Program {
    random: Random,
    shape: Shape,
    floor: u64,
    peak: u64,
    seconds: f64,
    /// Largest deviation of a run time, as a share: 0.01 to 0.2.
    noise: f64,
    /// One run in so many takes far longer, without a bound on how far; 0: none.
    heavy_tail: u64,
    /// After so many runs every run takes so many times as long; more with every run if `creeps`.
    drift: Option<(u32, f64)>,
    creeps: bool,
    /// One run under a limit in so many fails; 0: none.
    fails: u64,
    /// Below the floor it exits with a failure of its own, and nothing is killed.
    fails_for_want: bool,
    /// It keeps its charge at this share of the limit.
    heap_share: Option<f64>,
    /// Within these limits, in MiB, a run waits by chance for this share of its run time.
    chance: Option<(u64, u64, f64)>,
    demand: Option<FileDemand>,
    dirty: u64,
    mapped: u64,
    floor_varies: f64,
    knows: Knows,
    first_is_slow: bool,
    runs: u32,
}

/// Which figures the rung tells.
#[derive(Clone, Copy)]
struct Knows {
    stall: bool,
    cpu: bool,
    system: bool,
    pace: bool,
    refaults: bool,
    floor: bool,
    charge: bool,
}

/// A program and how it is searched.
pub fn of(number: u64) -> (Program, Settings) {
    let mut r = Random::new(number);
    let floor_mib = r.pick(&[8, 24, 60, 100, 150, 260, 700, 1500]) + (r.unit() * 20.0) as u64;
    let peak_mib = (floor_mib as f64 * r.pick(&[1.02, 1.3, 2.0, 4.0, 8.0])) as u64 + 2;
    let sizes_itself = number % 9 == 4;
    let swaps = number % 11 == 7;
    let shape = shape(&mut r, floor_mib, peak_mib, sizes_itself);
    let seconds = r.pick(&[0.2, 0.7, 2.0, 6.0, 30.0, 30.0, 400.0]);
    let noise = r.pick(&[0.01, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2]);
    let knows = Knows {
        stall: !r.one_in(4),
        cpu: !r.one_in(3),
        system: r.one_in(2),
        pace: r.one_in(3),
        refaults: !r.one_in(6),
        floor: !r.one_in(25),
        charge: !r.one_in(25),
    };
    let demand = demand(&mut r, shape, floor_mib, peak_mib);
    let program = Program {
        shape,
        floor: floor_mib * MIB,
        peak: peak_mib * MIB,
        seconds,
        noise,
        heavy_tail: if r.one_in(5) { 6 } else { 0 },
        drift: r.one_in(4).then(|| (2 + (r.unit() * 5.0) as u32, r.pick(&[0.8, 0.93, 1.06, 1.2, 1.6]))),
        creeps: r.one_in(3),
        fails: if r.one_in(12) { 3 } else { 0 },
        fails_for_want: r.one_in(6),
        heap_share: sizes_itself.then(|| r.between(0.5, 1.0)),
        chance: r.one_in(6).then(|| (floor_mib, (floor_mib + peak_mib) / 2, r.between(0.1, 0.6))),
        demand,
        dirty: if r.one_in(5) { (r.unit() * 60.0) as u64 * MIB } else { 0 },
        mapped: if r.one_in(4) { peak_mib.saturating_sub(floor_mib) / 2 * MIB } else { 5 * MIB },
        floor_varies: if r.one_in(6) { r.between(0.01, 0.15) } else { 0.0 },
        knows,
        first_is_slow: r.one_in(5),
        runs: 0,
        random: Random::new(number ^ 0xabcd_ef01),
    };
    let settings = Settings {
        slowdown: r.pick(&[0.05, 0.05, 0.05, 0.01, 0.1, 0.2]),
        runs: if r.one_in(6) { Some(r.pick(&[1, 2, 3, 5])) } else { None },
        max_trials: r.pick(&[12, 12, 12, 12, 5, 2, 1]),
        compare: r.one_in(2),
        full: r.one_in(4),
        timeout_seconds: r.one_in(8).then(|| seconds * r.pick(&[1.03, 1.5, 4.0])),
        has_slower_memory: swaps,
        sizes_itself,
        dirty_share: r.one_in(2).then(|| r.pick(&[0.1, 0.15, 0.2])),
        page_bytes: r.pick(&[4096, 4096, 4096, 65536]),
    };
    (program, settings)
}

fn shape(r: &mut Random, floor: u64, peak: u64, sizes_itself: bool) -> Shape {
    let within = |share: f64| floor + ((peak - floor) as f64 * share) as u64;
    if sizes_itself {
        return Shape::Collector { scale_mib: within(r.unit()) };
    }
    match (r.unit() * 6.0) as u64 {
        0 => Shape::Floor,
        1 | 2 => Shape::Knee { knee_mib: within(r.unit()), times: r.pick(&[1.04, 1.2, 1.5, 3.4, 20.0]) },
        3 => {
            let low = r.unit();
            Shape::Stairs {
                low_mib: within(low),
                high_mib: within(r.between(low, 1.0)),
                times: r.pick(&[1.1, 1.4, 2.0]),
            }
        }
        _ => Shape::Slope { end_mib: within(r.unit()), lost: r.pick(&[0.1, 0.5, 2.0, 8.0]) },
    }
}

/// A curve that is right, or up to 30 % wrong, or none.
fn demand(r: &mut Random, shape: Shape, floor: u64, peak: u64) -> Option<FileDemand> {
    if r.one_in(4) {
        return None;
    }
    let wrong = if r.one_in(2) { 1.0 } else { r.between(0.7, 1.3) };
    let steps = 12;
    let mut points: Vec<DemandPoint> = Vec::new();
    for i in 0..=steps {
        let limit_mib = floor + (peak - floor) * i / steps;
        let lost = ratio(shape, floor, ((limit_mib as f64) / wrong) as u64) - 1.0;
        let refault_bytes = if i == steps { 0 } else { (lost * 4000.0) as u64 * MIB };
        if points.last().is_none_or(|last| last.limit_bytes < limit_mib * MIB) {
            points.push(DemandPoint { limit_bytes: limit_mib * MIB, refault_bytes });
        }
    }
    for i in (1..points.len()).rev() {
        points[i - 1].refault_bytes = points[i - 1].refault_bytes.max(points[i].refault_bytes);
    }
    Some(FileDemand {
        referenced_bytes: 4800 * MIB,
        distinct_bytes: (peak - floor) * MIB,
        points,
        sampled_share: 1.0,
        mapped_scanned_bytes: if r.one_in(4) { (peak - floor) / 3 * MIB } else { 0 },
        lost_events: if r.one_in(20) { 77 } else { 0 },
        ..FileDemand::default()
    })
}

fn ratio(shape: Shape, floor_mib: u64, limit_mib: u64) -> f64 {
    match shape {
        Shape::Floor => 1.0,
        Shape::Knee { knee_mib, times } => {
            if limit_mib < knee_mib {
                times
            } else {
                1.0
            }
        }
        Shape::Stairs { low_mib, high_mib, times } => {
            let step = |at: u64| if limit_mib < at { times } else { 1.0 };
            step(low_mib) * step(high_mib)
        }
        Shape::Slope { end_mib, lost } if limit_mib < end_mib => {
            let span = (end_mib - floor_mib.min(end_mib)).max(1) as f64;
            1.0 + lost * (((end_mib - limit_mib) as f64) / span).min(1.5)
        }
        Shape::Slope { .. } => 1.0,
        Shape::Collector { scale_mib } => {
            let of_limit = (scale_mib as f64 / limit_mib.max(1) as f64).min(3.0);
            1.0 + 0.05 * of_limit * of_limit * of_limit * of_limit
        }
    }
}

impl Program {
    pub fn evidence(&self) -> Evidence {
        let named = [
            (Method::AppMaxRss, self.floor as f64 * 1.05),
            (Method::AppMaxRssLargest, self.floor as f64 * 0.7),
            (Method::SysMaxRss, self.floor as f64 * 1.2),
            (Method::Unlimited, self.peak as f64 + 9.0 * MIB as f64),
        ];
        let memory = |(method, bytes): (Method, f64)| MethodMemory {
            method,
            memory_bytes: bytes as u64,
            breakdown: Breakdown::default(),
        };
        Evidence { demand: self.demand.clone(), methods: named.map(memory).to_vec(), ..Evidence::default() }
    }

    /// How long the next run takes.
    fn next_seconds(&mut self, ratio: f64) -> f64 {
        let noise = 1.0 + self.noise * (2.0 * self.random.unit() - 1.0);
        let tail = match self.heavy_tail {
            0 => 1.0,
            times if self.random.one_in(times) => 1.0 + 0.1 / (self.random.unit() + 1e-4).sqrt(),
            _ => 1.0,
        };
        let drift = self.drift.filter(|(after, _)| self.runs >= *after).map_or(1.0, |(after, times)| {
            if self.creeps { 1.0 + (times - 1.0) * f64::from(self.runs - after + 1) / 3.0 } else { times }
        });
        let first = if self.first_is_slow && self.runs == 0 { 1.25 } else { 1.0 };
        self.runs += 1;
        self.seconds * ratio * noise * tail * drift * first
    }

    fn cpu(&mut self, ratio: f64) -> f64 {
        self.seconds * (1.5 + 0.3 * (ratio - 1.0)) * (1.0 + 0.02 * (2.0 * self.random.unit() - 1.0))
    }

    fn breakdown(&self, heap: u64) -> Breakdown {
        Breakdown { heap: Some(heap), shared: Some(0), kernel: Some(MIB), ..Breakdown::default() }
    }

    fn next_floor(&mut self) -> u64 {
        (self.floor as f64 * (1.0 + self.floor_varies * self.random.unit())) as u64
    }

    /// The stall of a start from storage.
    fn cold_stall(&self) -> f64 {
        self.seconds * 0.03
    }

    pub fn reference(&mut self) -> Reference {
        let run = self.runs;
        let (wall, cpu, floor) = (self.next_seconds(1.0), self.cpu(1.0), self.next_floor());
        let knows = self.knows;
        Reference {
            run,
            wall_seconds: wall,
            stall_seconds: knows.stall.then(|| self.cold_stall()),
            peak_charge_bytes: knows.charge.then_some(self.peak.max(floor)),
            floor_bytes: knows.floor.then_some(floor),
            held_bytes: knows.floor.then_some(floor - floor / 50),
            file_mapped_bytes: Some(self.mapped),
            mapped_in_use_bytes: Some(self.mapped / 2),
            dirty_bytes: Some(self.dirty),
            refaults: knows.refaults.then_some(0),
            cpu_seconds: knows.cpu.then_some(cpu),
            system_seconds: (knows.cpu && knows.system).then_some(cpu * 0.3),
            io_wait_share: Some(0.1),
            breakdown: self.breakdown(floor),
            pace: if knows.pace && knows.cpu {
                vec![(0.0, 0.0), (cpu / 2.0, wall / 2.0), (cpu, wall)]
            } else {
                Vec::new()
            },
        }
    }

    /// A run under a limit, stopped when the planner says so.
    pub fn trial(&mut self, settings: &Settings, evidence: &Evidence, limit: u64, method: Option<Method>) -> Trial {
        let (run, knows) = (self.runs, self.knows);
        let by_chance = match self.chance {
            Some((from, to, lost)) if (from..to).contains(&(limit / MIB)) && self.random.one_in(3) => {
                lost * (0.3 + 0.7 * self.random.unit())
            }
            _ => 0.0,
        };
        let held_back = settings.dirty_share.is_some_and(|share| {
            self.dirty > 4 * MIB && (limit.saturating_sub(self.floor) as f64) * share < self.dirty as f64
        });
        let by_limit = ratio(self.shape, self.floor / MIB, limit / MIB);
        let ratio = by_limit + by_chance + if held_back { 0.8 } else { 0.0 };
        let is_short = !settings.has_slower_memory && self.heap_share.is_none() && limit < self.floor;
        let fails = is_short && self.fails_for_want || self.fails > 0 && self.random.one_in(self.fails);
        let is_killed = is_short && !self.fails_for_want;
        let (seconds, cpu) = (self.next_seconds(ratio), self.cpu(ratio));
        let end = if is_killed || fails { 0.6 * self.seconds } else { seconds };
        let lost = 0.9 * (ratio - 1.0) * self.seconds;
        let pages = ((by_limit - 1.0) * 4000.0 * MIB as f64 / settings.page_bytes as f64) as u64;
        let knows_pace = knows.pace && knows.cpu;
        let at = |elapsed: f64| Progress {
            elapsed_seconds: elapsed,
            stall_seconds: knows.stall.then_some(0.03 * self.seconds + lost * elapsed / end),
            pace: knows_pace.then_some((cpu * elapsed / end, elapsed)),
            refaults: knows.refaults.then_some((pages as f64 * elapsed / end) as u64),
        };
        let looks = (1..40).map(|i| f64::from(i) * self.seconds / 8.0).take_while(|elapsed| *elapsed < end);
        let stopped = looks.map(at).find_map(|so_far| Some((watch(settings, evidence, method, &so_far)?, so_far)));
        let progress = stopped.map_or(at(end), |(_, so_far)| so_far);
        let measured = Measured {
            method,
            wall_seconds: progress.elapsed_seconds,
            stopped: stopped.map(|(outcome, _)| outcome),
            exit_status: Some(if fails && stopped.is_none() { 3 } else { 0 }),
            oom_kills: u64::from(is_killed && stopped.is_none()),
        };
        let outcome = judge(settings, evidence, &measured);
        let ratio_seen = match stopped {
            Some(_) => ratio_at_least(evidence, &progress),
            None => evidence.reference().map(|reference| end / reference.median),
        };
        let floor = self.next_floor();
        let charge = self.heap_share.map_or(limit.min(self.peak), |share| (limit as f64 * share) as u64);
        Trial {
            run,
            method,
            limit_bytes: Some(limit),
            outcome,
            lower_bound: stopped.is_some(),
            wall_seconds: measured.wall_seconds,
            cpu_seconds: knows.cpu.then_some(if stopped.is_some() { cpu / 2.0 } else { cpu }),
            system_seconds: (knows.cpu && knows.system).then_some(cpu * 0.3),
            stall_seconds: progress.stall_seconds.map(|stall| stall - 0.03 * self.seconds),
            runtime_ratio: ratio_seen.filter(|_| matches!(outcome, Outcome::Ok | Outcome::TooSlow | Outcome::Timeout)),
            predicted_ratio: None,
            io_wait_share: Some(0.4),
            refaults: progress.refaults,
            peak_charge_bytes: knows.charge.then_some(charge),
            breakdown: self.breakdown(floor.min(limit)),
            exit_status: measured.exit_status,
            why: String::new(),
            nodes: Vec::new(),
        }
    }

    /// A run without a limit for the comparison.
    pub fn unlimited(&mut self, settings: &Settings, evidence: &Evidence) -> Trial {
        let trial = self.trial(settings, evidence, 4 * self.peak, Some(Method::Unlimited));
        Trial { limit_bytes: None, ..trial }
    }
}

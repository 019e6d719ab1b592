//! An agent that turns hot memory of a running program into huge pages, and splits huge pages that it does not use.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use advise::maps::Area;
use advise::{Costs, Estimate, Growth, HUGE_BYTES, History, Mapping, State, maps};
use linux::pages::{Advised, Refusal};
use linux::procfs;
use model::{Advice, AdviceFigures, Explained};
use report::seconds;
use schemars::JsonSchema;
use serde::Serialize;
use track::regions::{Error, Region, Regions};

use super::choose::{self, Choice};
use super::costs;

/// The most that scans may cost, as a share of one processor.
pub const SCAN_SHARE: f64 = 0.01;
/// The same while known regions wait for their huge pages; and the most for scans and actions together.
const SCAN_SHARE_WHILE_WAITING: f64 = 0.005;
const TOTAL_SHARE: f64 = 0.019;
/// How often the state of the machine and the names of memory are read.
const REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// Before this version of Linux, splitting a huge page does not free its zero pages.
const SPLIT_FREES_ZEROES: (u32, u32) = (6, 12);
/// Maximum number of decisions reported.
const MAX_EXPLAINED: usize = 1000;
/// Why a hot region is left alone if few of its pages are present.
const WOULD_GROW: &str = "it would make the program's memory more than a tenth larger";
/// Huge pages read for zeroes in a round; each takes some tenths of a millisecond.
const MAX_READ: usize = 8;

/// Settings of the agent.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time between decisions.
    pub interval: Duration,
    /// The most huge pages made or split per second.
    pub rate: u32,
    /// Decide, and do nothing.
    pub dry_run: bool,
}

/// What the agent did.
#[derive(Debug, Default, JsonSchema, Serialize)]
pub struct Stats {
    /// Peak of huge memory over peak of anonymous memory during this run; `None`: there was no memory.
    huge_share: Option<f64>,
    promoted: u64,
    demoted: u64,
    /// Decisions about regions, summed over rounds.
    decisions: u64,
    /// Why regions were not promoted or split after all, and how many.
    refused: BTreeMap<&'static str, u64>,
    /// CPU time of the agent.
    cpu_seconds: f64,
    /// Average share of one processor.
    agent_share: f64,
    /// Estimated cost of clears to the processes.
    disturbed_seconds: f64,
    dry_run: bool,
    /// How long the agent ran.
    pub wall_seconds: f64,
    explained: Vec<Explained>,
}

impl Stats {
    /// Lines for people.
    pub fn summary(&self) -> Vec<String> {
        let would = if self.dry_run { "would have been " } else { "" };
        let mut lines = vec![format!(
            "{} huge pages {would}made and {} {would}split in {}; the agent took {:.1} % of a processor",
            self.promoted,
            self.demoted,
            seconds(self.wall_seconds),
            100.0 * self.agent_share,
        )];
        lines.extend(self.refused.iter().map(|(why, times)| format!("not done {times} times: {why}")));
        if self.promoted + self.demoted > 0 && !self.dry_run {
            lines.push("promoted huge pages stay with the program; freed zero pages are allocated again when it writes to them".into());
        }
        lines
    }

    /// The same for a record.
    pub fn advice(&self) -> Advice {
        let figures = AdviceFigures {
            huge_share: self.huge_share,
            promoted: self.promoted,
            demoted: self.demoted,
            populated_bytes: 0,
            decisions: self.decisions,
            cpu_seconds: self.cpu_seconds,
        };
        Advice { run: 0, figures, explained: self.explained.clone() }
    }
}

struct Process {
    start: u64,
    /// `None`: it has just ended.
    advised: Option<Advised>,
    /// Its mappings with their names, and when they were read.
    areas: Vec<Area>,
    named: Option<Instant>,
    growth: Growth,
}

/// Advises running programs.
pub struct Agent {
    settings: Settings,
    regions: Regions,
    costs: Costs,
    history: History,
    /// When the state was read, and the state; promotions since then are subtracted.
    state: (Instant, State),
    /// By PID.
    processes: BTreeMap<i32, Process>,
    stats: Stats,
    /// The last estimate for regions that were left alone.
    left_alone: BTreeMap<(i32, u64), (f64, Estimate)>,
    huge_peak: u64,
    anonymous_peak: u64,
    /// Time of the start, and the CPU time used by then.
    began: (Instant, Duration),
}

impl Agent {
    /// Creates an agent for regions scanned at [`SCAN_SHARE`].
    pub fn of(regions: Regions, settings: Settings) -> Agent {
        Agent {
            settings,
            regions,
            costs: costs::calibrated(costs::BEFORE_A_RUN),
            history: History::of(Duration::from_secs_f64(State::HORIZON_SECONDS)),
            state: (Instant::now(), costs::state()),
            processes: BTreeMap::new(),
            stats: Stats { dry_run: settings.dry_run, ..Stats::default() },
            left_alone: BTreeMap::new(),
            huge_peak: 0,
            anonymous_peak: 0,
            began: (Instant::now(), own_cpu()),
        }
    }

    /// Advises until all processes have ended or `is_over` returns true. `is_over` gets the time since the start.
    ///
    /// # Errors
    /// The processes may no longer be scanned.
    pub fn advise(mut self, is_over: &dyn Fn(Duration) -> bool) -> Result<Stats, Error> {
        let (began, cpu) = self.began;
        let is_over = || is_over(began.elapsed());
        while !is_over() {
            let is_there = self.regions.round(self.settings.interval, is_over)?;
            if !is_there {
                break;
            }
            self.act();
        }
        self.stats.cpu_seconds = (own_cpu() - cpu).as_secs_f64();
        self.stats.wall_seconds = began.elapsed().as_secs_f64();
        Ok(self.end())
    }

    /// Decides about all regions, and acts on decisions as far as the CPU time limit allows.
    fn act(&mut self) {
        let now = Instant::now();
        // Unused CPU time carries over, because most huge pages are made soon after the start.
        let (began, cpu) = self.began;
        let may_go_on = || own_cpu() - cpu < began.elapsed().mul_f64(TOTAL_SHARE);
        self.history.forget(now);
        self.follow();
        let known = self.regions.known(self.costs.last_cache_bytes);
        self.update_peaks(&known);
        if self.state.0.elapsed() > REFRESH_INTERVAL {
            self.state = (now, costs::state());
        }
        let state = self.state.1.clone();
        let free: Vec<&Region> =
            known.iter().filter(|region| self.history.is_free(region.pid, region.start, now)).collect();
        let choices = choose::promotions(free.iter().copied(), &state, &self.costs);
        self.stats.decisions += choices.len() as u64;
        let mut left = (f64::from(self.settings.rate) * self.settings.interval.as_secs_f64()).ceil() as u64;
        let mut are_waiting = false;
        for Choice { region, estimate } in &choices {
            if estimate.net_ns() <= 0.0 {
                self.left_alone.insert((region.pid, region.start), (self.seconds(region.pid), estimate.clone()));
            } else if left > 0 && may_go_on() {
                left -= 1;
                self.promote(region, &state, now);
            } else {
                are_waiting = true;
            }
        }
        self.regions.set_overhead(if are_waiting { SCAN_SHARE_WHILE_WAITING } else { SCAN_SHARE });
        if procfs::kernel_version() < SPLIT_FREES_ZEROES {
            return;
        }
        let horizon = Duration::from_secs_f64(state.horizon_seconds);
        let is_cold = |region: &&&Region| region.is_huge && region.rounds >= choose::ROUNDS && region.idle >= horizon;
        for region in free.iter().filter(is_cold).take(MAX_READ) {
            if left > 0 && may_go_on() {
                left -= 1;
                self.demote(region, &state, now);
            }
        }
    }

    /// Decides by the pages present now, because scans only see a sample of the region.
    fn promote(&mut self, region: &Region, state: &State, now: Instant) {
        let Some((present, false)) = self.regions.present(region.pid, region.start) else { return };
        let estimate = choose::promotion(region, present, state, &self.costs);
        if estimate.net_ns() <= 0.0 {
            self.left_alone.insert((region.pid, region.start), (self.seconds(region.pid), estimate));
            return;
        }
        let why = format!("{:.0} accesses per second miss the TLB", region.misses_per_second);
        if !self.may_grow(region.pid, present) {
            self.history.done(region.pid, region.start, now);
            *self.stats.refused.entry(WOULD_GROW).or_default() += 1;
            let explained =
                self.explained(region.pid, region.start, "leave", format!("{why}, but {WOULD_GROW}"), &estimate);
            if self.stats.explained.len() < MAX_EXPLAINED {
                self.stats.explained.push(explained);
            }
            return;
        }
        let done = self.carry_out(region, |advised| advised.collapse(region.start));
        if done.is_ok() {
            self.stats.promoted += 1;
            if let Some(process) = self.processes.get_mut(&region.pid) {
                process.growth.promoted(present);
            }
            let (_, state) = &mut self.state;
            state.free_huge = state.free_huge.saturating_sub(1);
            state.free_bytes = state.free_bytes.saturating_sub(HUGE_BYTES);
        }
        self.note(region, "promote", why, estimate, done, now);
    }

    fn demote(&mut self, region: &Region, state: &State, now: Instant) {
        let advised = self.processes.get(&region.pid).and_then(|process| process.advised.as_ref());
        let Some(zero) = advised.and_then(|advised| advised.zero_pages(region.start).ok()) else { return };
        self.stats.decisions += 1;
        let estimate = choose::demotion(zero, state, &self.costs);
        if estimate.net_ns() <= 0.0 {
            self.history.done(region.pid, region.start, now);
            self.left_alone.insert((region.pid, region.start), (self.seconds(region.pid), estimate));
            return;
        }
        let done = self.carry_out(region, |advised| advised.split(region.start));
        let why = format!("{zero} of 512 pages are zero, and not accessed for {}", seconds(region.idle.as_secs_f64()));
        self.stats.demoted += u64::from(done.is_ok());
        if let (Ok(()), Some(process)) = (&done, self.processes.get_mut(&region.pid)) {
            process.growth.demoted(zero);
        }
        self.note(region, "demote", why, estimate, done, now);
    }

    /// For a process that has just ended this returns false, because no memory can be read.
    fn may_grow(&self, pid: i32, present_pages: u64) -> bool {
        let anonymous = procfs::status(pid).ok().and_then(|status| status.rss_anon).unwrap_or(0);
        let growth = self.processes.get(&pid).map(|process| process.growth).unwrap_or_default();
        growth.allows(present_pages, anonymous / procfs::page_bytes())
    }

    /// Does nothing in a dry run.
    fn carry_out(&self, region: &Region, act: impl Fn(&Advised) -> Result<(), Refusal>) -> Result<(), Refusal> {
        match self.processes.get(&region.pid).and_then(|process| process.advised.as_ref()) {
            _ if self.settings.dry_run => Ok(()),
            Some(advised) => act(advised),
            None => Err(Refusal::Gone),
        }
    }

    fn note(
        &mut self,
        region: &Region,
        action: &str,
        why: String,
        estimate: Estimate,
        done: Result<(), Refusal>,
        now: Instant,
    ) {
        self.history.done(region.pid, region.start, now);
        self.left_alone.remove(&(region.pid, region.start));
        let explained = match done {
            Ok(()) => self.explained(region.pid, region.start, action, why, &estimate),
            Err(refusal) => {
                *self.stats.refused.entry(refusal.why()).or_default() += 1;
                self.explained(region.pid, region.start, "leave", format!("{why}, but {}", refusal.why()), &estimate)
            }
        };
        if self.stats.explained.len() < MAX_EXPLAINED {
            self.stats.explained.push(explained);
        }
    }

    fn explained(&self, pid: i32, region: u64, action: &str, why: String, estimate: &Estimate) -> Explained {
        let areas = self.processes.get(&pid).map_or(&[][..], |process| &process.areas);
        let area = areas.iter().find(|area| (area.begin..area.end).contains(&region));
        let (which, ordinal) = match area.map(|area| &area.mapping) {
            Some(Mapping::Mmap { class: Some(class), ordinal }) => (class.to_string(), *ordinal),
            Some(Mapping::Object { object: Some(object), .. }) => (object.name.clone(), None),
            _ => ("-".into(), None),
        };
        Explained {
            pid,
            seconds: self.seconds(pid),
            kind: area.map_or("mmap", |area| area.mapping.kind()).into(),
            which,
            ordinal,
            from: area.map_or(region, |area| region - area.begin),
            bytes: HUGE_BYTES,
            action: action.into(),
            why,
            cost_ns: estimate.cost_ns,
            benefit_ns: estimate.benefit_ns,
        }
    }

    /// Seconds since the process began.
    fn seconds(&self, pid: i32) -> f64 {
        let start = self.processes.get(&pid).map_or(0, |process| process.start);
        (procfs::monotonic_ns() as f64 / 1e9 - procfs::start_seconds(start)).max(0.0)
    }

    /// Updates the list of processes.
    fn follow(&mut self) {
        let living: BTreeMap<i32, u64> = self.regions.processes().collect();
        self.processes.retain(|pid, process| living.get(pid) == Some(&process.start));
        self.left_alone.retain(|(pid, _), _| living.contains_key(pid));
        for (pid, start) in living {
            let new = || Process {
                start,
                advised: Advised::of(pid, start).ok(),
                areas: Vec::new(),
                named: None,
                growth: Growth::default(),
            };
            let process = self.processes.entry(pid).or_insert_with(new);
            if process.named.is_some_and(|named| named.elapsed() < REFRESH_INTERVAL) {
                continue;
            }
            process.named = Some(Instant::now());
            let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            // For a process that has just ended, the old names are as good.
            let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else { continue };
            if let Ok(areas) = maps::read(&text, &executable.to_string_lossy(), |_| None) {
                process.areas = areas;
            }
        }
    }

    fn update_peaks(&mut self, known: &[Region]) {
        let huge = known.iter().filter(|region| region.is_huge).count() as u64 * HUGE_BYTES;
        let anonymous = self.processes.keys().filter_map(|pid| procfs::status(*pid).ok()?.rss_anon).sum::<u64>();
        self.huge_peak = self.huge_peak.max(huge);
        self.anonymous_peak = self.anonymous_peak.max(anonymous);
    }

    fn end(mut self) -> Stats {
        let left = std::mem::take(&mut self.left_alone);
        let room = MAX_EXPLAINED - self.stats.explained.len();
        for ((pid, region), (seconds, estimate)) in left.into_iter().take(room) {
            let explained = self.explained(pid, region, "leave", "not worth it".into(), &estimate);
            self.stats.explained.push(Explained { seconds, ..explained });
        }
        let stats = &mut self.stats;
        stats.huge_share = (self.anonymous_peak > 0).then(|| self.huge_peak as f64 / self.anonymous_peak as f64);
        stats.agent_share = stats.cpu_seconds / stats.wall_seconds.max(1e-9);
        stats.disturbed_seconds = self.regions.taken_seconds();
        self.stats
    }
}

/// CPU time of this process.
fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

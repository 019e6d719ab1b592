//! `bursar advise attach`: an agent that makes huge pages of what a running program uses much, and splits those that it does not.

mod choose;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use advise::maps::Area;
use advise::{Costs, Estimate, Growth, HUGE_BYTES, History, Mapping, State, maps};
use anyhow::{Context, bail};
use job::Forwarding;
use linux::cgroup::Cgroup;
use linux::pages::{Advised, Refusal};
use linux::procfs;
use model::{Advice, AdviceFigures, Exit, Explained, Target};
use report::seconds;
use serde::Serialize;
use session::say::tell;
use session::status::Status;
use session::target::Found;
use track::pages::Scope;
use track::regions::{Region, Regions};

use super::kept::Kept;
use super::{NEEDS, costs};
use crate::cli::advise::Attach;
use crate::results::write_json;
use choose::Choice;

/// The most that looking may take of one processor; while regions are known that wait for their huge pages; and the most that all may.
const LOOKING: f64 = 0.01;
const LOOKING_BESIDE: f64 = 0.005;
const ALL: f64 = 0.019;
/// What the machine is like, and what memory is called, is asked for so often.
const ASKED_EVERY: Duration = Duration::from_secs(5);
/// Before this Linux, a huge page that is split keeps the memory of its zero pages.
const GIVES_ZEROES_BACK: (u32, u32) = (6, 12);
/// Decisions that are told.
const MOST_EXPLAINED: usize = 1000;
/// Why a hot region is left alone of which the program has little.
const WOULD_GROW: &str = "it would make the program's memory more than a tenth larger";
/// Huge pages that are read for zeroes in a round: each takes some tenths of a millisecond.
const MOST_READ: usize = 8;

/// What `--stats` writes.
#[derive(Debug, Default, Serialize)]
struct Stats {
    /// Of what was anonymous at most, how much was huge at most, this while; `None`: nothing was there.
    huge_share: Option<f64>,
    promoted: u64,
    demoted: u64,
    /// Regions that were decided about, each round.
    decisions: u64,
    /// Why regions that were to be made huge or split were not, and how many.
    refused: BTreeMap<&'static str, u64>,
    /// Of the agent.
    cpu_seconds: f64,
    /// Of one processor.
    agent_share: f64,
    /// What clearing bits took the processes, estimated.
    disturbed_seconds: f64,
    dry_run: bool,
    wall_seconds: f64,
    explained: Vec<Explained>,
}

impl Stats {
    fn advice(&self) -> Advice {
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
    /// What its mappings are called, and when that was asked for.
    areas: Vec<Area>,
    named: Option<Instant>,
    growth: Growth,
}

struct Agent<'a> {
    options: &'a Attach,
    regions: Regions,
    costs: Costs,
    history: History,
    /// When it was asked for; what was promoted since is taken off.
    state: (Instant, State),
    /// By number.
    processes: BTreeMap<i32, Process>,
    stats: Stats,
    /// The last decision about regions that were left alone.
    left: BTreeMap<(i32, u64), (f64, Estimate)>,
    huge_peak: u64,
    anonymous_peak: u64,
    /// When it was, and how much processor time was used then.
    began: (Instant, Duration),
}

pub fn attach(options: &Attach) -> anyhow::Result<Status> {
    let found = options.target.find()?;
    let (scope, target) = match &found {
        Found::Process(pid) => (Scope::Tree(*pid), Target::Tree(*pid)),
        Found::Cgroup(path) => (Scope::Cgroup(Cgroup::at(path)?), Target::Cgroup(found.to_string())),
    };
    if procfs::kernel_version() < (6, 1) {
        bail!(
            "Linux {} cannot make huge pages of another process's memory, which came with 6.1",
            procfs::kernel_release()
        );
    }
    let needs = || format!("advise attach {NEEDS}");
    let regions = Regions::of(scope, LOOKING).map_err(|error| match error {
        track::regions::Error::Target(error) if error.is_of_target() => anyhow::Error::new(error),
        error => anyhow::Error::new(error).context(needs()),
    })?;
    let kept = options.record.as_deref().map(|path| Kept::begin(path, &[], target)).transpose()?;
    let signals = Forwarding::start()?;
    let mut agent = Agent {
        options,
        regions,
        costs: costs::calibrated(costs::ON_THE_WAY),
        history: History::of(Duration::from_secs_f64(State::HORIZON_SECONDS)),
        state: (Instant::now(), costs::state()),
        processes: BTreeMap::new(),
        stats: Stats { dry_run: options.dry_run, ..Stats::default() },
        left: BTreeMap::new(),
        huge_peak: 0,
        anonymous_peak: 0,
        began: (Instant::now(), own_cpu()),
    };
    if !options.quiet {
        tell!("advising {found}; Ctrl-C ends");
    }
    let (began, cpu) = agent.began;
    let is_over = || signals.interrupted() || options.duration.is_some_and(|longest| began.elapsed() >= longest);
    while !is_over() {
        let is_there = agent.regions.round(options.interval, is_over).context(needs())?;
        if !is_there {
            break;
        }
        agent.act();
    }
    agent.stats.cpu_seconds = (own_cpu() - cpu).as_secs_f64();
    agent.stats.wall_seconds = began.elapsed().as_secs_f64();
    agent.end(kept)
}

impl Agent<'_> {
    /// Decides about all regions, and does what is worth it, as far as the processor time goes that it may take.
    fn act(&mut self) {
        let now = Instant::now();
        // What was not taken so far may be: most huge pages are made soon after the start.
        let (began, cpu) = self.began;
        let may_go_on = || own_cpu() - cpu < began.elapsed().mul_f64(ALL);
        self.history.forget(now);
        self.follow();
        let known = self.regions.known(self.costs.last_cache_bytes);
        self.weigh(&known);
        if self.state.0.elapsed() > ASKED_EVERY {
            self.state = (now, costs::state());
        }
        let state = self.state.1.clone();
        let free: Vec<&Region> =
            known.iter().filter(|region| self.history.is_free(region.pid, region.start, now)).collect();
        let choices = choose::promotions(free.iter().copied(), &state, &self.costs);
        self.stats.decisions += choices.len() as u64;
        let mut left = (f64::from(self.options.rate) * self.options.interval.as_secs_f64()).ceil() as u64;
        let mut are_waiting = false;
        for Choice { region, estimate } in &choices {
            if estimate.net_ns() <= 0.0 {
                self.left.insert((region.pid, region.start), (self.seconds(region.pid), estimate.clone()));
            } else if left > 0 && may_go_on() {
                left -= 1;
                self.promote(region, &state, now);
            } else {
                are_waiting = true;
            }
        }
        self.regions.look_at_most(if are_waiting { LOOKING_BESIDE } else { LOOKING });
        if procfs::kernel_version() < GIVES_ZEROES_BACK {
            return;
        }
        let horizon = Duration::from_secs_f64(state.horizon_seconds);
        let is_cold = |region: &&&Region| region.is_huge && region.rounds >= choose::ROUNDS && region.idle >= horizon;
        for region in free.iter().filter(is_cold).take(MOST_READ) {
            if left > 0 && may_go_on() {
                left -= 1;
                self.demote(region, &state, now);
            }
        }
    }

    /// What is there now decides: the region was looked at by a sample.
    fn promote(&mut self, region: &Region, state: &State, now: Instant) {
        let Some((present, false)) = self.regions.present(region.pid, region.start) else { return };
        let estimate = choose::promotion(region, present, state, &self.costs);
        if estimate.net_ns() <= 0.0 {
            self.left.insert((region.pid, region.start), (self.seconds(region.pid), estimate));
            return;
        }
        let why = format!("{:.0} accesses per second miss the TLB", region.misses_per_second);
        if !self.may_grow(region.pid, present) {
            self.history.done(region.pid, region.start, now);
            *self.stats.refused.entry(WOULD_GROW).or_default() += 1;
            let told = self.explained(region.pid, region.start, "leave", format!("{why}, but {WOULD_GROW}"), &estimate);
            if self.stats.explained.len() < MOST_EXPLAINED {
                self.stats.explained.push(told);
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
        self.tell(region, "promote", why, estimate, done, now);
    }

    fn demote(&mut self, region: &Region, state: &State, now: Instant) {
        let advised = self.processes.get(&region.pid).and_then(|process| process.advised.as_ref());
        let Some(zero) = advised.and_then(|advised| advised.zero_pages(region.start).ok()) else { return };
        self.stats.decisions += 1;
        let estimate = choose::demotion(zero, state, &self.costs);
        if estimate.net_ns() <= 0.0 {
            self.history.done(region.pid, region.start, now);
            self.left.insert((region.pid, region.start), (self.seconds(region.pid), estimate));
            return;
        }
        let done = self.carry_out(region, |advised| advised.split(region.start));
        let why = format!("{zero} of 512 pages are zero, and not accessed for {}", seconds(region.idle.as_secs_f64()));
        self.stats.demoted += u64::from(done.is_ok());
        if let (Ok(()), Some(process)) = (&done, self.processes.get_mut(&region.pid)) {
            process.growth.demoted(zero);
        }
        self.tell(region, "demote", why, estimate, done, now);
    }

    /// What is read of a process that has just ended is nothing, and so is what it may have.
    fn may_grow(&self, pid: i32, present_pages: u64) -> bool {
        let anonymous = procfs::status(pid).ok().and_then(|status| status.rss_anon).unwrap_or(0);
        let growth = self.processes.get(&pid).map(|process| process.growth).unwrap_or_default();
        growth.allows(present_pages, anonymous / procfs::page_bytes())
    }

    /// Nothing in a dry run.
    fn carry_out(&self, region: &Region, act: impl Fn(&Advised) -> Result<(), Refusal>) -> Result<(), Refusal> {
        match self.processes.get(&region.pid).and_then(|process| process.advised.as_ref()) {
            _ if self.options.dry_run => Ok(()),
            Some(advised) => act(advised),
            None => Err(Refusal::Gone),
        }
    }

    fn tell(
        &mut self,
        region: &Region,
        action: &str,
        why: String,
        estimate: Estimate,
        done: Result<(), Refusal>,
        now: Instant,
    ) {
        self.history.done(region.pid, region.start, now);
        self.left.remove(&(region.pid, region.start));
        let told = match done {
            Ok(()) => self.explained(region.pid, region.start, action, why, &estimate),
            Err(refusal) => {
                *self.stats.refused.entry(refusal.why()).or_default() += 1;
                self.explained(region.pid, region.start, "leave", format!("{why}, but {}", refusal.why()), &estimate)
            }
        };
        if self.stats.explained.len() < MOST_EXPLAINED {
            self.stats.explained.push(told);
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

    /// Since the process began.
    fn seconds(&self, pid: i32) -> f64 {
        let start = self.processes.get(&pid).map_or(0, |process| process.start);
        (procfs::monotonic_ns() as f64 / 1e9 - procfs::start_seconds(start)).max(0.0)
    }

    /// Processes that came and went.
    fn follow(&mut self) {
        let living: BTreeMap<i32, u64> = self.regions.processes().collect();
        self.processes.retain(|pid, process| living.get(pid) == Some(&process.start));
        self.left.retain(|(pid, _), _| living.contains_key(pid));
        for (pid, start) in living {
            let new = || Process {
                start,
                advised: Advised::of(pid, start).ok(),
                areas: Vec::new(),
                named: None,
                growth: Growth::default(),
            };
            let process = self.processes.entry(pid).or_insert_with(new);
            if process.named.is_some_and(|named| named.elapsed() < ASKED_EVERY) {
                continue;
            }
            process.named = Some(Instant::now());
            let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            // Of a process that has just ended, names from before are as good.
            let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else { continue };
            if let Ok(areas) = maps::read(&text, &executable.to_string_lossy(), |_| None) {
                process.areas = areas;
            }
        }
    }

    fn weigh(&mut self, known: &[Region]) {
        let huge = known.iter().filter(|region| region.is_huge).count() as u64 * HUGE_BYTES;
        let anonymous = self.processes.keys().filter_map(|pid| procfs::status(*pid).ok()?.rss_anon).sum::<u64>();
        self.huge_peak = self.huge_peak.max(huge);
        self.anonymous_peak = self.anonymous_peak.max(anonymous);
    }

    fn end(mut self, kept: Option<Kept>) -> anyhow::Result<Status> {
        let left = std::mem::take(&mut self.left);
        let room = MOST_EXPLAINED - self.stats.explained.len();
        for ((pid, region), (seconds, estimate)) in left.into_iter().take(room) {
            let told = self.explained(pid, region, "leave", "not worth it".into(), &estimate);
            self.stats.explained.push(Explained { seconds, ..told });
        }
        let stats = &mut self.stats;
        stats.huge_share = (self.anonymous_peak > 0).then(|| self.huge_peak as f64 / self.anonymous_peak as f64);
        stats.agent_share = stats.cpu_seconds / stats.wall_seconds.max(1e-9);
        stats.disturbed_seconds = self.regions.taken_seconds();
        if !self.options.quiet {
            summary(stats).iter().for_each(|line| tell!("bursar: {line}"));
        }
        if let Some(kept) = kept {
            kept.end(Exit::StillRunning, self.stats.wall_seconds, self.stats.advice())?;
        }
        if let Some(path) = &self.options.stats {
            write_json(path, &self.stats)?;
        }
        Ok(Status::of(0))
    }
}

fn summary(stats: &Stats) -> Vec<String> {
    let would = if stats.dry_run { "would have been " } else { "" };
    let mut lines = vec![format!(
        "{} huge pages {would}made and {} {would}split in {}; the agent took {:.1} % of a processor",
        stats.promoted,
        stats.demoted,
        seconds(stats.wall_seconds),
        100.0 * stats.agent_share,
    )];
    lines.extend(stats.refused.iter().map(|(why, times)| format!("not done {times} times: {why}")));
    if stats.promoted + stats.demoted > 0 && !stats.dry_run {
        lines.push("huge pages that were made stay the program's; zero pages that were given back come again when it writes to them".into());
    }
    lines
}

/// CPU time of this process.
fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

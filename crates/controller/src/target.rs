//! A program whose memory is balanced: what it needs, and how its memory is controlled.

use std::path::Path;
use std::time::{Duration, Instant};

use balance::{Demand, Guess, History, Lived, Move, Seen, Stage, Unrest, fills};
use linux::cgroup::Cgroup;
use linux::journal::Journal;
use linux::procfs;
use model::{Bytes, MissPoint, PagesRound};
use qemu::Machine;
use report::balance::Row;
use session::phases::Phases;
use session::say::tell;
use track::pages::{Pages, Scope, Settings};

use crate::control::{Controller, tree};
use crate::device::Device;
use crate::kinds::{Spare, lacks_files};
use crate::reclaim::Tracked;

/// Maximum share of time that a target counts as stalled; beyond that no time would be left to measure.
const MAX_STALLED_SHARE: f64 = 0.95;

/// A target that waits for memory for more than this share of its time shows its need by its slowness.
const MIN_STALLED_SHARE: f64 = 0.1;

/// The reason reported when a limit was raised between two decisions.
const RAISED: &str = "it was raised at once, because its programs stalled below the memory that cannot be reclaimed";

/// A guest that lacks memory is tracked until the doubt about its curve is below this.
const MAX_DOUBT: f64 = 0.01;

/// A target as requested.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// A cgroup's path, a PID, `name:NAME` or `qmp:SOCKET`.
    pub name: String,
    /// Weight of its losses against those of the others.
    pub weight: f64,
    /// Its minimum, bytes.
    pub least: u64,
    /// Its maximum, bytes.
    pub most: u64,
}

/// One target.
pub struct Target {
    /// The name it was requested by.
    pub name: String,
    asked: Asked,
    controller: Controller,
    stage: Stage,
    settings: Settings,
    /// `None` while its cgroup has no process.
    pages: Option<Pages>,
    /// Whether its kinds of memory are balanced too. While it lacks files it is tracked, because only tracked memory
    /// has an age.
    kinds: bool,
    phases: Phases,
    /// The valid results of its memory scans.
    standing: Option<PagesRound>,
    history: History,
    /// Its current curve over all memory charged to it, and its demand by the curves of its history; `None`: unknown
    /// yet.
    known: Option<(Vec<MissPoint>, Demand)>,
    stalled: f64,
    unrest: Unrest,
    counters: Counters,
    /// Changes of its limit besides decisions, as sentences.
    beside: Vec<String>,
    /// Statistics of the last interval.
    pub last_interval: Option<IntervalStats>,
}

/// Counters since the beginning.
struct Counters {
    at: Instant,
    refaults: u64,
    /// Of these, file pages, where they are counted separately.
    file_refaults: u64,
    waited_seconds: Option<f64>,
    /// User time.
    work_seconds: f64,
}

/// Statistics of an interval.
pub struct IntervalStats {
    seconds: f64,
    /// Pages brought back.
    pub refaults: f64,
    file_refaults: u64,
    /// Seconds that it waited for memory, where that is counted.
    pub waited_seconds: Option<f64>,
    /// Seconds that it worked, summed over threads.
    work_seconds: f64,
    /// Whether its memory was tracked.
    is_tracked: bool,
}

impl Target {
    /// Starts to scan the target, and takes over its limit if there is a journal.
    pub fn open(
        asked: &Asked,
        total: u64,
        overhead: f64,
        kinds: bool,
        journal: Option<&Journal>,
    ) -> anyhow::Result<Target> {
        let called = asked.name.strip_prefix("name:").map(serve::find).transpose()?;
        let controller = match (asked.name.strip_prefix("qmp:"), asked.name.parse()) {
            (Some(socket), _) => Controller::Machine(Box::new(Machine::open(Path::new(socket), journal)?)),
            (_, Ok(pid)) => Controller::process(pid, journal)?,
            (_, Err(_)) => {
                let path = called.unwrap_or_else(|| asked.name.clone().into());
                Controller::cgroup(Cgroup::at(&path)?, journal)?
            }
        };
        anyhow::ensure!(
            !matches!(&controller, Controller::Cgroup { cgroup, .. } if cgroup.is_root()),
            "{} is the whole machine; name cgroups beneath it",
            asked.name
        );
        // Naming a target permits intrusive scans.
        let settings = Settings { overhead, intrusive: true, ..Settings::default() };
        let counters = Counters::of(&controller);
        let history = History::new(total.max(controller.usage()));
        let mut target = Target {
            name: asked.name.clone(),
            asked: asked.clone(),
            stage: if controller.is_empty() { Stage::Empty } else { Stage::Running },
            controller,
            settings,
            pages: None,
            kinds,
            phases: Phases::new(false),
            standing: None,
            history,
            known: None,
            stalled: 0.0,
            unrest: Unrest::default(),
            counters,
            beside: Vec::new(),
            last_interval: None,
        };
        match Pages::start(target.scope(), settings) {
            Ok(pages) => target.pages = Some(pages),
            Err(track::pages::Error::Empty(_)) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(why) = target.pages.as_ref().and_then(Pages::fallback) {
            tell!(
                "bursar: {}: memory is scanned by mapping, not by page, so the worth of more memory is uncertain: {why}",
                target.name
            );
        }
        match (&mut target.controller, &target.pages) {
            (Controller::Machine(machine), Some(pages)) if !machine.is_emulated => {
                machine.is_seen = pages.without_guests().is_none();
                if let Some(why) = pages.without_guests() {
                    tell!(
                        "bursar: {}: accesses of its guest are not seen, so it only gives up unused memory: {why}",
                        target.name
                    );
                }
            }
            _ => {}
        }
        Ok(target)
    }

    /// Whether it is a virtual machine, which has its own disks.
    pub fn is_machine(&self) -> bool {
        matches!(self.controller, Controller::Machine(_))
    }

    /// Whether a change of one target's memory would change the other's.
    pub fn shares_memory_with(&self, other: &Target) -> bool {
        let dir = |controller: &Controller| match controller {
            Controller::Cgroup { cgroup, .. } => Some(cgroup.dir().to_path_buf()),
            Controller::Process { .. } | Controller::Machine(_) => None,
        };
        match (dir(&self.controller), dir(&other.controller)) {
            (Some(one), Some(two)) => one.starts_with(&two) || two.starts_with(&one),
            _ => self.processes().iter().any(|pid| other.processes().contains(pid)),
        }
    }

    /// Why it has ended or was removed; `None` if it exists.
    pub fn end(&self) -> Option<String> {
        self.controller.end()
    }

    /// Whether a program has started where none ran at the last scan, and fills the limit that was left.
    pub fn begins(&self) -> bool {
        let fills = || self.controller.limit().is_some_and(|limit| fills(self.controller.usage(), limit));
        self.stage == Stage::Empty && !self.controller.is_empty() && fills()
    }

    /// Takes in what it has done since the last call.
    pub fn observe(&mut self) {
        self.stage = match self.stage {
            _ if self.controller.is_empty() => Stage::Empty,
            Stage::Empty => Stage::Begun,
            stage => stage,
        };
        let round = self.pages.as_ref().map(Pages::round);
        match round {
            Some(Ok(Some(round))) if self.stage != Stage::Empty => {
                let pages = self.pages.as_ref().map(|pages| self.phases.round(pages, round));
                self.standing = pages.map(|round| round.standing(self.standing.as_ref()));
            }
            _ => {
                // It has no process now; later processes must be measured anew.
                (self.pages, self.standing, self.known) = (None, None, None);
                self.history.forget();
                self.phases = Phases::new(false);
                self.pages = Pages::start(self.scope(), self.settings).ok();
            }
        }
        let has_changed = match &mut self.controller {
            Controller::Machine(machine) => machine.look(),
            _ => false,
        };
        if has_changed {
            self.phases = Phases::new(false);
            self.pages.iter().for_each(|pages| pages.track(true));
            self.history.forget();
        }
        let now = Counters::of(&self.controller);
        let before = std::mem::replace(&mut self.counters, now);
        let now = &self.counters;
        let file_refaults = now.file_refaults.saturating_sub(before.file_refaults);
        let lacks_files = self.kinds && self.controller.limit().is_some_and(|limit| lacks_files(limit, file_refaults));
        // One round sees few of the frames that come back late, so it would not be representative.
        let is_uncertain = matches!(&self.controller, Controller::Machine(machine) if machine.is_short())
            && self.history.doubt() > MAX_DOUBT;
        let always = lacks_files || is_uncertain;
        if always && !self.phases.always {
            self.pages.iter().for_each(|pages| pages.track(true));
        }
        self.phases.always = always;
        self.last_interval = Some(IntervalStats {
            seconds: (now.at - before.at).as_secs_f64().max(1e-3),
            refaults: now.refaults.saturating_sub(before.refaults) as f64,
            file_refaults,
            waited_seconds: now.waited_seconds.zip(before.waited_seconds).map(|(now, before)| now - before),
            work_seconds: (now.work_seconds - before.work_seconds).max(0.0),
            is_tracked: self.standing.as_ref().is_some_and(|round| round.tracking),
        });
    }

    /// Updates its demand, now that the duration of a miss is known. While it is not tracked, the old demand stays,
    /// unless `is_anew` asks to measure everything anew.
    pub fn update_demand(&mut self, device: &Device, is_anew: bool) {
        let (Some(stats), Some(round)) = (&self.last_interval, &self.standing) else {
            self.stalled = 0.0;
            return;
        };
        let per_second = stats.refaults / stats.seconds;
        self.stalled = (per_second * device.miss_seconds()).min(MAX_STALLED_SHARE);
        if let Controller::Machine(machine) = &self.controller {
            if stats.is_tracked && !round.misses.is_empty() {
                let lived = Lived { work_seconds: stats.seconds, ..self.lived(stats) };
                self.history.add(&round.misses, Guess::default(), &lived);
            }
            // The guest's swapped memory is updated even while it is not tracked.
            let frames_missed = self.history.misses().unwrap_or_default();
            self.known = machine.misses(round, &frames_missed).map(|points| {
                let demand = Demand::of(&points, device.miss_seconds(), self.stalled);
                (points, demand)
            });
            return;
        }
        if is_anew {
            // Measure from the next interval on: this one mixes both behaviours.
            self.history.forget();
            self.known = None;
            // Earlier moves back and forth say nothing about the new predictions.
            self.unrest = Unrest::default();
            self.pages.iter().for_each(|pages| pages.track(true));
            return;
        }
        // Until it needs more than the limit that was left, a starting program does not show what it will need.
        if !stats.is_tracked || self.stage == Stage::Begun {
            return;
        }
        // Pages found for the first time that were reclaimed before come back later than all known pages.
        let comes_back = 2.0 * per_second >= round.first_touches_per_second;
        let always = if comes_back { round.first_touches_per_second } else { 0.0 };
        if round.wss_bytes.is_none() && (!comes_back || always == 0.0) {
            return;
        }
        let unseen = self.unseen();
        let mut guess = Guess { below: round.blind_below, misses_per_second: 0.0 };
        if self.stalled < MIN_STALLED_SHARE {
            guess = Guess::of(round, stats.work_seconds / stats.seconds);
        }
        let shifted = |bytes| if bytes > 0 { bytes + unseen } else { 0 };
        let points: Vec<MissPoint> = round
            .misses
            .iter()
            .map(|point| MissPoint { bytes: shifted(point.bytes), misses_per_second: point.misses_per_second + always })
            .collect();
        let guess = Guess { below: shifted(guess.below), misses_per_second: guess.misses_per_second + always };
        self.history.add(&points, guess, &self.lived(stats));
        let Some(misses) = self.history.misses() else { return };
        // Per second of work, in which it waits for nothing.
        self.known = Some((points, Demand::of(&misses, device.miss_seconds(), 0.0)));
    }

    /// Notes that a started program was given its share.
    pub fn has_begun(&mut self) {
        self.stage = Stage::Running;
    }

    /// Whether its needs have changed, so that what is known must be discarded.
    pub fn notices_change(&mut self, device: &Device) -> bool {
        // For a virtual machine, only the guest's waiting time shows its work.
        let Some(stats) = self.last_interval.as_ref().filter(|_| !matches!(self.controller, Controller::Machine(_)))
        else {
            return false;
        };
        let lived = self.lived(stats);
        self.history.notice(&lived, device.miss_seconds())
    }

    fn lived(&self, stats: &IntervalStats) -> Lived {
        Lived {
            seconds: stats.seconds,
            work_seconds: stats.work_seconds,
            limit: self.controller.limit().unwrap_or(u64::MAX),
            refaults: stats.refaults,
        }
    }

    /// What the planner knows of it.
    pub fn evidence(&self, swap: u64) -> Seen<'_> {
        Seen {
            stage: self.stage,
            weight: self.asked.weight,
            least: self.asked.least,
            most: self.asked.most.min(self.controller.max_bytes()),
            floor: self.floor(swap),
            limit: self.controller.limit(),
            usage: self.controller.usage(),
            demand: self.known.as_ref().map(|(_, demand)| demand),
            doubt: self.history.doubt(),
            unrest: self.unrest.bytes(),
            stalled: self.stalled,
        }
    }

    /// The size below which it would be killed.
    pub fn floor(&self, swap: u64) -> u64 {
        self.controller.floor(swap)
    }

    /// See [`Controller::wake`].
    pub fn wake(&mut self, swap: u64) {
        if self.controller.wake(swap) && !self.beside.iter().any(|note| note == RAISED) {
            self.beside.push(RAISED.into());
        }
    }

    /// Sets its limit again if somebody else has changed it.
    pub fn set_again(&mut self, patience: Duration) {
        if let Some(found) = self.controller.set_by_others(patience) {
            tell!("bursar: {}: {found}; bursar sets its own limit again, and restores that one at the end", self.name);
            self.beside.push(format!("{found}, and it was set again"));
        }
    }

    /// See [`Controller::set`].
    pub fn set(&mut self, bytes: u64, patience: Duration) -> anyhow::Result<u64> {
        let tracked = tracked(self.pages.as_ref(), self.standing.as_ref());
        self.controller.set(bytes, patience, tracked)
    }

    /// Heap that should give way to files; `None` unless kinds of memory are balanced.
    pub fn spare(&self) -> Option<Spare> {
        let limit = self.controller.limit().filter(|_| self.kinds)?;
        let tracked = tracked(self.pages.as_ref(), self.standing.as_ref())?;
        Spare::of(&tracked, limit, self.last_interval.as_ref()?.file_refaults)
    }

    /// The row that reports a move from `now`. Notes the move.
    pub fn row(&mut self, to: &Move, now: u64) -> Row {
        self.unrest.add(now, to.to);
        let wss_bytes = self.standing.as_ref().and_then(|round| round.wss_bytes).filter(|wss| *wss > 0);
        let misses = self.known.as_ref().map(|(points, _)| {
            let after = points.partition_point(|point| point.bytes <= now);
            points.get(after.saturating_sub(1)).map_or(0.0, |point| point.misses_per_second)
        });
        let files = self.standing.as_ref().filter(|round| round.unseen_in_files().is_some());
        if let Some((bytes, name)) = files.and_then(PagesRound::unseen_in_files) {
            let bytes = Bytes(bytes);
            self.beside.push(format!(
                "it needs up to {bytes} more: reads and writes of files in memory ({name}) are not seen"
            ));
        }
        Row {
            name: self.name.clone(),
            limit_bytes: to.to,
            wss_bytes,
            wss_is_lower_bound: files.is_some(),
            files_in_memory_bytes: self.standing.as_ref().map_or(0, |round| round.files_in_memory_bytes),
            misses_per_second: misses,
            moved_bytes: to.to as i64 - now as i64,
            why: std::iter::once(to.why.clone()).chain(self.beside.drain(..)).collect::<Vec<_>>().join("; "),
        }
    }

    /// Restores what was there before bursar.
    ///
    /// # Errors
    /// Why it could not be restored.
    pub fn release(self) -> anyhow::Result<()> {
        self.controller.release()
    }

    /// Memory charged to it that is not in the curve: the kernel's, pages whose accesses cannot be seen, and files in
    /// memory (tmpfs, memfds), whose reads and writes are not seen.
    fn unseen(&self) -> u64 {
        let memory = match &self.controller {
            Controller::Cgroup { cgroup, .. } => cgroup.memory().ok(),
            Controller::Process { .. } | Controller::Machine(_) => None,
        };
        let (blind, files) =
            self.standing.as_ref().map_or((0, 0), |round| (round.blind_bytes, round.files_in_memory_bytes));
        let charged = |kind: Option<u64>| kind.unwrap_or(0);
        let [kernel, shared] = memory.map_or([0, 0], |memory| [charged(memory.kernel), charged(memory.shmem)]);
        kernel + blind + files.min(shared)
    }

    fn processes(&self) -> Vec<i32> {
        match &self.controller {
            Controller::Cgroup { cgroup, .. } => cgroup.processes().unwrap_or_default(),
            Controller::Process { pid, .. } => tree(*pid),
            Controller::Machine(machine) => tree(machine.pid()),
        }
    }

    fn scope(&self) -> Scope {
        match &self.controller {
            Controller::Cgroup { cgroup, .. } => Scope::Cgroup(cgroup.clone()),
            Controller::Process { pid, .. } => Scope::Tree(*pid),
            Controller::Machine(machine) => Scope::Tree(machine.pid()),
        }
    }
}

fn tracked<'a>(pages: Option<&'a Pages>, round: Option<&'a PagesRound>) -> Option<Tracked<'a>> {
    Some(Tracked { pages: pages?, round: round? })
}

impl Counters {
    fn of(controller: &Controller) -> Counters {
        let at = Instant::now();
        let stats = |pids: Vec<i32>| pids.into_iter().filter_map(|pid| procfs::stat(pid).ok()).collect::<Vec<_>>();
        let worked = |stats: &[procfs::Stat]| {
            procfs::seconds_of(stats.iter().map(|stat| stat.utime + stat.reaped_user_time).sum())
        };
        match controller {
            Controller::Cgroup { cgroup, .. } => {
                let memory = cgroup.memory().unwrap_or_default();
                let file_refaults = memory.refault_file.unwrap_or(0);
                let refaults = memory.refault_anon.unwrap_or(0) + file_refaults;
                let waited_seconds = cgroup.pressure().and_then(|psi| psi.memory_some_seconds);
                let work_seconds = worked(&stats(cgroup.processes().unwrap_or_default()));
                Counters { at, refaults, file_refaults, waited_seconds, work_seconds }
            }
            Controller::Process { pid, .. } => {
                let stats = stats(tree(*pid));
                let refaults = stats.iter().map(|stat| stat.majflt).sum();
                Counters { at, refaults, file_refaults: 0, waited_seconds: None, work_seconds: worked(&stats) }
            }
            Controller::Machine(machine) => {
                let (refaults, waited_seconds) = machine.waits();
                Counters { at, refaults, file_refaults: 0, waited_seconds, work_seconds: 0.0 }
            }
        }
    }
}

//! A program whose memory is balanced: what it needs, and what holds it.

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

use crate::device::Device;
use crate::hold::{Hold, tree};
use crate::kinds::{Spare, lacks_files};
use crate::reclaim::Tracked;

/// One that would wait longer has no time left to be measured in.
const MOST_STALLED: f64 = 0.95;

/// Who waits for memory more than this share of its time is slow enough to be seen.
const LEAST_STALLED: f64 = 0.1;

/// What is told where a limit was raised between two decisions.
const RAISED: &str = "it was raised at once, for its programs were held up below what cannot be reclaimed";

/// Of a guest that lacks memory more is looked at until its curve is in no more doubt than this.
const MOST_DOUBT: f64 = 0.01;

/// A target as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// A cgroup's path, a PID, `name:NAME` or `qmp:SOCKET`.
    pub name: String,
    /// What its losses count beside those of the others.
    pub weight: f64,
    /// The least that it is to have, bytes.
    pub least: u64,
    /// The most that it is to have, bytes.
    pub most: u64,
}

/// One target.
pub struct Target {
    /// As it was named.
    pub name: String,
    asked: Asked,
    hold: Hold,
    stage: Stage,
    settings: Settings,
    /// None while nothing runs in its cgroup.
    pages: Option<Pages>,
    /// Whether its kinds of memory are balanced, too: while it lacks files it is tracked, for only what is tracked has its age.
    kinds: bool,
    phases: Phases,
    /// What stands of its memory.
    standing: Option<PagesRound>,
    history: History,
    /// Its curve of late, of all that it is charged for, and what it loses by those of its history; none: not known yet.
    known: Option<(Vec<MissPoint>, Demand)>,
    stalled: f64,
    unrest: Unrest,
    counters: Counters,
    /// What was done to its limit beside the decision, in words.
    beside: Vec<String>,
    /// Of the last interval.
    pub seen: Option<Looked>,
}

/// Counted up since the beginning.
struct Counters {
    at: Instant,
    refaults: u64,
    /// Of these, pages of files, where that is told apart.
    file_refaults: u64,
    waited_seconds: Option<f64>,
    /// User time.
    work_seconds: f64,
}

/// What an interval has told.
pub struct Looked {
    seconds: f64,
    /// Pages brought back.
    pub refaults: f64,
    file_refaults: u64,
    /// Time that it waited for memory, where that is counted.
    pub waited_seconds: Option<f64>,
    /// Time that it worked, all threads together.
    work_seconds: f64,
    /// Whether its memory was tracked.
    is_tracked: bool,
}

impl Target {
    /// Begins to look at it, and takes hold of its limit, if there is a journal.
    pub fn open(
        asked: &Asked,
        total: u64,
        overhead: f64,
        kinds: bool,
        journal: Option<&Journal>,
    ) -> anyhow::Result<Target> {
        let called = asked.name.strip_prefix("name:").map(serve::find).transpose()?;
        let hold = match (asked.name.strip_prefix("qmp:"), asked.name.parse()) {
            (Some(socket), _) => Hold::Machine(Box::new(Machine::open(Path::new(socket), journal)?)),
            (_, Ok(pid)) => Hold::process(pid, journal)?,
            (_, Err(_)) => {
                let path = called.unwrap_or_else(|| asked.name.clone().into());
                Hold::cgroup(Cgroup::at(&path)?, journal)?
            }
        };
        anyhow::ensure!(
            !matches!(&hold, Hold::Cgroup { cgroup, .. } if cgroup.is_root()),
            "{} is the whole machine; name cgroups beneath it",
            asked.name
        );
        // Who names a target has asked for it to be disturbed.
        let settings = Settings { overhead, intrusive: true, ..Settings::default() };
        let counters = Counters::of(&hold);
        let history = History::new(total.max(hold.usage()));
        let mut target = Target {
            name: asked.name.clone(),
            asked: asked.clone(),
            stage: if hold.is_empty() { Stage::Empty } else { Stage::Running },
            hold,
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
            seen: None,
        };
        match Pages::start(target.scope(), settings) {
            Ok(pages) => target.pages = Some(pages),
            Err(track::pages::Error::Empty(_)) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(why) = target.pages.as_ref().and_then(Pages::fallback) {
            tell!(
                "bursar: {}: by mapping, not page by page, so what more memory is worth is told badly: {why}",
                target.name
            );
        }
        match (&mut target.hold, &target.pages) {
            (Hold::Machine(machine), Some(pages)) if !machine.is_emulated => {
                machine.is_seen = pages.without_guests().is_none();
                if let Some(why) = pages.without_guests() {
                    tell!(
                        "bursar: {}: what its guest accesses is not seen, so it only gives what it does not use: {why}",
                        target.name
                    );
                }
            }
            _ => {}
        }
        Ok(target)
    }

    /// Whether it is a virtual machine, with disks of its own.
    pub fn is_machine(&self) -> bool {
        matches!(self.hold, Hold::Machine(_))
    }

    /// Whether what is done to one would be done to the other.
    pub fn shares_memory_with(&self, other: &Target) -> bool {
        let dir = |hold: &Hold| match hold {
            Hold::Cgroup { cgroup, .. } => Some(cgroup.dir().to_path_buf()),
            Hold::Process { .. } | Hold::Machine(_) => None,
        };
        match (dir(&self.hold), dir(&other.hold)) {
            (Some(one), Some(two)) => one.starts_with(&two) || two.starts_with(&one),
            _ => self.processes().iter().any(|pid| other.processes().contains(pid)),
        }
    }

    /// How it came to its end, if it has ended or was removed.
    pub fn end(&self) -> Option<String> {
        self.hold.end()
    }

    /// Whether something has begun where nothing ran when it was last looked at, and fills what was left there.
    pub fn begins(&self) -> bool {
        let fills = || self.hold.limit().is_some_and(|limit| fills(self.hold.usage(), limit));
        self.stage == Stage::Empty && !self.hold.is_empty() && fills()
    }

    /// What it has done since the last call.
    pub fn look(&mut self) {
        self.stage = match self.stage {
            _ if self.hold.is_empty() => Stage::Empty,
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
                // Nothing runs in it now; what comes later has to be known anew.
                (self.pages, self.standing, self.known) = (None, None, None);
                self.history.forget();
                self.phases = Phases::new(false);
                self.pages = Pages::start(self.scope(), self.settings).ok();
            }
        }
        let has_changed = match &mut self.hold {
            Hold::Machine(machine) => machine.look(),
            _ => false,
        };
        if has_changed {
            self.phases = Phases::new(false);
            self.pages.iter().for_each(|pages| pages.track(true));
            self.history.forget();
        }
        let now = Counters::of(&self.hold);
        let before = std::mem::replace(&mut self.counters, now);
        let now = &self.counters;
        let file_refaults = now.file_refaults.saturating_sub(before.file_refaults);
        let lacks_files = self.kinds && self.hold.limit().is_some_and(|limit| lacks_files(limit, file_refaults));
        // One round sees few of the frames that come back late, and would stand as it is.
        let is_uncertain =
            matches!(&self.hold, Hold::Machine(machine) if machine.is_short()) && self.history.doubt() > MOST_DOUBT;
        let always = lacks_files || is_uncertain;
        if always && !self.phases.always {
            self.pages.iter().for_each(|pages| pages.track(true));
        }
        self.phases.always = always;
        self.seen = Some(Looked {
            seconds: (now.at - before.at).as_secs_f64().max(1e-3),
            refaults: now.refaults.saturating_sub(before.refaults) as f64,
            file_refaults,
            waited_seconds: now.waited_seconds.zip(before.waited_seconds).map(|(now, before)| now - before),
            work_seconds: (now.work_seconds - before.work_seconds).max(0.0),
            is_tracked: self.standing.as_ref().is_some_and(|round| round.tracking),
        });
    }

    /// What it loses with how much, now that it is known how long a miss takes. While it is not tracked, what was known stands, unless all is to be
    /// known anew.
    pub fn judge(&mut self, device: &Device, is_anew: bool) {
        let (Some(looked), Some(round)) = (&self.seen, &self.standing) else {
            self.stalled = 0.0;
            return;
        };
        let per_second = looked.refaults / looked.seconds;
        self.stalled = (per_second * device.miss_seconds()).min(MOST_STALLED);
        if let Hold::Machine(machine) = &self.hold {
            if looked.is_tracked && !round.misses.is_empty() {
                let lived = Lived { work_seconds: looked.seconds, ..self.lived(looked) };
                self.history.add(&round.misses, Guess::default(), &lived);
            }
            // What its guest has swapped out is told anew also while it is not tracked.
            let frames_missed = self.history.misses().unwrap_or_default();
            self.known = machine.misses(round, &frames_missed).map(|points| {
                let demand = Demand::of(&points, device.miss_seconds(), self.stalled);
                (points, demand)
            });
            return;
        }
        if is_anew {
            // From the next interval on: in this one it was this and that.
            self.history.forget();
            self.known = None;
            // What went round before tells nothing of what is foretold from now on.
            self.unrest = Unrest::default();
            self.pages.iter().for_each(|pages| pages.track(true));
            return;
        }
        // What it does until it needs more than was left there tells nothing of what it will need.
        if !looked.is_tracked || self.stage == Stage::Begun {
            return;
        }
        // What is seen for the first time, but was reclaimed before, comes back later than anything that is known.
        let comes_back = 2.0 * per_second >= round.first_touches_per_second;
        let always = if comes_back { round.first_touches_per_second } else { 0.0 };
        if round.wss_bytes.is_none() && (!comes_back || always == 0.0) {
            return;
        }
        let unseen = self.unseen();
        let mut guess = Guess { below: round.blind_below, misses_per_second: 0.0 };
        if self.stalled < LEAST_STALLED {
            guess = Guess::of(round, looked.work_seconds / looked.seconds);
        }
        let shifted = |bytes| if bytes > 0 { bytes + unseen } else { 0 };
        let points: Vec<MissPoint> = round
            .misses
            .iter()
            .map(|point| MissPoint { bytes: shifted(point.bytes), misses_per_second: point.misses_per_second + always })
            .collect();
        let guess = Guess { below: shifted(guess.below), misses_per_second: guess.misses_per_second + always };
        self.history.add(&points, guess, &self.lived(looked));
        let Some(misses) = self.history.misses() else { return };
        // Of a second of work, in which it waits for nothing.
        self.known = Some((points, Demand::of(&misses, device.miss_seconds(), 0.0)));
    }

    /// What has begun in it has been given its share.
    pub fn has_begun(&mut self) {
        self.stage = Stage::Running;
    }

    /// Whether it needs other than before, so that what is known is to be forgotten.
    pub fn notices_change(&mut self, device: &Device) -> bool {
        // A virtual machine's guest tells of its work by what it waits for.
        let Some(looked) = self.seen.as_ref().filter(|_| !matches!(self.hold, Hold::Machine(_))) else { return false };
        let lived = self.lived(looked);
        self.history.notice(&lived, device.miss_seconds())
    }

    fn lived(&self, looked: &Looked) -> Lived {
        Lived {
            seconds: looked.seconds,
            work_seconds: looked.work_seconds,
            limit: self.hold.limit().unwrap_or(u64::MAX),
            refaults: looked.refaults,
        }
    }

    /// As the controller has it.
    pub fn as_seen(&self, swap: u64) -> Seen<'_> {
        Seen {
            stage: self.stage,
            weight: self.asked.weight,
            least: self.asked.least,
            most: self.asked.most.min(self.hold.most()),
            floor: self.floor(swap),
            limit: self.hold.limit(),
            usage: self.hold.usage(),
            demand: self.known.as_ref().map(|(_, demand)| demand),
            doubt: self.history.doubt(),
            unrest: self.unrest.bytes(),
            stalled: self.stalled,
        }
    }

    /// Below it, it would be killed.
    pub fn floor(&self, swap: u64) -> u64 {
        self.hold.floor(swap)
    }

    /// See [`Hold::wake`].
    pub fn wake(&mut self, swap: u64) {
        if self.hold.wake(swap) && !self.beside.iter().any(|said| said == RAISED) {
            self.beside.push(RAISED.into());
        }
    }

    /// Sets its limit again if somebody else has set it.
    pub fn set_again(&mut self, patience: Duration) {
        if let Some(found) = self.hold.set_by_others(patience) {
            tell!("bursar: {}: {found}; bursar sets its own again, and at the end puts back that", self.name);
            self.beside.push(format!("{found}, and it was set again"));
        }
    }

    /// See [`Hold::set`].
    pub fn set(&mut self, bytes: u64, patience: Duration) -> anyhow::Result<u64> {
        let tracked = tracked(self.pages.as_ref(), self.standing.as_ref());
        self.hold.set(bytes, patience, tracked)
    }

    /// Heap that should give way to files; none unless kinds are balanced.
    pub fn spare(&self) -> Option<Spare> {
        let limit = self.hold.limit().filter(|_| self.kinds)?;
        let tracked = tracked(self.pages.as_ref(), self.standing.as_ref())?;
        Spare::of(&tracked, limit, self.seen.as_ref()?.file_refaults)
    }

    /// What is told of it after a move from what it had, which is taken in.
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

    /// Puts back what there was before bursar.
    ///
    /// # Errors
    /// Why it could not be.
    pub fn release(self) -> anyhow::Result<()> {
        self.hold.release()
    }

    /// Memory that is held and not in the curve: the kernel's, pages whose accesses cannot be seen, and files in memory (tmpfs,
    /// memfds), whose reads and writes are not seen, as far as they are charged to it.
    fn unseen(&self) -> u64 {
        let memory = match &self.hold {
            Hold::Cgroup { cgroup, .. } => cgroup.memory().ok(),
            Hold::Process { .. } | Hold::Machine(_) => None,
        };
        let (blind, files) =
            self.standing.as_ref().map_or((0, 0), |round| (round.blind_bytes, round.files_in_memory_bytes));
        let charged = |kind: Option<u64>| kind.unwrap_or(0);
        let [kernel, shared] = memory.map_or([0, 0], |memory| [charged(memory.kernel), charged(memory.shmem)]);
        kernel + blind + files.min(shared)
    }

    fn processes(&self) -> Vec<i32> {
        match &self.hold {
            Hold::Cgroup { cgroup, .. } => cgroup.processes().unwrap_or_default(),
            Hold::Process { pid, .. } => tree(*pid),
            Hold::Machine(machine) => tree(machine.pid()),
        }
    }

    fn scope(&self) -> Scope {
        match &self.hold {
            Hold::Cgroup { cgroup, .. } => Scope::Cgroup(cgroup.clone()),
            Hold::Process { pid, .. } => Scope::Tree(*pid),
            Hold::Machine(machine) => Scope::Tree(machine.pid()),
        }
    }
}

fn tracked<'a>(pages: Option<&'a Pages>, round: Option<&'a PagesRound>) -> Option<Tracked<'a>> {
    Some(Tracked { pages: pages?, round: round? })
}

impl Counters {
    fn of(hold: &Hold) -> Counters {
        let at = Instant::now();
        let stats = |pids: Vec<i32>| pids.into_iter().filter_map(|pid| procfs::stat(pid).ok()).collect::<Vec<_>>();
        let worked = |stats: &[procfs::Stat]| {
            procfs::seconds_of(stats.iter().map(|stat| stat.utime + stat.reaped_user_time).sum())
        };
        match hold {
            Hold::Cgroup { cgroup, .. } => {
                let memory = cgroup.memory().unwrap_or_default();
                let file_refaults = memory.refault_file.unwrap_or(0);
                let refaults = memory.refault_anon.unwrap_or(0) + file_refaults;
                let waited_seconds = cgroup.pressure().and_then(|psi| psi.memory_some_seconds);
                let work_seconds = worked(&stats(cgroup.processes().unwrap_or_default()));
                Counters { at, refaults, file_refaults, waited_seconds, work_seconds }
            }
            Hold::Process { pid, .. } => {
                let stats = stats(tree(*pid));
                let refaults = stats.iter().map(|stat| stat.majflt).sum();
                Counters { at, refaults, file_refaults: 0, waited_seconds: None, work_seconds: worked(&stats) }
            }
            Hold::Machine(machine) => {
                let (refaults, waited_seconds) = machine.waits();
                Counters { at, refaults, file_refaults: 0, waited_seconds, work_seconds: 0.0 }
            }
        }
    }
}

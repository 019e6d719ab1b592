//! Rounds of runs, one in each way, until one way is surely the best.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Instant;

use advise::paired::{self, Dropped, Judgement, Round};
use advise::stats::ProcessStats;
use advise::{Costs, Plan as AdvicePlan, Profile, State};
use anyhow::{Context, bail, ensure};
use controller::huge_pages::costs;
use job::preload::{self, Library};
use linux::journal::Guard;
use linux::{pools, thp};
use live::Display;
use model::{
    ArmFigures, ArmsEnded, ArmsReport, Exit, FaultCounts, LeftOut, Observation, RecordKind, RunRole, Spread, names,
};
use session::bench::{Bench, References};
use session::given::Given;
use session::inside;
use session::launch::{Launch, Launcher, launch};
use session::observe::{Plan, observe};
use session::redact::redacted;
use session::say::{self, tell};
use session::serving::Serving;
use session::spool::PerhapsSpool;
use session::status::ended;
use session::status::{OWN_FAILURE, Status};

use crate::options::Options;
use crate::program::Program;
use crate::settings::{settings, with_pool_size};
use crate::way::{self, HUGETLB, Surroundings, TUNABLES, Way};

/// More memory than this beside the plain run's is told with the answer.
const MOST_MEMORY: f64 = 1.1;
/// The most rounds, unless they are given: of a command of a second or more, and of a short one, whose rounds cost little and differ much.
const ROUNDS: u32 = 12;
const SHORT_ROUNDS: u32 = 40;

/// A way and what its runs showed.
struct Arm {
    way: Way,
    runs: Vec<Run>,
    is_running: bool,
    dropped: Option<String>,
}

/// The figures of one run.
struct Run {
    wall_seconds: f64,
    cpu_seconds: Option<f64>,
    peak_bytes: Option<u64>,
    faults: FaultCounts,
}

/// How one run ended.
enum Ended {
    Well(Run),
    /// By itself, but not as the plain run does; a clause.
    Badly(String),
    Interrupted,
}

/// What a run has for as long as it lasts.
#[derive(Default)]
struct Held {
    /// A setting of the machine's.
    setting: Option<Guard>,
    /// No huge pages for what is started.
    disabled: Option<thp::Disabled>,
    advice: Option<PerhapsSpool>,
    serving: Option<Serving>,
}

/// A comparison that goes on.
struct Comparison<'a> {
    options: &'a Options,
    bench: Bench,
    input: Given,
    launcher: Option<Launcher>,
    arms: Vec<Arm>,
    left_out: Vec<LeftOut>,
    rounds: Vec<Round>,
    /// The most rounds.
    most: usize,
    /// What the arms with bursar's library have in them.
    library: Result<PathBuf, String>,
    costs: Costs,
    profile: Profile,
    display: Display,
    runs: u32,
}

/// What a comparison came to.
pub enum Compared {
    /// Figures of each way, of the rounds until then, and what bursar ends with.
    Report(Box<ArmsReport>, Status),
    /// The plain run that does not count failed or was interrupted, which a person was told; what bursar ends with.
    Nothing(Status),
}

/// Compares the ways until the best is known or something ends it.
///
/// # Errors
/// A sentence if no way but the plain run can be had, if the plain run fails in a round, or if a setting of the machine's cannot be put
/// back.
pub fn compare(options: &Options) -> anyhow::Result<Compared> {
    let begun = Instant::now();
    let bench = Bench::set_up(None, References::Traced)?;
    let input = Given::find(options.input.as_deref(), None, &bench.signals)?;
    let program = Program::of(&options.command);
    let launcher = Launcher::of(&options.command);
    let ways = if options.ways.is_empty() { way::all() } else { options.ways.clone() };
    let surroundings = Surroundings { mode: thp::mode(), command: &options.command, launcher, program: &program };
    let (mut arms, mut left_out) = (vec![Arm::new(Way::Plain)], Vec::new());
    for way in ways {
        // With a plain run that has huge pages nowhere else it would only show what the program asks for itself.
        let is_of_use = way != Way::Never || !options.ways.is_empty() || surroundings.mode.as_deref() == Some("always");
        match surroundings.allow(way) {
            _ if !is_of_use || arms.iter().any(|arm| arm.way == way) => {}
            Ok(()) => arms.push(Arm::new(way)),
            Err(why) => left_out.push(LeftOut { name: way.to_string(), why }),
        }
    }
    ensure!(
        arms.len() > 1,
        "there is nothing to compare with the plain run: {}",
        left_out.iter().map(|arm| format!("{}: {}", arm.name, arm.why)).collect::<Vec<_>>().join("; ")
    );
    let library = match arms.iter().any(|arm| arm.way.has_library()) {
        true => preload::unpack(Library::Runtime).map_err(|error| error.to_string()),
        false => Err("no way needs it".into()),
    };
    let is_advised = arms.iter().any(|arm| matches!(arm.way, Way::Advise | Way::Profiled));
    let mut comparison = Comparison {
        options,
        bench,
        input,
        launcher,
        arms,
        left_out,
        rounds: Vec::new(),
        most: options.rounds.unwrap_or(ROUNDS) as usize,
        library,
        costs: if is_advised { costs::calibrated(costs::BEFORE_A_RUN) } else { Costs::reference() },
        profile: Profile::default(),
        display: Display::new(!options.quiet && std::io::stderr().is_terminal()),
        runs: 0,
    };
    // What it reads is in the page cache from now on, and the memory it takes is the host's no more.
    if let Some(status) = comparison.warm_up()? {
        return Ok(Compared::Nothing(status));
    }
    comparison.make_profile()?;
    let ended = comparison.run(begun)?;
    let signal = comparison.bench.signals.stopped_by().filter(|_| ended == ArmsEnded::Interrupted);
    let status = signal.map_or(Status::of(0), Status::Signal);
    Ok(Compared::Report(Box::new(comparison.report(ended, &program)), status))
}

impl Arm {
    fn new(way: Way) -> Arm {
        Arm { way, runs: Vec::new(), is_running: true, dropped: None }
    }
}

impl Comparison<'_> {
    /// A plain run that does not count; `Some`: it failed or was interrupted, and so is the comparison.
    fn warm_up(&mut self) -> anyhow::Result<Option<Status>> {
        let (observation, errors, not_started) = self.observe(self.options.command.clone(), Vec::new(), "warm-up")?;
        if let Some(error) = not_started {
            tell!("bursar: {error}");
            return Ok(Some(Status::of(error.exit_status())));
        }
        if let Some(signal) = self.bench.signals.stopped_by() {
            tell!("bursar: interrupted before anything was compared");
            return Ok(Some(Status::Signal(signal)));
        }
        let status = ended(&observation);
        if status.code() == 0 {
            self.most = self.options.rounds.unwrap_or_else(|| most_rounds(observation.wall_seconds)) as usize;
            return Ok(None);
        }
        say::beside(format_args!("{errors}"));
        tell!("bursar: the command fails (status {}): it must succeed to be compared", status.code());
        Ok(Some(status))
    }

    /// Makes the profile of the arm that has one.
    fn make_profile(&mut self) -> anyhow::Result<()> {
        let Some(at) = self.arms.iter().position(|arm| arm.way == Way::Profiled) else { return Ok(()) };
        let folder = tempfile::tempdir().context("no folder for the profile can be made")?;
        let path = folder.path().join("profile");
        let made = self.profiled(&path);
        match made {
            Ok(profile) => self.profile = profile,
            Err(why) => self.leave_out(at, format!("no profile could be made: {why:#}")),
        }
        Ok(())
    }

    fn profiled(&mut self, path: &Path) -> anyhow::Result<Profile> {
        let own = std::env::current_exe()?;
        let mut words: Vec<OsString> = vec![own.into(), "advise".into(), "profile".into(), "-q".into(), "-o".into()];
        words.extend([path.into(), "--".into()]);
        words.extend(self.options.command.iter().cloned());
        let (observation, errors, _) = self.observe(words, Vec::new(), "profile")?;
        ensure!(observation.exit == Exit::Status(0), "{}", how(&observation, &errors));
        let text = std::fs::read_to_string(path)?;
        Profile::parse(&text).map_err(|wrong| anyhow::anyhow!("{}", wrong.0.first().map_or("", |wrong| &wrong.what)))
    }

    /// Rounds, until the best is known or something ends them.
    fn run(&mut self, begun: Instant) -> anyhow::Result<ArmsEnded> {
        let looks = paired::looks(self.most);
        while self.rounds.len() < self.most {
            let number = self.rounds.len();
            if !self.arms.iter().skip(1).any(|arm| arm.is_running) {
                return Ok(ArmsEnded::Decided);
            }
            self.rounds.push(vec![None; self.arms.len()]);
            for at in self.order(number) {
                if self.options.time_limit.is_some_and(|limit| begun.elapsed() >= limit) {
                    return Ok(ArmsEnded::TimeLimit);
                }
                match self.attempt(self.arms[at].way, number)? {
                    Ended::Interrupted => return Ok(ArmsEnded::Interrupted),
                    Ended::Badly(why) if at == 0 => {
                        bail!("the plain run failed in round {}, so nothing can be compared: {why}", number + 1)
                    }
                    Ended::Badly(why) => self.leave_out(at, why),
                    Ended::Well(run) => {
                        self.rounds[number][at] = Some(run.wall_seconds);
                        self.arms[at].runs.push(run);
                    }
                }
            }
            if looks.contains(&self.rounds.len()) {
                let judged = self.judge();
                for (at, why) in &judged.dropped {
                    self.arms[*at].is_running = false;
                    self.arms[*at].dropped = Some(match why {
                        Dropped::SlowerThan(other) => format!("slower than {}", self.arms[*other].way),
                        Dropped::GainsNothing => format!("gains less than {:.0} %", 100.0 * model::LEAST_GAIN),
                    });
                }
                if judged.is_decided {
                    return Ok(ArmsEnded::Decided);
                }
            }
        }
        Ok(ArmsEnded::Rounds)
    }

    /// Each round begins with another arm, and every other one goes the other way: no arm always runs behind the same one.
    fn order(&self, round: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.arms.len()).filter(|at| self.arms[*at].is_running).collect();
        let arms = order.len().max(1);
        order.rotate_left(round % arms);
        if round % 2 == 1 {
            order.reverse();
        }
        order
    }

    fn judge(&self) -> Judgement {
        let running: Vec<bool> = self.arms.iter().map(|arm| arm.is_running).collect();
        paired::judge(&self.rounds, &running, self.most)
    }

    /// An arm that cannot be run is no arm.
    fn leave_out(&mut self, at: usize, why: String) {
        self.arms[at].is_running = false;
        self.rounds.iter_mut().for_each(|round| round[at] = None);
        self.arms[at].runs.clear();
        self.left_out.push(LeftOut { name: self.arms[at].way.to_string(), why });
    }

    /// One run in one way.
    fn attempt(&mut self, way: Way, round: usize) -> anyhow::Result<Ended> {
        let command = self.options.command.clone();
        let (Launch { words, environment }, mut held) = match self.prepare(way, command) {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Ended::Badly(format!("{error:#}"))),
        };
        let label = format!("round {}, {way}", round + 1);
        let observed = self.observe(words, environment, &label);
        drop(held.disabled.take());
        if let Some(setting) = held.setting.take() {
            setting.restore().context("the machine's setting of huge pages could not be put back")?;
        }
        let has_told = match (held.advice, held.serving) {
            (Some(folder), _) => Some(!inside::read_files(folder.path(), "advice.", ProcessStats::read).0.is_empty()),
            (None, Some(serving)) => Some(!serving.end().stats.is_empty()),
            (None, None) => None,
        };
        let (observation, errors, not_started) = observed?;
        if self.bench.signals.interrupted() {
            return Ok(Ended::Interrupted);
        }
        if let Some(error) = not_started {
            return Ok(Ended::Badly(error.to_string()));
        }
        if observation.exit != Exit::Status(0) {
            return Ok(Ended::Badly(how(&observation, &errors)));
        }
        if has_told == Some(false) {
            return Ok(Ended::Badly(
                "no process of the command loaded bursar's library, or asked for memory in it".into(),
            ));
        }
        Ok(Ended::Well(Run::of(&observation, &self.bench)))
    }

    /// Puts in place what a way needs.
    fn prepare(&self, way: Way, command: Vec<OsString>) -> anyhow::Result<(Launch, Held)> {
        let mut held = Held::default();
        let plain = |environment| Launch { words: command.clone(), environment };
        let set = |size| self.bench.journal.transparent_huge_pages(thp::setting(size), "always");
        match way {
            Way::Plain => {}
            Way::Never => held.disabled = Some(thp::Disabled::for_children()?),
            Way::Always => held.setting = Some(set(None)?),
            Way::Sized(bytes) => held.setting = Some(set(Some(bytes))?),
            Way::Tunable => return Ok((plain(vec![(TUNABLES.into(), tunables())]), held)),
            Way::Advise | Way::Profiled => {
                let folder = PerhapsSpool::create("bursar-advice-");
                let none = Profile::default();
                let profile = if way == Way::Profiled { &self.profile } else { &none };
                let plan = AdvicePlan::of(profile, &self.costs, &State { pre_zeroed: 0, ..costs::state() });
                folder.give("plan", &plan.to_string())?;
                let variables = vec![("BURSAR_ADVICE".to_string(), folder.path().into())];
                held.advice = Some(folder);
                return Ok((self.with_library(variables)?, held));
            }
            Way::Provision | Way::Pool => {
                let serving = Serving::start((way == Way::Pool).then_some(pools::DEFAULT));
                let variables = serving.variables();
                held.serving = Some(serving);
                return Ok((self.with_library(variables)?, held));
            }
        }
        Ok((plain(Vec::new()), held))
    }

    fn with_library(&self, variables: Vec<(String, OsString)>) -> anyhow::Result<Launch> {
        let library =
            self.library.as_ref().map_err(|why| anyhow::anyhow!("bursar's library could not be unpacked: {why}"))?;
        Ok(launch(&self.options.command, self.launcher, library, variables))
    }

    /// Runs words to their end; what they print is dropped.
    fn observe(
        &mut self,
        words: Vec<OsString>,
        environment: Vec<(String, OsString)>,
        label: &str,
    ) -> anyhow::Result<(Observation, String, Option<job::Error>)> {
        let plan = Plan {
            run: self.runs,
            role: RunRole::Plain,
            command: &words,
            environment,
            inherit: false,
            input: Some(&self.input),
            limit_bytes: None,
            fast_tier: None,
            cache_state: "as the run before left it".into(),
            timeout: None,
            interval: None,
            over_nodes: false,
            clean_up: false,
        };
        self.runs += 1;
        self.display.begin(label, self.arms[0].runs.last().map(|run| run.wall_seconds));
        let display = &self.display;
        let mut watch = |progress| {
            display.show(&progress);
            false
        };
        let observed = observe(&self.bench, &plan, &mut |_| Ok(()), &mut watch);
        self.display.end();
        let observed = observed?;
        Ok((observed.observation, observed.errors, observed.not_started))
    }

    fn report(&self, ended: ArmsEnded, program: &Program) -> ArmsReport {
        let Judgement { gains, leaders, .. } = self.judge();
        let figures: Vec<ArmFigures> = self.arms.iter().zip(&gains).map(|(arm, gain)| arm.figures(*gain)).collect();
        let peak = |at: usize| figures[at].peak_bytes;
        let is_frugal = |at: &usize| match (peak(*at), peak(0)) {
            (Some(peak), Some(plain)) => peak as f64 <= plain as f64 * MOST_MEMORY,
            _ => true,
        };
        // Of those that lead the one with the least conditions, and that takes no more memory, if there is one.
        let mut by_ease = leaders.clone();
        by_ease.sort_unstable();
        let best = by_ease.iter().find(|at| is_frugal(at)).or(by_ease.first()).copied();
        let share = |at: &usize| gains[*at].map_or(f64::NEG_INFINITY, |gain| gain.share);
        let shown =
            best.or((1..gains.len()).filter(|at| gains[*at].is_some()).max_by(|a, b| share(a).total_cmp(&share(b))));
        let gain = shown.and_then(|at| gains[at]);
        let command: Vec<String> = self.options.command.iter().map(|word| redacted(&word.to_string_lossy())).collect();
        let mut notes: Vec<String> = self.bench.journal.warning().map(String::from).into_iter().collect();
        let name = |at: usize| self.arms[at].way.to_string();
        if let Some(at) = best.filter(|at| !is_frugal(at)) {
            let frugal = (1..gains.len())
                .filter(|at| is_frugal(at) && gains[*at].is_some_and(|gain| gain.low > 0.0))
                .max_by(|a, b| share(a).total_cmp(&share(b)));
            let instead = match frugal {
                Some(other) => format!("{} gains {:.1} % without that", name(other), 100.0 * share(&other)),
                None => "no way gains surely without that".into(),
            };
            notes.push(format!("{} takes over a tenth more memory than plain; {instead}", name(at)));
        }
        if best.is_some_and(|at| self.arms[at].way.is_of_machine()) {
            notes.push("its setting holds for all programs of the machine, and only this one was compared".into());
        }
        let variable = format!("{TUNABLES}={}", tunables().to_string_lossy());
        let mut settings = best
            .map(|at| settings(self.arms[at].way, Some(&variable), &command, &program.families))
            .unwrap_or_default();
        with_pool_size(&mut settings, best.and_then(peak));
        ArmsReport {
            command,
            ended,
            rounds: self.rounds.len() as u64,
            left_out: self.left_out.clone(),
            best: best.map(name),
            equal: leaders.iter().map(|at| name(*at)).collect(),
            gain: gain.map(|gain| gain.share),
            interval: gain.map(|gain| (gain.low, gain.high)),
            settings,
            notes,
            arms: figures.into_iter().filter(|arm| arm.rounds > 0).collect(),
        }
    }
}

impl Run {
    fn of(observation: &Observation, bench: &Bench) -> Run {
        let account = account::account(observation, &bench.header(RecordKind::Run, &[], ""));
        let pool = observation.job_series(names::TREE_HUGETLB).and_then(|series| series.peak()).unwrap_or(0.0);
        let held = account.tree_held_at_most_bytes.or(account.tree_max_rss_bytes);
        Run {
            wall_seconds: observation.wall_seconds,
            cpu_seconds: account.user_seconds.zip(account.system_seconds).map(|(user, system)| user + system),
            peak_bytes: held.map(|bytes| bytes + pool.max(0.0) as u64),
            faults: account.faults,
        }
    }
}

impl Arm {
    fn figures(&self, gain: Option<paired::Gain>) -> ArmFigures {
        let median = |of: &dyn Fn(&Run) -> Option<f64>| {
            let all: Vec<f64> = self.runs.iter().filter_map(of).collect();
            Spread::of(&all).map(|spread| spread.median)
        };
        let whole = |of: &dyn Fn(&Run) -> Option<u64>| {
            median(&|run| of(run).map(|value| value as f64)).map(|value| value as u64)
        };
        ArmFigures {
            name: self.way.to_string(),
            wall_seconds: median(&|run| Some(run.wall_seconds)).unwrap_or(0.0),
            cpu_seconds: median(&|run| run.cpu_seconds),
            peak_bytes: whole(&|run| run.peak_bytes),
            faults: FaultCounts { minor: whole(&|run| run.faults.minor), major: whole(&|run| run.faults.major) },
            rounds: self.runs.len() as u64,
            gain: gain.map(|gain| gain.share),
            interval: gain.map(|gain| (gain.low, gain.high)),
            dropped: self.dropped.clone(),
        }
    }
}

/// So that all rounds of a short command take as long as those of one that takes a second.
fn most_rounds(run_seconds: f64) -> u32 {
    ((f64::from(ROUNDS) / run_seconds.max(1e-3)) as u32).clamp(ROUNDS, SHORT_ROUNDS)
}

/// A person's own tunables, and the one for huge pages.
fn tunables() -> OsString {
    let mut set = std::env::var_os(TUNABLES).unwrap_or_default();
    if !set.is_empty() {
        set.push(":");
    }
    set.push(format!("{HUGETLB}=1"));
    set
}

/// How a run failed, as a clause.
fn how(observation: &Observation, errors: &str) -> String {
    let last = errors.lines().last().map(|line| format!(" ({line})")).unwrap_or_default();
    match observation.exit {
        Exit::Signal(signal) => format!("the command was ended by signal {signal}{last}"),
        _ => format!("the command ended with status {}{last}", observation.exit_status().unwrap_or(OWN_FAILURE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_command_has_more_rounds() {
        assert_eq!([60.0, 1.0, 0.5, 0.01, 0.0].map(most_rounds), [12, 12, 24, 40, 40]);
    }
}

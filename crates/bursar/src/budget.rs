//! `bursar budget`: drives the planner. Everything the planner is told comes from observations and their accounts, so that a
//! search can go on from its record.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use budget::{Measured, MethodMemory, Progress, Reference, Seen, Settings, Step};
use model::{
    Answer, BudgetReport, Bytes, Exit, Method, Observation, Outcome, RecordKind, RunAccount, RunRole, Trial, names,
};
use record::{Entry, Record};

use crate::bench::Bench;
use crate::cache::{Cache, Start, foreign_note};
use crate::cli::budget::Budget;
use crate::observe::{self, Observed, Plan, observe};
use crate::progress::Display;
use crate::results::{Sink, deliver};
use crate::run::finish_run;
use crate::slurm::Allocation;
use crate::status::Status;

const SIGINT: i32 = 2;

pub fn budget(options: Budget) -> anyhow::Result<Status> {
    let old = options.resume.as_deref().map(Record::open).transpose()?;
    let options = match &old {
        Some(record) => restored(options, record)?,
        None => options,
    };
    let bench = Bench::set_up()?;
    let slurm = if bench.place.can_limit() { None } else { Allocation::find()? };
    if slurm.is_none() && !bench.place.can_limit() {
        bail!(
            "a budget needs limits that hold, and none can be set here: {}. `bursar doctor` shows every way there is; \
             `bursar run` gives the account and the file demand curve without limits",
            bench.place.missing().join("; ")
        );
    }
    let mut search = Search::begin(&options, bench, slurm, old)?;
    let outcome = search.run();
    search.end(outcome)
}

/// A search that goes on.
struct Search<'a> {
    options: &'a Budget,
    settings: Settings,
    bench: Bench,
    slurm: Option<Allocation>,
    cache: Cache,
    sink: Sink,
    record: Record,
    seen: Seen,
    /// Figures of the methods, from the reference that showed the most.
    display: Display,
    scout_seconds: f64,
}

/// Why a search came to its end.
enum Ended {
    /// The planner has its answer.
    Answered(Answer),
    /// Ctrl-C, or a signal to the same end.
    Interrupted,
    /// The command fails without a limit.
    Fails { status: Status, errors: String },
}

impl<'a> Search<'a> {
    fn begin(
        options: &'a Budget,
        bench: Bench,
        slurm: Option<Allocation>,
        old: Option<Record>,
    ) -> anyhow::Result<Search<'a>> {
        let start = match (options.drop_caches, options.as_found) {
            (true, _) => Start::Dropped,
            (_, true) => Start::AsFound,
            _ => Start::Evicted,
        };
        let mut header = bench.header(RecordKind::Budget, &options.command, "no swap (MemorySwapMax=0)");
        if let Some(slurm) = &slurm {
            header.placement = slurm.describe();
        }
        header.options = saved(options);
        let (sink, no_record) = match &options.resume {
            Some(path) => (Sink::resume(path)?, None),
            None => Sink::create(options.results.record.as_deref(), &header)?,
        };
        let settings = Settings {
            slowdown: options.slowdown,
            runs: options.runs,
            max_trials: options.max_trials,
            compare: !options.no_compare,
            full: options.full,
            timeout_seconds: options.timeout.map(|t| t.as_secs_f64()),
            swap_allowed: false,
            dirty_share: bench.place.dirty_share(),
            page_bytes: header.page_bytes,
        };
        let notes = bench.notes.iter().cloned().chain(no_record).collect();
        let record = old.unwrap_or(Record { notes, ..Record::new(header) });
        let display = Display::new(!options.results.quiet && std::io::stderr().is_terminal());
        let cache = Cache::new(start, &options.command);
        let mut search = Search {
            options,
            settings,
            bench,
            slurm,
            cache,
            sink,
            seen: Seen::default(),
            record,
            display,
            scout_seconds: 0.0,
        };
        search.remember();
        Ok(search)
    }

    /// What an earlier session of the same record saw.
    fn remember(&mut self) {
        let record = &self.record;
        let seen_runs: Vec<_> =
            record.runs.iter().map(|run| (run.clone(), account::account(run, &record.header))).collect();
        let is_trial = |trial: &&Trial| trial.limit_bytes.is_some() || trial.method.is_some();
        self.seen.trials.extend(record.trials.iter().filter(is_trial).cloned());
        for (run, account) in seen_runs {
            let complete = matches!(run.exit, Exit::Status(0));
            if run.role == RunRole::Reference && complete {
                self.learn_reference(&run, &account);
            } else if run.role == RunRole::Plain {
                self.scout_seconds += run.wall_seconds;
            }
        }
    }

    fn run(&mut self) -> anyhow::Result<Ended> {
        loop {
            let step = budget::next(&self.settings, &self.seen);
            let ended = match step {
                Step::Done(answer) => Some(Ended::Answered(answer)),
                Step::Reference { compared, why } => self.reference(compared, why)?,
                Step::Trial { limit_bytes, predicted_ratio, why, .. } => {
                    self.trial(None, limit_bytes, predicted_ratio, why)?
                }
                Step::Method { method, limit_bytes, predicted_ratio, why, .. } => {
                    self.trial(Some(method), limit_bytes, predicted_ratio, why)?
                }
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// One run without a limit.
    fn reference(&mut self, compared: bool, why: String) -> anyhow::Result<Option<Ended>> {
        let label = format!("reference {}", self.seen.references.len() + 1);
        let role = if compared { RunRole::Method } else { RunRole::Reference };
        let observed = self.observe(role, None, &label, &mut |_| false)?;
        if self.bench.signals.interrupted() {
            return Ok(Some(Ended::Interrupted));
        }
        let mut observation = observed.observation;
        match observation.exit {
            Exit::Status(0) => {}
            Exit::Signal(signal) => {
                return Ok(Some(Ended::Fails { status: Status::Signal(signal), errors: observed.errors }));
            }
            _ => {
                let status = Status::of(observation.exit_status().unwrap_or(1));
                return Ok(Some(Ended::Fails { status, errors: observed.errors }));
            }
        }
        let helped = observation.file_demand.as_ref().is_some_and(|demand| self.cache.learn(demand));
        if helped && self.seen.references.is_empty() {
            observation.role = RunRole::Plain;
            observation.notes.push(
                "Files it reads were in the page cache before and charged elsewhere; they are evicted from now on, and \
                 this run is not compared with the others."
                    .into(),
            );
            self.scout_seconds += observation.wall_seconds;
            finish_run(&mut self.sink, &mut self.record, observation, Vec::new())?;
            return Ok(None);
        }
        let account = account::account(&observation, &self.record.header);
        if !compared {
            self.learn_reference(&observation, &account);
        }
        let method = compared.then_some(Method::Unlimited);
        let trial = self.measured(&observation, &account, method, None, Outcome::Ok, why);
        if compared {
            self.seen.trials.push(trial.clone());
        }
        finish_run(&mut self.sink, &mut self.record, observation, Vec::new())?;
        self.keep(trial)?;
        Ok(None)
    }

    /// One run under a limit.
    fn trial(
        &mut self,
        method: Option<Method>,
        limit: u64,
        predicted: Option<f64>,
        why: String,
    ) -> anyhow::Result<Option<Ended>> {
        let role = if method.is_some() { RunRole::Method } else { RunRole::Trial };
        let (settings, seen) = (self.settings.clone(), self.seen.clone());
        let mut stopped = None;
        let label = format!("trial at {}", Bytes(limit));
        let mut watch = |progress: observe::Progress| {
            let elapsed_seconds = progress.elapsed.as_secs_f64();
            let sampled_seconds = progress.sampled.as_secs_f64();
            let waited = progress.io_delay_seconds.zip(progress.cpu_seconds);
            let stall_seconds = waited.map(|(delay, cpu)| stall(delay, cpu, sampled_seconds));
            stopped = budget::watch(
                &settings,
                &seen,
                method,
                &Progress {
                    elapsed_seconds,
                    stall_seconds,
                    pace: progress.cpu_seconds.map(|cpu| (cpu, sampled_seconds)),
                    refaults: progress.refaults,
                },
            );
            stopped.is_some()
        };
        let observed = self.observe(role, Some(limit), &label, &mut watch)?;
        if self.bench.signals.interrupted() {
            return Ok(Some(Ended::Interrupted));
        }
        let observation = observed.observation;
        let account = account::account(&observation, &self.record.header);
        let stopped = match observation.exit {
            Exit::TimedOut => Some(Outcome::Timeout),
            Exit::StoppedEarly => stopped,
            _ => None,
        };
        let outcome = budget::judge(
            &self.settings,
            &self.seen,
            &Measured {
                method,
                wall_seconds: observation.wall_seconds,
                stopped,
                exit_status: account.exit_status,
                oom_kills: account.oom_kills.unwrap_or(0),
            },
        );
        let trial = self.measured(&observation, &account, method, predicted, outcome, why);
        finish_run(&mut self.sink, &mut self.record, observation, Vec::new())?;
        self.seen.trials.push(trial.clone());
        self.keep(trial)?;
        Ok(None)
    }

    /// Runs the command once from the stated state of the cache.
    fn observe(
        &mut self,
        role: RunRole,
        limit_bytes: Option<u64>,
        label: &str,
        watch: &mut dyn FnMut(observe::Progress) -> bool,
    ) -> anyhow::Result<Observed> {
        self.prepare()?;
        let plan = Plan {
            run: self.record.runs.len() as u32,
            role,
            command: &self.options.command,
            environment: Vec::new(),
            inherit: false,
            limit_bytes,
            cache_state: self.cache.describe(),
            timeout: self.options.timeout,
            interval: self.options.interval,
            clean_up: true,
        };
        let expected = self.seen.reference().map(|spread| spread.median);
        self.display.begin(label, expected);
        let display = &self.display;
        let mut watch = |progress: observe::Progress| {
            display.show(&progress);
            watch(progress)
        };
        let sink = &mut self.sink;
        let mut append = |entry| sink.append(entry);
        let observed = match &self.slurm {
            Some(slurm) => slurm.observe(&self.bench, &plan, &mut append, &mut watch),
            None => observe(&self.bench, &plan, &mut append, &mut watch),
        };
        self.display.end();
        let observed = observed?;
        match observed.not_started {
            Some(error) => Err(error.into()),
            None => Ok(observed),
        }
    }

    fn prepare(&self) -> anyhow::Result<()> {
        if let Some(command) = &self.options.prepare {
            let done = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null()).status();
            let done = done.context("sh could not be run for --prepare")?;
            if !done.success() {
                bail!("--prepare '{command}' failed ({done}); it must succeed before each run");
            }
        }
        self.cache.prepare()
    }

    fn learn_reference(&mut self, observation: &Observation, account: &RunAccount) {
        let peak = |name| observation.job_series(name).and_then(|series| series.peak()).map(|bytes| bytes as u64);
        let reference = Reference {
            run: observation.run,
            wall_seconds: observation.wall_seconds,
            stall_seconds: stall_of(observation),
            peak_charge_bytes: account.peak_charge_bytes,
            floor_bytes: account.floor_bytes,
            file_mapped_bytes: peak(names::FILE_MAPPED),
            mapped_in_use_bytes: peak(names::FILE_MAPPED).zip(peak(names::ACTIVE_FILE)).map(|(a, b)| a.min(b)),
            held_bytes: peak_of_sum(observation, [names::HEAP, names::SHARED]),
            dirty_bytes: peak_of_sum(observation, [names::FILE_DIRTY, names::FILE_WRITEBACK]),
            refaults: account.flow.refaults_file,
            io_wait_share: account.io_wait_share,
            breakdown: account.peak_breakdown,
            pace: pace(observation),
        };
        self.seen.learn(&self.settings, reference);
        // The curve with the most refaults is the one that was helped least by what others had cached.
        let more = |demand: &&model::FileDemand| {
            self.seen.demand.as_ref().is_none_or(|known| known.distinct_bytes < demand.distinct_bytes)
        };
        if let Some(demand) = observation.file_demand.as_ref().filter(more) {
            self.seen.demand = Some(demand.clone());
        }
        for method in [Method::AppMaxRss, Method::AppMaxRssLargest, Method::SysMaxRss, Method::Unlimited] {
            let Some((memory_bytes, breakdown)) = account::method_memory(account, method) else { continue };
            match self.seen.methods.iter_mut().find(|known| known.method == method) {
                Some(known) if known.memory_bytes >= memory_bytes => {}
                Some(known) => *known = MethodMemory { method, memory_bytes, breakdown },
                None => self.seen.methods.push(MethodMemory { method, memory_bytes, breakdown }),
            }
        }
    }

    fn measured(
        &self,
        observation: &Observation,
        account: &RunAccount,
        method: Option<Method>,
        predicted_ratio: Option<f64>,
        outcome: Outcome,
        why: String,
    ) -> Trial {
        let stall_seconds = stall_of(observation);
        let cpu_seconds = cpu_of(observation);
        let refaults = account.flow.refaults_file;
        let pace = pace(observation);
        let furthest = pace.last().and_then(|(most, _)| pace.iter().find(|(cpu, _)| cpu >= most));
        let progress =
            Progress { elapsed_seconds: observation.wall_seconds, stall_seconds, pace: furthest.copied(), refaults };
        let lower_bound = matches!(observation.exit, Exit::StoppedEarly | Exit::TimedOut) && outcome != Outcome::Oom;
        let median = self.seen.reference().map(|spread| spread.median);
        let runtime_ratio = match lower_bound {
            _ if outcome == Outcome::Oom => None,
            true => budget::ratio_at_least(&self.seen, &progress),
            false => median.map(|median| observation.wall_seconds / median),
        };
        let usual = model::Spread::of(&self.seen.references.iter().filter_map(|r| r.stall_seconds).collect::<Vec<_>>());
        let usual_refaults = self.seen.references.iter().filter_map(|r| r.refaults).max().unwrap_or(0);
        Trial {
            run: observation.run,
            method,
            limit_bytes: observation.limit_bytes,
            outcome,
            lower_bound,
            wall_seconds: observation.wall_seconds,
            cpu_seconds,
            stall_seconds: stall_seconds.zip(usual).map(|(stall, usual)| (stall - usual.median).max(0.0)),
            runtime_ratio,
            predicted_ratio,
            io_wait_share: account.io_wait_share,
            refaults: refaults.map(|refaults| refaults.saturating_sub(usual_refaults)),
            peak_charge_bytes: account.peak_charge_bytes,
            breakdown: account.peak_breakdown,
            exit_status: account.exit_status,
            why,
        }
    }

    fn keep(&mut self, trial: Trial) -> anyhow::Result<()> {
        self.display.done(&trial);
        self.sink.append(Entry::Trial(Box::new(trial.clone())))?;
        self.record.trials.push(trial);
        Ok(())
    }

    /// Makes the report of whatever was found, seals the record and prints.
    fn end(mut self, outcome: anyhow::Result<Ended>) -> anyhow::Result<Status> {
        let ended = match outcome {
            Ok(ended) => ended,
            Err(error) => {
                self.sink.seal();
                return Err(error);
            }
        };
        let (answer, status) = match ended {
            Ended::Fails { status, errors } => {
                self.sink.seal();
                eprint!("{errors}");
                eprintln!(
                    "bursar: the command fails without any limit (status {}), so there is nothing to find out about one",
                    status.code()
                );
                return Ok(status);
            }
            Ended::Answered(answer) => (answer, Status::of(0)),
            Ended::Interrupted => (self.partial(), Status::Signal(SIGINT)),
        };
        let report = self.report(answer);
        self.sink.append(Entry::Budget(Box::new(report.clone())))?;
        self.record.trials = report.trials.clone();
        self.record.budget = Some(report.clone());
        let path = self.sink.seal();
        deliver(&self.options.results, &self.record, path.as_deref(), &report)?;
        if let (Status::Signal(_), Some(path)) = (status, &path)
            && !self.options.results.quiet
        {
            eprintln!("interrupted; go on with: bursar budget --resume {}", path.display());
        }
        Ok(status)
    }

    /// The answer as far as it goes: what the planner would say if it may make no more trials.
    fn partial(&self) -> Answer {
        let no_more = Settings {
            max_trials: 0,
            compare: false,
            runs: Some(self.seen.references.len() as u32),
            ..self.settings.clone()
        };
        let reason = "It was interrupted before it was done.".to_string();
        match budget::next(&no_more, &self.seen) {
            Step::Done(answer) if !self.seen.references.is_empty() => {
                Answer { confident: false, reason: format!("{reason} {}", answer.reason), ..answer }
            }
            _ => Answer {
                budget_bytes: None,
                smallest_passing_bytes: None,
                largest_failing_bytes: None,
                margin_bytes: 0,
                confident: false,
                reason,
            },
        }
    }

    fn report(&self, answer: Answer) -> BudgetReport {
        let methods = budget::methods(&self.settings, &self.seen, &answer);
        // As they are judged now: a reference made later may have shown that the machine was slower then.
        let judged = |trial: &Trial| self.seen.trials.iter().find(|t| t.run == trial.run).unwrap_or(trial).clone();
        let reference = self.seen.reference();
        let scout = reference.map_or(0.0, |reference| self.scout_seconds / reference.median);
        let mut notes = self.record.notes.clone();
        if self.seen.demand.is_none() {
            notes.push("There is no file demand curve, so the search had nothing to go by but the floor.".into());
            // Why not is what the first run noted.
            notes.extend(self.record.runs.first().into_iter().flat_map(|run| run.notes.iter().cloned()));
        }
        notes.extend(self.seen.demand.as_ref().and_then(foreign_note));
        notes.extend(budget::method_notes(&self.settings, &self.seen));
        notes.push(
            "Programs that size their caches by the limit they see (JVM, Go, databases) were measured doing so: each trial \
             shows what the program does under that limit."
                .into(),
        );
        BudgetReport {
            answer,
            slowdown_target: self.settings.slowdown,
            reference_seconds: reference.map(|spread| spread.median),
            reference_stddev_seconds: budget::stddev_seconds(&self.settings, &self.seen),
            run_times_used: self.seen.run_times_used().map(|used| used + scout),
            compare_run_times: self.seen.compare_run_times(),
            floor_bytes: self.seen.floor_bytes(),
            placement: self.record.header.placement.clone(),
            swap: self.record.header.swap.clone(),
            cache_state: self.cache.describe(),
            methods,
            trials: self.record.trials.iter().map(judged).collect(),
            file_demand: self.seen.demand.clone(),
            notes,
        }
    }
}

/// Seconds the job waited for storage, comparable with wall time: the delay of all its tasks, divided by how many of them
/// ran or waited for storage at a time.
fn stall(delay: f64, cpu: f64, wall: f64) -> f64 {
    delay / ((delay + cpu) / wall).max(1.0)
}

fn stall_of(observation: &Observation) -> Option<f64> {
    let exit_records = observation.processes.iter().filter_map(|p| p.io_delay_seconds).reduce(|a, b| a + b);
    let delay = or_sampled(observation, exit_records, names::IO_DELAY)?;
    Some(stall(delay, cpu_of(observation)?, observation.wall_seconds))
}

fn cpu_of(observation: &Observation) -> Option<f64> {
    let waited_for = observation.rusage.map(|r| r.user_seconds + r.system_seconds);
    or_sampled(observation, waited_for, names::CPU)
}

/// Of a run that was stopped, what was killed left no record, and nobody waited for it: the samples know.
fn or_sampled(observation: &Observation, at_exit: Option<f64>, name: &str) -> Option<f64> {
    let sampled = observation.job_series(name).and_then(|series| series.last());
    at_exit.into_iter().chain(sampled).reduce(f64::max)
}

/// CPU seconds used, and when.
fn pace(observation: &Observation) -> Vec<(f64, f64)> {
    let points = observation.job_series(names::CPU).map_or(&[][..], |cpu| &cpu.points);
    points.iter().map(|(t_ns, cpu)| (*cpu, *t_ns as f64 / 1e9)).collect()
}

/// The most that two series came to together.
fn peak_of_sum(observation: &Observation, [one, other]: [&str; 2]) -> Option<u64> {
    let (one, other) = (observation.job_series(one)?, observation.job_series(other)?);
    let sums = one.points.iter().filter_map(|(t_ns, value)| Some(value + other.at(*t_ns)?));
    sums.reduce(f64::max).map(|bytes| bytes as u64)
}

/// The options that a resumed search needs, as the record's header keeps them.
fn saved(options: &Budget) -> std::collections::BTreeMap<String, String> {
    let mut saved = std::collections::BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| value.map(|value| saved.insert(name.to_string(), value));
    let flag = |set: bool| set.then(|| "yes".to_string());
    put("slowdown", Some(options.slowdown.to_string()));
    put("runs", options.runs.map(|runs| runs.to_string()));
    put("max_trials", Some(options.max_trials.to_string()));
    put("timeout_seconds", options.timeout.map(|t| t.as_secs_f64().to_string()));
    put("prepare", options.prepare.clone());
    put("no_compare", flag(options.no_compare));
    put("full", flag(options.full));
    put("drop_caches", flag(options.drop_caches));
    put("as_found", flag(options.as_found));
    saved
}

/// The command and the options of the record that is to be resumed.
fn restored(options: Budget, record: &Record) -> anyhow::Result<Budget> {
    let header = &record.header;
    if header.kind != RecordKind::Budget || header.command.is_empty() {
        bail!("this record is not of a budget; only `bursar budget` can go on with its own");
    }
    let directory = std::env::current_dir().unwrap_or_default();
    if directory != Path::new(&header.directory) {
        bail!("this budget was begun in {}; go there to resume it", header.directory);
    }
    let get = |name: &str| header.options.get(name);
    let number = |name: &str| get(name).and_then(|value| value.parse::<f64>().ok());
    Ok(Budget {
        slowdown: number("slowdown").unwrap_or(options.slowdown),
        runs: number("runs").map(|runs| runs as u32),
        max_trials: number("max_trials").map_or(options.max_trials, |trials| trials as u32),
        timeout: number("timeout_seconds").map(Duration::from_secs_f64),
        prepare: get("prepare").cloned(),
        no_compare: get("no_compare").is_some(),
        full: get("full").is_some(),
        drop_caches: get("drop_caches").is_some(),
        as_found: get("as_found").is_some(),
        command: header.command.iter().map(OsString::from).collect(),
        ..options
    })
}

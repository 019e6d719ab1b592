//! `bursar budget`: drives the planner. Everything the planner is told comes from observations and their accounts, so that a
//! search can go on from its record.

mod doubts;
mod failure;
mod figures;
mod resume;
mod runtime;

use std::collections::BTreeSet;
use std::io::IsTerminal;

use anyhow::{bail, ensure};
use budget::{Evidence, Measured, MethodMemory, Progress, Reference, Settings, Step};
use linux::bpf::Rung;
use model::{
    Answer, BudgetReport, Bytes, Doubt, DoubtKind, Exit, LimitSource, Method, NodeRun, Observation, Origin, Outcome,
    RecordKind, RunAccount, RunRole, Trial, names,
};
use record::{Entry, Record, Resumable};
use report::terminal::short::Aside;
use session::bench::{Bench, References};
use session::cache::{Cache, Start, foreign_note, foreign_warning, mapped_files};
use session::given::Given;
use session::inputs;
use session::nodes::{self, Nodes, Order};
use session::observe::{self, Observed, Plan, observe};
use session::prepare::prepare;
use session::say::{self, tell};
use session::sink::Sink;
use session::sink::finish_run;
use session::slurm::Allocation;
use session::status::Status;
use session::tier::FastTier;

use crate::cli::budget::Budget;
use crate::progress::Display;
use crate::results::deliver;
use failure::Failure;
use figures::{cpu_of, lost_to_pressure, pace, peak_of_sum, progress_of, stall_of};
use resume::{restored, saved};
use runtime::Sizing;

/// When the libraries of a first run are scanned for a runtime; each later scan is after twice the time.
const FIRST_SCAN_SECONDS: f64 = 0.1;

/// The least answer where limits are emulated.
const LEAST_BUDGET_BYTES: u64 = 1 << 20;

/// Why there is no budget, the next step first. `missing`: why each way to limit is not there, and that they cannot be emulated.
fn no_limits(missing: &[String]) -> String {
    let enabled_by = missing.iter().find_map(|why| Some(why.split_once("; to enable it: ")?.1));
    let step = enabled_by.map_or_else(|| "see: bursar doctor".to_string(), |step| format!("to enable one: {step}"));
    let ways: Vec<String> = missing.iter().map(|why| format!("\n  {why}")).collect();
    format!(
        "a budget needs limits that hold, and none can be set here; {step}\nWithout limits, `bursar run` measures one run. \
         `bursar doctor` shows every way there is:{}",
        ways.concat()
    )
}

pub fn budget(options: Budget) -> anyhow::Result<Status> {
    let resumed = options.resume.as_deref().map(Resumable::open).transpose()?;
    let old = resumed.as_ref().map(Resumable::record).transpose()?;
    let options = match &old {
        Some(record) => restored(options, record)?,
        None => options,
    };
    if old.is_some() {
        resume::show(&options);
    }
    let mut bench = Bench::set_up(Some(Rung::Filemap), References::Traced)?;
    let can_limit = bench.can_limit();
    let slurm = if can_limit { None } else { Allocation::find()? };
    if let Some(tier) = options.fast_tier {
        tier.check()?;
        ensure!(
            slurm.is_none() && can_limit,
            "the fast memory cannot be limited here: --fast-tier needs limits of one's own, as root has them"
        );
    }
    let nodes = match &slurm {
        Some(slurm) => slurm.has_room_for(&options.command).map(|()| None)?,
        None => Nodes::of(&options.command)?,
    };
    if slurm.is_none() && !can_limit {
        let of_nodes = "limits are emulated on one machine, and this command runs on several".to_string();
        let missing = bench.place.missing().into_iter().chain(nodes.is_some().then_some(of_nodes));
        ensure!(nodes.is_none(), no_limits(&missing.collect::<Vec<_>>()));
        bench.emulate_limits();
    }
    let kept = options.resume.as_ref().map(|_| resume::input(old.as_ref()));
    let input = Given::find(options.input.as_deref(), kept.as_ref(), &bench.signals)?;
    if matches!(input, Given::Nothing) && std::io::stdin().is_terminal() && !options.results.quiet {
        tell!(
            "bursar: standard input is a terminal, so the runs get no input; to give them a file: --input FILE, or < FILE"
        );
    }
    let mut search = Search::begin(&options, bench, slurm, nodes, input, resumed.zip(old))?;
    let outcome = search.run();
    search.end(outcome)
}

/// A search that goes on.
struct Search<'a> {
    options: &'a Budget,
    settings: Settings,
    bench: Bench,
    slurm: Option<Allocation>,
    nodes: Option<Nodes>,
    input: Given,
    cache: Cache,
    sink: Sink,
    record: Record,
    seen: Evidence,
    /// Figures of the methods, from the reference that showed the most.
    display: Display,
    scout_seconds: f64,
    /// Failures under a limit after which a run without one succeeded.
    checked: Vec<Failure>,
    /// How its runtime sizes itself, if one is known.
    sizing: Option<Sizing>,
}

/// A run that was made.
struct Made {
    /// Of all nodes together.
    observation: Observation,
    /// Of a job over several nodes: each one's part, this one's first.
    parts: Vec<Observation>,
    /// The end of its standard error.
    errors: String,
}

/// Why a search came to its end.
enum Ended {
    /// The planner has its answer.
    Answered(Answer),
    /// By this signal: Ctrl-C's, or another to the same end.
    Interrupted(i32),
    /// The command fails without a limit.
    Fails(Failure),
}

impl<'a> Search<'a> {
    fn begin(
        options: &'a Budget,
        bench: Bench,
        slurm: Option<Allocation>,
        nodes: Option<Nodes>,
        input: Given,
        old: Option<(Resumable, Record)>,
    ) -> anyhow::Result<Search<'a>> {
        // A node's page cache gives way to the job: what is left free is its limit only where there is none.
        let is_dropped = options.drop_caches || matches!(options.fast_tier, Some(FastTier::Node(_)));
        let start = match (is_dropped, options.as_found) {
            (true, _) => Start::Dropped,
            (_, true) => Start::AsFound,
            _ => Start::Evicted,
        };
        let swap = options.fast_tier.map_or("no swap (MemorySwapMax=0)".into(), FastTier::describe);
        let mut header = bench.header(RecordKind::Budget, &options.command, &swap);
        if let Some(slurm) = &slurm {
            header.placement = slurm.describe();
        }
        header.options = inputs::options(&options.command, &[]);
        header.options.extend(saved(options, &input.kept()));
        let (resumed, old) = old.unzip();
        let (sink, no_record) = match resumed {
            Some(record) => (Sink::resume(record)?, None),
            None => Sink::create(options.results.record.as_deref(), &header)?,
        };
        let settings = Settings {
            slowdown: options.slowdown,
            runs: options.runs,
            max_trials: options.max_trials,
            compare: !options.no_compare,
            full: options.full,
            timeout_seconds: options.timeout.map(|t| t.as_secs_f64()),
            has_slower_memory: options.fast_tier.is_some(),
            sizes_itself: false,
            dirty_share: bench.place.dirty_share(),
            page_bytes: header.page_bytes,
        };
        let notes = bench.notes().into_iter().chain(no_record).collect();
        let record = old.unwrap_or(Record { notes, ..Record::new(header) });
        let display = Display::new(!options.results.quiet && std::io::stderr().is_terminal());
        let mut cache = Cache::new(start, &options.command);
        cache.also(input.path());
        let mut search = Search {
            options,
            settings,
            bench,
            slurm,
            nodes,
            input,
            cache,
            sink,
            seen: Evidence::default(),
            record,
            display,
            scout_seconds: 0.0,
            checked: Vec::new(),
            sizing: Sizing::of(&options.command, None),
        };
        search.remember();
        Ok(search)
    }

    /// What an earlier session of the same record saw.
    fn remember(&mut self) {
        let is_trial = |trial: &&Trial| trial.limit_bytes.is_some() || trial.method.is_some();
        self.seen.trials.extend(self.record.trials.iter().filter(is_trial).cloned());
        let mut made: Vec<Made> = Vec::new();
        for run in self.record.runs.iter().cloned() {
            match made.last_mut().filter(|_| run.role == RunRole::Part) {
                Some(whole) => whole.parts.push(run),
                None => made.push(Made { observation: run, parts: Vec::new(), errors: String::new() }),
            }
        }
        for run in made {
            let complete = matches!(run.observation.exit, Exit::Status(0));
            if run.observation.role == RunRole::Reference && complete {
                self.learn_reference(&run);
            } else if run.observation.role == RunRole::Plain {
                self.scout_seconds += run.observation.wall_seconds;
            }
        }
    }

    fn run(&mut self) -> anyhow::Result<Ended> {
        loop {
            self.settings.sizes_itself = self.sizes_itself();
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
        let (mut running, mut due, is_known) = (None, FIRST_SCAN_SECONDS, self.sizing.is_some());
        let mut mapped = BTreeSet::new();
        let mut watch = |nodes: &[observe::Progress]| {
            let elapsed = nodes.first().map_or(0.0, |node| node.elapsed.as_secs_f64());
            if elapsed >= due {
                due *= 2.0;
                running = running.take().or_else(|| (!is_known).then(runtime::running).flatten());
                mapped.extend(mapped_files());
            }
            false
        };
        let mut made = self.observe(role, None, &label, &mut watch)?;
        self.sizing = self.sizing.take().or_else(|| Sizing::of_running(&self.options.command, running?));
        if let Some(signal) = self.bench.signals.stopped_by() {
            return Ok(Some(Ended::Interrupted(signal)));
        }
        if !matches!(made.observation.exit, Exit::Status(0)) {
            return Ok(Some(Ended::Fails(self.failure(&made, None))));
        }
        if self.bench.emulates_limits && made.observation.evidence.emulated.is_none() {
            let why = made.observation.notes.first().cloned().unwrap_or_default();
            let missing = self.bench.place.missing().into_iter().chain([format!("they cannot be emulated: {why}")]);
            bail!(no_limits(&missing.collect::<Vec<_>>()));
        }
        let account = account::account(&made.observation, &self.record.header);
        let parts = made.parts.iter().map(|part| account::account(part, &self.record.header));
        // Once, for the files that a program maps may be others each time.
        let is_first = self.scout_seconds == 0.0 && self.seen.references.is_empty();
        let mut helped = is_first && self.cache.learn_mapped(&made.observation, &account, mapped);
        if !helped && doubts::end_it(&account) || parts.into_iter().any(|part| doubts::end_it(&part)) {
            return self.finish(made).map(|()| Some(Ended::Answered(Answer::default())));
        }
        for demand in made.nodes().iter().filter_map(|node| node.file_demand.as_ref()) {
            helped |= self.cache.learn(demand);
        }
        // From then on each run's pages are dropped at its end.
        helped |= is_first && self.cache.was_warm(&made.observation);
        if helped && self.seen.references.is_empty() {
            made.observation.role = RunRole::Plain;
            made.observation.notes.push(
                "Files it reads were in the page cache before and charged elsewhere; they are evicted from now on, and \
                 this run is not compared with the others."
                    .into(),
            );
            self.scout_seconds += made.observation.wall_seconds;
            return self.finish(made).map(|()| None);
        }
        if !compared {
            self.learn_reference(&made);
        }
        let method = compared.then_some(Method::Unlimited);
        let account = account::account(&made.observation, &self.record.header);
        let trial = self.measured(&made, &account, method, None, Outcome::Ok, why);
        if compared {
            self.seen.trials.push(trial.clone());
        }
        self.finish(made)?;
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
        let label = match budget::effort_left(&self.settings, &self.seen).filter(|_| method.is_none()) {
            Some(left) => format!("trial {} of up to {} at {}", left.trial, self.settings.max_trials, Bytes(limit)),
            None => format!("trial at {}", Bytes(limit)),
        };
        let mut watch = |nodes: &[observe::Progress]| {
            stopped = budget::watch(&settings, &seen, method, &progress_of(nodes));
            stopped.is_some()
        };
        let made = self.observe(role, Some(limit), &label, &mut watch)?;
        if let Some(signal) = self.bench.signals.stopped_by() {
            return Ok(Some(Ended::Interrupted(signal)));
        }
        let account = account::account(&made.observation, &self.record.header);
        let stopped = match made.observation.exit {
            Exit::TimedOut => Some(Outcome::Timeout),
            Exit::StoppedEarly => stopped,
            _ => None,
        };
        let outcome = budget::judge(
            &self.settings,
            &self.seen,
            &Measured {
                method,
                wall_seconds: made.observation.wall_seconds,
                stopped,
                exit_status: account.exit_status,
                oom_kills: account.oom_kills.unwrap_or(0),
            },
        );
        let trial = self.measured(&made, &account, method, predicted, outcome, why);
        let failure = (outcome == Outcome::Failed)
            .then(|| self.failure(&made, Some(limit)))
            .filter(|failure| !failure.is_for_want_of_memory() && !self.is_tied_to_limits(failure));
        self.finish(made)?;
        self.seen.trials.push(trial.clone());
        self.keep(trial)?;
        match failure {
            Some(failure) => self.check(failure),
            None => Ok(None),
        }
    }

    fn failure(&self, made: &Made, limit_bytes: Option<u64>) -> Failure {
        Failure::of(&made.observation, made.errors.clone(), &self.record.runs, limit_bytes, self.options.timeout)
    }

    /// Whether a run without a limit already succeeded after a failure like this one.
    fn is_tied_to_limits(&self, failure: &Failure) -> bool {
        self.checked.iter().any(|known| known.is_like(failure))
    }

    /// A run without a limit, after a failure under one that does not look like want of memory. If it fails, too, the limit was not the
    /// reason, and the search ends.
    fn check(&mut self, failure: Failure) -> anyhow::Result<Option<Ended>> {
        let why =
            format!("the run before failed under its limit ({}): does it fail without a limit, too?", failure.how());
        let ended = self.reference(false, why)?;
        if let Some(Ended::Fails(unlimited)) = ended {
            return Ok(Some(Ended::Fails(if unlimited.is_timed_out() { unlimited } else { failure })));
        }
        self.checked.push(failure);
        Ok(ended)
    }

    /// Runs the command once from the stated state of the cache. `watch` sees how it goes on each node.
    fn observe(
        &mut self,
        role: RunRole,
        limit_bytes: Option<u64>,
        label: &str,
        watch: &mut dyn FnMut(&[observe::Progress]) -> bool,
    ) -> anyhow::Result<Made> {
        self.prepare()?;
        let nodes = self.nodes.as_ref();
        let sizing = self.sizing.as_ref().zip(limit_bytes).and_then(|(sizing, limit)| sizing.environment(limit));
        let plan = Plan {
            run: self.record.runs.len() as u32,
            role,
            command: &self.options.command,
            environment: nodes.map(Nodes::environment).unwrap_or_default().into_iter().chain(sizing).collect(),
            inherit: false,
            input: Some(&self.input),
            limit_bytes,
            fast_tier: self.options.fast_tier,
            cache_state: self.cache.describe(),
            timeout: self.options.timeout,
            interval: self.options.interval,
            over_nodes: nodes.is_some(),
            clean_up: true,
        };
        let expected = self.seen.reference().map(|spread| spread.median);
        let left = budget::effort_left(&self.settings, &self.seen).filter(|_| role != RunRole::Method);
        self.display.begin(label, expected);
        if let Some(left) = left {
            self.display.ends_within(left.seconds);
        }
        if let Some(nodes) = nodes {
            let (fast_tier, interval, cache) = (plan.fast_tier, plan.interval, self.cache.clone());
            nodes.begin(Order { role, limit_bytes, fast_tier, cache, interval });
        }
        let display = &self.display;
        let mut watch = |progress: observe::Progress| {
            let mut all = vec![progress];
            all.extend(nodes.into_iter().flat_map(|nodes| nodes.progress(progress.elapsed)));
            let charge_bytes = all.iter().filter_map(|node| node.charge_bytes).max();
            display.show(&observe::Progress { charge_bytes, ..progress });
            watch(&all) || nodes.is_some_and(Nodes::is_in_trouble)
        };
        let sink = &mut self.sink;
        let mut append = |entry| sink.append(entry);
        let observed = match &self.slurm {
            Some(slurm) => slurm.observe(&self.bench, &plan, &mut append, &mut watch),
            None => observe(&self.bench, &plan, &mut append, &mut watch),
        };
        self.display.end();
        let Observed { observation, errors, not_started } = observed?;
        match not_started {
            // A limit in which no program begins is too small, as any other that ends the command.
            Some(job::Error::Killed { .. }) if limit_bytes.is_some() => {}
            Some(error) => return Err(error.into()),
            None => {}
        }
        let others = match nodes.map(|nodes| nodes.end(&errors)) {
            None => Vec::new(),
            // It was ended in the middle of what it did.
            Some(Err(_)) if self.bench.signals.interrupted() => Vec::new(),
            Some(others) => others?,
        };
        Ok(self.made(observation, others, errors))
    }

    /// A run with the parts of all its nodes, if there are others.
    fn made(&self, observation: Observation, others: Vec<Observation>, errors: String) -> Made {
        if others.is_empty() {
            return Made { observation, parts: Vec::new(), errors };
        }
        let header = &self.record.header;
        let origin = Origin { host: header.host.clone(), boot_id: header.boot_id.clone(), rank: None };
        let (run, role) = (observation.run, observation.role);
        let here = Observation { role: RunRole::Part, origin: Some(origin), ..observation.clone() };
        let parts: Vec<Observation> = (run + 1..)
            .zip(std::iter::once(here).chain(others))
            .map(|(run, part)| Observation { run, limit_bytes: observation.limit_bytes, ..part })
            .collect();
        let whole = nodes::together(&parts).unwrap_or_else(|| observation.clone());
        Made { observation: Observation { run, role, ..whole }, parts, errors }
    }

    /// Records the end of a run with its account, and what each node showed of it.
    fn finish(&mut self, made: Made) -> anyhow::Result<()> {
        if made.parts.is_empty() {
            return finish_run(&mut self.sink, &mut self.record, made.observation, Vec::new());
        }
        // What was recorded while it went on is this node's part.
        for run in std::iter::once(made.observation).chain(made.parts) {
            let account = account::account(&run, &self.record.header);
            Entry::of_run(&run).into_iter().try_for_each(|entry| self.sink.append(entry))?;
            self.sink.append(Entry::Account { run: run.run, account: Box::new(account.clone()) })?;
            self.record.accounts.insert(run.run, account);
            self.record.runs.push(run);
        }
        Ok(())
    }

    fn prepare(&self) -> anyhow::Result<()> {
        if let Some(command) = &self.options.prepare {
            prepare(command, &self.bench.signals)?;
        }
        self.cache.prepare()
    }

    /// One limit holds on every node, so what counts is the node that needs most of each.
    fn learn_reference(&mut self, made: &Made) {
        let (whole, header) = (&made.observation, &self.record.header);
        let nodes: Vec<(&Observation, RunAccount)> =
            made.nodes().iter().map(|node| (node, account::account(node, header))).collect();
        let most = |of: &dyn Fn(&Observation, &RunAccount) -> Option<u64>| {
            nodes.iter().filter_map(|(node, account)| of(node, account)).max()
        };
        let peak = |name: &'static str| {
            move |node: &Observation, _: &RunAccount| {
                node.job_series(name).and_then(|series| series.peak()).map(|bytes| bytes as u64)
            }
        };
        let mapped = peak(names::FILE_MAPPED);
        let in_use = |node: &Observation, account: &RunAccount| {
            mapped(node, account).zip(peak(names::ACTIVE_FILE)(node, account)).map(|(a, b)| a.min(b))
        };
        let account = account::account(whole, header);
        let reference = Reference {
            run: whole.run,
            wall_seconds: whole.wall_seconds,
            stall_seconds: made.stall_seconds(&account),
            peak_charge_bytes: most(&|_, account| account.peak_charge_bytes),
            // Whoever enforces a limit that was emulated may find the most.
            floor_bytes: most(&|_, account| match self.bench.emulates_limits {
                true => account.floor_at_most_bytes.or(account.floor_bytes),
                false => account.floor_bytes,
            }),
            file_mapped_bytes: most(&mapped),
            mapped_in_use_bytes: most(&in_use),
            held_bytes: most(&|node, _| peak_of_sum(node, [names::HEAP, names::SHARED])),
            dirty_bytes: most(&|node, _| peak_of_sum(node, [names::FILE_DIRTY, names::FILE_WRITEBACK])),
            refaults: account.flow.refaults_file,
            cpu_seconds: cpu_of(whole),
            system_seconds: account.system_seconds,
            io_wait_share: share_of_most(&nodes),
            breakdown: largest(&nodes).map(|account| account.peak_breakdown).unwrap_or_default(),
            pace: pace(whole),
        };
        for (node, account) in &nodes {
            // The curve with the most refaults is the one that was helped least by what others had cached.
            let more = |demand: &&model::FileDemand| {
                self.seen.demand.as_ref().is_none_or(|known| known.distinct_bytes < demand.distinct_bytes)
            };
            if let Some(demand) = node.file_demand.as_ref().filter(more) {
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
        self.sizing = self.sizing.take().or_else(|| Sizing::of(&self.options.command, Some(whole)));
        self.settings.sizes_itself = self.sizes_itself();
        self.seen.learn(&self.settings, reference);
    }

    fn measured(
        &self,
        made: &Made,
        account: &RunAccount,
        method: Option<Method>,
        predicted_ratio: Option<f64>,
        outcome: Outcome,
        why: String,
    ) -> Trial {
        let observation = &made.observation;
        let nodes: Vec<(&Observation, RunAccount)> =
            made.nodes().iter().map(|node| (node, account::account(node, &self.record.header))).collect();
        let stall_seconds = made.stall_seconds(account);
        let cpu_seconds = cpu_of(observation);
        let refaults = account.flow.refaults_file;
        // A run that was stopped went on to clean up, and that is not counted.
        let is_counted = |(_, at): &(f64, f64)| *at <= observation.wall_seconds;
        let pace: Vec<(f64, f64)> = pace(observation).into_iter().filter(is_counted).collect();
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
        // Of a run that is stopped the limit is lifted, so that it can end: what it has from there on it did not have within it.
        let has_fast_node = matches!(self.options.fast_tier, Some(FastTier::Node(_)));
        let enforced = observation.limit_bytes.filter(|_| lower_bound && !has_fast_node).unwrap_or(u64::MAX);
        Trial {
            run: observation.run,
            method,
            limit_bytes: observation.limit_bytes,
            outcome,
            lower_bound,
            wall_seconds: observation.wall_seconds,
            cpu_seconds,
            system_seconds: account.system_seconds.filter(|_| !lower_bound),
            stall_seconds: stall_seconds.zip(usual).map(|(stall, usual)| (stall - usual.min).max(0.0)),
            runtime_ratio,
            predicted_ratio,
            io_wait_share: share_of_most(&nodes),
            refaults: refaults.map(|refaults| refaults.saturating_sub(usual_refaults)),
            peak_charge_bytes: largest(&nodes).and_then(|account| account.peak_charge_bytes).map(|b| b.min(enforced)),
            breakdown: largest(&nodes).map(|account| account.peak_breakdown).unwrap_or_default(),
            exit_status: account.exit_status,
            why,
            nodes: nodes.iter().filter_map(|(node, account)| node_run(node, account)).collect(),
        }
    }

    /// Whether the program sizes itself by its limit: its runtime is known to, or the trials show it.
    fn sizes_itself(&self) -> bool {
        match &self.sizing {
            Some(sizing) => sizing.follows_limit(),
            None => budget::held_less(&self.seen).is_some(),
        }
    }

    /// A program that asks how much it may have is not told of an emulated limit, but by a setting.
    fn not_limited(&self) -> Option<Doubt> {
        let is_set = matches!(self.sizing, Some(Sizing::Set(_)));
        let is_unaware =
            self.bench.emulates_limits && self.sizing.as_ref().is_some_and(Sizing::follows_limit) && !is_set;
        is_unaware.then(|| Doubt {
            kind: DoubtKind::LimitNotHeld,
            bytes: None,
            voids: false,
            sentence: "it sizes itself by its limit, and cannot see one that is emulated".into(),
        })
    }

    /// An emulated limit kills nobody: an answer is at least what the runs held that cannot be reclaimed, as far as anybody knows, and never
    /// so little that whoever enforces it takes it for none.
    fn no_less_than_held(&self, answer: Answer, doubts: &[Doubt]) -> Answer {
        let largest = self.record.accounts.values().filter_map(|account| account.app_max_rss_bytes).max();
        // With the tables of its pages: eight bytes for each, and the tables above them.
        let with_tables = |heap: u64| heap + heap / 256;
        let together = self.record.runs.iter().filter_map(account::heap_together).map(with_tables).max();
        let bounds = doubts.iter().filter(|doubt| doubt.kind == DoubtKind::BetweenBounds);
        let at_most = bounds.filter_map(|doubt| doubt.bytes).max();
        let held = self.seen.floor_bytes().or(largest).max(together).max(at_most).unwrap_or(0).max(LEAST_BUDGET_BYTES);
        Answer { budget_bytes: answer.budget_bytes.map(|bytes| bytes.max(held)), ..answer }
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
            Ended::Fails(failure) => {
                self.sink.seal();
                say::beside(format_args!("{}", failure.errors));
                tell!("bursar: {}", failure.sentence());
                return Ok(failure.status);
            }
            Ended::Answered(answer) => (answer, Status::of(0)),
            Ended::Interrupted(signal) => (self.partial(), Status::Signal(signal)),
        };
        let doubts = doubts::of(&self.record).into_iter().chain(self.not_limited()).collect::<Vec<_>>();
        let answer = if self.bench.emulates_limits { self.no_less_than_held(answer, &doubts) } else { answer };
        let report = BudgetReport { doubts: doubts.clone(), ..self.report(doubts::weighed(answer, &doubts)) };
        self.sink.append(Entry::Budget(Box::new(report.clone())))?;
        self.record.trials = report.trials.clone();
        self.record.budget = Some(report.clone());
        let notes = self.notes_of_answer(&report);
        let is_doubted = doubts.iter().any(|doubt| doubt.kind == DoubtKind::CachedBefore);
        let demand = self.seen.demand.as_ref().filter(|_| !is_doubted);
        let foreign = demand.and_then(|demand| foreign_warning(demand, &report.answer));
        let path = self.sink.seal();
        let aside = Aside { warnings: foreign.as_slice(), notes: &notes, record: path.as_deref() };
        deliver(&self.options.results, &self.record, &aside, &report)?;
        match (status, &path) {
            (Status::Signal(_), Some(path)) if !self.options.results.quiet => {
                tell!("go on with: bursar budget --resume {}", path.display());
            }
            _ => {}
        }
        Ok(status)
    }

    /// The notes that change how the answer must be read.
    fn notes_of_answer(&self, report: &BudgetReport) -> Vec<String> {
        let of_record = self.record.notes.iter().chain(self.bench.machine_notes(&self.record)).cloned();
        // Where it is not sure, the reason has the advice; a setting is told with the answer.
        let advice = self.advice(&report.answer).filter(|_| report.answer.confident && report.setting.is_none());
        of_record.chain(advice).chain(self.why_no_curve()).collect()
    }

    /// What the runtime that sizes itself asks of the reader, where one is known.
    fn advice(&self, answer: &Answer) -> Option<String> {
        let sizes = answer.budget_bytes.zip(answer.smallest_passing_bytes);
        self.sizing.as_ref().zip(sizes).and_then(|(sizing, (budget, tried))| sizing.advice(budget, tried))
    }

    /// Where no curve of the page cache was made: that, and what the first run noted.
    fn why_no_curve(&self) -> Vec<String> {
        if self.seen.demand.is_some() || self.seen.references.is_empty() {
            return Vec::new();
        }
        let noted = self.record.runs.first().into_iter().flat_map(|run| run.notes.iter().cloned());
        let said = "There is no file demand curve, so the search had nothing to go by but the floor.".to_string();
        std::iter::once(said).chain(noted).collect()
    }

    /// The answer as far as it goes: what the planner would say if it may make no more trials.
    fn partial(&self) -> Answer {
        let no_more = Settings {
            max_trials: 0,
            compare: false,
            runs: Some(self.seen.references.len() as u32),
            ..self.settings.clone()
        };
        let answer = match budget::next(&no_more, &self.seen) {
            Step::Done(answer) if !self.seen.references.is_empty() => answer,
            _ => Answer::default(),
        };
        // The planner's reason would be that it may make no more trials.
        let has_tried =
            answer.budget_bytes.is_some() || self.seen.trials.iter().any(|trial| trial.limit_bytes.is_some());
        let what = if has_tried { "it was done" } else { "any limit was tried" };
        Answer { confident: false, reason: format!("Interrupted before {what}."), ..answer }
    }

    fn report(&self, answer: Answer) -> BudgetReport {
        let methods = budget::methods(&self.settings, &self.seen, &answer);
        // As they are judged now: a reference made later may have shown that the machine was slower then.
        let judged = |trial: &Trial| self.seen.trials.iter().find(|t| t.run == trial.run).unwrap_or(trial).clone();
        let reference = self.seen.reference();
        let scout = reference.map_or(0.0, |reference| self.scout_seconds / reference.median);
        let mut notes = self.record.notes.clone();
        notes.extend_from_slice(self.bench.machine_notes(&self.record));
        notes.extend(self.why_no_curve());
        notes.extend(self.seen.demand.as_ref().and_then(foreign_note));
        notes.extend(budget::method_notes(&self.settings, &self.seen));
        let sizes = answer.budget_bytes.zip(answer.smallest_passing_bytes);
        let advice = self.advice(&answer);
        // Where no runtime is known, nothing says by what rule it does.
        let held_less = budget::held_less(&self.seen).filter(|_| self.sizing.is_none());
        let advice = advice.or_else(|| {
            held_less.map(|found| {
                // Of an emulated limit the program knows nothing.
                if self.bench.emulates_limits {
                    return format!(
                        "But its runs differ: one never had more than {}, and others held {}.",
                        Bytes(found.peak_bytes),
                        Bytes(found.held_bytes)
                    );
                }
                format!(
                    "But the program sizes itself by its limit, or does not do the same every time: under a limit of {} it never had \
                     more than {}, and without one it held {}. A fixed size, if it has such a setting, makes the answer certain.",
                    Bytes(found.limit_bytes),
                    Bytes(found.peak_bytes),
                    Bytes(found.held_bytes)
                )
            })
        });
        let answer = Answer {
            confident: answer.confident && held_less.is_none(),
            reason: [Some(answer.reason), advice].into_iter().flatten().collect::<Vec<_>>().join(" "),
            ..answer
        };
        if self.sizing.is_none() {
            notes.push(
                "Programs that size their caches by the limit they see (databases) were measured doing so: each trial shows \
                 what the program does under that limit."
                    .into(),
            );
        }
        let trials: Vec<Trial> = self.record.trials.iter().map(judged).collect();
        BudgetReport {
            nodes: budget::nodes(&trials, &answer),
            answer,
            slowdown_target: self.settings.slowdown,
            reference_seconds: reference.map(|spread| spread.median),
            reference_stddev_seconds: budget::stddev_seconds(&self.settings, &self.seen),
            run_times_used: self.seen.run_times_used().map(|used| used + scout),
            compare_run_times: self.seen.compare_run_times(),
            floor_bytes: self.seen.floor_bytes(),
            placement: self.record.header.placement.clone(),
            limit_source: self.bench.emulates_limits.then_some(LimitSource::Emulated),
            swap: self.record.header.swap.clone(),
            fast_tier: self.options.fast_tier.map(|tier| tier.to_string()),
            setting: self.sizing.as_ref().zip(sizes).and_then(|(sizing, (_, tried))| sizing.setting(tried)),
            cache_state: self.cache.describe(),
            methods,
            trials,
            doubts: Vec::new(),
            file_demand: self.seen.demand.clone(),
            notes,
        }
    }
}

impl Made {
    /// What each node showed: its part, or, on one machine, all there is.
    fn nodes(&self) -> &[Observation] {
        if self.parts.is_empty() { std::slice::from_ref(&self.observation) } else { &self.parts }
    }

    /// Of the node that waited longest; pressure where that says more.
    fn stall_seconds(&self, account: &RunAccount) -> Option<f64> {
        let of_pressure = lost_to_pressure(&account.pressure);
        self.nodes().iter().filter_map(stall_of).chain(of_pressure).reduce(f64::max)
    }
}

/// The account of the node that had most.
fn largest<'a>(nodes: &'a [(&Observation, RunAccount)]) -> Option<&'a RunAccount> {
    nodes.iter().map(|(_, account)| account).max_by_key(|account| account.peak_charge_bytes)
}

/// Of the node that waited most.
fn share_of_most(nodes: &[(&Observation, RunAccount)]) -> Option<f64> {
    nodes.iter().filter_map(|(_, account)| account.io_wait_share).reduce(f64::max)
}

/// A part of a run as its trial tells it.
fn node_run(part: &Observation, account: &RunAccount) -> Option<NodeRun> {
    Some(NodeRun {
        host: part.origin.as_ref()?.host.clone(),
        wall_seconds: part.wall_seconds,
        peak_charge_bytes: account.peak_charge_bytes,
        breakdown: account.peak_breakdown,
        floor_bytes: account.floor_bytes,
        oom_kills: account.oom_kills,
        refaults: account.flow.refaults_file,
        io_wait_share: account.io_wait_share,
    })
}

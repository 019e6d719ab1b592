//! A search: makes the runs that the planner asks for, and tells it what they showed. Everything the planner is told comes from
//! observations and their accounts, so that a search can go on from its record.

use std::io::IsTerminal;
use std::path::PathBuf;

use budget::{Evidence, Measured, Settings, Step};
use live::Display;
use model::{Answer, BudgetReport, Bytes, DoubtKind, Exit, Header, Method, Outcome, RunRole, Trial};
use record::{Entry, Record, Resumable};
use session::cache::foreign_warning;
use session::observe::Progress;
use session::sink::{Sink, finish_run};
use session::status::Status;

use crate::doubts;
use crate::executor::{Executor, Made, Order};
use crate::failure::Failure;
use crate::figures::progress_of;
use crate::options::Options;
use crate::runtime::Sizing;

/// A search that goes on.
pub struct Search<'a, E> {
    pub(crate) options: &'a Options,
    pub(crate) settings: Settings,
    pub(crate) executor: E,
    pub(crate) sink: Sink,
    pub(crate) record: Record,
    pub(crate) seen: Evidence,
    display: Display,
    /// Of runs that are not compared with others.
    pub(crate) scout_seconds: f64,
    /// Failures under a limit after which a run without one succeeded.
    checked: Vec<Failure>,
    /// How its runtime sizes itself, if one is known.
    pub(crate) sizing: Option<Sizing>,
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

/// What a search came to.
#[derive(Debug)]
pub enum Found {
    /// An answer, as far as it goes.
    Answer(Box<Answered>),
    /// None: the command fails without a limit.
    Failure(Failure),
}

/// An answer with what it rests on.
#[derive(Debug)]
pub struct Answered {
    /// All runs.
    pub record: Record,
    /// The answer, and the trials and the methods beside it.
    pub report: BudgetReport,
    /// What changes how the answer must be read, as sentences.
    pub notes: Vec<String>,
    /// What was cached before, where that is no small part of the answer, as a sentence.
    pub foreign: Option<String>,
    /// Where the record is, if one could be kept.
    pub path: Option<PathBuf>,
    /// How bursar ends: by the signal that interrupted the search.
    pub status: Status,
}

impl<'a, E: Executor> Search<'a, E> {
    /// Begins a search, or goes on with the one of a record. `header`: what a new record begins with; `notes`: what the reader should
    /// know, whatever the runs show.
    pub fn begin(
        options: &'a Options,
        executor: E,
        header: Header,
        notes: Vec<String>,
        old: Option<(Resumable, Record)>,
    ) -> anyhow::Result<Search<'a, E>> {
        let (resumed, old) = old.unzip();
        let (sink, no_record) = match resumed {
            Some(record) => (Sink::resume(record)?, None),
            None => Sink::create(options.record.as_deref(), &header)?,
        };
        let settings = Settings {
            slowdown: options.slowdown,
            runs: options.runs,
            max_trials: options.max_trials,
            compare: options.compare,
            full: options.full,
            timeout_seconds: options.timeout.map(|t| t.as_secs_f64()),
            has_slower_memory: options.fast_tier.is_some(),
            sizes_itself: false,
            dirty_share: executor.dirty_share(),
            page_bytes: header.page_bytes,
        };
        let notes = notes.into_iter().chain(no_record).collect();
        let record = old.unwrap_or(Record { notes, ..Record::new(header) });
        let mut search = Search {
            options,
            settings,
            executor,
            sink,
            seen: Evidence::default(),
            record,
            display: Display::new(!options.quiet && std::io::stderr().is_terminal()),
            scout_seconds: 0.0,
            checked: Vec::new(),
            sizing: Sizing::of(&options.command, None),
        };
        search.remember();
        Ok(search)
    }

    /// Makes runs until the planner has its answer, and seals the record.
    ///
    /// # Errors
    /// If a run could not be made.
    pub fn run(mut self) -> anyhow::Result<Found> {
        match self.steps() {
            Ok(ended) => self.end(ended),
            Err(error) => {
                self.sink.seal();
                Err(error)
            }
        }
    }

    /// What an earlier session of the same record saw.
    fn remember(&mut self) {
        let is_trial = |trial: &&Trial| trial.limit_bytes.is_some() || trial.method.is_some();
        self.seen.trials.extend(self.record.trials.iter().filter(is_trial).cloned());
        let mut made: Vec<Made> = Vec::new();
        for run in self.record.runs.iter().cloned() {
            match made.last_mut().filter(|_| run.role == RunRole::Part) {
                Some(whole) => whole.parts.push(run),
                None => made.push(Made { observation: run, parts: Vec::new(), errors: String::new(), running: None }),
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

    fn steps(&mut self) -> anyhow::Result<Ended> {
        loop {
            self.settings.sizes_itself = self.sizes_itself();
            let step = budget::next(&self.settings, &self.seen);
            let ended = match step {
                Step::Done(answer) => Some(Ended::Answered(answer)),
                Step::Reference { compared: true, why } => {
                    let ended = self.reference(true, why)?;
                    self.without_comparison_if_failed(ended)
                }
                Step::Reference { compared: false, why } => self.reference(false, why)?,
                Step::Trial { limit_bytes, predicted_ratio, why, .. } => {
                    self.trial(None, limit_bytes, predicted_ratio, why)?
                }
                Step::Method { method, limit_bytes, predicted_ratio, why, .. } => {
                    let ended = self.trial(Some(method), limit_bytes, predicted_ratio, why)?;
                    self.without_comparison_if_failed(ended)
                }
            };
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// The comparison comes after the search: if one of its runs fails for another reason than its limit, the answer is known already, and
    /// the comparison alone ends.
    fn without_comparison_if_failed(&mut self, ended: Option<Ended>) -> Option<Ended> {
        let Some(Ended::Fails(failure)) = ended else { return ended };
        self.settings.compare = false;
        self.seen.trials.retain(|trial| trial.run != failure.number());
        self.record.notes.push(format!("The comparison with other methods ended early: {}.", failure.sentence()));
        None
    }

    /// One run without a limit.
    fn reference(&mut self, compared: bool, why: String) -> anyhow::Result<Option<Ended>> {
        let label = format!("reference {}", self.seen.references.len() + 1);
        let role = if compared { RunRole::Method } else { RunRole::Reference };
        let mut made = self.make(role, None, &label, &mut |_| false)?;
        let running = made.running.take();
        self.sizing = self.sizing.take().or_else(|| Sizing::of_running(&self.options.command, running?));
        if let Some(signal) = self.executor.stopped_by() {
            return Ok(Some(Ended::Interrupted(signal)));
        }
        if !matches!(made.observation.exit, Exit::Status(0)) {
            return Ok(Some(Ended::Fails(self.failure(&made, None))));
        }
        let account = account::account(&made.observation, &self.record.header);
        let parts = made.parts.iter().map(|part| account::account(part, &self.record.header));
        // Once, for the files that a program maps may be others each time.
        let is_first = self.scout_seconds == 0.0 && self.seen.references.is_empty();
        let mut helped = is_first && self.executor.learn_mapped(&made, &account);
        if !helped && doubts::end_it(&account) || parts.into_iter().any(|part| doubts::end_it(&part)) {
            return self.finish(made).map(|()| Some(Ended::Answered(Answer::default())));
        }
        helped |= self.executor.learn_read(&made, is_first);
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
        let mut watch = |nodes: &[Progress]| {
            stopped = budget::watch(&settings, &seen, method, &progress_of(nodes));
            stopped.is_some()
        };
        let made = self.make(role, Some(limit), &label, &mut watch)?;
        if let Some(signal) = self.executor.stopped_by() {
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
            .filter(|failure| !failure.is_for_lack_of_memory() && !self.is_tied_to_limits(failure));
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

    /// A run without a limit, after a failure under one that does not look like lack of memory. If it fails, too, the limit was not the
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

    /// Makes a run, and shows how it goes. `watch` sees that on each node, and stops it by `true`.
    fn make(
        &mut self,
        role: RunRole,
        limit_bytes: Option<u64>,
        label: &str,
        watch: &mut dyn FnMut(&[Progress]) -> bool,
    ) -> anyhow::Result<Made> {
        let sizing = self.sizing.as_ref().zip(limit_bytes).and_then(|(sizing, limit)| sizing.environment(limit));
        let order = Order {
            run: self.record.runs.len() as u32,
            role,
            limit_bytes,
            environment: sizing.into_iter().collect(),
            timeout: self.options.timeout,
            find_runtime: self.sizing.is_none(),
        };
        let expected = self.seen.reference().map(|spread| spread.median);
        let left = budget::effort_left(&self.settings, &self.seen).filter(|_| role != RunRole::Method);
        self.display.begin(label, expected);
        if let Some(left) = left {
            self.display.ends_within(left.seconds);
        }
        let (display, sink) = (&self.display, &mut self.sink);
        let mut watch = |nodes: &[Progress]| {
            if let Some(here) = nodes.first() {
                let charge_bytes = nodes.iter().filter_map(|node| node.charge_bytes).max();
                display.show(&Progress { charge_bytes, ..*here });
            }
            watch(nodes)
        };
        let made = self.executor.run(&order, &mut |entry| sink.append(entry), &mut watch);
        self.display.end();
        made
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

    fn keep(&mut self, trial: Trial) -> anyhow::Result<()> {
        self.display.done(&trial);
        self.sink.append(Entry::Trial(Box::new(trial.clone())))?;
        self.record.trials.push(trial);
        Ok(())
    }

    /// Makes the report of whatever was found, and seals the record.
    fn end(mut self, ended: Ended) -> anyhow::Result<Found> {
        let (answer, status) = match ended {
            Ended::Fails(failure) => {
                self.sink.seal();
                return Ok(Found::Failure(failure));
            }
            Ended::Answered(answer) => (answer, Status::of(0)),
            Ended::Interrupted(signal) => (self.partial(), Status::Signal(signal)),
        };
        let doubts = doubts::of(&self.record).into_iter().chain(self.not_limited()).collect::<Vec<_>>();
        let answer = if self.executor.emulates_limits() { self.no_less_than_held(answer, &doubts) } else { answer };
        let report = BudgetReport { doubts: doubts.clone(), ..self.report(doubts::weighed(answer, &doubts)) };
        self.sink.append(Entry::Budget(Box::new(report.clone())))?;
        self.record.trials = report.trials.clone();
        self.record.budget = Some(report.clone());
        let notes = self.notes_of_answer(&report);
        let is_doubted = doubts.iter().any(|doubt| doubt.kind == DoubtKind::CachedBefore);
        let demand = self.seen.demand.as_ref().filter(|_| !is_doubted);
        let foreign = demand.and_then(|demand| foreign_warning(demand, &report.answer));
        let path = self.sink.seal();
        Ok(Found::Answer(Box::new(Answered { record: self.record, report, notes, foreign, path, status })))
    }
}

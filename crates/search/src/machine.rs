//! Runs on this machine, and on the nodes of a job that goes beyond it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure};
use linux::bpf::Rung;
use model::{Exit, Header, Observation, Origin, RecordKind, RunAccount, RunRole};
use record::{Entry, Record};
use session::bench::{Bench, References};
use session::cache::{Cache, Start, mapped_files};
use session::given::{Given, Kept};
use session::nodes::{self, Nodes};
use session::observe::{Observed, Plan, Progress, observe};
use session::prepare::prepare;
use session::say::tell;
use session::slurm::Allocation;
use session::tier::FastTier;

use crate::executor::{Executor, Made, Order};
use crate::options::Options;
use crate::runtime;

/// When the processes of a first run are searched for a runtime; each later search is after twice the time.
const FIRST_SCAN_SECONDS: f64 = 0.1;

/// Runs in cgroups, as Slurm steps, over several nodes, or under emulated limits: whichever can be had.
pub struct Machine {
    bench: Bench,
    slurm: Option<Allocation>,
    nodes: Option<Nodes>,
    input: Given,
    cache: Cache,
    command: Vec<OsString>,
    prepare: Option<String>,
    fast_tier: Option<FastTier>,
    interval: Option<Duration>,
    origin: Origin,
    /// The files that the last run without a limit had mapped.
    mapped: BTreeSet<PathBuf>,
}

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

impl Machine {
    /// Finds the best limits that can be had, and the input that every run is given. `kept`: the one that the record of an interrupted
    /// search tells of.
    ///
    /// # Errors
    /// If no limits can be had, not even emulated ones, or the input cannot be given more than once.
    pub fn set_up(options: &Options, kept: Option<&Kept>) -> anyhow::Result<Machine> {
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
        let input = Given::find(options.input.as_deref(), kept, &bench.signals)?;
        if matches!(input, Given::Nothing) && std::io::stdin().is_terminal() && !options.quiet {
            tell!(
                "bursar: standard input is a terminal, so the runs get no input; to give them a file: --input FILE, or < FILE"
            );
        }
        // A node's page cache gives way to the job: what is left free is its limit only where there is none.
        let is_dropped = options.drop_caches || matches!(options.fast_tier, Some(FastTier::Node(_)));
        let start = match (is_dropped, options.as_found) {
            (true, _) => Start::Dropped,
            (_, true) => Start::AsFound,
            _ => Start::Evicted,
        };
        let mut cache = Cache::new(start, &options.command);
        cache.also(input.path());
        let header = session::bench::header(RecordKind::Budget, &options.command);
        Ok(Machine {
            bench,
            slurm,
            nodes,
            input,
            cache,
            command: options.command.clone(),
            prepare: options.prepare.clone(),
            fast_tier: options.fast_tier,
            interval: options.interval,
            origin: Origin { host: header.host, boot_id: header.boot_id, rank: None },
            mapped: BTreeSet::new(),
        })
    }

    /// The first entry of a search's record.
    pub fn header(&self) -> Header {
        let swap = self.fast_tier.map_or("no swap (MemorySwapMax=0)".into(), FastTier::describe);
        let header = self.bench.header(RecordKind::Budget, &self.command, &swap);
        let placement = self.slurm.as_ref().map_or(header.placement.clone(), Allocation::describe);
        Header { placement, ..header }
    }

    /// What the reader should know, whatever the runs show.
    pub fn notes(&self) -> Vec<String> {
        self.bench.notes()
    }

    /// The input that its runs are given, as a record keeps it.
    pub fn input(&self) -> Kept {
        self.input.kept()
    }

    /// A run with the parts of all its nodes, if there are others.
    fn whole(&self, observation: Observation, others: Vec<Observation>) -> (Observation, Vec<Observation>) {
        if others.is_empty() {
            return (observation, Vec::new());
        }
        let (run, role) = (observation.run, observation.role);
        let here = Observation { role: RunRole::Part, origin: Some(self.origin.clone()), ..observation.clone() };
        let parts: Vec<Observation> = (run + 1..)
            .zip(std::iter::once(here).chain(others))
            .map(|(run, part)| Observation { run, limit_bytes: observation.limit_bytes, ..part })
            .collect();
        let whole = nodes::together(&parts).unwrap_or(observation);
        (Observation { run, role, ..whole }, parts)
    }
}

impl Executor for Machine {
    fn run(
        &mut self,
        order: &Order,
        append: &mut dyn FnMut(Entry) -> anyhow::Result<()>,
        watch: &mut dyn FnMut(&[Progress]) -> bool,
    ) -> anyhow::Result<Made> {
        if let Some(command) = &self.prepare {
            prepare(command, &self.bench.signals)?;
        }
        self.cache.prepare()?;
        let nodes = self.nodes.as_ref();
        let of_nodes = nodes.map(Nodes::environment).unwrap_or_default().into_iter();
        let plan = Plan {
            run: order.run,
            role: order.role,
            command: &self.command,
            environment: of_nodes.chain(order.environment.iter().cloned()).collect(),
            inherit: false,
            input: Some(&self.input),
            limit_bytes: order.limit_bytes,
            fast_tier: self.fast_tier,
            cache_state: self.cache.describe(),
            timeout: order.timeout,
            interval: self.interval,
            over_nodes: nodes.is_some(),
            clean_up: true,
        };
        if let Some(nodes) = nodes {
            let (role, limit_bytes) = (order.role, order.limit_bytes);
            let (fast_tier, interval, cache) = (self.fast_tier, self.interval, self.cache.clone());
            nodes.begin(nodes::Order { role, limit_bytes, fast_tier, cache, interval });
        }
        let (mut running, mut due, mut mapped) = (None, FIRST_SCAN_SECONDS, BTreeSet::new());
        let mut watch = |progress: Progress| {
            if order.limit_bytes.is_none() && progress.elapsed.as_secs_f64() >= due {
                due *= 2.0;
                running = running.take().or_else(|| order.find_runtime.then(runtime::running).flatten());
                mapped.extend(mapped_files());
            }
            let mut all = vec![progress];
            all.extend(nodes.into_iter().flat_map(|nodes| nodes.progress(progress.elapsed)));
            watch(&all) || nodes.is_some_and(Nodes::is_in_trouble)
        };
        let observed = match &self.slurm {
            Some(slurm) => slurm.observe(&self.bench, &plan, append, &mut watch),
            None => observe(&self.bench, &plan, append, &mut watch),
        };
        let Observed { observation, errors, not_started } = observed?;
        match not_started {
            // A limit in which no program begins is too small, as any other that ends the command.
            Some(job::Error::Killed { .. }) if order.limit_bytes.is_some() => {}
            Some(error) => return Err(error.into()),
            None => {}
        }
        let is_whole = observation.exit == Exit::Status(0) && !self.bench.signals.interrupted();
        if self.bench.emulates_limits
            && order.limit_bytes.is_none()
            && is_whole
            && observation.evidence.emulated.is_none()
        {
            let why = observation.notes.first().cloned().unwrap_or_default();
            let missing = self.bench.place.missing().into_iter().chain([format!("they cannot be emulated: {why}")]);
            bail!(no_limits(&missing.collect::<Vec<_>>()));
        }
        let others = match nodes.map(|nodes| nodes.end(&errors)) {
            None => Vec::new(),
            // It was ended in the middle of what it did.
            Some(Err(_)) if self.bench.signals.interrupted() => Vec::new(),
            Some(others) => others?,
        };
        self.mapped = mapped;
        let (observation, parts) = self.whole(observation, others);
        Ok(Made { observation, parts, errors, running })
    }

    fn stopped_by(&self) -> Option<i32> {
        self.bench.signals.stopped_by()
    }

    fn learn_mapped(&mut self, made: &Made, account: &RunAccount) -> bool {
        let mapped = std::mem::take(&mut self.mapped);
        self.cache.learn_mapped(&made.observation, account, mapped)
    }

    fn learn_read(&mut self, made: &Made, is_first: bool) -> bool {
        let mut helped = false;
        for demand in made.nodes().iter().filter_map(|node| node.file_demand.as_ref()) {
            helped |= self.cache.learn(demand);
        }
        // From then on each run's pages are dropped at its end.
        helped | (is_first && self.cache.was_warm(&made.observation))
    }

    fn cache_state(&self) -> String {
        self.cache.describe()
    }

    fn emulates_limits(&self) -> bool {
        self.bench.emulates_limits
    }

    fn dirty_share(&self) -> Option<f64> {
        self.bench.place.dirty_share()
    }

    fn machine_notes(&self, record: &Record) -> Vec<String> {
        self.bench.machine_notes(record).to_vec()
    }
}

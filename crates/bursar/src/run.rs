//! `bursar run`: the account of one command, or of what runs already.

use anyhow::Context;
use linux::bpf::Rung;
use model::{RecordKind, RunAccount, RunRole, Spread};
use record::{Entry, Record};
use report::terminal::short::Aside;
use report::{RUNS, Unfinished, is_complete};
use serde::Serialize;
use session::attach::{follow, resolve};
use session::bench::{Bench, References};
use session::inputs;
use session::observe::{Plan, observe};
use session::rank::place_in_job;
use session::say::tell;
use session::sink::{Sink, finish_run};
use session::status::{Status, ended};

use crate::cli::run::Run;
use crate::cli::target::Target;
use crate::results::deliver;

/// What `--json` prints: the account of the run of median length, and with `-n` all of them, the spread of those that came to their end,
/// and what is missing.
#[derive(Serialize)]
pub struct Json<'a> {
    #[serde(flatten)]
    account: &'a RunAccount,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    runs: &'a [RunAccount],
    #[serde(skip_serializing_if = "Option::is_none")]
    variability: Option<Variability>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished: Option<Unfinished>,
}

/// Figures over several equal runs.
#[derive(Serialize)]
struct Variability {
    wall_seconds: Option<Spread>,
    app_max_rss_bytes: Option<Spread>,
    peak_charge_bytes: Option<Spread>,
}

/// The account of something that runs already. Nothing is written to it.
pub fn attach(options: &Run, wanted: &Target) -> anyhow::Result<Status> {
    let found = wanted.find()?;
    let (target, scope) = resolve(&found, options.tree)?;
    if !options.results.quiet {
        tell!("watching {found}; Ctrl-C ends and prints the account");
    }
    let is_over = |watched| options.timeout.is_some_and(|limit| watched >= limit);
    let (record, path) = follow(target, scope, options.results.record.as_deref(), options.interval, &is_over)?;
    let accounts: Vec<_> = record.accounts.values().cloned().collect();
    let json = json(&record, &accounts).context("nothing was seen")?;
    let aside = Aside { warnings: &[], notes: &record.notes, record: path.as_deref() };
    deliver(&options.results, &record, &aside, &json)?;
    Ok(Status::of(0))
}

pub fn run(options: Run) -> anyhow::Result<Status> {
    let mut bench = Bench::set_up(Some(Rung::Filemap), References::TracedOrInside)?;
    if options.limit.is_some() && !bench.can_limit() {
        bench.emulate_limits();
    }
    let swap = if options.limit.is_some() { "no swap (MemorySwapMax=0)" } else { "as the machine allows" };
    let mut header = bench.header(RecordKind::Run, &options.command, swap);
    header.options = inputs::options(&options.command, &options.feature);
    header.options.extend(place_in_job());
    header.options.extend((options.runs > 1).then(|| (RUNS.to_string(), options.runs.to_string())));
    let (mut sink, no_record) = Sink::create(options.results.record.as_deref(), &header)?;
    let mut record = Record { notes: bench.notes(), ..Record::new(header) };
    bench.notes().into_iter().try_for_each(|note| sink.append(Entry::Note(note)))?;
    let mut status = Status::of(0);
    for number in 0..options.runs {
        let plan = Plan {
            run: number,
            role: RunRole::Plain,
            command: &options.command,
            environment: Vec::new(),
            inherit: true,
            input: None,
            limit_bytes: options.limit.map(|limit| limit.0),
            fast_tier: None,
            cache_state: if number == 0 { "as found" } else { "as the run before left it" }.into(),
            timeout: options.timeout,
            interval: options.interval,
            over_nodes: false,
            clean_up: false,
        };
        let mut observed = observe(&bench, &plan, &mut |entry| sink.append(entry), &mut |_| false)?;
        if let Some(error) = observed.not_started {
            tell!("bursar: {error}");
            return Ok(Status::of(error.exit_status()));
        }
        observed.observation.notes.extend(no_record.clone());
        status = ended(&observed.observation);
        finish_run(&mut sink, &mut record, observed.observation, Vec::new())?;
        if status.code() != 0 || bench.signals.interrupted() {
            break;
        }
    }
    // The runs that are missing are no success of the command.
    if let Some(signal) =
        bench.signals.stopped_by().filter(|_| status.code() == 0 && record.runs.len() < options.runs as usize)
    {
        status = Status::Signal(signal);
    }
    let accounts: Vec<RunAccount> = record.accounts.values().cloned().collect();
    for note in bench.machine_notes(&record).to_vec() {
        sink.append(Entry::Note(note.clone()))?;
        record.notes.push(note);
    }
    let path = sink.seal();
    let json = json(&record, &accounts).context("no run was made")?;
    let notes: Vec<String> = no_record.into_iter().chain(record.notes.iter().cloned()).collect();
    let aside = Aside { warnings: &[], notes: &notes, record: path.as_deref() };
    deliver(&options.results, &record, &aside, &json)?;
    Ok(status)
}

/// The account that stands for all: of the run of median length.
pub fn json<'a>(record: &Record, accounts: &'a [RunAccount]) -> Option<Json<'a>> {
    let unfinished = Unfinished::of(&record.header, &record.runs.iter().collect::<Vec<_>>());
    let complete = record.runs.iter().zip(accounts).filter(|(run, _)| unfinished.is_none() || is_complete(run));
    let mut by_length: Vec<&RunAccount> = complete.map(|(_, account)| account).collect();
    if by_length.is_empty() {
        by_length.extend(accounts);
    }
    by_length.sort_by(|a, b| a.wall_seconds.total_cmp(&b.wall_seconds));
    let account = *by_length.get(by_length.len().checked_sub(1)? / 2)?;
    let spread = |of: fn(&RunAccount) -> Option<f64>| {
        Spread::of(&by_length.iter().filter_map(|account| of(account)).collect::<Vec<_>>())
    };
    let variability = (by_length.len() > 1).then(|| Variability {
        wall_seconds: spread(|a| Some(a.wall_seconds)),
        app_max_rss_bytes: spread(|a| a.app_max_rss_bytes.map(|v| v as f64)),
        peak_charge_bytes: spread(|a| a.peak_charge_bytes.map(|v| v as f64)),
    });
    Some(Json { account, runs: if accounts.len() > 1 { accounts } else { &[] }, variability, unfinished })
}

//! `bursar run`: the account of one command.

use anyhow::Context;
use linux::bpf::Rung;
use model::{Exit, Observation, RecordKind, RunAccount, RunRole, Series, Spread};
use record::{Entry, Record};
use report::terminal::short::Aside;
use serde::Serialize;

use crate::bench::{Bench, References};
use crate::cli::run::Run;
use crate::observe::{Plan, observe};
use crate::predict::inputs;
use crate::rank::place_in_job;
use crate::results::{Sink, deliver};
use crate::say::tell;
use crate::status::Status;

/// What `--json` prints: the account of the run of median length, and with `-n` all of them and their spread.
#[derive(Serialize)]
pub struct Json<'a> {
    #[serde(flatten)]
    account: &'a RunAccount,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    runs: &'a [RunAccount],
    #[serde(skip_serializing_if = "Option::is_none")]
    variability: Option<Variability>,
}

/// Figures over several equal runs.
#[derive(Serialize)]
struct Variability {
    wall_seconds: Option<Spread>,
    app_max_rss_bytes: Option<Spread>,
    peak_charge_bytes: Option<Spread>,
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
    let accounts: Vec<RunAccount> = record.accounts.values().cloned().collect();
    for note in bench.machine_notes(&record).to_vec() {
        sink.append(Entry::Note(note.clone()))?;
        record.notes.push(note);
    }
    let path = sink.seal();
    let json = json(&accounts).context("no run was made")?;
    let notes: Vec<String> = no_record.into_iter().chain(record.notes.iter().cloned()).collect();
    let aside = Aside { warnings: &[], notes: &notes, record: path.as_deref() };
    deliver(&options.results, &record, &aside, &json)?;
    Ok(status)
}

/// Records the end of a run with its account, and keeps both. `late`: time lines that are known only now.
pub fn finish_run(
    sink: &mut Sink,
    record: &mut Record,
    mut observation: Observation,
    late: Vec<Series>,
) -> anyhow::Result<()> {
    let account = account::account(&observation, &record.header);
    let run = observation.run;
    let ended = Observation { series: late.clone(), ..observation.clone() };
    observation.series.extend(late);
    sink.append(Entry::RunEnd(Box::new(ended)))?;
    sink.append(Entry::Account { run, account: Box::new(account.clone()) })?;
    record.accounts.insert(run, account);
    record.runs.push(observation);
    Ok(())
}

/// How bursar ends after a run.
pub fn ended(observation: &Observation) -> Status {
    match observation.exit {
        Exit::Signal(signal) => Status::Signal(signal),
        _ => Status::of(observation.exit_status().unwrap_or(0)),
    }
}

/// The account that stands for all: of the run of median length.
pub fn json(accounts: &[RunAccount]) -> Option<Json<'_>> {
    let mut by_length: Vec<&RunAccount> = accounts.iter().collect();
    by_length.sort_by(|a, b| a.wall_seconds.total_cmp(&b.wall_seconds));
    let account = *by_length.get(accounts.len().checked_sub(1)? / 2)?;
    let several = accounts.len() > 1;
    let spread = |of: fn(&RunAccount) -> Option<f64>| Spread::of(&accounts.iter().filter_map(of).collect::<Vec<_>>());
    let variability = several.then(|| Variability {
        wall_seconds: spread(|a| Some(a.wall_seconds)),
        app_max_rss_bytes: spread(|a| a.app_max_rss_bytes.map(|v| v as f64)),
        peak_charge_bytes: spread(|a| a.peak_charge_bytes.map(|v| v as f64)),
    });
    Some(Json { account, runs: if several { accounts } else { &[] }, variability })
}

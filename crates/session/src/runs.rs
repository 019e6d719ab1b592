//! A command, run once or several times without being held back, into one record.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use linux::bpf::Rung;
use model::{Bytes, RecordKind, RunRole};
use record::{Entry, Record};
use report::RUNS;

use crate::bench::{Bench, References};
use crate::observe::{Plan, observe};
use crate::rank::place_in_job;
use crate::say::tell;
use crate::sink::{Sink, finish_run};
use crate::status::{Status, ended};
use history::inputs;

/// What is run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// How many times, unless a run fails.
    pub runs: u32,
    /// The most memory that it may have.
    pub limit: Option<Bytes>,
    /// Values of features, by name.
    pub features: Vec<(String, f64)>,
    /// Ends a run.
    pub timeout: Option<Duration>,
    /// Time between samples.
    pub interval: Option<Duration>,
    /// Where the record is kept; `None`: a new file in the state folder.
    pub record: Option<PathBuf>,
}

/// What came of it.
pub enum Ran {
    /// The runs.
    Recorded {
        /// What was seen.
        record: Box<Record>,
        /// Where it is kept.
        path: Option<PathBuf>,
        /// Why it is not kept, as a sentence.
        no_record: Option<String>,
        /// What bursar ends with.
        status: Status,
    },
    /// The command could not be started, which a person was told; what bursar ends with.
    Nothing(Status),
}

/// Runs the command.
///
/// # Errors
/// A sentence if it cannot be observed or recorded.
pub fn run(options: &Options) -> anyhow::Result<Ran> {
    let mut bench = Bench::set_up(Some(Rung::Filemap), References::TracedOrInside)?;
    if options.limit.is_some() && !bench.can_limit() {
        bench.emulate_limits();
    }
    let swap = if options.limit.is_some() { "no swap (MemorySwapMax=0)" } else { "as the machine allows" };
    let mut header = bench.header(RecordKind::Run, &options.command, swap);
    header.options = inputs::options(&options.command, &options.features);
    header.options.extend(place_in_job());
    header.options.extend((options.runs > 1).then(|| (RUNS.to_string(), options.runs.to_string())));
    let (mut sink, no_record) = Sink::create(options.record.as_deref(), &header)?;
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
            sink.end_without(&record);
            return Ok(Ran::Nothing(Status::of(error.exit_status())));
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
    for note in bench.machine_notes(&record).to_vec() {
        sink.append(Entry::Note(note.clone()))?;
        record.notes.push(note);
    }
    Ok(Ran::Recorded { record: Box::new(record), path: sink.seal(), no_record, status })
}

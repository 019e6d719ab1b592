//! The runs of a check: those of a record, or made until it is decided.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{bail, ensure};
use history::comparable::Wanted;
use history::inputs;
use history::measured::{Set, unfinished};
use linux::bpf::Rung;
use live::Display;
use model::{Header, RecordKind, RunRole};
use record::{Entry, Record};
use report::check::Answer;
use session::bench::{Bench, References};
use session::given::Given;
use session::observe::{Observed, Plan, observe};
use session::prepare::prepare;
use session::redact::redacted;
use session::say::tell;
use session::sink::{Sink, finish_run};
use session::status::Status;

use crate::comparison::{Comparison, Runs};
use crate::options::Options;

/// As `timeout` exits.
const TIMED_OUT: i32 = 124;

/// How a check ends.
pub enum Ended {
    /// With an answer.
    Checked(Box<Answer>),
    /// Before it was decided, which a person was told; what bursar ends with.
    By(Status),
}

/// Checks the runs of a record, or those that it makes.
///
/// # Errors
/// A sentence if runs or records cannot be compared, or if no run can be made.
pub fn check(options: &Options) -> anyhow::Result<Ended> {
    if let (Some(_), Some(figure)) = (options.max, options.figures.iter().find(|figure| !figure.is_bytes())) {
        ensure!(options.baseline.is_some(), "--max is a size, and {} is none", figure.name());
    }
    match &options.from {
        Some(path) => Ok(Ended::Checked(Box::new(of_record(options, path)?))),
        None => of_runs(options),
    }
}

/// Checks runs that are in a record.
fn of_record(options: &Options, path: &Path) -> anyhow::Result<Answer> {
    let mut set = Set::read(path, &|_| Ok(()))?;
    ensure!(set.records.len() == 1, "{} holds several records: name one", path.display());
    let mut measured = set.records.remove(0);
    measured.header.command.iter_mut().for_each(|word| *word = redacted(word));
    let limits: Vec<Option<u64>> = measured.runs.iter().map(|(run, _)| run.limit_bytes).collect();
    ensure!(limits.iter().all(|limit| *limit == limits[0]), "the runs of {} had different limits", path.display());
    let baseline = baseline(options, &measured.header, limits[0])?;
    let mut comparison = Comparison::new(options, &measured.header, baseline.as_ref(), Some(measured.runs.len()));
    comparison.look(&measured.runs)?;
    Ok(comparison.answer(&measured.header, &measured.runs))
}

/// Makes runs until it is decided.
fn of_runs(options: &Options) -> anyhow::Result<Ended> {
    let bench = Bench::set_up(Some(Rung::Filemap), References::TracedOrInside)?;
    let mut header = bench.header(RecordKind::Run, &options.command, "as the machine allows");
    header.options = inputs::options(&options.command, &[]);
    header.options.extend(options.prepare.as_deref().map(|command| ("prepare".to_string(), redacted(command))));
    // Before there is a record of this check: it may come to be in the same folder.
    let baseline = baseline(options, &header, None)?;
    let mut comparison = Comparison::new(options, &header, baseline.as_ref(), None);
    let input = Given::find(options.input.as_deref(), None, &bench.signals)?;
    let (mut sink, no_record) = Sink::create(options.record.as_deref(), &header)?;
    let mut record = Record { notes: bench.notes(), ..Record::new(header.clone()) };
    bench.notes().into_iter().try_for_each(|note| sink.append(Entry::Note(note)))?;
    let mut display = Display::new(std::io::stderr().is_terminal());
    let mut runs: Runs = Vec::new();
    let mut until = comparison.judge.first();
    loop {
        while (runs.len() as u32) < until {
            options.prepare.as_deref().map_or(Ok(()), |command| prepare(command, &bench.signals))?;
            let number = runs.len() as u32;
            let plan = Plan {
                run: number,
                role: RunRole::Plain,
                command: &options.command,
                environment: Vec::new(),
                inherit: false,
                input: Some(&input),
                limit_bytes: None,
                fast_tier: None,
                cache_state: if number == 0 { "as found" } else { "as the run before left it" }.into(),
                timeout: options.timeout,
                interval: None,
                over_nodes: false,
                clean_up: false,
            };
            display.begin(&format!("run {}", number + 1), None);
            let observed = observe(&bench, &plan, &mut |entry| sink.append(entry), &mut |progress| {
                display.show(&progress);
                false
            });
            display.end();
            let Observed { observation, errors, not_started } = observed?;
            if let Some(error) = not_started {
                tell!("bursar: {error}");
                sink.end_without(&record);
                return Ok(Ended::By(Status::of(error.exit_status())));
            }
            let is_timed_out = observation.exit == model::Exit::TimedOut;
            finish_run(&mut sink, &mut record, observation, Vec::new())?;
            if let Some(signal) = bench.signals.stopped_by() {
                sink.seal();
                return Ok(Ended::By(Status::Signal(signal)));
            }
            let (Some(run), Some(account)) = (record.runs.last(), record.accounts.get(&number)) else {
                bail!("the run was not recorded");
            };
            if let Some(why) = unfinished(run, account) {
                sink.seal();
                let printed = errors.trim_end();
                tell!(
                    "bursar: run {number} {why}: its figures are lower bounds, and nothing is compared{}{printed}",
                    if printed.is_empty() { "" } else { ". The end of what it printed:\n" }
                );
                let status = if is_timed_out { TIMED_OUT } else { session::status::OWN_FAILURE };
                return Ok(Ended::By(Status::of(status)));
            }
            runs.push((run.clone(), account.clone()));
        }
        match comparison.look(&runs)? {
            Some(next) => until = next,
            None => break,
        }
    }
    sink.seal();
    let mut answer = comparison.answer(&header, &runs);
    answer.notes.extend(no_record);
    Ok(Ended::Checked(Box::new(answer)))
}

fn baseline(options: &Options, header: &Header, limit_bytes: Option<u64>) -> anyhow::Result<Option<Set>> {
    let wanted = Wanted { header, limit_bytes, other_machine: options.other_machine };
    options.baseline.as_ref().map(|path| Set::read(path, &|measured| wanted.takes(measured))).transpose()
}

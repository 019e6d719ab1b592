//! `bursar check`: whether a command needs more than a maximum, or more than it did before.

use std::io::IsTerminal;
use std::path::Path;

use ::compare::Verdict;
use ::compare::runs::{Checked, Figure, Judge, Unknown, undecided, values};
use anyhow::{Context, bail, ensure};
use linux::bpf::Rung;
use live::Display;
use model::{Bytes, DoubtKind, Header, Observation, RecordKind, RunAccount, RunRole};
use record::{Entry, Record};
use report::check::{Answer, Shown};
use session::bench::{Bench, References};
use session::comparable::{Wanted, differences};
use session::given::Given;
use session::input::is_dash;
use session::inputs;
use session::measured::{Set, unfinished};
use session::observe::{Observed, Plan, observe};
use session::prepare::prepare;
use session::redact::redacted;
use session::say::{self, tell};
use session::sink::Sink;
use session::sink::finish_run;
use session::status::Status;

use crate::cli::check::Check;
use crate::replace::replace;
use crate::results::{check_file, check_json, write_json};

/// Exit statuses, beside 0 and those of bursar itself.
const FAILED: i32 = 1;
const UNDECIDED: i32 = 2;
/// As `timeout` exits.
const TIMED_OUT: i32 = 124;

type Runs = Vec<(Observation, RunAccount)>;

pub fn check(options: &Check) -> anyhow::Result<Status> {
    let to_standard_output = [&options.json, &options.markdown].map(|path| path.as_deref().is_some_and(is_dash));
    ensure!(
        to_standard_output != [true; 2],
        "--json and --markdown cannot both be standard output: name a file for one"
    );
    check_json(options.json.as_deref())?;
    let markdown = options.markdown.as_deref().filter(|path| !is_dash(path));
    for (what, path) in [("JUnit XML", options.junit.as_deref()), ("Markdown", markdown)] {
        path.map_or(Ok(()), |path| check_file(what, path))?;
    }
    if let (Some(_), Some(figure)) = (options.max, options.figures.iter().find(|figure| !figure.is_bytes())) {
        ensure!(options.baseline.is_some(), "--max is a size, and {} is none", figure.name());
    }
    let answer = match &options.from {
        Some(path) => of_record(options, path)?,
        None => match of_runs(options)? {
            Ended::Checked(answer) => answer,
            Ended::By(status) => return Ok(status),
        },
    };
    deliver(options, &answer, to_standard_output.contains(&true))?;
    Ok(Status::of(match answer.verdict() {
        Verdict::Passed => 0,
        Verdict::Failed => FAILED,
        Verdict::Undecided => UNDECIDED,
    }))
}

fn deliver(options: &Check, answer: &Answer, standard_output_is_taken: bool) -> anyhow::Result<()> {
    match standard_output_is_taken {
        true => tell!("{}", answer.sentence()),
        false => say::result(format_args!("{}\n", answer.sentence()))?,
    }
    answer.notes.iter().for_each(|note| tell!("bursar: {note}"));
    if let Some(path) = &options.json {
        write_json(path, &answer.json())?;
    }
    if let Some(path) = &options.junit {
        write_text("JUnit XML", path, &answer.junit())?;
    }
    match &options.markdown {
        Some(path) if is_dash(path) => say::result(format_args!("{}", answer.markdown())),
        Some(path) => write_text("Markdown", path, &answer.markdown()),
        None => Ok(()),
    }
}

fn write_text(what: &str, path: &Path, text: &str) -> anyhow::Result<()> {
    replace(path, |out| out.write_all(text.as_bytes()))
        .with_context(|| format!("the {what} could not be written to {}", path.display()))
}

/// Checks runs that are in a record.
fn of_record(options: &Check, path: &Path) -> anyhow::Result<Answer> {
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

/// How a check that makes runs ends.
enum Ended {
    Checked(Answer),
    /// Before it was decided.
    By(Status),
}

/// Makes runs until it is decided.
fn of_runs(options: &Check) -> anyhow::Result<Ended> {
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
    Ok(Ended::Checked(answer))
}

fn baseline(options: &Check, header: &Header, limit_bytes: Option<u64>) -> anyhow::Result<Option<Set>> {
    let wanted = Wanted { header, limit_bytes, other_machine: options.other_machine };
    options.baseline.as_ref().map(|path| Set::read(path, &|measured| wanted.takes(measured))).transpose()
}

/// What is compared, and what came of it.
struct Comparison<'a> {
    baseline: Option<&'a Set>,
    baseline_runs: Runs,
    judge: Judge,
    /// Whether the figures were named.
    is_named: bool,
    max: Option<Bytes>,
    checked: Vec<Checked>,
    unknown: Option<String>,
    notes: Vec<String>,
    has_looked: bool,
}

/// Why a run does not decide whether more than a maximum was held: without a cgroup, what processes hold together is known between bounds.
fn held_around(max: Bytes, account: &RunAccount) -> Option<String> {
    let held = account.tree_held_at_least_bytes.zip(account.tree_held_at_most_bytes)?;
    let floor = account.floor_bytes.zip(account.floor_at_most_bytes);
    let is_open = |(least, most): &(u64, u64)| *least <= max.0 && max.0 < *most;
    let told = |(least, most), what: &str| {
        format!(
            "its processes held between {} and {} together{what}, and the maximum is {max}; where a cgroup counts its memory, the peak is \
             known: see `bursar doctor`",
            Bytes(least),
            Bytes(most)
        )
    };
    let bounds = Some(held).filter(is_open).map(|held| told(held, ""));
    let of_floor = || floor.filter(is_open).map(|floor| told(floor, " that cannot be reclaimed"));
    bounds.or_else(of_floor).filter(|_| account.peak_charge_bytes.is_none())
}

/// What several processes held together at most, bytes, where that is clearly more than what the largest had and no cgroup counted it.
fn held_by_several(account: &RunAccount) -> Option<u64> {
    let largest = account.app_max_rss_bytes.filter(|_| account.peak_charge_bytes.is_none())?;
    account.tree_held_at_most_bytes.filter(|most| *most > largest / 20 * 21)
}

impl<'a> Comparison<'a> {
    /// `runs`: how many there are, if no more are made.
    fn new(options: &Check, header: &Header, baseline: Option<&'a Set>, runs: Option<usize>) -> Comparison<'a> {
        let is_named = !options.figures.is_empty();
        let or = |default: &[Figure]| if is_named { options.figures.clone() } else { default.to_vec() };
        let baseline_runs: Runs = baseline.into_iter().flat_map(Set::runs).cloned().collect();
        let mut unknown = None;
        let mut growth = Vec::new();
        for figure in baseline.map(|_| or(&Figure::OF_GROWTH)).unwrap_or_default() {
            match values(figure, &baseline_runs) {
                Some(values) => growth.push((figure, values, options.tolerance.unwrap_or(figure.tolerance()))),
                None if is_named => unknown = Some(format!("{} of the baseline is unknown", figure.name())),
                None => {}
            }
        }
        let of_max = or(&[Figure::Floor, Figure::AppMaxRss]).into_iter().filter(|figure| figure.is_bytes());
        let max = options.max.map(|max| (of_max.collect::<Vec<Figure>>(), max));
        let most = runs.map_or(options.runs, |runs| runs as u32);
        let mut notes = baseline.map(|baseline| differences(baseline.header(), header)).unwrap_or_default();
        if let Some((set, (file, why))) = baseline.and_then(|set| Some((set, set.left_out.first()?))) {
            let count = set.left_out.len();
            notes.push(format!("{count} records of the baseline are left out, such as {}: {why}", file.display()));
        }
        let judge = Judge::new(max, growth, most, runs.is_some());
        let (checked, has_looked, max) = (Vec::new(), false, options.max);
        Comparison { baseline, baseline_runs, judge, is_named, max, checked, unknown, notes, has_looked }
    }

    /// Looks at all runs; the number of runs until the next look, `None` if it is decided.
    fn look(&mut self, runs: &Runs) -> anyhow::Result<Option<u32>> {
        if !std::mem::replace(&mut self.has_looked, true) {
            let forgotten = self.judge.forget_unknown(runs, self.is_named);
            let doubt = runs.iter().flat_map(|(_, account)| &account.doubts).find(|doubt| doubt.voids);
            let why = doubt.map_or(String::new(), |doubt| format!(": {}", doubt.sentence));
            if let Some(figure) = forgotten {
                self.unknown = Some(format!("{} is unknown here{why}", figure.name()));
            }
            if self.judge.is_empty() {
                let between = self.max.and_then(|max| runs.iter().find_map(|(_, account)| held_around(max, account)));
                self.unknown.get_or_insert_with(|| between.unwrap_or(format!("no figure is known of the runs{why}")));
            }
        }
        if self.unknown.is_some() {
            return Ok(None);
        }
        match self.judge.look(runs) {
            Ok((checked, next)) => {
                self.unknown = undecided(&checked, self.is_named, runs, &self.baseline_runs);
                if self.unknown.is_some() {
                    return Ok(None);
                }
                self.checked = checked;
                Ok(next)
            }
            Err(Unknown(figure)) => {
                self.unknown = Some(format!("{} is unknown in more than half of the runs", figure.name()));
                Ok(None)
            }
        }
    }

    fn answer(self, header: &Header, runs: &Runs) -> Answer {
        let decides = |figure: Figure| self.checked.iter().any(|checked| checked.figure == figure);
        let mean = |figure: Figure, runs: &Runs| {
            let values = values(figure, runs)?;
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let shown = Figure::ALL.into_iter().filter(|figure| !decides(*figure)).filter_map(|figure| {
            Some(Shown { figure, value: mean(figure, runs)?, baseline: mean(figure, &self.baseline_runs) })
        });
        let shown = shown.collect();
        let mut notes = self.notes;
        // Cached files are missing from the peak charge alone.
        let matters = |doubt: &&model::Doubt| {
            let is_reason = self.unknown.as_ref().is_some_and(|why| why.contains(&doubt.sentence));
            !is_reason && !doubt.voids && (doubt.kind != DoubtKind::CachedBefore || decides(Figure::PeakCharge))
        };
        for doubt in runs.iter().flat_map(|(_, account)| &account.doubts).filter(matters) {
            let note = format!("Doubt: {}.", doubt.sentence);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let together = self.max.and_then(|_| runs.iter().filter_map(|(_, account)| held_by_several(account)).max());
        Answer {
            command: header.command.clone(),
            checked: self.checked,
            shown,
            runs: runs.len(),
            baseline_runs: self.baseline.map_or(0, |set| set.runs().count()),
            seconds: runs.iter().map(|(run, _)| run.wall_seconds).sum(),
            together_bytes: together,
            notes,
            unknown: self.unknown,
        }
    }
}

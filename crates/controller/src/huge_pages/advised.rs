//! Runs of a command with advice from bursar's library inside its processes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use advise::stats::{LeftAlone, ProcessStats};
use advise::{HUGE_BYTES, Plan, Profile, State};
use linux::thp;
use model::{Advice, AdviceFigures, Bytes, Explained, Target};
use provision::manage;
use provision::sentences::{copied, from_pool, too_small, unwritten};
use provision::state::Directory;
use provision::stats::Figures;
use report::seconds;
use schemars::JsonSchema;
use serde::Serialize;
use session::inside::{self, Inside};
use session::launch::Launcher;
use session::rank::Rank;
use session::serving::{self, Serving};
use session::spool::PerhapsSpool;
use session::status::Status;
use session::unseen::Purpose;

use super::costs;
use super::kept::Kept;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The profile of the program's memory.
    pub profile: Profile,
    /// The pool that memory is taken from.
    pub pool: Option<String>,
    /// At most this much memory becomes huge in each process.
    pub huge_pages: Option<Bytes>,
    /// Path of the record of decisions; each rank has its own.
    pub record: Option<PathBuf>,
}

/// The result of a run.
pub struct Ran {
    /// The rank that ran, if its launcher is not below bursar.
    pub rank: Option<Rank>,
    /// Why the command ran without bursar's library, as a sentence.
    pub without: Option<String>,
    inside: Inside,
    processes: Vec<ProcessStats>,
    /// Notes on files of its processes that could not be read, as sentences.
    notes: Vec<String>,
    figures: AdviceFigures,
    pooled: Option<Pooled>,
    kept: Option<Kept>,
}

/// The contents of `--stats`.
#[derive(JsonSchema, Serialize)]
pub struct Stats<'a> {
    #[serde(flatten)]
    figures: &'a AdviceFigures,
    exit_status: i32,
    wall_seconds: f64,
    before_exec_seconds: f64,
    page_faults: Option<u64>,
    /// Figures of the pool; null if none was asked for.
    pool: Option<&'a Pooled>,
    processes: &'a [ProcessStats],
    /// The last decisions of each process.
    explained: Vec<&'a Explained>,
}

/// Memory served from a pool.
#[derive(JsonSchema, Serialize)]
struct Pooled {
    name: String,
    #[serde(flatten)]
    figures: Figures,
    zeroing_cpu_seconds: Option<f64>,
}

/// Sums over all processes. Memory from a pool counts as anonymous and huge.
fn figures(processes: &[ProcessStats], pooled: Option<&Pooled>) -> AdviceFigures {
    // Saturating, because a faulty process may write any number.
    let sum = |of: fn(&ProcessStats) -> u64| processes.iter().map(of).fold(0, u64::saturating_add);
    let pool_bytes = pooled.map_or(0, |pooled| pooled.figures.pool_bytes_peak);
    let huge = sum(|process| process.huge_bytes_peak).saturating_add(pool_bytes);
    let anonymous = sum(|process| process.anonymous_bytes_peak).saturating_add(pool_bytes);
    AdviceFigures {
        huge_share: (anonymous > 0).then(|| huge as f64 / anonymous as f64),
        promoted: sum(|process| process.promoted),
        demoted: sum(|process| process.demoted),
        populated_bytes: sum(|process| process.populated_bytes),
        decisions: sum(|process| process.decisions),
        cpu_seconds: processes
            .iter()
            .map(|process| process.cpu_seconds)
            .chain(pooled.and_then(|pooled| pooled.zeroing_cpu_seconds))
            .fold(0.0, |sum, more| sum + more),
    }
}

/// Runs the command to its end.
///
/// # Errors
/// A sentence if the pool does not exist, if the command cannot be started, or if the record cannot be created.
pub fn run(options: &Options, begun: Instant) -> anyhow::Result<Ran> {
    let pre_zeroed = options.pool.as_deref().map(free_pages).transpose()?.unwrap_or(0);
    let rank = Rank::find().filter(|_| Launcher::of(&options.command).is_none());
    let keep = |path| Kept::begin(&inside::of_rank(path, rank.as_ref()), &options.command, Target::Command);
    let kept = options.record.as_deref().map(keep).transpose()?;
    let folder = PerhapsSpool::create("bursar-advice-");
    let state = State { pre_zeroed, ..costs::state() };
    let costs = costs::calibrated(costs::BEFORE_A_RUN);
    let plan = match options.huge_pages {
        Some(Bytes(most)) => Plan::within(most / HUGE_BYTES, &options.profile, &costs, &state),
        None => Plan::of(&options.profile, &costs, &state),
    };
    folder.give("plan", &plan.to_string())?;
    let mut variables = vec![("BURSAR_ADVICE".to_string(), folder.path().into())];
    let serving = options.pool.as_deref().map(|pool| Serving::start(Some(pool)));
    variables.extend(serving.iter().flat_map(Serving::variables));
    let inside = inside::run(&options.command, Purpose::Advise, variables, &folder, begun, None)?;
    let served = serving.map(Serving::end);
    let (processes, mut notes) = inside::read_files(folder.path(), "advice.", ProcessStats::read);
    notes.extend(served.iter().flat_map(|served| served.notes.clone()));
    let has_stats = !processes.is_empty() || served.as_ref().is_some_and(|served| !served.stats.is_empty());
    let without = inside.why_without(&options.command, Purpose::Advise, has_stats);
    let pooled = options.pool.as_deref().zip(served).map(|(name, served)| Pooled {
        name: name.into(),
        figures: Figures::sum(&served.stats),
        zeroing_cpu_seconds: served.zeroing_cpu_seconds,
    });
    let figures = figures(&processes, pooled.as_ref());
    Ok(Ran { rank, without, inside, processes, notes, figures, pooled, kept })
}

/// Free huge pages of a pool.
fn free_pages(name: &str) -> anyhow::Result<u64> {
    serving::check(name)?;
    let pool = manage::status(&Directory::of(name)?)?.whole;
    // Without the right to ask the broker, assume that all pages are free: the pool may be used all the same.
    Ok(pool.free_bytes.unwrap_or(pool.bytes) / HUGE_BYTES)
}

impl Ran {
    /// The exit status of bursar.
    pub fn status(&self) -> Status {
        self.inside.status()
    }

    /// One line for people, and more lines about anything unexpected.
    pub fn summary(&self) -> Vec<String> {
        let Ran { inside, figures, processes, .. } = self;
        let pooled = self.pooled.as_ref();
        let run = match inside.page_faults {
            Some(faults) => format!("{faults} page faults in {}", seconds(inside.wall_seconds)),
            None => format!("ran for {}", seconds(inside.wall_seconds)),
        };
        let advised = processes.iter().map(|process| process.advised_bytes).fold(0, u64::saturating_add);
        let mut did = Vec::new();
        if let Some(Pooled { name, figures, .. }) = pooled.filter(|pooled| pooled.figures.served_bytes > 0) {
            did.push(from_pool(name, figures));
        }
        if figures.populated_bytes > 0 {
            let helpers: f64 = processes.iter().map(|process| process.cpu_seconds).sum();
            let populated = Bytes(figures.populated_bytes);
            did.push(format!("{populated} populated ahead in {} of a helper's time", seconds(helpers)));
        }
        // The kernel ignores this advice then.
        let is_never = thp::mode().as_deref() == Some("never");
        if advised > 0 && !is_never {
            did.push(format!("{} advised to be huge at first touch", Bytes(advised)));
        }
        let share = figures.huge_share.map_or("an unknown share".into(), |share| format!("{:.0} %", 100.0 * share));
        let mut lines = vec![match did.is_empty() {
            true => format!("nothing was advised; {run}"),
            false => format!("{}, {share} of memory huge at most; {run}", did.join(", ")),
        }];
        if is_never {
            let setting = thp::setting(None);
            lines.push(format!("{} is never: only memory that was populated ahead becomes huge", setting.display()));
        }
        lines.extend(pooled.and_then(|pooled| too_small(&pooled.figures)));
        lines.extend(pooled.and_then(|pooled| unwritten(&pooled.figures)));
        lines.extend(pooled.and_then(|pooled| copied(&pooled.figures)));
        let sum = |of: fn(&ProcessStats) -> u64| processes.iter().map(of).fold(0, u64::saturating_add);
        let (matched, unmatched, others) = (
            sum(|process| process.rules_matched),
            sum(|process| process.rules_unmatched),
            sum(|process| process.rules_of_others),
        );
        if matched == 0 && unmatched > 0 {
            lines.push("no range of the profile was met: the program may do something else this time".into());
        } else if unmatched > 0 {
            lines.push(format!("{unmatched} of {} ranges of the profile were not met", matched + unmatched));
        }
        if others > 0 && matched + unmatched == 0 {
            lines.push(format!(
                "the profile is of another program, or of another build: its {others} ranges were ignored; \
             bursar advise profile makes one of this build"
            ));
        }
        let alone = |why| processes.iter().filter(|process| process.left_alone == Some(why)).count();
        let kinds = [
            (LeftAlone::Sanitizer, "built with a sanitizer, or in valgrind"),
            (LeftAlone::Libc, "with an unsupported libc"),
            (LeftAlone::Disabled, "that disabled huge pages for itself"),
        ];
        let alone = kinds.map(|(why, what)| (alone(why), what)).into_iter().filter(|(count, _)| *count > 0);
        lines.extend(alone.map(|(count, what)| format!("not advised: {count} process(es) {what}")));
        lines.extend(self.notes.iter().cloned());
        lines
    }

    /// The last decisions of each process.
    fn explained(&self) -> Vec<&Explained> {
        self.processes.iter().flat_map(|process| &process.last).map(|decision| &decision.explained).collect()
    }

    /// Completes the record, if one is written.
    ///
    /// # Errors
    /// A sentence if it cannot be written.
    pub fn keep(&mut self) -> anyhow::Result<()> {
        let Some(kept) = self.kept.take() else { return Ok(()) };
        let explained = self.explained().into_iter().cloned().collect();
        let advice = Advice { run: 0, figures: self.figures.clone(), explained };
        kept.end(self.inside.exit, self.inside.wall_seconds, advice)
    }

    /// The contents of `--stats`.
    pub fn stats(&self) -> Stats<'_> {
        Stats {
            figures: &self.figures,
            exit_status: self.status().code(),
            wall_seconds: self.inside.wall_seconds,
            before_exec_seconds: self.inside.before_exec_seconds,
            page_faults: self.inside.page_faults,
            pool: self.pooled.as_ref(),
            explained: self.explained(),
            processes: &self.processes,
        }
    }
}

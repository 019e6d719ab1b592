//! `bursar advise run`: a command whose memory is advised about from within.

use std::time::Instant;

use ::provision::manage;
use ::provision::sentences::{copied, from_pool, too_small, unwritten};
use ::provision::state::Directory;
use ::provision::told::Figures;
use advise::told::{LeftAlone, Told};
use advise::{HUGE_BYTES, Plan, Profile, State};
use controller::huge_pages::costs;
use model::{Advice, AdviceFigures, Bytes, Explained, Target};
use report::seconds;
use serde::Serialize;
use session::input::{name, read};
use session::inside::{self, Inside};
use session::launch::Launcher;
use session::rank::Rank;
use session::say::tell;
use session::serving::{self, Serving};
use session::spool::PerhapsSpool;
use session::status::{OWN_FAILURE, Status};
use session::unseen::Purpose;

use super::check::no_profile;
use super::kept::Kept;
use crate::cli::advise::Run;
use crate::results::{check_json, write_json};

/// What `--stats` writes.
#[derive(Serialize)]
struct Stats<'a> {
    #[serde(flatten)]
    figures: &'a AdviceFigures,
    exit_status: i32,
    wall_seconds: f64,
    before_exec_seconds: f64,
    page_faults: Option<u64>,
    /// What came from a pool; none was asked for: null.
    pool: Option<Pooled<'a>>,
    processes: &'a [Told],
    /// By process, the last of each.
    explained: Vec<&'a Explained>,
}

/// What a pool served.
#[derive(Serialize)]
struct Pooled<'a> {
    name: &'a str,
    #[serde(flatten)]
    figures: Figures,
    zeroing_cpu_seconds: Option<f64>,
}

/// Of all processes together: every figure is the sum. What a pool serves is anonymous, and huge.
fn figures(told: &[Told], pooled: Option<&Pooled>) -> AdviceFigures {
    // What a process that goes wrong tells may be any number.
    let sum = |of: fn(&Told) -> u64| told.iter().map(of).fold(0, u64::saturating_add);
    let pool_bytes = pooled.map_or(0, |pooled| pooled.figures.pool_bytes_peak);
    let huge = sum(|told| told.huge_bytes_peak).saturating_add(pool_bytes);
    let anonymous = sum(|told| told.anonymous_bytes_peak).saturating_add(pool_bytes);
    AdviceFigures {
        huge_share: (anonymous > 0).then(|| huge as f64 / anonymous as f64),
        promoted: sum(|told| told.promoted),
        demoted: sum(|told| told.demoted),
        populated_bytes: sum(|told| told.populated_bytes),
        decisions: sum(|told| told.decisions),
        cpu_seconds: told
            .iter()
            .map(|told| told.cpu_seconds)
            .chain(pooled.and_then(|pooled| pooled.zeroing_cpu_seconds))
            .fold(0.0, |sum, more| sum + more),
    }
}

pub fn run(options: &Run) -> anyhow::Result<Status> {
    let begun = Instant::now();
    check_json(options.stats.as_deref())?;
    let profile = match &options.profile {
        None => Profile::default(),
        Some(path) => match Profile::parse(&read(path).map_err(no_profile)?) {
            Ok(profile) => profile,
            Err(malformed) => {
                malformed.0.iter().for_each(|wrong| tell!("bursar: {}: {wrong}", name(path)));
                return Ok(Status::of(OWN_FAILURE));
            }
        },
    };
    let pre_zeroed = options.pool.as_deref().map(free_pages).transpose()?.unwrap_or(0);
    let rank = Rank::find().filter(|_| Launcher::of(&options.command).is_none());
    let keep = |path| Kept::begin(&inside::of_rank(path, rank.as_ref()), &options.command, Target::Command);
    let kept = options.record.as_deref().map(keep).transpose()?;
    let folder = PerhapsSpool::create("bursar-advice-");
    let state = State { pre_zeroed, ..costs::state() };
    let costs = costs::calibrated(costs::ON_THE_WAY);
    let plan = match options.huge_pages {
        Some(Bytes(most)) => Plan::within(most / HUGE_BYTES, &profile, &costs, &state),
        None => Plan::of(&profile, &costs, &state),
    };
    folder.give("plan", &plan.to_string())?;
    let mut variables = vec![("BURSAR_ADVICE".to_string(), folder.path().into())];
    let serving = options.pool.as_deref().map(|pool| Serving::start(Some(pool)));
    variables.extend(serving.iter().flat_map(Serving::variables));
    let inside = inside::run(&options.command, Purpose::Advise, variables, &folder, begun, None)?;
    let served = serving.map(Serving::end);
    let (told, mut notes) = inside::told(folder.path(), "advice.", Told::read);
    notes.extend(served.iter().flat_map(|served| served.notes.clone()));
    let has_told = !told.is_empty() || served.as_ref().is_some_and(|served| !served.told.is_empty());
    let without = inside.why_without(&options.command, Purpose::Advise, has_told);
    let pooled = options.pool.as_deref().zip(served).map(|(name, served)| Pooled {
        name,
        figures: Figures::sum(&served.told),
        zeroing_cpu_seconds: served.zeroing_cpu_seconds,
    });
    let (figures, status) = (figures(&told, pooled.as_ref()), inside.status());
    let mut lines = Vec::new();
    if !options.quiet {
        lines = summary(&inside, &figures, &told, pooled.as_ref());
        lines.extend(notes);
    }
    let whose = rank.as_ref().map(|rank| format!("rank {}: ", rank.number)).unwrap_or_default();
    // A failure is no part of the summary.
    for line in lines.iter().chain(&without) {
        tell!("bursar: {whose}{line}");
    }
    let explained: Vec<&Explained> = told.iter().flat_map(|told| &told.last).map(|told| &told.explained).collect();
    if let Some(kept) = kept {
        let explained = explained.iter().map(|told| (*told).clone()).collect();
        kept.end(inside.exit, inside.wall_seconds, Advice { run: 0, figures: figures.clone(), explained })?;
    }
    if let Some(path) = &options.stats {
        let stats = Stats {
            figures: &figures,
            exit_status: status.code(),
            wall_seconds: inside.wall_seconds,
            before_exec_seconds: inside.before_exec_seconds,
            page_faults: inside.page_faults,
            pool: pooled,
            explained,
            processes: &told,
        };
        write_json(&inside::of_rank(path, rank.as_ref()), &stats)?;
    }
    Ok(status)
}

/// Huge pages of a pool that nobody has.
fn free_pages(name: &str) -> anyhow::Result<u64> {
    serving::check(name)?;
    let pool = manage::status(&Directory::of(name)?)?.whole;
    // Who may not ask the broker may take what there is all the same.
    Ok(pool.free_bytes.unwrap_or(pool.bytes) / HUGE_BYTES)
}

/// One line for people, and more where something was not as it was meant to be.
fn summary(inside: &Inside, figures: &AdviceFigures, told: &[Told], pooled: Option<&Pooled>) -> Vec<String> {
    let run = match inside.page_faults {
        Some(faults) => format!("{faults} page faults in {}", seconds(inside.wall_seconds)),
        None => format!("ran for {}", seconds(inside.wall_seconds)),
    };
    let advised = told.iter().map(|told| told.advised_bytes).fold(0, u64::saturating_add);
    let mut did = Vec::new();
    if let Some(Pooled { name, figures, .. }) = pooled.filter(|pooled| pooled.figures.served_bytes > 0) {
        did.push(from_pool(name, figures));
    }
    if figures.populated_bytes > 0 {
        let helpers: f64 = told.iter().map(|told| told.cpu_seconds).sum();
        let populated = Bytes(figures.populated_bytes);
        did.push(format!("{populated} populated ahead in {} of a helper's time", seconds(helpers)));
    }
    if advised > 0 {
        did.push(format!("{} advised to be huge at first touch", Bytes(advised)));
    }
    let share = figures.huge_share.map_or("an unknown share".into(), |share| format!("{:.0} %", 100.0 * share));
    let mut lines = vec![match did.is_empty() {
        true => format!("nothing was advised; {run}"),
        false => format!("{}, {share} of memory huge at most; {run}", did.join(", ")),
    }];
    lines.extend(pooled.and_then(|pooled| too_small(&pooled.figures)));
    lines.extend(pooled.and_then(|pooled| unwritten(&pooled.figures)));
    lines.extend(pooled.and_then(|pooled| copied(&pooled.figures)));
    let sum = |of: fn(&Told) -> u64| told.iter().map(of).fold(0, u64::saturating_add);
    let (matched, unmatched, others) =
        (sum(|told| told.rules_matched), sum(|told| told.rules_unmatched), sum(|told| told.rules_of_others));
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
    let alone = |why| told.iter().filter(|told| told.left_alone == Some(why)).count();
    let kinds = [
        (LeftAlone::Sanitizer, "built with a sanitizer, or in valgrind"),
        (LeftAlone::Libc, "with a libc that is not known"),
        (LeftAlone::Disabled, "that switched huge pages off for itself"),
    ];
    let alone = kinds.map(|(why, what)| (alone(why), what)).into_iter().filter(|(count, _)| *count > 0);
    lines.extend(alone.map(|(count, what)| format!("not advised: {count} process(es) {what}")));
    lines
}

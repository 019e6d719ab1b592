//! What huge pages are worth to each part of a command's memory, from scans of its accesses.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use advise::stats::ProcessStats;
use advise::touched::Touched;
use advise::{Costs, HUGE_BYTES, Observed, Plan, Profile, RegionSample, Trial};
use anyhow::anyhow;
use linux::own_numbers::OwnNumber;
use linux::perf::WalkCycles;
use model::Bytes;
use report::seconds;
use session::inside::{self, Inside};
use session::spool::PerhapsSpool;
use session::status::Status;
use session::unseen::Purpose;
use track::pages::Scope;
use track::regions::Regions;

use super::{NEEDS, Names, Trials, costs, walks};

/// Time between rounds of scans.
const INTERVAL: Duration = Duration::from_millis(250);
/// The most that scans may cost, as a share of one processor, including the cost to the program.
const SCAN_SHARE: f64 = 0.03;
/// The same after a fill phase, until most regions were scanned. With less, a large program has done half of its work
/// before it is known.
const SCAN_SHARE_AFTER_FILL: f64 = 0.1;
/// With fewer rounds, most regions were hardly scanned.
const MIN_ROUNDS: u32 = 4;
/// Number of trials reported, those with the highest predictions.
const MAX_REPORTED: usize = 3;
/// Regions in which all pages are counted in a round; each takes some tens of microseconds.
const MAX_COUNTED: usize = 128;

/// Results of the scans.
#[derive(Default)]
struct Scanned {
    /// Why accesses could not be scanned, or not to the end.
    blind: Option<anyhow::Error>,
    observed: Observed,
    rounds: u32,
    /// Estimated cost to the processes.
    disturbed_seconds: f64,
    /// Share of its cycles spent in page walks, if the processor counts them.
    walking: Option<f64>,
    /// Savings by huge pages as measured in trials.
    tried: Vec<Trial>,
    /// The most regions that were huge pages at one time; scans see little of these.
    huge: usize,
}

/// The result of profiling a run.
pub struct Profiled {
    /// What huge pages are worth to each part of its memory.
    pub profile: Profile,
    /// Why the command ran without bursar's library, as a sentence.
    pub without: Option<String>,
    scanned: Scanned,
    inside: Inside,
    /// Notes on files of its processes that could not be read, as sentences.
    notes: Vec<String>,
}

/// Runs the command to its end, and scans its memory meanwhile.
///
/// # Errors
/// A sentence if the command cannot be started or scanned.
pub fn profile(command: &[OsString], begun: Instant) -> anyhow::Result<Profiled> {
    let blind = linux::pages::available().err().map(anyhow::Error::new);
    // Predictions depend on the cost of page walks on this machine.
    let costs = costs::calibrated(if blind.is_none() { costs::ON_REQUEST } else { costs::BEFORE_A_RUN });
    let folder = PerhapsSpool::create("bursar-profile-");
    folder.give("plan", &Plan::observing(&costs).to_string())?;
    let variables = vec![("BURSAR_ADVICE".to_string(), folder.path().into())];
    let is_over = AtomicBool::new(false);
    let (begins, pid) = channel();
    let mut names = Names::default();
    let (inside, scanned) = thread::scope(|scope| {
        let see = || match blind {
            None => watch(pid, folder.path(), &costs, &is_over, &mut names),
            blind => Scanned { blind, ..Scanned::default() },
        };
        let watching = match thread::Builder::new().spawn_scoped(scope, see) {
            Ok(watching) => watching,
            Err(error) => {
                let refused = anyhow::Error::new(error).context("cannot start a thread to scan the command's memory");
                return (Err(refused), Ok(Scanned::default()));
            }
        };
        let mut begins = Some(begins);
        let mut observe = |pid| {
            // Without scans nobody receives this.
            let _ = begins.take().map(|begins| begins.send(pid));
        };
        let inside = inside::run(command, Purpose::Advise, variables, &folder, begun, Some(&mut observe));
        is_over.store(true, Ordering::Relaxed);
        drop(begins);
        (inside, watching.join().map_err(|_| anyhow!("the thread that scans the command's memory failed")))
    });
    let (inside, mut scanned) = (inside?, scanned?);
    let (touched, notes) = inside::read_files(folder.path(), "touched.", Touched::read);
    for process in touched.iter().flatten() {
        let own = OwnNumber { pid: process.pid, namespace: process.namespace, start_ticks: process.start };
        let Some(named) = names.program(own, &process.executable) else { continue };
        let program = (named.program, named.build_id.as_deref());
        for region in &process.regions {
            scanned.observed.touched(named.number, program, &region.mapping, region.offset, region.present_pages);
        }
    }
    if let Some(share) = scanned.walking {
        scanned.observed.counted(share * inside.user_seconds * 1e9);
    }
    let named = command.join(&OsString::from(" "));
    let profile = scanned.observed.profile(Some(&named.to_string_lossy()));
    let (processes, troubles) = inside::read_files(folder.path(), "advice.", ProcessStats::read);
    let without = inside.why_without(command, Purpose::Advise, !processes.is_empty());
    Ok(Profiled { profile, without, scanned, inside, notes: notes.into_iter().chain(troubles).collect() })
}

/// Scans the command, whose PID arrives through `pid`, until it is over.
fn watch(pid: Receiver<i32>, folder: &Path, costs: &Costs, is_over: &AtomicBool, names: &mut Names) -> Scanned {
    let mut scanned = Scanned::default();
    let Ok(pid) = pid.recv() else { return scanned };
    let is_over = || is_over.load(Ordering::Relaxed);
    let mut regions = match Regions::of(Scope::Tree(pid), SCAN_SHARE) {
        Ok(regions) => regions,
        // It has ended meanwhile.
        Err(track::regions::Error::Target(track::pages::Error::NoProcess(_) | track::pages::Error::Empty(_))) => {
            return scanned;
        }
        Err(error) => return Scanned { blind: Some(error.into()), ..scanned },
    };
    let mut walk_cycles = WalkCycles::of(pid);
    let mut trials = Trials::default();
    let (mut turn, mut last) = (0, Instant::now());
    while !is_over() {
        match regions.round(INTERVAL, is_over) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                scanned.blind = Some(error.into());
                break;
            }
        }
        let (processes, _) = inside::read_files(folder, "advice.", ProcessStats::read);
        names.observe(regions.processes(), &processes);
        let known = regions.known(costs.last_cache_bytes);
        let long = last.elapsed().as_secs_f64();
        last = Instant::now();
        scanned.rounds += 1;
        scanned.huge = scanned.huge.max(known.iter().filter(|region| region.is_huge).count());
        for (number, region) in known.iter().enumerate().filter(|(_, region)| !region.is_huge) {
            let Some(process) = names.process(region.pid) else { continue };
            let Some((mapping, offset)) = names.of(region.pid, region.start) else { continue };
            // Others each round: the sample misjudges sparse regions.
            let is_next = (number + known.len() - turn % known.len()) % known.len() < MAX_COUNTED;
            let counted = if is_next { regions.present(region.pid, region.start) } else { None };
            let sample = RegionSample {
                walks_ns: region.misses_per_second * long * walks(region).each_ns(costs),
                present_pages: counted.map_or(region.present_pages, |(present, _)| present),
                is_counted: counted.is_some(),
            };
            let program = (process.program, process.build_id.as_deref());
            scanned.observed.add(process.number, program, mapping, offset, sample);
        }
        turn += MAX_COUNTED;
        let is_behind = regions.is_behind();
        regions.set_overhead(if is_behind { SCAN_SHARE_AFTER_FILL } else { SCAN_SHARE });
        // Until the memory is scanned, it is not known which regions save most.
        let tried = if is_behind { None } else { trials.next(&mut regions, costs, &is_over) };
        if let Some(tried) = tried {
            for region in &tried.regions {
                let Some(process) = names.process(tried.pid) else { break };
                let Some((mapping, offset)) = names.of(tried.pid, *region) else { continue };
                scanned.observed.tried(process.number, mapping, offset, tried.trial.factor());
            }
            scanned.tried.push(tried.trial);
        }
    }
    scanned.walking = walk_cycles.as_mut().and_then(WalkCycles::share);
    scanned.disturbed_seconds = regions.taken_seconds();
    scanned
}

impl Profiled {
    /// The exit status of bursar.
    pub fn status(&self) -> Status {
        self.inside.status()
    }

    /// Lines for people. `output`: path of the profile.
    pub fn summary(&self, output: &Path) -> Vec<String> {
        let Profiled { profile, scanned, inside, .. } = self;
        let ranges = || profile.programs.iter().flat_map(|program| &program.ranges);
        let regions = |range: &advise::ProfiledRange| (range.to.unwrap_or(range.from) - range.from) / HUGE_BYTES;
        let bytes = ranges().map(|range| regions(range) * HUGE_BYTES).sum();
        let of_all = |of: &dyn Fn(&advise::ProfiledRange) -> f64| -> f64 {
            ranges().map(|range| of(range) * regions(range) as f64).sum()
        };
        let touched = of_all(&|range| range.touched.unwrap_or_default()) * HUGE_BYTES as f64;
        let all = format!(
            "{} of memory in {} ranges, of which {} are touched",
            Bytes(bytes),
            ranges().count(),
            Bytes(touched as u64)
        );
        let saved = of_all(&|range| range.huge_ns.unwrap_or_default() as f64);
        let scans = format!(
            "by {} scans that took it {}; huge pages save {} of page walks in a run of {}",
            scanned.rounds,
            seconds(scanned.disturbed_seconds),
            seconds(saved / 1e9),
            seconds(inside.wall_seconds),
        );
        let mut lines = match &scanned.blind {
            None => vec![format!("{all}, {scans}")],
            Some(why) => {
                let what = if scanned.rounds > 0 { format!("{all}, {scans}") } else { all };
                vec![what, format!("only what is touched was seen, not what is accessed often; that {NEEDS} ({why:#})")]
            }
        };
        let hottest = Bytes(profile.huge_pages_that_save(0.9) * HUGE_BYTES);
        if hottest > Bytes(0) {
            let mib = hottest.mib_ceil();
            lines.push(format!(
                "huge pages for the hottest {hottest} save nine tenths of that: --huge-pages {mib}M limits huge pages to these"
            ));
        }
        if let Some(share) = scanned.walking {
            lines.push(format!(
                "page tables were walked in {:.1} % of its cycles, by the processor's count",
                100.0 * share
            ));
        }
        let mut tried: Vec<&Trial> = scanned.tried.iter().collect();
        tried.sort_by(|one, other| other.predicted.total_cmp(&one.predicted));
        lines.extend(tried.iter().take(MAX_REPORTED).map(|trial| {
        format!(
            "tried while it ran: huge pages for {} of it saved {:.1} % of its time, with a standard error of {:.1}; {:.1} % was predicted",
            Bytes(trial.bytes),
            100.0 * trial.middle(),
            100.0 * trial.error(),
            100.0 * trial.predicted,
        )
    }));
        if tried.len() > MAX_REPORTED {
            lines
                .push(format!("{} more trials tried other memory, with lower predictions", tried.len() - MAX_REPORTED));
        }
        if scanned.huge > 0 {
            let huge = Bytes(scanned.huge as u64 * HUGE_BYTES);
            lines.push(format!("{huge} were huge pages already; scans cannot measure what they are worth"));
        }
        if scanned.blind.is_none() && scanned.rounds < MIN_ROUNDS {
            lines.push("it ended too soon to be seen well: give it work for some seconds".into());
        } else if scanned.blind.is_some() && bytes == 0 {
            lines.push("no memory was reported: it has no mapping of 1 MiB or more, nor such a heap or .bss, or was ended by force within a quarter of a second".into());
        } else if bytes == 0 {
            lines
                .push("no mapping of 4 MiB or more was seen, nor a heap or .bss of 2: there is nothing to know".into());
        }
        if bytes > 0 && output != Path::new("-") {
            let path = output.display();
            lines.push(format!("{path} is for: bursar advise run --profile {path} -- COMMAND"));
        }
        lines.extend(self.notes.iter().cloned());
        lines
    }
}

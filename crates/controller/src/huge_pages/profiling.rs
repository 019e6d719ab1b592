//! What huge pages are worth to each part of a command's memory, by which parts it accesses.

use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use advise::told::Told;
use advise::touched::Touched;
use advise::{Costs, HUGE_BYTES, Observed, Plan, Profile, Sight, Trial};
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

/// From one round of looking to the next.
const INTERVAL: Duration = Duration::from_millis(250);
/// The most that looking may take of one processor, what it takes the program included.
const LOOKING: f64 = 0.03;
/// After memory was filled, until most of it was looked at: by less a large program has done half of its work before it is known.
const LOOKING_ANEW: f64 = 0.1;
/// Fewer rounds have hardly met each region.
const LEAST_ROUNDS: u32 = 4;
/// Trials that are told, of those of which most was foretold.
const MOST_TOLD: usize = 3;
/// Regions of which all pages are asked whether they are there, in a round: each takes some tens of microseconds.
const MOST_COUNTED: usize = 128;

/// What looking has come to.
#[derive(Default)]
struct Seen {
    /// Why it could not be seen what is accessed, or not to the end.
    blind: Option<anyhow::Error>,
    observed: Observed,
    rounds: u32,
    /// What it took the processes, estimated.
    disturbed_seconds: f64,
    /// The share of its cycles in which page tables were walked, where the processor counts them.
    walking: Option<f64>,
    /// What huge pages were seen to save.
    tried: Vec<Trial>,
    /// Regions that were huge pages, of which little can be seen, at most at a time.
    huge: usize,
}

/// What a run of a command showed.
pub struct Profiled {
    /// What huge pages are worth to each part of its memory.
    pub profile: Profile,
    /// Why the command ran without bursar's library, as a sentence.
    pub without: Option<String>,
    seen: Seen,
    inside: Inside,
    /// Files of its processes that could not be read, as sentences.
    notes: Vec<String>,
}

/// Runs the command to its end, and looks at its memory meanwhile.
///
/// # Errors
/// A sentence if the command cannot be started or looked at.
pub fn profile(command: &[OsString], begun: Instant) -> anyhow::Result<Profiled> {
    let blind = linux::pages::available().err().map(anyhow::Error::new);
    // What it finds is by what walks cost here.
    let costs = costs::calibrated(if blind.is_none() { costs::ASKED } else { costs::ON_THE_WAY });
    let folder = PerhapsSpool::create("bursar-profile-");
    folder.give("plan", &Plan::observing(&costs).to_string())?;
    let variables = vec![("BURSAR_ADVICE".to_string(), folder.path().into())];
    let is_over = AtomicBool::new(false);
    let (begins, pid) = channel();
    let mut names = Names::default();
    let (inside, seen) = thread::scope(|scope| {
        let see = || match blind {
            None => watch(pid, folder.path(), &costs, &is_over, &mut names),
            blind => Seen { blind, ..Seen::default() },
        };
        let watching = match thread::Builder::new().spawn_scoped(scope, see) {
            Ok(watching) => watching,
            Err(error) => {
                let refused = anyhow::Error::new(error).context("no thread to look at the command's memory can be had");
                return (Err(refused), Ok(Seen::default()));
            }
        };
        let mut begins = Some(begins);
        let mut look = |pid| {
            // Nobody listens any more where nothing can be seen.
            let _ = begins.take().map(|begins| begins.send(pid));
        };
        let inside = inside::run(command, Purpose::Advise, variables, &folder, begun, Some(&mut look));
        is_over.store(true, Ordering::Relaxed);
        drop(begins);
        (inside, watching.join().map_err(|_| anyhow!("looking at the command's memory failed")))
    });
    let (inside, mut seen) = (inside?, seen?);
    let (touched, notes) = inside::told(folder.path(), "touched.", Touched::read);
    for process in touched.iter().flatten() {
        let own = OwnNumber { pid: process.pid, namespace: process.namespace, start_ticks: process.start };
        let Some(named) = names.program(own, &process.executable) else { continue };
        let program = (named.program, named.build_id.as_deref());
        for region in &process.regions {
            seen.observed.touched(named.number, program, &region.mapping, region.offset, region.present_pages);
        }
    }
    if let Some(share) = seen.walking {
        seen.observed.counted(share * inside.user_seconds * 1e9);
    }
    let named = command.join(&OsString::from(" "));
    let profile = seen.observed.profile(Some(&named.to_string_lossy()));
    let (told, troubles) = inside::told(folder.path(), "advice.", Told::read);
    let without = inside.why_without(command, Purpose::Advise, !told.is_empty());
    Ok(Profiled { profile, without, seen, inside, notes: notes.into_iter().chain(troubles).collect() })
}

/// Looks at the command, whose PID comes, until it is over.
fn watch(pid: Receiver<i32>, folder: &Path, costs: &Costs, is_over: &AtomicBool, names: &mut Names) -> Seen {
    let mut seen = Seen::default();
    let Ok(pid) = pid.recv() else { return seen };
    let is_over = || is_over.load(Ordering::Relaxed);
    let mut regions = match Regions::of(Scope::Tree(pid), LOOKING) {
        Ok(regions) => regions,
        // It has ended meanwhile.
        Err(track::regions::Error::Target(track::pages::Error::NoProcess(_) | track::pages::Error::Empty(_))) => {
            return seen;
        }
        Err(error) => return Seen { blind: Some(error.into()), ..seen },
    };
    let mut walk_cycles = WalkCycles::of(pid);
    let mut trials = Trials::default();
    let (mut turn, mut last) = (0, Instant::now());
    while !is_over() {
        match regions.round(INTERVAL, is_over) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                seen.blind = Some(error.into());
                break;
            }
        }
        let (told, _) = inside::told(folder, "advice.", Told::read);
        names.look(regions.processes(), &told);
        let known = regions.known(costs.last_cache_bytes);
        let long = last.elapsed().as_secs_f64();
        last = Instant::now();
        seen.rounds += 1;
        seen.huge = seen.huge.max(known.iter().filter(|region| region.is_huge).count());
        for (number, region) in known.iter().enumerate().filter(|(_, region)| !region.is_huge) {
            let Some(process) = names.process(region.pid) else { continue };
            let Some((mapping, offset)) = names.of(region.pid, region.start) else { continue };
            // Others each round; a sample tells too much or too little of what is sparse.
            let is_next = (number + known.len() - turn % known.len()) % known.len() < MOST_COUNTED;
            let counted = if is_next { regions.present(region.pid, region.start) } else { None };
            let sight = Sight {
                walks_ns: region.misses_per_second * long * walks(region).each_ns(costs),
                present_pages: counted.map_or(region.present_pages, |(present, _)| present),
                is_counted: counted.is_some(),
            };
            let program = (process.program, process.build_id.as_deref());
            seen.observed.add(process.number, program, mapping, offset, sight);
        }
        turn += MOST_COUNTED;
        let is_behind = regions.is_behind();
        regions.look_at_most(if is_behind { LOOKING_ANEW } else { LOOKING });
        // Before, it is not known what saves most.
        let tried = if is_behind { None } else { trials.next(&mut regions, costs, &is_over) };
        if let Some(tried) = tried {
            for region in &tried.regions {
                let Some(process) = names.process(tried.pid) else { break };
                let Some((mapping, offset)) = names.of(tried.pid, *region) else { continue };
                seen.observed.tried(process.number, mapping, offset, tried.trial.factor());
            }
            seen.tried.push(tried.trial);
        }
    }
    seen.walking = walk_cycles.as_mut().and_then(WalkCycles::share);
    seen.disturbed_seconds = regions.taken_seconds();
    seen
}

impl Profiled {
    /// What bursar ends with.
    pub fn status(&self) -> Status {
        self.inside.status()
    }

    /// In lines for people. `output`: where the profile went.
    pub fn summary(&self, output: &Path) -> Vec<String> {
        let Profiled { profile, seen, inside, .. } = self;
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
        let looking = format!(
            "by {} scans that took it {}; huge pages save {} of page walks in a run of {}",
            seen.rounds,
            seconds(seen.disturbed_seconds),
            seconds(saved / 1e9),
            seconds(inside.wall_seconds),
        );
        let mut lines = match &seen.blind {
            None => vec![format!("{all}, {looking}")],
            Some(why) => {
                let what = if seen.rounds > 0 { format!("{all}, {looking}") } else { all };
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
        if let Some(share) = seen.walking {
            lines.push(format!(
                "page tables were walked in {:.1} % of its cycles, by the processor's count",
                100.0 * share
            ));
        }
        let mut tried: Vec<&Trial> = seen.tried.iter().collect();
        tried.sort_by(|one, other| other.foretold.total_cmp(&one.foretold));
        lines.extend(tried.iter().take(MOST_TOLD).map(|trial| {
        format!(
            "tried while it ran: huge pages for {} of it saved {:.1} % of its time, with a standard error of {:.1}; {:.1} % was predicted",
            Bytes(trial.bytes),
            100.0 * trial.middle(),
            100.0 * trial.error(),
            100.0 * trial.foretold,
        )
    }));
        if tried.len() > MOST_TOLD {
            lines.push(format!(
                "so was other memory, of which less was predicted, in {} more trials",
                tried.len() - MOST_TOLD
            ));
        }
        if seen.huge > 0 {
            let huge = Bytes(seen.huge as u64 * HUGE_BYTES);
            lines.push(format!("{huge} were huge pages already: what they are worth is not seen"));
        }
        if seen.blind.is_none() && seen.rounds < LEAST_ROUNDS {
            lines.push("it ended too soon to be seen well: give it work for some seconds".into());
        } else if seen.blind.is_some() && bytes == 0 {
            lines.push("nothing was told of its memory: it has no mapping of 1 MiB or more, nor such a heap or .bss, or was ended by force within a quarter of a second".into());
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

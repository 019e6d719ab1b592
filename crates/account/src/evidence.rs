//! Whether the figures of a run are of the job: decided before an answer is printed, from facts that the run showed.

use model::{Bytes, Doubt, DoubtKind, EmulatedLimit, Evidence, FileDemand, Header, Named, Observation, RunRole, names};

use crate::clients::{self, Use};
use crate::moment::peak;
use crate::{held, is_attached, peaks, sampled_charge, shares_cgroup};

/// What is smaller is never a reason to doubt: the C library, a shell.
const LEAST_BYTES: u64 = 2 << 20;
/// Nor is less than this part of what the job had.
const LEAST_PART: u64 = 10;
/// By so much a process's RSS may exceed what was charged: pages counted before they are charged, and by other batches.
const RSS_SLACK_BYTES: u64 = 8 << 20;
/// Samples that saw this part of a process's RSS know what it was made of.
const SAMPLED: f64 = 0.75;
/// So many times as much that is charged elsewhere as here: what is here says nothing of the need.
const CACHED_BEYOND: u64 = 2;
/// A run may be beyond an emulated limit by less than one part in this, on average.
const ABOVE_PART: u64 = 33;
/// The work of equal runs is taken to differ where one moved less than one part in this of what another did.
const WORK_PART: u64 = 2;

/// Whether bytes that are missing from a figure of `need` bytes matter.
pub fn matters(bytes: u64, need: u64) -> bool {
    bytes >= LEAST_BYTES && bytes.saturating_mul(LEAST_PART) >= need
}

/// Why the figures of a run may not be of the job, the gravest first.
pub fn doubts(run: &Observation, header: &Header) -> Vec<Doubt> {
    let facts = &run.evidence;
    let need = need(run);
    let shared = shared_before(run, need);
    let cached = cached_before(run, need, shared.as_ref().and_then(|doubt| doubt.bytes));
    let missing = shared.iter().filter_map(|doubt| doubt.bytes).sum::<u64>() + seen_cached_before(run);
    let mut found: Vec<Doubt> = [
        left_cgroup(run, missing),
        client(run, header),
        facts.input_missing.as_ref().map(|why| doubt(DoubtKind::InputMissing, None, why.clone())),
        shared,
        hugetlb_before(run, need),
        cached,
        files_in_memory(run, need),
        unmapped_shared(run, need),
        buffers(run, header, need),
        not_seen(run, need),
        not_sampled(run, need),
        not_known_together(run, need),
        untold(run, need),
        others_in_cgroup(run, need),
        went_on(facts),
        limit_not_held(run, header.page_bytes),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Where nothing is known, nothing else is in doubt.
    if is_void(&found) {
        found.retain(|doubt| doubt.voids);
    }
    found
}

/// Why runs that should have been equal were not: of those without a limit, or that were not slowed by theirs, the first and
/// the one that did least.
pub fn work_differs(runs: &[&Observation]) -> Option<Doubt> {
    let moved = |run: &Observation| run.evidence.moved.map(|moved| moved.read.saturating_add(moved.written));
    let held = |run: &Observation| run.job_series(names::CHARGE).and(peaks::held(run));
    let least = |of: &dyn Fn(&Observation) -> Option<u64>| {
        let first = runs.first().copied()?;
        let (run, bytes) = runs[1..].iter().filter_map(|run| Some((*run, of(run)?))).min_by_key(|(_, bytes)| *bytes)?;
        let before = of(first)?;
        let fell = before >= LEAST_BYTES && bytes < before / WORK_PART && before - bytes >= LEAST_BYTES;
        fell.then_some((first, before, run, bytes))
    };
    let differ = |what: &str, (first, before, later, bytes): (&Observation, u64, &Observation, u64)| {
        let sentence = format!(
            "the runs did not do the same work: run {} {what} {}, run {} {}. Does it find what an earlier run left? See --prepare",
            first.run,
            Bytes(before),
            later.run,
            Bytes(bytes)
        );
        (before - bytes, sentence)
    };
    // What a limit makes a program hold is its own choice; what it reads and writes by calls is its work.
    let held_unlimited = |run: &Observation| held(run).filter(|_| run.limit_bytes.is_none());
    // Samples of a short run may have missed what the kernel's own peak has.
    let is_in_peak = |(first, before, later, bytes): &(&Observation, u64, &Observation, u64)| {
        let peaks = first.kept.charge_bytes.zip(later.kept.charge_bytes);
        peaks.is_none_or(|(first, later)| first.saturating_sub(later) >= (before - bytes) / WORK_PART)
    };
    let found = least(&moved)
        .map(|fell| differ("read and wrote", fell))
        .or_else(|| least(&held_unlimited).filter(is_in_peak).map(|fell| differ("held", fell)));
    found.map(|(bytes, sentence)| doubt(DoubtKind::WorkDiffers, Some(bytes), sentence))
}

/// Whether nothing is known of what the job needs.
pub fn is_void(doubts: &[Doubt]) -> bool {
    doubts.iter().any(|doubt| doubt.voids)
}

fn doubt(kind: DoubtKind, bytes: Option<u64>, sentence: String) -> Doubt {
    Doubt { kind, bytes, voids: false, missing_from_peak: false, sentence }
}

/// A doubt of memory that is, or may be, missing from the peak.
fn lacking(kind: DoubtKind, bytes: Option<u64>, sentence: String) -> Doubt {
    Doubt { missing_from_peak: true, ..doubt(kind, bytes, sentence) }
}

/// What the job had at its peak.
fn need(run: &Observation) -> u64 {
    let app_max_rss = peaks::app_max_rss(run);
    let of_tree = || {
        let held = held::of_tree(run, app_max_rss).map(|held| held.most);
        held.or_else(|| peaks::tree_max_rss(run, app_max_rss).bytes)
    };
    charge(run).or_else(of_tree).unwrap_or(0)
}

fn largest_rss(run: &Observation) -> Option<u64> {
    let recorded = run.processes.iter().filter_map(|process| process.max_rss_bytes).max();
    peaks::app_max_rss(run).max(recorded)
}

/// `None`, too, where samples missed a part of it.
fn charge(run: &Observation) -> Option<u64> {
    run.kept.charge_bytes.max(peak(run, names::CHARGE)).filter(|_| !sampled_charge::is_incomplete(run))
}

/// Whether a sample saw the largest process at its peak. Samples that did not, did not see what was charged then either.
fn is_sampled(run: &Observation, rss: u64) -> bool {
    peak(run, names::TREE_RSS).is_some_and(|sampled| sampled as f64 >= SAMPLED * rss as f64)
}

/// `missing`: what the job mapped, perhaps, that was charged elsewhere before.
fn left_cgroup(run: &Observation, missing: u64) -> Option<Doubt> {
    let charge = charge(run).filter(|_| !is_attached(run))?;
    let outside = &run.evidence.outside;
    if let Some(largest) = outside.iter().max_by_key(|process| process.bytes) {
        let bytes = largest.bytes.unwrap_or(0);
        let (others, verb) = match outside.len() - 1 {
            0 => (String::new(), "is"),
            n => (format!(" and {n} more"), "are"),
        };
        // The kernel's peak of a process at the last look: it may have grown since.
        let least = largest.bytes.map_or(String::new(), |bytes| {
            let of = if outside.len() > 1 { "the largest with " } else { "with " };
            format!(", {of}at least {},", Bytes(bytes))
        });
        let who = format!("{}{others}{least} {verb} in another", largest.name);
        let is_most = largest.bytes.is_none() || bytes.saturating_mul(4) >= charge;
        let sentence = if is_most {
            format!("the command left its cgroup: nothing is known of what it needs ({who})")
        } else {
            format!("{} of its processes left its cgroup ({who}): what they need is not in that figure", outside.len())
        };
        return Some(Doubt { voids: is_most, ..lacking(DoubtKind::LeftCgroup, largest.bytes, sentence) });
    }
    // Pages of files and shared memory may be charged elsewhere; what else a process holds is charged where it is.
    let rss = largest_rss(run)?;
    let is_sampled = is_sampled(run, rss);
    if run.kept.charge_bytes.is_none() && !is_sampled && peak(run, names::TREE_RSS).is_some() {
        return None;
    }
    let mapped = [names::TREE_RSS_FILE, names::TREE_RSS_SHARED].map(|name| peak(run, name).unwrap_or(0));
    let elsewhere = mapped.iter().sum::<u64>().max(missing);
    let most = charge.saturating_add(elsewhere);
    // Swapped memory left the charge and the RSS alike. Under a limit, RSS may have been before it was reclaimed.
    (run.limit_bytes.is_none() && rss > most + most / 4 + RSS_SLACK_BYTES).then(|| Doubt {
        kind: DoubtKind::LeftCgroup,
        bytes: Some(rss),
        voids: true,
        missing_from_peak: true,
        sentence: if is_sampled {
            format!(
                "the command left its cgroup: nothing is known of what it needs (its largest process had {}, and {} was \
                 charged to the cgroup)",
                Bytes(rss),
                Bytes(charge)
            )
        } else {
            format!(
                "nothing is known of what it needs: its largest process had {}, and {} was charged to the cgroup. It left its \
                 cgroup, or mapped files that were cached before, for too short a time to see which",
                Bytes(rss),
                Bytes(charge)
            )
        },
    })
}

fn client(run: &Observation, header: &Header) -> Option<Doubt> {
    // What a launcher starts on other nodes is observed there.
    if run.origin.is_some() || run.sources.contains_key("parts") || is_attached(run) {
        return None;
    }
    let of_command = clients::of_command(&header.command);
    let of_process = || {
        run.processes.iter().find(|process| clients::is_client(&process.command)).map(|p| Use::Has(p.command.clone()))
    };
    match of_command.or_else(of_process)? {
        Use::Is(name) => Some(Doubt {
            kind: DoubtKind::Client,
            bytes: None,
            voids: true,
            missing_from_peak: true,
            sentence: format!(
                "{name} sends its work to processes that bursar has not started: run the program itself, or measure what it starts by --name"
            ),
        }),
        Use::Has(name) => Some(lacking(
            DoubtKind::Client,
            None,
            format!(
                "{name}, which it runs, sends its work to processes that bursar has not started: they are not in the figure"
            ),
        )),
    }
}

fn shared_before(run: &Observation, need: u64) -> Option<Doubt> {
    charge(run)?;
    let facts = &run.evidence;
    let charged = peak(run, names::SHARED).unwrap_or(0);
    let mapped = facts.shared_mapped_bytes.unwrap_or(0).saturating_sub(charged);
    // Whose accesses these were is known of what the job mapped, or read by calls, or what the trackers could not follow.
    let read = facts.moved.map_or(0, |moved| moved.read);
    let hidden = run.file_demand.iter().flat_map(|demand| &demand.not_visible).filter(|(name, _)| name == "tmpfs");
    let hidden: u64 = hidden.filter_map(|(_, bytes)| *bytes).sum();
    let most = facts.shared_mapped_bytes.unwrap_or(0).max(read).max(hidden);
    let is_used = |file: &&Named| file.bytes.is_some_and(|bytes| bytes / 2 <= most);
    let mut used: Vec<&Named> = facts.shared_opened.iter().chain(facts.shared_before.iter().filter(is_used)).collect();
    used.sort_by_key(|file| std::cmp::Reverse(file.bytes));
    let known: u64 = used.iter().filter_map(|file| file.bytes).sum();
    let bytes = known.max(mapped);
    matters(bytes, need).then(|| {
        let name = used.first().map(|file| match used.len() {
            1 => format!(" ({})", file.name),
            _ => format!(" (largest: {})", file.name),
        });
        let sentence = format!(
            "{}{} of shared memory was there before and is charged elsewhere{}: it is missing from that figure",
            if facts.shared_opened_is_incomplete { "at least " } else { "" },
            Bytes(bytes),
            name.unwrap_or_default()
        );
        lacking(DoubtKind::SharedBefore, Some(bytes), sentence)
    })
}

fn hugetlb_before(run: &Observation, need: u64) -> Option<Doubt> {
    let mapped = run.evidence.hugetlb_mapped_bytes?;
    let charged = run.kept.hugetlb_bytes.max(peak(run, names::HUGETLB)).filter(|_| charge(run).is_some())?;
    let bytes = mapped.saturating_sub(charged);
    matters(bytes, need).then(|| {
        let sentence = format!(
            "{} of huge pages of the pool was there before and is charged elsewhere: it is missing from that figure",
            Bytes(bytes)
        );
        lacking(DoubtKind::SharedBefore, Some(bytes), sentence)
    })
}

/// What the job referenced, or had mapped when that was scanned, of files that were cached before. Of pages that are mapped around a
/// fault no reference is told.
fn seen_cached_before(run: &Observation) -> u64 {
    let Some(demand) = &run.file_demand else { return 0 };
    let charged = peak(run, names::FILE).max(run.kept.most_cached_bytes);
    let mapped = charged.map_or(0, |charged| demand.mapped_scanned_bytes.saturating_sub(charged));
    demand.foreign.iter().map(|file| file.cached_bytes).sum::<u64>().max(mapped)
}

/// `shared`: shared memory that was there before, as it is told of by itself.
fn cached_before(run: &Observation, need: u64, shared: Option<u64>) -> Option<Doubt> {
    let charge = charge(run)?;
    // What one process holds and nobody was charged with here is mapped. Samples may miss shared memory of a moment.
    let shared = peak(run, names::TREE_RSS_SHARED).max(run.evidence.shared_mapped_bytes).max(shared).unwrap_or(0);
    let beyond = |held: Option<u64>| match run.limit_bytes {
        None => held.map_or(0, |held| held.saturating_sub(charge + shared)),
        Some(_) => 0,
    };
    let rss = largest_rss(run);
    // References that processes report do not show what was cached before.
    let foreign = run.file_demand.as_ref().and_then(|demand| demand.foreign.first());
    let Some(largest) = foreign else {
        let is_charge_known = run.kept.charge_bytes.is_some() || is_sampled(run, rss.unwrap_or(0));
        let held = held::of_tree(run, rss).map(|held| held.least);
        let is_traced = run.file_demand.is_some() && !shares_cgroup(run);
        return mapped_before(run, need, if is_charge_known && !is_traced { beyond(held.max(rss)) } else { 0 });
    };
    let bytes = seen_cached_before(run).max(beyond(rss));
    if !matters(bytes, need) {
        return None;
    }
    let name = largest.path.clone().unwrap_or_else(|| format!("inode {}", largest.inode));
    let sentence = format!(
        "{} of the files that it read or mapped was in the page cache before and is charged elsewhere: it is missing from that \
         figure (largest: {name} with {})",
        Bytes(bytes),
        Bytes(largest.cached_bytes)
    );
    Some(lacking(DoubtKind::CachedBefore, Some(bytes), sentence))
}

/// Where no reference is told, what a process held beyond the charge is all that tells of such files.
fn mapped_before(run: &Observation, need: u64, bytes: u64) -> Option<Doubt> {
    let is_sampled = peak(run, names::TREE_RSS).is_some();
    (is_sampled && !is_attached(run) && matters(bytes, need)).then(|| {
        // A search proposes a limit, in which all of that has to be when it is not cached.
        let voids = matches!(run.role, RunRole::Reference | RunRole::Method) && bytes / CACHED_BEYOND >= need;
        let unknown = if voids { "nothing is known of what it needs: " } else { "" };
        let sentence = format!(
            "{unknown}at least {} of the files that it mapped was in the page cache before and is charged elsewhere: it is missing from \
             that figure, and its references are not seen",
            Bytes(bytes)
        );
        Doubt { voids, ..lacking(DoubtKind::CachedBefore, Some(bytes), sentence) }
    })
}

/// What a job wrote into files in memory, of which only its descriptors tell where there is no cgroup.
fn files_in_memory(run: &Observation, need: u64) -> Option<Doubt> {
    let files = run.evidence.files_in_memory.as_ref().filter(|_| charge(run).is_none())?;
    let bytes = files.bytes?;
    matters(bytes, need).then(|| {
        let sentence = format!(
            "at least {} in files in memory (largest: {}) are missing from that figure: no cgroup counted them, and they cannot be reclaimed",
            Bytes(bytes),
            files.name
        );
        lacking(DoubtKind::FilesInMemory, Some(bytes), sentence)
    })
}

/// Shared memory stays in memory for as long as a process maps it, whether it has the pages in its page table or not.
fn unmapped_shared(run: &Observation, need: u64) -> Option<Doubt> {
    let bytes = run.evidence.unmapped_shared_bytes.filter(|_| charge(run).is_none())?;
    matters(bytes, need).then(|| {
        let sentence = format!(
            "up to {} of shared memory may be missing from that figure: its processes mapped it, their page tables need not show it, and no \
             cgroup counted it",
            Bytes(bytes)
        );
        lacking(DoubtKind::NotCounted, Some(bytes), sentence)
    })
}

/// Pipes, of which nobody tells what they hold: no more than was written. Sockets, where the kernel does not tell it either.
fn buffers(run: &Observation, header: &Header, need: u64) -> Option<Doubt> {
    let buffers = run.evidence.buffers;
    let written = run.evidence.moved.map(|moved| moved.written);
    // What is written begins a page of its own in each pipe.
    let most_written = written.map_or(u64::MAX, |bytes| bytes.saturating_add(buffers.pipes * header.page_bytes));
    let kinds = [("pipes", buffers.pipe_bytes.min(most_written)), ("sockets", buffers.socket_bytes)];
    let bytes = kinds.iter().map(|(_, bytes)| bytes).sum();
    let (name, _) = kinds.iter().max_by_key(|(_, bytes)| *bytes)?;
    (charge(run).is_none() && matters(bytes, need)).then(|| {
        let sentence = format!(
            "up to {} that {name} of it may hold are missing from that figure: no cgroup counted them, and they cannot be reclaimed",
            Bytes(bytes)
        );
        lacking(DoubtKind::NotCounted, Some(bytes), sentence)
    })
}

/// References tell which pages were used. Those from inside the processes do not tell where these pages are charged.
fn not_charged(run: &Observation, demand: &FileDemand, charged: Option<u64>, need: u64) -> Option<Doubt> {
    // What it only mapped was resident, and is in a figure that is summed over processes.
    let (moved, distinct) = (run.evidence.moved?, demand.distinct_bytes);
    let (bytes, why) = match charged {
        None => {
            let written = demand.written_only_bytes;
            (distinct.saturating_sub(written).min(moved.read) + written.min(moved.written), "no cgroup counted them")
        }
        // Under a limit, pages are reclaimed and read again. The tracepoints see which pages were cached before: `cached_before`.
        Some(_) if run.limit_bytes.is_some() || run.kept.most_cached_bytes.is_some() || !demand.foreign.is_empty() => {
            return None;
        }
        Some(charged) => {
            let read = distinct.saturating_sub(demand.written_only_bytes).min(moved.read);
            (read.saturating_sub(charged.max(moved.storage_read)), "they were cached before, and are charged elsewhere")
        }
    };
    matters(bytes, need).then(|| {
        let sentence = format!(
            "up to {} of page cache, of the files that it read and wrote, are missing from that figure: {why}",
            Bytes(bytes)
        );
        lacking(DoubtKind::NotSeen, Some(bytes), sentence)
    })
}

fn not_seen(run: &Observation, need: u64) -> Option<Doubt> {
    if is_attached(run) {
        return None;
    }
    let charged = peak(run, names::FILE).filter(|_| charge(run).is_some());
    if let Some(emulated) = &run.evidence.emulated {
        return not_limited(run, need).or_else(|| out_of_reach(emulated, need));
    }
    if let Some(demand) = &run.file_demand {
        return not_charged(run, demand, charged, need);
    }
    let moved = run.evidence.moved?;
    let bytes = moved.read.saturating_sub(charged.unwrap_or(0));
    matters(bytes, need).then(|| {
        let read = format!("it read {} by calls ({} from storage)", Bytes(moved.read), Bytes(moved.storage_read));
        let sentence = match charged {
            None => format!("{read}: the page cache that this takes is not seen, and not in that figure"),
            Some(charged) => format!(
                "{read}, and {} of page cache was charged to it: what was cached before is not seen, and not in that figure",
                Bytes(charged)
            ),
        };
        lacking(DoubtKind::NotSeen, Some(bytes), sentence)
    })
}

/// What an emulated limit does not hold, as nobody noted that it was used: by calls of programs without the library, and by mappings of
/// theirs.
fn not_limited(run: &Observation, need: u64) -> Option<Doubt> {
    let told = run.file_demand.iter().flat_map(|demand| &demand.not_visible);
    // What the limit has killed told nothing for that.
    let was_killed = run.kept.oom_kills.is_some_and(|kills| kills > 0);
    let matters_here = |(name, bytes): &&(String, Option<u64>)| {
        bytes.is_none_or(|bytes| matters(bytes, need)) && !(was_killed && name.contains("killed"))
    };
    let not_visible = told.filter(matters_here).map(|(name, _)| name.clone()).next();
    let noted = run.evidence.emulated.map_or(0, |emulated| emulated.mapped_bytes.saturating_add(emulated.loaded_bytes));
    let of_one = peak(run, names::TREE_FILE_LEAST).or_else(|| peak(run, names::TREE_RSS_FILE));
    let mapped = of_one.unwrap_or(0).saturating_sub(noted);
    let by_mappings = matters(mapped, need).then(|| format!("{} that a process of it had mapped", Bytes(mapped)));
    let sentence = match not_visible {
        Some(what) if !what.contains("by calls") => {
            format!("the emulated limits did not bind all of it; bursar's library does not see {what}")
        }
        by_calls => format!(
            "the emulated limits did not bind {}: bursar's library did not see it, as in a statically linked program",
            by_calls.or(by_mappings)?
        ),
    };
    Some(lacking(DoubtKind::NotSeen, None, sentence))
}

/// What could be neither counted nor dropped where the page cache is held to a limit from outside the kernel.
fn out_of_reach(emulated: &EmulatedLimit, need: u64) -> Option<Doubt> {
    let bytes = emulated.out_of_reach_bytes;
    matters(bytes, need).then(|| {
        let sentence = format!(
            "{} of page cache is missing from that figure and from all limits: it is of files that were closed or removed before bursar \
             could open them",
            Bytes(bytes)
        );
        lacking(DoubtKind::NotSeen, Some(bytes), sentence)
    })
}

/// A limit that was emulated and did not hold. `None`: it did, or was none.
pub fn limit_not_held(run: &Observation, page_bytes: u64) -> Option<Doubt> {
    had_more(run, page_bytes).or_else(|| mapped_stays(run))
}

/// The run had more than its limit says.
fn had_more(run: &Observation, page_bytes: u64) -> Option<Doubt> {
    let limit = run.limit_bytes?;
    // What was killed for more needs no word of that.
    let was_killed = run.kept.oom_kills.is_some_and(|kills| kills > 0);
    let Some(emulated) = run.evidence.emulated else {
        // A cgroup that limits tells what is charged to it.
        let is_free = charge(run).is_none() && run.job_series(names::TREE_RSS_ANON).is_some();
        let why = format!("nothing held it to the limit of {}, as its references to files were not seen", Bytes(limit));
        return (is_free && !was_killed).then(|| doubt(DoubtKind::LimitNotHeld, None, why));
    };
    let beyond = |held: Option<u64>, who: &str, kills: &str| {
        let held = held.filter(|held| *held > limit)?;
        let (held_at_most, limit) = (Bytes(held), Bytes(limit));
        let why = format!(
            "{who} held up to {held_at_most} that cannot be reclaimed: the kernel {kills} under a limit of {limit}"
        );
        Some(doubt(DoubtKind::LimitNotHeld, Some(held), why))
    };
    let by_one = beyond(crate::floor::held_by_one(run), "a process", "would have killed it");
    let together = || beyond(crate::told::heap_together(run), "its processes together", "may kill one of them");
    if let Some(doubt) = by_one.or_else(together).filter(|_| !was_killed) {
        return Some(doubt);
    }
    let above = emulated.above_bytes;
    // What was dropped and is referenced again comes from the storage, whatever was read ahead beside it.
    let again = emulated.read_again_pages * page_bytes;
    let came = run.evidence.moved.map_or(u64::MAX, |moved| moved.storage_read);
    let (bytes, why) = if above.saturating_mul(ABOVE_PART) > limit {
        (above, format!("the run under an emulated limit of {} had {} more on average", Bytes(limit), Bytes(above)))
    } else if again / 10 * 9 > came.saturating_add(LEAST_BYTES) {
        let (again, came, limit) = (Bytes(again), Bytes(came), Bytes(limit));
        let why = format!(
            "{again} were dropped and used again under an emulated limit of {limit}, and {came} came from the storage"
        );
        (again.0, why)
    } else {
        return None;
    };
    Some(doubt(DoubtKind::LimitNotHeld, Some(bytes), why))
}

/// The kernel would have reclaimed what stays mapped under an emulated limit, and left more to the rest: a run that was too slow need not
/// be so with it.
pub fn mapped_stays(run: &Observation) -> Option<Doubt> {
    let (limit, mapped) = (run.limit_bytes?, run.evidence.emulated?.mapped_bytes);
    (mapped.saturating_mul(LEAST_PART) > limit).then(|| {
        let (held, limit) = (Bytes(mapped), Bytes(limit));
        let why = format!("{held} of files that it mapped cannot be reclaimed under an emulated limit ({limit})");
        doubt(DoubtKind::LimitNotHeld, Some(mapped), why)
    })
}

/// A peak that is known only by its size.
fn not_sampled(run: &Observation, need: u64) -> Option<Doubt> {
    let bytes = crate::floor::not_sampled(run)?;
    matters(bytes, need).then(|| {
        let sentence = format!(
            "no sample saw what up to {} of its largest process was: the floor takes it for heap, and is lower if it was mapped files",
            Bytes(bytes)
        );
        doubt(DoubtKind::NotSeen, Some(bytes), sentence)
    })
}

/// Where all others told of themselves.
fn untold(run: &Observation, need: u64) -> Option<Doubt> {
    let bytes = run.evidence.untold_bytes.filter(|_| crate::tree::is_source(run))?;
    matters(bytes, need).then(|| {
        let sentence = format!(
            "processes of which only the kernel's totals are known, because they were killed or are statically linked, may have held up to {}",
            Bytes(bytes)
        );
        doubt(DoubtKind::NotCounted, Some(bytes), sentence)
    })
}

/// Under an emulated limit, what several processes held at the same time has to be known.
fn not_known_together(run: &Observation, need: u64) -> Option<Doubt> {
    run.evidence.emulated?;
    let sampled = crate::tree::Tree::of(run).and_then(|tree| tree.floor()).map(|(_, held)| held);
    let least = sampled.map(|held| held.least).max(crate::floor::held_by_one(run)).unwrap_or(0);
    let most = sampled.map_or(0, |held| held.most) + crate::told::missed_heap(run);
    matters(most.saturating_sub(least), need).then(|| {
        let (least, at_most) = (Bytes(least), Bytes(most));
        let sentence = format!("its processes held between {least} and {at_most} together that cannot be reclaimed");
        doubt(DoubtKind::BetweenBounds, Some(most), sentence)
    })
}

/// In a cgroup that the job shares with bursar, its heap is at most what its processes hold.
fn others_in_cgroup(run: &Observation, need: u64) -> Option<Doubt> {
    if !shares_cgroup(run) || is_attached(run) {
        return None;
    }
    let (heap, own) = (peak(run, names::HEAP)?, peak(run, names::TREE_RSS_ANON)?);
    let bytes = heap.saturating_sub(own);
    (matters(bytes, need) && bytes > RSS_SLACK_BYTES && heap > own + own / 2).then(|| {
        let sentence = format!(
            "its cgroup holds {} of heap and its processes {}: others are in that figure, whom bursar cannot see",
            Bytes(heap),
            Bytes(own)
        );
        doubt(DoubtKind::OthersInCgroup, Some(bytes), sentence)
    })
}

fn went_on(facts: &Evidence) -> Option<Doubt> {
    let largest = facts.went_on.iter().max_by_key(|process| process.bytes)?;
    let bytes = facts.went_on.iter().filter_map(|process| process.bytes).reduce(|a, b| a + b);
    let (processes, they) = match facts.went_on.len() {
        1 => ("a process of it".to_string(), "it"),
        more => (format!("{more} of its processes"), "they"),
    };
    let sentence = format!(
        "{processes} went on when the command ended ({}, {}): what {they} did from then on was not measured",
        largest.name,
        size(largest.bytes)
    );
    Some(lacking(DoubtKind::WentOn, bytes, sentence))
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "size not known".into(), |bytes| Bytes(bytes).to_string())
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;

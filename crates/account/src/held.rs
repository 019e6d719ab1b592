//! What a process tree held together, memory that its processes share counted once.

use model::{Observation, ProcessRecord, names};

use crate::moment::Moment;
use crate::told;
use crate::tree::is_source;

/// Bounds on the peak, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub least: u64,
    pub most: u64,
}

/// Between the largest process and the sum of all there is room for what they share. What samples missed of several processes that lived
/// at the same time, by the peaks that the kernel kept of them, may have been there too. A reading of their PSS tells what they held
/// then; at another moment they held at most that and what they have obtained since, or have given back until then. `None` of
/// records from before these lines were sampled. What the kernel holds for its page tables and sockets, which no RSS has, is added.
pub fn of_tree(run: &Observation, app_max_rss: Option<u64>) -> Option<Held> {
    let held = resident(run, app_max_rss)?;
    let of_kernel =
        |at: &Moment| [names::PAGE_TABLES, names::SOCKETS].into_iter().filter_map(|name| at.get(name)).sum();
    let kernel =
        Moment::of_the_largest(run, names::TREE_HELD_LEAST, |at| Some(of_kernel(at))).filter(|_| is_source(run));
    let together = |at: &Moment| Some(at.get(names::TREE_HELD_LEAST)? + of_kernel(at));
    let least = Moment::of_the_largest(run, names::TREE_HELD_LEAST, together).filter(|_| kernel.is_some());
    let most = held.most.saturating_add(kernel.map_or(0, |(_, bytes)| bytes));
    Some(Held { least: held.least.max(least.map_or(0, |(_, bytes)| bytes)).min(most), most })
}

fn resident(run: &Observation, app_max_rss: Option<u64>) -> Option<Held> {
    let least = run.job_series(names::TREE_HELD_LEAST)?.peak()?.max(0.0) as u64;
    let readings = run.job_series(names::TREE_HELD).map_or(&[][..], |series| &series.points);
    let known = readings.iter().map(|(_, bytes)| bytes.max(0.0) as u64).max();
    let least = least.max(known.unwrap_or(0)).max(app_max_rss.unwrap_or(0));
    let rss = run.job_series(names::TREE_RSS);
    let most = match run.job_series(names::TREE_HELD_MOST) {
        Some(together) => together.peak()?.max(0.0) as u64,
        None => {
            let points = rss?.points.iter();
            points.map(|(t_ns, rss)| at_most(run, readings, *t_ns, rss.max(0.0) as u64)).max()?
        }
    };
    let seen = rss.and_then(|rss| rss.points.iter().map(|(t_ns, rss)| by_kinds(run, *t_ns, rss.max(0.0) as u64)).max());
    let own = |process: &ProcessRecord| {
        let shared = process.largest_seen.map_or(0, |seen| seen.uncopied_bytes);
        process.max_rss_bytes.map(|peak| peak.saturating_sub(shared))
    };
    let kept = if crate::is_attached(run) { 0 } else { together(run, own) };
    let missed = seen.map_or(0, |seen| kept.saturating_sub(seen));
    let most = most.saturating_add(missed).saturating_add(told::untold(run));
    Some(Held { least, most: most.min(told::all_together(run).unwrap_or(u64::MAX)).max(least) })
}

/// Figures of processes that lived at the same time, summed, where that is most: what samples missed of several of them is in it.
pub fn together(run: &Observation, bytes: impl Fn(&ProcessRecord) -> Option<u64>) -> u64 {
    let kept = run.processes.iter().filter_map(|process| {
        let begin = process.started_seconds.unwrap_or(f64::NEG_INFINITY);
        let end = process.lifetime_seconds.map_or(f64::INFINITY, |lifetime| begin + lifetime);
        Some((begin, end, bytes(process)?))
    });
    let kept: Vec<(f64, f64, u64)> = kept.collect();
    // Nothing of a process is there before it begins.
    let mut changes: Vec<(f64, i64)> =
        kept.iter().flat_map(|(begin, end, bytes)| [(*begin, *bytes as i64), (*end, -(*bytes as i64))]).collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let together = changes.iter().scan(0i64, |sum, (_, bytes)| {
        *sum += bytes;
        Some(*sum)
    });
    together.max().unwrap_or(0).max(0) as u64
}

/// What the tree held at a moment at which its RSS had this sum.
fn at_most(run: &Observation, readings: &[(u64, f64)], t_ns: u64, rss: u64) -> u64 {
    let sampled = by_kinds(run, t_ns, rss);
    by_readings(run, readings, t_ns).map_or(sampled, |held| held.most.min(sampled))
}

/// The same by what samples know of each kind at that moment.
fn by_kinds(run: &Observation, t_ns: u64, rss: u64) -> u64 {
    let at = Moment::at(run, t_ns);
    let most = [names::TREE_HEAP_MOST, names::TREE_SHARED_MOST, names::TREE_RSS_FILE].map(|name| at.get(name));
    most.into_iter().sum::<Option<u64>>().map_or(rss, |most| most.min(rss))
}

/// Bounds at a moment by the readings next to it: what was held then, with what the tree may have obtained and given back between.
pub fn by_readings(run: &Observation, readings: &[(u64, f64)], t_ns: u64) -> Option<Held> {
    let (now, next) = (Moment::at(run, t_ns), readings.partition_point(|(at, _)| *at < t_ns));
    let beside = |(at, bytes): &(u64, f64), grows_by: &str, shrinks_by: &str| {
        let (then, bytes) = (Moment::at(run, *at), bytes.max(0.0) as u64);
        let moved = |name: &str| Some(then.get(name)?.abs_diff(now.get(name)?));
        Some(Held { least: bytes.saturating_sub(moved(shrinks_by)?), most: bytes.saturating_add(moved(grows_by)?) })
    };
    let (gained, lost) = (names::TREE_GAINED, names::TREE_LOST);
    let before = next.checked_sub(1).and_then(|index| beside(&readings[index], gained, lost));
    let after = readings.get(next).and_then(|reading| beside(reading, lost, gained));
    let narrower = |a: Held, b: Held| Held { least: a.least.max(b.least), most: a.most.min(b.most) };
    [before, after].into_iter().flatten().reduce(narrower)
}

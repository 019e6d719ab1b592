//! From what one run showed to its account: peaks, their breakdowns, the floor, and the figures that each of the paper's
//! methods would have named. Pure: values in, values out.
//!
//! Peaks that the kernel kept are preferred to sampled ones, because sampling can miss them. What could not be read is
//! `None`, never 0.

mod clients;
mod cut;

pub mod evidence;
mod floor;
mod held;
mod held_together;
mod methods;
mod moment;
mod peaks;
mod sampled_charge;
mod together;
mod told;
mod totals;
mod tree;
mod waiting;

use model::{Header, Observation, RunAccount, Target};

pub use floor::{Held, unreclaimable_over_time, with_heaps};
pub use methods::method_memory;
pub use model::{performance, performance_per_gb};
pub use together::together;
pub use told::heap_together;

/// The account of one run.
pub fn account(run: &Observation, header: &Header) -> RunAccount {
    let mut notes = run.notes.clone();
    let tree = tree::Tree::of(run);
    let mut floor_notes = Vec::new();
    let whole_floor = floor::floor(run, tree.as_ref(), header, &mut floor_notes);
    let mut charge = peaks::charge(run, tree.as_ref(), whole_floor.missed, &mut notes);
    notes.append(&mut floor_notes);
    let is_unsampled = tree.is_none() && run.kept.charge_bytes.is_none() && floor::not_sampled(run).is_some();
    if is_unsampled || sampled_charge::is_incomplete(run) {
        // What the samples missed of a process they missed of the charge.
        charge = Default::default();
    }
    let app_max_rss = peaks::app_max_rss(run);
    let largest = peaks::largest_process(run);
    let tree_max_rss = peaks::tree_max_rss(run, largest);
    let held = held::of_tree(run, largest);
    let lists = peaks::lists(run);
    // Both are sums of lines that the kernel reads one after the other.
    let floor = whole_floor.least.map(|floor| charge.bytes.map_or(floor, |peak| floor.min(peak)));
    let (user_seconds, system_seconds) = totals::cpu_seconds(run);
    let doubts = evidence::doubts(run, header);
    let account = RunAccount {
        exit_status: run.exit_status(),
        wall_seconds: run.wall_seconds,
        user_seconds,
        system_seconds,
        app_max_rss_bytes: app_max_rss,
        tree_max_rss_bytes: tree_max_rss.bytes,
        tree_max_pss_bytes: peaks::tree_max_pss(run),
        tree_held_at_least_bytes: held.map(|held| held.least),
        tree_held_at_most_bytes: held.map(|held| held.most),
        sys_max_rss_bytes: lists.bytes,
        sys_max_rss_lists: lists.sizes,
        unlimited_bytes: peaks::unlimited(run),
        peak_charge_bytes: charge.bytes,
        floor_bytes: floor,
        floor_at_most_bytes: floor_at_most(run, floor, whole_floor.most, held),
        floor_breakdown: whole_floor.breakdown,
        peak_breakdown: charge.breakdown,
        peak_breakdown_at_least: charge.breakdown_at_least,
        peak_detail: charge.detail,
        app_max_rss_breakdown: tree_max_rss.breakdown,
        sys_max_rss_breakdown: lists.breakdown,
        amplification: amplification(charge.bytes, floor),
        swap_bytes: run.kept.swap_bytes.max(moment::peak(run, model::names::SWAP)),
        faults: totals::faults(run),
        flow: totals::flow(run),
        io_wait_share: waiting::io_wait_share(run),
        pressure: totals::pressure(run),
        oom_kills: run.kept.oom_kills,
        limit_bytes: run.limit_bytes,
        processes: totals::processes(run),
        file_demand: run.file_demand.as_ref().map(|demand| floor::above(run, demand, floor)),
        own_cpu_seconds: totals::counted(run, model::names::OWN_CPU),
        own_rss_bytes: moment::peak(run, model::names::OWN_RSS),
        moved: run.evidence.moved,
        own_charge_bytes: run.evidence.own_bytes,
        cut_short: cut::short(run, header),
        doubts,
        sources: run.sources.clone(),
        notes,
    };
    if evidence::is_void(&account.doubts) { without_need(account) } else { account }
}

/// The upper bound of the floor of a tree: what its processes held at most, with the tables of its pages, and no less where they may have
/// shared memory that each of them filled.
fn floor_at_most(run: &Observation, floor: Option<u64>, most: Option<u64>, held: Option<held::Held>) -> Option<u64> {
    let Some(held) = held.filter(|_| tree::is_source(run)) else { return most };
    let with_tables = held.most + held.most / 256;
    let most = if told::may_have_filled_shared_memory(run) { Some(with_tables) } else { most };
    most.map(|most| most.min(with_tables)).filter(|most| floor.is_some_and(|floor| *most > floor))
}

/// Without the figures that would say what the job needs, where they are known to be of something else.
fn without_need(account: RunAccount) -> RunAccount {
    RunAccount {
        sys_max_rss_bytes: None,
        sys_max_rss_lists: Default::default(),
        peak_charge_bytes: None,
        floor_bytes: None,
        floor_at_most_bytes: None,
        floor_breakdown: Default::default(),
        peak_breakdown: Default::default(),
        peak_breakdown_at_least: Default::default(),
        peak_detail: Default::default(),
        sys_max_rss_breakdown: Default::default(),
        amplification: None,
        ..account
    }
}

/// Seconds of the run's time that went into waiting for I/O: comparable with wall time, however many threads there were.
pub fn stall_seconds(account: &RunAccount) -> Option<f64> {
    Some(account.io_wait_share? * account.wall_seconds)
}

/// Memory consumed over memory required to complete without swapping. What is required is never more than what was
/// consumed, whatever two differently kept figures say.
fn amplification(charge: Option<u64>, floor: Option<u64>) -> Option<f64> {
    let (charge, floor) = (charge?, floor?);
    (floor > 0).then(|| (charge as f64 / floor as f64).max(1.0))
}

/// Whether the job was there before bursar looked at it.
fn is_attached(run: &Observation) -> bool {
    run.target != Target::Command
}

/// Whether the charge is of a cgroup that holds more than the job.
fn shares_cgroup(run: &Observation) -> bool {
    run.sources.get("charge").is_some_and(|source| source.contains("with all else that is in it"))
}

#[cfg(test)]
mod tests;

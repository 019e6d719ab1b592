//! Figures and sentences of an account that every report shows.

use model::{Breakdown, Detail, Doubt, DoubtKind, FileDemand, Observation, Pressure, RunAccount, Spread, Target};

use crate::format::{bytes, count, percent, printable, seconds};
use crate::verdict;

/// A figure over several runs.
pub struct RunsFigure {
    /// Which figure.
    pub name: &'static str,
    /// Its spread.
    pub spread: Spread,
    /// How to print it.
    pub text: fn(f64) -> String,
}

/// What was observed, if it was not started, with a space after it.
pub fn subject(observation: &Observation) -> String {
    match &observation.target {
        Target::Command => String::new(),
        Target::Process(pid) => format!("process {pid} "),
        Target::Tree(pid) => format!("process tree of {pid} "),
        Target::Cgroup(path) => format!("cgroup {} ", printable(path)),
    }
}

/// A peak or floor that is between two bounds, if there are two, or beyond them.
pub fn peak_figure(least: Option<u64>, most: u64, may_be_more: bool) -> String {
    match (least, may_be_more) {
        (Some(least), true) => format!("{} to {} or more", size(least), size(most)),
        (Some(least), false) => format!("between {} and {}", size(least), size(most)),
        (None, true) => format!("at least {}", size(most)),
        (None, false) => size(most),
    }
}

/// What one first wants to know, in one sentence.
pub fn headline(observation: &Observation, account: &RunAccount, runs: usize) -> String {
    let subject = subject(observation);
    if let Some(doubt) = account.doubts.iter().find(|doubt| doubt.voids) {
        return format!("{subject}{}", printable(&doubt.sentence));
    }
    let Some(need) = verdict::need(account) else {
        return format!("{subject}peak memory not known: neither the kernel nor a sample has it");
    };
    let is_killed = account.limit_bytes.is_some() && account.oom_kills.is_some_and(|kills| kills > 0);
    let cut = account.cut_short.as_deref().filter(|_| !is_killed);
    let verb = match (&observation.target, under_limit(observation, account), account.oom_kills) {
        (_, Some(under), Some(1..)) => format!("was killed for lack of memory {under}: had"),
        (_, Some(under), _) => format!("ran {under} and used"),
        (Target::Command, None, _) if cut.is_none() => "needs".to_string(),
        (_, None, _) => "used".to_string(),
    };
    let mut parts = Vec::new();
    // What ended before its work was done might have come to a higher one.
    let shared = verdict::need_at_least(account);
    let floor_is_least = is_killed || cut.is_some() || verdict::floor_is_least(account);
    parts.extend(account.floor_bytes.map(|floor| match verdict::floor_at_most(account) {
        Some(most) => format!("floor {}", peak_figure(Some(floor), most, floor_is_least)),
        None => format!("floor {}", peak_figure(None, floor, floor_is_least || shared.is_some())),
    }));
    if account.peak_charge_bytes.is_some() {
        parts.extend(account.peak_breakdown.file.map(|file| format!("file cache {} of it", size(file))));
    } else {
        parts.push("of the process tree, without its page cache, which no cgroup counted".to_string());
    }
    if shared.is_some() {
        parts.push("its processes may share memory, and how much is not known".to_string());
    }
    let figure = peak_figure(shared, need, cut.is_some() || verdict::peak_is_least(account));
    if runs > 1 {
        parts.push(format!("max of {runs} runs"));
    }
    let aside = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) };
    let doubt = account.doubts.first().map(|doubt| format!("; {}", printable(&doubt.sentence))).unwrap_or_default();
    let until = cut.map(|cut| format!(" until {cut}")).unwrap_or_default();
    format!("{subject}{verb} {figure} at peak{until}{aside}{doubt}")
}

/// Whether bursar itself kept the run to its limit: no cgroup counted it.
pub fn is_emulated(observation: &Observation, account: &RunAccount) -> bool {
    let has_no_cgroup = account.sources.get("charge").is_some_and(|source| source.starts_with("none"));
    account.limit_bytes.is_some() && (observation.evidence.emulated.is_some() || has_no_cgroup)
}

/// The limit of a run, as the end of a sentence; `None`: it had none.
pub fn under_limit(observation: &Observation, account: &RunAccount) -> Option<String> {
    let kind = if is_emulated(observation, account) { "an emulated limit" } else { "a limit" };
    Some(format!("under {kind} of {}", size(account.limit_bytes?)))
}

/// Whether, and by whom, processes were ended for lack of memory.
pub fn ended_for_memory(observation: &Observation, account: &RunAccount) -> Option<String> {
    let kills = account.oom_kills.filter(|kills| *kills > 0)?;
    Some(match (is_emulated(observation, account), account.processes) {
        (true, Some(1)) => "bursar ended it where the kernel would have killed it: the limit is emulated".into(),
        (true, _) => "bursar ended the whole command where the kernel would have killed one of its processes: the limit is emulated, \
                         and the others might have gone on"
            .into(),
        (false, _) => format!("the kernel killed {kills} of its processes for lack of memory"),
    })
}

/// Why the figures may not be of the job, beside what the headline says.
pub fn other_doubts(doubts: &[Doubt]) -> impl Iterator<Item = String> {
    doubt_lines(doubts).skip(1)
}

/// Why the figures may not be of the job, each as a line of its own.
pub fn doubt_lines(doubts: &[Doubt]) -> impl Iterator<Item = String> {
    let beside = |number: usize| if number == 0 { "" } else { "beside that, " };
    doubts.iter().enumerate().map(move |(number, doubt)| format!("{}{}", beside(number), printable(&doubt.sentence)))
}

/// How to have what was cached before in the figures, if that is a doubt of a command that was started.
pub fn uncached_step(observation: &Observation, account: &RunAccount) -> Option<String> {
    let is_doubted = account.doubts.iter().any(|doubt| doubt.kind == DoubtKind::CachedBefore);
    let untested =
        account.limit_bytes.map(|limit| format!("the limit of {} was not tested for these pages. ", size(limit)));
    (is_doubted && observation.target == Target::Command).then(|| {
        format!(
            "  {}To include them, run the command after `sync; echo 3 > /proc/sys/vm/drop_caches` (root), or use `bursar budget`, which evicts \
             these files before each run",
            untested.unwrap_or_default()
        )
    })
}

/// What is smaller decides nothing: the C library, the image that a command is started from.
const NEGLIGIBLE: u64 = 1 << 20;

/// What the file demand cannot show, as sentences.
pub fn warnings(demand: &FileDemand, doubts: &[Doubt]) -> Vec<String> {
    let mut warnings = Vec::new();
    let foreign: u64 = demand.foreign.iter().map(|file| file.cached_bytes).sum();
    let matters = |bytes: u64| bytes >= NEGLIGIBLE && bytes >= demand.distinct_bytes / 20;
    let is_said = doubts.iter().any(|doubt| doubt.kind == DoubtKind::CachedBefore);
    if let Some(largest) = demand.foreign.first().filter(|_| matters(foreign) && !is_said) {
        let name = largest.path.clone().unwrap_or_else(|| format!("inode {}", largest.inode));
        warnings.push(format!(
            "{} of file cache was there before and is charged elsewhere: it is missing from the peak ({} file{}, largest {} \
             with {})",
            size(foreign),
            demand.foreign.len(),
            if demand.foreign.len() == 1 { "" } else { "s" },
            printable(&name),
            size(largest.cached_bytes),
        ));
    }
    warnings.extend(blind_spots(demand));
    warnings
}

/// What the page cache's tracker did not see, as sentences.
pub fn blind_spots(demand: &FileDemand) -> Vec<String> {
    let mut warnings = Vec::new();
    let names: Vec<String> = hidden(demand)
        .map(|(name, amount)| match amount {
            // Of a kind of file, which is one word, it is what was read and written: six readers of a file count six times.
            Some(amount) if !name.contains(' ') => {
                format!("{} ({} of reads and writes, each counted)", printable(name), size(*amount))
            }
            Some(amount) => format!("{} ({})", printable(name), size(*amount)),
            None => printable(name),
        })
        .collect();
    if !names.is_empty() {
        warnings.push(format!("not visible to the page cache's tracker: {}", names.join(", ")));
    }
    if demand.lost_events > 0 {
        warnings.push(format!(
            "{} events were lost: the file demand curve is a lower bound, and processes may be missing",
            count(Some(demand.lost_events))
        ));
    }
    warnings
}

/// A memory figure with what it is made of.
pub struct MemoryRow {
    /// Its name.
    pub name: &'static str,
    /// The upper bound, or the figure itself.
    pub total: Option<u64>,
    /// What `total` is made of.
    pub parts: Breakdown,
    /// Lower bounds, where the figure is only bounded.
    pub least: Option<u64>,
    /// Lower bounds of the parts.
    pub least_parts: Breakdown,
}

impl MemoryRow {
    fn exact(name: &'static str, total: Option<u64>, parts: Breakdown) -> MemoryRow {
        MemoryRow { name, total, parts, least: None, least_parts: Breakdown::default() }
    }

    fn total_only(name: &'static str, total: Option<u64>) -> MemoryRow {
        MemoryRow::exact(name, total, Breakdown::default())
    }
}

/// The memory figures of a run.
pub fn memory_rows(account: &RunAccount) -> Vec<MemoryRow> {
    vec![
        MemoryRow::total_only("App-MaxRSS largest", account.app_max_rss_bytes),
        MemoryRow::exact("App-MaxRSS tree", account.tree_max_rss_bytes, account.app_max_rss_breakdown),
        MemoryRow::total_only("PSS tree", account.tree_max_pss_bytes),
        MemoryRow::exact("Sys-MaxRSS", account.sys_max_rss_bytes, account.sys_max_rss_breakdown),
        MemoryRow::total_only("Unlimited", account.unlimited_bytes),
        peak_row(account),
        MemoryRow {
            name: "floor",
            total: verdict::floor_at_most(account).or(account.floor_bytes),
            parts: account.floor_breakdown,
            least: account.floor_bytes,
            least_parts: Breakdown::default(),
        },
    ]
}

/// The peak charge; without a cgroup, what the processes had in memory.
fn peak_row(account: &RunAccount) -> MemoryRow {
    let is_tree = account.peak_charge_bytes.is_none() && account.peak_breakdown_at_least.heap.is_some();
    if !is_tree {
        return MemoryRow::exact("peak charge", account.peak_charge_bytes, account.peak_breakdown);
    }
    MemoryRow {
        name: "peak of processes",
        total: account.tree_held_at_most_bytes,
        parts: account.peak_breakdown,
        least: verdict::need_at_least(account),
        least_parts: account.peak_breakdown_at_least,
    }
}

/// The finer lines at the peak that are known and not zero.
pub fn detail_lines(detail: &Detail) -> Vec<(&'static str, u64)> {
    [
        ("file clean", detail.file_clean),
        ("file dirty", detail.file_dirty),
        ("file under writeback", detail.file_writeback),
        ("file mapped", detail.file_mapped),
        ("slab", detail.slab),
        ("slab reclaimable", detail.slab_reclaimable),
        ("page tables", detail.page_tables),
        ("kernel stacks", detail.kernel_stacks),
        ("sockets", detail.sockets),
        ("locked", detail.locked),
        ("unevictable", detail.unevictable),
        ("swap cache", detail.swap_cache),
        ("huge pages", detail.huge_pages),
        ("given back", detail.given_back),
        ("pinned", detail.pinned),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value.filter(|v| *v > 0)?)))
    .collect()
}

/// The spread of each figure that all runs have.
pub fn spreads(runs: &[(&Observation, &RunAccount)]) -> Vec<RunsFigure> {
    type Figure = (&'static str, fn(&RunAccount) -> Option<f64>, fn(f64) -> String);
    let as_bytes: fn(f64) -> String = |v| bytes(Some(v.round() as u64));
    let figures: [Figure; 10] = [
        ("wall", |a| Some(a.wall_seconds), seconds),
        ("user", |a| a.user_seconds, seconds),
        ("system", |a| a.system_seconds, seconds),
        ("I/O wait", |a| a.io_wait_share, |v| percent(Some(v))),
        ("App-MaxRSS largest", |a| Some(a.app_max_rss_bytes? as f64), as_bytes),
        ("App-MaxRSS tree", |a| Some(a.tree_max_rss_bytes? as f64), as_bytes),
        ("PSS tree", |a| Some(a.tree_max_pss_bytes? as f64), as_bytes),
        ("Sys-MaxRSS", |a| Some(a.sys_max_rss_bytes? as f64), as_bytes),
        ("Unlimited", |a| Some(a.unlimited_bytes? as f64), as_bytes),
        ("peak charge", |a| Some(a.peak_charge_bytes? as f64), as_bytes),
    ];
    figures
        .into_iter()
        .filter_map(|(name, of, text)| {
            let values = runs.iter().map(|(_, account)| of(account)).collect::<Option<Vec<f64>>>()?;
            Some(RunsFigure { name, spread: Spread::of(&values)?, text })
        })
        .collect()
}

/// What the tracker cannot see, as far as it is worth a word.
fn hidden(demand: &FileDemand) -> impl Iterator<Item = &(String, Option<u64>)> {
    demand.not_visible.iter().filter(|(_, amount)| amount.is_none_or(|bytes| bytes >= NEGLIGIBLE))
}

/// Whether more is read again than the curve says, at any limit: a scan of mapped pages counts a page once, however often
/// it was accessed since the scan before.
pub fn demand_is_least(demand: &FileDemand) -> bool {
    demand.mapped_scanned_bytes > 0 || demand.lost_events > 0 || hidden(demand).next().is_some()
}

/// What the curve was made from.
pub fn demand_caption(demand: &FileDemand, seconds_per_byte: Option<f64>) -> String {
    let price = match seconds_per_byte {
        Some(price) => format!("; time at the {}/s this run's own reads waited for", size((1.0 / price) as u64)),
        None => {
            "; time not estimated: this run read too little from storage, or its I/O delay is not known".to_string()
        }
    };
    let share = (demand.sampled_share < 1.0)
        .then(|| format!("estimated from {} of the pages", percent(Some(demand.sampled_share))));
    let least = match (demand_is_least(demand), demand.known_from_bytes) {
        (true, _) => Some("a lower bound of what is read again".to_string()),
        (false, 0) => None,
        (false, from) => Some(format!("below {} a lower bound: mapped files do not fit there", size(from))),
    };
    let parts: Vec<String> = share.into_iter().chain(least).collect();
    let exact = if parts.is_empty() { "exact".to_string() } else { parts.join(", ") };
    format!(
        "referenced {}, distinct {}, only written {}; {exact}; source: {}{price}",
        size(demand.referenced_bytes),
        size(demand.distinct_bytes),
        size(demand.written_only_bytes),
        printable(&demand.rung),
    )
}

/// A known size.
pub fn size(value: u64) -> String {
    bytes(Some(value))
}

/// Whose the pressure figures are, as an aside; nothing if not known.
pub fn scope_of(pressure: &Pressure) -> String {
    match pressure.scope.as_deref() {
        Some("job") => " (of the job)".to_string(),
        Some("system") => " (of the whole system)".to_string(),
        Some(other) => format!(" ({})", printable(other)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_ended_early_may_have_come_to_more_than_both_bounds() {
        let told = [(Some(201), true), (Some(201), false), (None, true), (None, false)]
            .map(|(least, more)| peak_figure(least.map(|mib: u64| mib << 20), 501 << 20, more));
        assert_eq!(told, ["201 MiB to 501 MiB or more", "between 201 MiB and 501 MiB", "at least 501 MiB", "501 MiB"]);
    }

    #[test]
    fn a_curve_is_exact_only_where_each_reference_was_seen() {
        let seen = FileDemand { not_visible: Vec::new(), ..fixture::file_demand() };
        assert!(demand_caption(&seen, None).contains("; exact; source: filemap"));
        let part = FileDemand { sampled_share: 0.5, ..seen.clone() };
        assert!(demand_caption(&part, None).contains("; estimated from 50 % of the pages; source: filemap"));
        for least in [
            FileDemand { mapped_scanned_bytes: 1, ..seen.clone() },
            FileDemand { lost_events: 1, ..seen.clone() },
            FileDemand { not_visible: vec![("dax".into(), None)], ..seen.clone() },
            FileDemand { mapped_scanned_bytes: 1, ..part },
        ] {
            let told = demand_caption(&least, None);
            assert!(
                told.contains("a lower bound of what is read again; source: filemap") && !told.contains("exact"),
                "{told}"
            );
        }
    }
}

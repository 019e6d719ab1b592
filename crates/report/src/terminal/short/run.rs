//! The short account of one or more runs.

use std::iter::once;

use model::{Exit, FileDemand, KEPT_PEAK_NOTE, Observation, RunAccount, Target};

use super::{Aside, MOST_RUN_LINES, Rank, Short};
use crate::figures::{
    demand_is_least, ended_for_memory, headline, is_emulated, peak_figure, size, spreads, subject, uncached_step,
    under_limit, warnings,
};
use crate::format::{count, distinct_bytes, percent, printable, seconds};
use crate::tables::Tone;
use crate::terminal::Style;
use crate::{View, demand, verdict};

/// Parts of the peak below this share of it are left out.
const LEAST_PART_SHARE: f64 = 0.01;

/// A part that may be more than this share of the peak, and less than what is left of it, is not known.
const UNKNOWN_PART_SHARE: f64 = 0.8;

/// Bounds of a part that are no further apart than one in so many parts of the peak are one figure.
const CLOSE_PARTS: u64 = 20;

/// The page cache matters from this share of the peak on, and from this many bytes.
const LEAST_CACHE_SHARE: f64 = 0.1;
const LEAST_CACHE_BYTES: u64 = 1 << 20;
/// Without a cgroup mapped files are all that is known of it: programs and libraries are smaller than this.
const LEAST_MAPPED_BYTES: u64 = 16 << 20;

/// RSS is worth a line where it lacks this share of the peak, and as many bytes.
const LEAST_MISSING_SHARE: f64 = 0.1;

/// Waiting for I/O is worth a line from this share of the tasks' time on, and from this many seconds.
const LEAST_IO_SHARE: f64 = 0.1;
const LEAST_IO_SECONDS: f64 = 0.1;

/// The account of the record's runs in a few lines; the first is the answer.
pub fn run(view: &View, aside: &Aside, style: Style) -> String {
    let mut short = Short::new(style);
    let runs = view.plain_runs();
    let Some((observation, account)) = view.foremost_run() else {
        short.section(Rank::Answer, |page| page.paragraph(Tone::Strong, "no run was recorded"));
        short.notes(aside.notes.iter());
        return short.finish(MOST_RUN_LINES, aside.record);
    };
    let is_whole = account.doubts.is_empty() && account.exit_status.is_none_or(|status| status == 0);
    let tone = if is_whole { Tone::Strong } else { Tone::Warning };
    let voiding = account.doubts.iter().find(|doubt| doubt.voids);
    let (head, made_of) = match voiding {
        Some(_) => (headline(observation, account, runs.len()), String::new()),
        None => (peak(observation, account), made_of(account, runs.len())),
    };
    short.section(Rank::Answer, |page| page.answer(tone, &head, &made_of, &ending(observation, account)));
    if voiding.is_none() {
        short.doubts(&account.doubts);
    }
    if let Some(step) = uncached_step(observation, account) {
        short.section(Rank::Answer, |page| page.paragraph(Tone::Plain, &step));
    }
    for (tone, problem) in problems(view, observation, account) {
        short.section(Rank::Answer, |page| page.paragraph(tone, &problem));
    }
    short.warnings(account.file_demand.iter().flat_map(|demand| warnings(demand, &account.doubts)));
    short.warnings(aside.warnings.iter().cloned());
    let facts = cache_facts(observation, account).into_iter().chain(limiting_facts(view, account));
    for (name, text) in several(&runs).into_iter().chain(parts(view)).chain(facts) {
        short.section(Rank::Fact, |page| page.fact(name, &text));
    }
    if let Some(sentence) = of_other_tools(account) {
        short.section(Rank::Fact, |page| page.paragraph(Tone::Plain, &sentence));
    }
    // Where nothing is known of the command, nothing needs a word on how it was measured.
    let is_shown = |note: &&String| !aside.notes.contains(note) && !note.starts_with(KEPT_PEAK_NOTE);
    let of_run = account.notes.iter().filter(|note| voiding.is_none() && is_shown(note));
    short.notes(aside.notes.iter().chain(of_run));
    short.finish(MOST_RUN_LINES, aside.record)
}

/// The peak, and whether it is one of a whole run.
fn peak(observation: &Observation, account: &RunAccount) -> String {
    let subject = subject(observation);
    let subject = if subject.is_empty() { subject } else { format!("{}: ", subject.trim_end()) };
    let Some(need) = verdict::need(account) else { return format!("{subject}peak not known") };
    let is_killed = account.limit_bytes.is_some() && account.oom_kills.is_some_and(|kills| kills > 0);
    let cut = account.cut_short.as_deref().filter(|_| !is_killed);
    let may_be_more = cut.is_some() || verdict::peak_is_least(account);
    let figure = peak_figure(verdict::need_at_least(account), need, may_be_more);
    let until = cut.map(|cut| format!(" until {}", printable(cut))).unwrap_or_default();
    let what = match under_limit(observation, account) {
        Some(under) if is_killed => format!("killed for lack of memory {under}: peak {figure}"),
        Some(under) => format!("peak {figure} {under}{until}"),
        None => format!("peak {figure}{until}"),
    };
    format!("{subject}{what}")
}

/// What the peak is made of, and what it lacks.
fn made_of(account: &RunAccount, runs: usize) -> String {
    let need = verdict::need(account);
    let mut asides: Vec<String> = need.and_then(|need| parts_of_peak(account, need)).into_iter().collect();
    if account.peak_charge_bytes.is_none() && need.is_some() {
        asides.push("sum over its processes, page cache not known".into());
    }
    if verdict::need_at_least(account).is_some() {
        asides.push("what its processes share is not known".into());
    }
    if runs > 1 {
        asides.push(format!("highest of {runs} runs"));
    }
    if asides.is_empty() { String::new() } else { format!("({})", asides.join("; ")) }
}

/// The parts of the peak that are known and large enough to matter.
fn parts_of_peak(account: &RunAccount, need: u64) -> Option<String> {
    let (parts, file) = match account.peak_charge_bytes {
        Some(_) => (account.peak_breakdown, "page cache"),
        None => (account.peak_breakdown, "mapped files"),
    };
    let least = account.peak_breakdown_at_least;
    let named = [
        ("heap", least.heap, parts.heap),
        (file, least.file, parts.file),
        ("shared memory", least.shared, parts.shared),
        ("kernel", least.kernel, parts.kernel),
    ];
    // Where no sample saw the peak, any kind may be nearly all of it.
    let may_be_all = |(_, least, most): &(&str, Option<u64>, Option<u64>)| {
        let share = |bytes: Option<u64>| bytes.unwrap_or(0) as f64 / need as f64;
        share(*most) > UNKNOWN_PART_SHARE && share(*least) < 1.0 - UNKNOWN_PART_SHARE
    };
    if named.iter().filter(|part| may_be_all(part)).count() > 1 {
        return Some("heap or files: no sample saw which".into());
    }
    // Lower bounds of all parts together are never more than the whole.
    let close = account.tree_held_at_least_bytes.map_or(need, |least| least.min(need)) / CLOSE_PARTS;
    let matters = |bytes: u64| bytes > 0 && bytes as f64 >= need as f64 * LEAST_PART_SHARE;
    let part = |(name, least, most): &(&str, Option<u64>, Option<u64>)| {
        let (least, most) = (least.or(*most)?, (*most)?);
        match most.saturating_sub(least) <= close {
            true => matters(least).then(|| format!("{name} {}", size(least))),
            false => Some(format!("{name} {} to {}", size(least), size(most))),
        }
    };
    let known: Vec<String> = named.iter().filter_map(part).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// How long it took, and how it ended.
fn ending(observation: &Observation, account: &RunAccount) -> Vec<String> {
    let end = match (observation.exit, account.exit_status) {
        (Exit::Signal(signal), _) => Some(format!("signal {signal}")),
        (Exit::StoppedEarly, _) => Some("stopped early".to_string()),
        (Exit::StillRunning, _) => Some("still running".to_string()),
        (Exit::Status(_), _) if observation.target != Target::Command => Some("ended".to_string()),
        (_, status) => status.map(|status| format!("exit {status}")),
    };
    once(seconds(account.wall_seconds)).chain(end).collect()
}

/// What went wrong, beside doubts.
fn problems(view: &View, whole: &Observation, account: &RunAccount) -> Vec<(Tone, String)> {
    // That the kernel killed it under a limit is in the headline.
    let is_told = account.limit_bytes.is_some() && !is_emulated(whole, account);
    let killed = ended_for_memory(whole, account).filter(|_| !is_told).map(|killed| (Tone::Bad, killed));
    let parts = view.parts_of(whole);
    let failed: Vec<String> = parts
        .iter()
        .filter_map(|(run, account)| Some((run, account.exit_status.filter(|status| *status != 0)?)))
        .map(|(run, status)| format!("{} exit {status}", place(run)))
        .collect();
    let failed = failed.first().map(|first| {
        let more = if failed.len() > 1 { format!(" and {} more", failed.len() - 1) } else { String::new() };
        (Tone::Bad, format!("failed: {first}{more}"))
    });
    let cut = "the record was cut short: what follows is what had been written by then";
    let cut_short = (!view.complete).then(|| (Tone::Warning, cut.to_string()));
    let unfinished = view.unfinished().map(|unfinished| (Tone::Warning, unfinished.to_string()));
    unfinished.into_iter().chain(killed).chain(failed).chain(cut_short).collect()
}

/// How far several runs differed.
fn several(runs: &[(&Observation, &RunAccount)]) -> Option<(&'static str, String)> {
    let spreads = spreads(runs);
    let range = |name: &str| {
        let figure = spreads.iter().find(|figure| figure.name == name)?;
        let [min, max] = [figure.spread.min, figure.spread.max].map(figure.text);
        Some(if min == max { min } else { format!("{min} to {max}") })
    };
    let peaks = range("peak charge").or_else(|| range("App-MaxRSS tree")).map(|range| format!("peak {range}"));
    let walls = range("wall").map(|range| format!("wall {range}"));
    let text = peaks.into_iter().chain(walls).collect::<Vec<_>>().join("; ");
    (runs.len() > 1 && !text.is_empty()).then_some(("runs", text))
}

/// Which rank or node of a merged run had most.
fn parts(view: &View) -> Option<(&'static str, String)> {
    let parts: Vec<_> = view.runs.iter().filter(|(run, _)| run.origin.is_some()).collect();
    let (run, account) = parts.iter().max_by_key(|(_, account)| verdict::need(account))?;
    let need = verdict::need(account)?;
    Some(("largest part", format!("{}   {}, one of {}", size(need), place(run), parts.len())))
}

fn place(run: &Observation) -> String {
    let Some(origin) = &run.origin else { return String::new() };
    match origin.rank {
        Some(rank) => format!("rank {rank} on {}", printable(&origin.host)),
        None => printable(&origin.host),
    }
}

/// What must fit, and up to where memory for the page cache pays off; nothing where the page cache is no matter.
fn cache_facts(observation: &Observation, account: &RunAccount) -> Vec<(&'static str, String)> {
    let need = verdict::need(account);
    let least = if account.peak_charge_bytes.is_some() { LEAST_CACHE_BYTES } else { LEAST_MAPPED_BYTES };
    let has_files = need
        .zip(account.peak_breakdown.file)
        .is_some_and(|(need, file)| file >= least && file as f64 >= need as f64 * LEAST_CACHE_SHARE);
    // Under a limit the curve is of what the limit left.
    let demand = account.file_demand.as_ref().filter(|_| account.limit_bytes.is_none());
    if !has_files && !demand.is_some_and(|demand| needs_more_than(demand, need)) {
        return Vec::new();
    }
    let is_killed = account.oom_kills.is_some_and(|kills| kills > 0);
    let is_least = account.cut_short.is_some() || is_killed || verdict::floor_is_least(account);
    let at_least = if is_least { "at least " } else { "" };
    let must_fit = account.floor_bytes.map(|floor| {
        let to = verdict::floor_at_most(account).map_or(String::new(), |most| format!(" to {}", size(most)));
        ("must fit", format!("{at_least}{}{to}   cannot be reclaimed", size(floor)))
    });
    let pays_off = demand.and_then(|demand| pays_off(demand, demand::seconds_per_byte(observation, account)));
    must_fit.into_iter().chain(pays_off).collect()
}

/// Whether files are read again that are charged to others, or that nobody counted.
fn needs_more_than(demand: &FileDemand, need: Option<u64>) -> bool {
    let (Some(first), Some(knee), Some(need)) = (demand.points.first(), demand.knee(), need) else {
        return false;
    };
    first.refault_bytes >= LEAST_CACHE_BYTES && knee.limit_bytes as f64 > need as f64 * (1.0 + LEAST_CACHE_SHARE)
}

fn pays_off(demand: &FileDemand, seconds_per_byte: Option<f64>) -> Option<(&'static str, String)> {
    let first = demand.points.first()?;
    let knee = demand.knee()?;
    if knee == *first {
        let saves = match (first.refault_bytes, demand_is_least(demand)) {
            (0, true) => "saves no reads that bursar saw: no page of a file was used again".into(),
            (0, false) => "saves no reads: no page of a file is used again".into(),
            (some, true) => format!("saves at least {} of reads", size(some)),
            (some, false) => format!("saves only {} of reads", size(some)),
        };
        return Some(("more memory", saves));
    }
    // The nearest first.
    let below = demand::below_knee(demand);
    let mut limits: Vec<u64> = below.iter().rev().map(|point| point.limit_bytes).collect();
    limits.push(knee.limit_bytes);
    let mut labels = distinct_bytes(&limits);
    let at_knee = labels.pop().unwrap_or_default();
    if knee.limit_bytes == demand.known_from_bytes {
        return Some((
            "pays off up to",
            format!("{at_knee}   below that its mapped files do not fit, and may be read all the time"),
        ));
    }
    let below = below.into_iter().zip(labels.into_iter().rev()).map(|(point, limit)| {
        let again = size(point.refault_bytes);
        if demand_is_least(demand) || point.limit_bytes < demand.known_from_bytes {
            return format!("at least {again} at {limit}");
        }
        let time = seconds_per_byte.map(|price| format!(" ({} more)", seconds(price * point.refault_bytes as f64)));
        format!("{again}{} at {limit}", time.unwrap_or_default())
    });
    let again = below.collect::<Vec<_>>().join(", ");
    Some(("pays off up to", format!("{at_knee}   below that it reads again: {again}")))
}

/// What slows it down or is beside the charge.
fn limiting_facts(view: &View, account: &RunAccount) -> Vec<(&'static str, String)> {
    let refaults = account.flow.refaults_file.filter(|_| account.limit_bytes.is_some());
    let again = refaults.map(|pages| pages.saturating_mul(view.header.page_bytes));
    let again = again.filter(|bytes| *bytes >= LEAST_CACHE_BYTES);
    let waits = |share: &f64| *share >= LEAST_IO_SHARE && share * account.wall_seconds >= LEAST_IO_SECONDS;
    let io = account.io_wait_share.filter(waits);
    let swap = account.swap_bytes.filter(|bytes| *bytes > 0);
    let pool = account.peak_breakdown.hugetlb.filter(|bytes| *bytes > 0);
    [
        again.map(|bytes| ("reads again", format!("{} of file pages, reclaimed under the limit", size(bytes)))),
        io.map(|share| ("waits for I/O", format!("{} of its time", percent(Some(share))))),
        swap.map(|bytes| ("swap", format!("{} at most", size(bytes)))),
        pool.map(|bytes| ("huge pages", format!("{} of the pool, beside the peak", size(bytes)))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What tools that report RSS would say, where that is clearly less.
fn of_other_tools(account: &RunAccount) -> Option<String> {
    let (charge, largest) = (account.peak_charge_bytes?, account.app_max_rss_bytes?);
    let tree = account.tree_max_rss_bytes.unwrap_or(largest).max(largest);
    let lacks = |figure: u64, of: u64| {
        let missing = of.saturating_sub(figure);
        missing >= LEAST_CACHE_BYTES && missing as f64 >= of as f64 * LEAST_MISSING_SHARE
    };
    let cache = account.peak_breakdown.file.unwrap_or(0);
    let lacks_cache = lacks(tree, charge) && cache >= (charge - tree) / 2;
    let lacks_processes = lacks(largest, tree);
    if !lacks_cache && !lacks_processes {
        return None;
    }
    let processes = account.processes.filter(|processes| *processes > 1);
    let of = processes.map(|count_of| format!(" (the largest of {} processes)", count(Some(count_of))));
    let figures = if lacks_processes {
        format!(
            "GNU time would report {}{}, seff {} if Slurm counts RSS",
            size(largest),
            of.unwrap_or_default(),
            size(tree)
        )
    } else {
        format!("GNU time would report {}, seff too if Slurm counts RSS", size(largest))
    };
    Some(if lacks_cache { format!("{figures}: the page cache is missing there") } else { figures })
}

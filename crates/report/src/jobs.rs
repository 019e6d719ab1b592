//! What jobs should ask for, in a sentence and a table.

use model::{ByNumber, Bytes, JobMemory, JobsMemory};

use crate::format::{UNKNOWN, count, floor_bytes, or_unknown, percent, printable, short_bytes};
use crate::tables::{Table, Tone};

/// The answer: what asking for that would have saved, and how many runs it would have killed.
pub fn headline(found: &JobsMemory) -> String {
    let known: Vec<&JobMemory> = found.jobs.iter().filter(|job| job.mem_bytes.is_some()).collect();
    let sum = |of: fn(&JobMemory) -> Option<f64>| known.iter().filter_map(|job| of(job)).reduce(|sum, more| sum + more);
    let all = |of: fn(&JobMemory) -> u64| known.iter().map(|job| of(job)).sum::<u64>();
    let all_runs = found.jobs.iter().map(|job| job.runs).sum::<u64>();
    let unknown = all_runs - all(|job| job.runs);
    let runs = format!("{} {}", count(Some(all_runs)), if all_runs == 1 { "past job" } else { "past jobs" });
    if known.is_empty() {
        return format!("{runs}: none of a kind that ended well, so no --mem is known that is enough");
    }
    let (reserved, saved) = (sum(|job| job.reserved_gib_hours), sum(|job| job.saved_gib_hours));
    let killed = match (all(|job| job.killed), all(|job| job.maybe_killed)) {
        (0, 0) => "killed none of them".to_string(),
        (killed, 0) => format!("killed {} of them", count(Some(killed))),
        (killed, maybe) => {
            let why = if known.iter().any(|job| job.is_upper_bound && job.maybe_killed > job.cut_short) {
                "more"
            } else {
                "that were cut short"
            };
            format!("killed {} of them, and perhaps {} {why}", count(Some(killed)), count(Some(maybe)))
        }
    };
    let unknown = match unknown {
        0 => String::new(),
        1 => ". 1 more is of a kind that never ended well".to_string(),
        some => format!(". {} more are of kinds that never ended well", count(Some(some))),
    };
    let single = found.jobs.iter().filter(|job| job.runs == 1).count() as u64;
    let unknown = match 2 * single > all_runs {
        true => format!(
            "{unknown}. That is no evidence: {single} of them {} the only run of its kind. --by groups jobs in another way",
            if single == 1 { "is" } else { "are each" }
        ),
        false => unknown,
    };
    let (Some(reserved), Some(saved)) = (reserved, saved) else {
        let what = if known.iter().any(|job| job.asked_bytes.is_some()) {
            "how long they ran is"
        } else {
            "their requests are"
        };
        return format!("{runs}: {what} unknown; asking for --mem would have {killed}{unknown}");
    };
    let saved = if saved < 0.0 {
        format!("cost {} GiB·h beyond the {}", hours(-saved), hours(reserved))
    } else {
        format!("saved {} of the {} GiB·h", hours(saved), hours(reserved))
    };
    format!("{runs}: asking for --mem would have {saved} that they reserved, and {killed}{unknown}")
}

/// A kind as it is printed.
pub fn name(job: &JobMemory) -> String {
    printable(&job.label())
}

/// What to ask for: `>`: more than that, and nobody knows how much; `≤`: at most that, since it holds page cache.
fn ask(job: &JobMemory) -> String {
    match job.mem_bytes {
        None => more_than(job.max_bytes),
        Some(mem) => {
            let bound = match (job.is_lower_bound, job.is_upper_bound) {
                (true, _) => "\u{2265}",
                (false, true) => "\u{2264}",
                (false, false) => "",
            };
            format!("{bound}{}M", Bytes(mem).mib_ceil())
        }
    }
}

/// Memory that runs needed, or that they needed more than.
fn need(bytes: u64, is_lower_bound: bool) -> String {
    if is_lower_bound { more_than(bytes) } else { short_bytes(bytes) }
}

fn more_than(bytes: u64) -> String {
    format!("> {}", floor_bytes(bytes))
}

/// A row for each kind.
pub fn table(found: &JobsMemory) -> Table {
    let wanted = format!("{} need", percent(Some(found.percentile)));
    let mut table = Table::new(&[
        "job",
        "runs",
        "half need",
        &wanted,
        "most",
        "cache",
        "asked",
        "--mem",
        "saves GiB·h",
        "killed",
        "next",
    ]);
    for job in &found.jobs {
        let tone = if job.killed > 0 || job.is_lower_bound { Tone::Warning } else { Tone::Plain };
        let kills = match (job.mem_bytes, job.maybe_killed) {
            (None, _) => UNKNOWN.to_string(),
            (_, 0) => job.killed.to_string(),
            (_, maybe) => format!("{} to {}", job.killed, job.killed + maybe),
        };
        let next = percent(Some((job.next_needs_more * 100.0).round() / 100.0));
        table.row(
            tone,
            vec![
                name(job),
                if job.cut_short > 0 { format!("{} ({} cut)", job.runs, job.cut_short) } else { job.runs.to_string() },
                or_unknown(job.median_bytes, short_bytes),
                // Of numbered names `--mem` is of the largest run, and a share of the runs may be known all the same.
                need(job.percentile_bytes, job.is_lower_bound && job.percentile_bytes == job.max_bytes),
                need(job.max_bytes, job.max_is_lower_bound),
                or_unknown(job.cache_bytes, short_bytes),
                or_unknown(job.asked_bytes, short_bytes),
                ask(job),
                or_unknown(job.saved_gib_hours, hours),
                kills,
                // Where memory goes with a number, past numbers say nothing of the next.
                match (job.mem_bytes, job.by_number) {
                    (None, _) | (_, Some(ByNumber::Grows | ByNumber::Falls)) => UNKNOWN.to_string(),
                    _ if job.next_needs_more < 0.01 => "< 1 %".to_string(),
                    _ => next,
                },
            ],
        );
    }
    table
}

/// Two or three digits, so that jobs of seconds show, too.
fn hours(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        0.0 => "0".to_string(),
        v if v >= 0.01 => format!("{value:.2}"),
        v if v >= 1e-5 => format!("{value:.*}", (1.0 - v.log10().floor()) as usize),
        _ => format!("{value:.1e}"),
    }
}

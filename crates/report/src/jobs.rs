//! What jobs should ask for, in a sentence and a table.

use model::{Bytes, JobMemory, JobsMemory, MemoryPer};

use crate::format::{UNKNOWN, count, or_unknown, percent, printable, short_bytes};
use crate::tables::{Table, Tone};

/// The answer: what asking for that would have saved, and whom it would have killed.
pub fn headline(found: &JobsMemory) -> String {
    let sum = |of: fn(&JobMemory) -> f64| found.jobs.iter().map(of).sum::<f64>();
    let all = |of: fn(&JobMemory) -> u64| found.jobs.iter().map(of).sum::<u64>();
    let (reserved, saved) = (sum(|job| job.reserved_gib_hours), sum(|job| job.saved_gib_hours));
    let runs = all(|job| job.runs);
    let killed = match (all(|job| job.killed), all(|job| job.maybe_killed)) {
        (0, 0) => "killed none".to_string(),
        (killed, 0) => format!("killed {}", count(Some(killed))),
        (killed, maybe) => {
            let why = if found.jobs.iter().any(|job| job.is_upper_bound && job.maybe_killed > job.cut_short) {
                "more"
            } else {
                "that were cut short"
            };
            format!("killed {}, and perhaps {} {why}", count(Some(killed)), count(Some(maybe)))
        }
    };
    let runs = format!("{} {}", count(Some(runs)), if runs == 1 { "past job" } else { "past jobs" });
    if reserved == 0.0 {
        return format!("{runs}: what they asked for is not told; asking for --mem would have {killed}");
    }
    let saved = if saved < 0.0 {
        format!("cost {} GiB·h beyond the {}", hours(-saved), hours(reserved))
    } else {
        format!("saved {} of the {} GiB·h", hours(saved), hours(reserved))
    };
    format!("{runs}: asking for --mem would have {saved} that they kept for themselves, and {killed}")
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
        "beside",
        "asked",
        "--mem",
        "saves GiB·h",
        "kills",
        "next",
    ]);
    for job in &found.jobs {
        let bound = if job.is_lower_bound { "> " } else { "" };
        let mut name = printable(&job.name);
        if job.per == MemoryPer::Cpu {
            name += " (per CPU)";
        }
        let tone = if job.killed > 0 || job.is_lower_bound { Tone::Warning } else { Tone::Plain };
        let kills = if job.maybe_killed > 0 {
            format!("{} to {}", job.killed, job.killed + job.maybe_killed)
        } else {
            job.killed.to_string()
        };
        table.row(
            tone,
            vec![
                name,
                if job.cut_short > 0 { format!("{} ({} cut)", job.runs, job.cut_short) } else { job.runs.to_string() },
                short_bytes(job.median_bytes),
                format!("{bound}{}", short_bytes(job.percentile_bytes)),
                short_bytes(job.max_bytes),
                or_unknown(job.cache_bytes, short_bytes),
                or_unknown(job.asked_bytes, short_bytes),
                format!("{}{}M", if job.is_upper_bound { "\u{2264}" } else { "" }, Bytes(job.mem_bytes).mib_ceil()),
                if job.asked_bytes.is_some() { hours(job.saved_gib_hours) } else { UNKNOWN.to_string() },
                kills,
                percent(Some((job.next_needs_more * 100.0).round() / 100.0)),
            ],
        );
    }
    table
}

/// Three digits, so that jobs of seconds show, too.
fn hours(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.1}"),
        v if v >= 0.01 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.2e}"),
    }
}

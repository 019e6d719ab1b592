//! An interval of watching, in one line.

use model::{Bytes, PagesRound, TOLERATED_MISSES};

use crate::format::printable;
use crate::watch::bound_by_huge_pages;

/// An interval that is shorter begins or ends at a fraction of a second that must be shown.
const LEAST_WHOLE_SECONDS: f64 = 0.95;

/// One interval in one line. `is_least`: the peak is a lower bound.
pub fn interval_line(round: &PagesRound, peak: Option<u64>, is_least: bool) -> String {
    let unseen = round.unseen_in_files();
    // Half of a lower bound says nothing.
    let half = round
        .wss_bytes
        .filter(|_| !round.is_lower_bound())
        .map(|now| now / 2)
        .filter(|half| *half >= round.blind_below.max(1));
    // The working set is of the last intervals together, the curve of one alone, which may need less than they.
    let is_of_before = half.is_some_and(|half| round.misses_at(half) <= TOLERATED_MISSES);
    let huge = bound_by_huge_pages(round);
    let needs = match (round.wss_bytes, peak) {
        (Some(0), Some(0)) => "no memory was accessed a second time yet, so its need is unknown".into(),
        (Some(now), Some(peak)) => {
            let about = match huge {
                Some(_) => "at most",
                None if round.is_lower_bound() => "at least",
                None => "about",
            };
            let least = if is_least && about == "about" { "at least " } else { "" };
            match is_of_before {
                true => format!("needed {about} {} in the last intervals, {least}{} at peak", Bytes(now), Bytes(peak)),
                false => format!("needs {about} {} now, {least}{} at peak", Bytes(now), Bytes(peak)),
            }
        }
        _ => match round.accessed_at_least {
            Some(least) => format!("its need is unknown yet; it accessed {} so far", Bytes(least)),
            None => "its need is unknown yet".into(),
        },
    };
    let in_files = unseen.map_or_else(String::new, |(bytes, name)| {
        format!(
            ", and up to {} more: reads and writes of files in memory ({}) are not seen",
            Bytes(bytes),
            printable(name)
        )
    });
    let late = round.late_scans().map_or_else(String::new, |seconds| format!("; scans came up to {seconds:.1} s late"));
    let huge = huge.map_or_else(String::new, |huge| {
        format!("; an upper bound: {} are huge pages, each of which counts as a whole", Bytes(huge))
    });
    let less = half.map_or(String::new(), |half| match round.misses_at(half) {
        misses if misses > TOLERATED_MISSES => format!("; {} would cost {misses:.0} refaults/s", Bytes(half)),
        _ if round.tracking => format!("; this interval alone needed less than {}", Bytes(half)),
        _ => format!("; the last tracked interval alone needed less than {}", Bytes(half)),
    });
    let blind = match round.blind_bytes {
        0 => String::new(),
        blind => format!("; {} cannot be seen", Bytes(blind)),
    };
    let files = match (round.file_touched_bytes, round.file_bytes.filter(|bytes| *bytes > 0)) {
        (Some(touched), Some(all)) => format!(", and {} of {} of files", Bytes(touched), Bytes(all)),
        _ => String::new(),
    };
    let lost = if round.lost_events > 0 { ", of which some were lost" } else { "" };
    let phase = if round.new_phase { "new phase, " } else { "" };
    let tracking = if round.tracking { "on" } else { "off" };
    // Two lines of one second would look like one twice.
    let decimals = usize::from(round.seconds < LEAST_WHOLE_SECONDS);
    format!(
        "{:.decimals$} s: {phase}{needs}{in_files}{late}{huge}{less}; {} of {}{files} touched{lost}{blind}; tracking is {tracking}, scanning costs {:.1} %",
        round.t_ns as f64 / 1e9,
        Bytes(round.touched_bytes),
        Bytes(round.tracked_bytes),
        round.overhead.share() * 100.0
    )
}

#[cfg(test)]
mod tests {
    use model::MissPoint;

    use super::*;

    #[test]
    fn a_line_says_what_it_needs_and_what_less_would_cost() {
        let point = |bytes, misses_per_second| MissPoint { bytes, misses_per_second };
        let round = PagesRound {
            t_ns: 7_000_000_000,
            seconds: 1.0,
            wss_bytes: Some(64 << 20),
            tracking: true,
            tracked_bytes: 100 << 20,
            touched_bytes: 60 << 20,
            misses: vec![point(0, 900.0), point(16 << 20, 400.0), point(64 << 20, 0.0)],
            ..PagesRound::default()
        };
        assert_eq!(
            interval_line(&round, Some(80 << 20), false),
            "7 s: needs about 64.0 MiB now, 80.0 MiB at peak; 32.0 MiB would cost 400 refaults/s; 60.0 MiB of 100 MiB touched; \
             tracking is on, scanning costs 0.0 %"
        );
        let short = PagesRound { t_ns: 7_200_000_000, seconds: 0.2, ..round.clone() };
        assert!(interval_line(&short, None, false).starts_with("7.2 s: "), "{}", interval_line(&short, None, false));
        let reads = PagesRound { file_bytes: Some(300 << 20), file_touched_bytes: Some(20 << 20), ..round.clone() };
        assert!(
            interval_line(&reads, None, false)
                .contains("60.0 MiB of 100 MiB, and 20.0 MiB of 300 MiB of files touched;")
        );
        let off = PagesRound { tracking: false, new_phase: true, ..round.clone() };
        let off = interval_line(&off, None, false);
        assert!(off.starts_with("7 s: new phase, ") && off.contains("tracking is off"), "{off}");
        let blind = PagesRound { blind_below: 40 << 20, blind_bytes: 1 << 20, ..round.clone() };
        assert!(!interval_line(&blind, None, false).contains("would cost"), "below that nothing is known");
        let quiet = PagesRound { misses: vec![MissPoint { bytes: 0, misses_per_second: 9.0 }], ..round.clone() };
        assert!(
            interval_line(&quiet, Some(80 << 20), false).starts_with(
                "7 s: needed about 64.0 MiB in the last intervals, 80.0 MiB at peak; this interval alone needed less than 32.0 MiB; 60.0"
            ),
            "{}",
            interval_line(&quiet, Some(80 << 20), false)
        );
        let quiet = PagesRound { tracking: false, ..quiet };
        assert!(
            interval_line(&quiet, None, false).contains("; the last tracked interval alone needed less than 32.0 MiB;")
        );
        assert!(interval_line(&PagesRound::default(), None, false).contains("its need is unknown yet;"));
        let least = PagesRound { accessed_at_least: Some(3 << 20), ..PagesRound::default() };
        assert!(interval_line(&least, None, false).contains("its need is unknown yet; it accessed 3.00 MiB so far;"));
        let none = PagesRound { wss_bytes: Some(0), ..PagesRound::default() };
        assert!(interval_line(&none, Some(0), false).contains("no memory was accessed a second time yet"));
        let huge = PagesRound { huge_touched_bytes: 40 << 20, ..round.clone() };
        assert!(interval_line(&huge, Some(80 << 20), false).contains(
            "needs at most 64.0 MiB now, 80.0 MiB at peak; an upper bound: 40.0 MiB are huge pages, each of which counts as a whole;"
        ));
        let late = PagesRound { scans_late_seconds: 0.8, ..huge };
        assert!(interval_line(&late, Some(80 << 20), true).contains("needs at most 64.0 MiB now, 80.0 MiB at peak;"));
        let unseen = PagesRound {
            files_in_memory_bytes: 80 << 20,
            largest_file_in_memory: Some("/dev/shm/x".into()),
            ..round.clone()
        };
        assert!(interval_line(&unseen, Some(80 << 20), true).starts_with(
            "7 s: needs at least 64.0 MiB now, 80.0 MiB at peak, and up to 80.0 MiB more: reads and writes of files in memory \
             (/dev/shm/x) are not seen; 60.0 MiB of"
        ));
        assert!(
            interval_line(&round, Some(80 << 20), true)
                .contains("needs about 64.0 MiB now, at least 80.0 MiB at peak;")
        );
        let late = PagesRound { scans_late_seconds: 0.8, ..round.clone() };
        assert!(interval_line(&late, Some(80 << 20), true).starts_with(
            "7 s: needs at least 64.0 MiB now, 80.0 MiB at peak; scans came up to 0.8 s late; 60.0 MiB of"
        ));
        let little = PagesRound { files_in_memory_bytes: 6 << 20, ..unseen };
        assert!(interval_line(&little, Some(80 << 20), false).contains("needs about 64.0 MiB now, 80.0 MiB at peak;"));
    }
}

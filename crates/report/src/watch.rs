//! What was watched, in sentences and tables.

use model::{Bytes, Header, PagesRound, TOLERATED_MISSES};

use crate::figures::size;
use crate::format::{bytes, count, percent, printable, seconds};
use crate::tables::{Table, Tone};

/// What a report of watching is made from.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// Where, when and of what the record is.
    pub header: &'a Header,
    /// Its intervals, in order.
    pub rounds: &'a [PagesRound],
    /// Notes, as sentences.
    pub notes: &'a [String],
}

/// What all intervals come to, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// The largest working set, and the last, bytes.
    wss_bytes: Option<(u64, u64)>,
    /// What was accessed, where no working set is known.
    accessed_bytes: Option<u64>,
    /// The most memory in files whose reads and writes were not seen, where that matters.
    unseen_in_files: Option<(u64, String)>,
    /// The most that scans came late, where that matters.
    late_seconds: Option<f64>,
    /// Of an interval that had the most, where they make its working set an upper bound.
    huge_bytes: Option<u64>,
    intervals: usize,
    seconds: f64,
    tracked_seconds: f64,
    looked_seconds: f64,
}

/// The huge pages that make the working set of an interval an upper bound, whatever else of it is unseen or came late: each counts as a whole.
pub fn bound_by_huge_pages(round: &PagesRound) -> Option<u64> {
    Some(round.huge_touched_bytes).filter(|huge| huge * 2 > round.touched_bytes)
}

impl Totals {
    /// Adds the next interval.
    pub fn add(&mut self, round: &PagesRound) {
        if let Some(now) = round.wss_bytes {
            if self.wss_bytes.is_none_or(|(peak, _)| now >= peak) {
                self.huge_bytes = bound_by_huge_pages(round);
            }
            let peak = self.wss_bytes.map_or(now, |(peak, _)| peak.max(now));
            self.wss_bytes = Some((peak, now));
        }
        if let Some((bytes, name)) = round.unseen_in_files() {
            if self.unseen_in_files.as_ref().is_none_or(|(most, _)| bytes >= *most) {
                self.unseen_in_files = Some((bytes, name.to_string()));
            }
        }
        self.accessed_bytes = self.accessed_bytes.max(round.accessed_at_least);
        let late = self.late_seconds.into_iter().chain(round.late_scans()).reduce(f64::max);
        self.late_seconds = late;
        self.intervals += 1;
        self.seconds += round.seconds;
        self.tracked_seconds += if round.tracking { round.seconds } else { 0.0 };
        self.looked_seconds += round.overhead.share() * round.seconds;
    }

    /// How many intervals there were.
    pub fn intervals(&self) -> usize {
        self.intervals
    }

    /// Whether a working set is known of any of them.
    pub fn has_need(&self) -> bool {
        self.wss_bytes.is_some()
    }

    /// The answer.
    pub fn headline(&self) -> String {
        let Some((peak, last)) = self.wss_bytes else {
            let accessed =
                self.accessed_bytes.map_or_else(String::new, |bytes| format!("; it accessed {}", size(bytes)));
            let time = seconds(self.seconds);
            return format!("the memory that it needs is unknown after {time}{accessed}");
        };
        let figures = format!("{} at peak, {} at its end", size(peak), size(last));
        if let Some(huge) = self.huge_bytes {
            let more = self.unseen_in_files.as_ref().map_or_else(String::new, |(bytes, name)| {
                let (bytes, name) = (size(*bytes), printable(name));
                format!(", and up to {bytes} more: reads and writes of files in memory ({name}) are not seen")
            });
            let huge = size(huge);
            return format!("needs at most {figures}{more}: {huge} are huge pages, each of which counts as a whole");
        }
        match (&self.unseen_in_files, self.late_seconds) {
            (Some((bytes, name)), _) => format!(
                "needs at least {figures}, and up to {} more: reads and writes of files in memory ({}) are not seen",
                size(*bytes),
                printable(name)
            ),
            (None, Some(seconds)) => format!("needs at least {figures}: scans came up to {seconds:.1} s late"),
            (None, None) => format!("needs about {figures}"),
        }
    }

    /// What it was watched for, and what that cost.
    pub fn summary(&self) -> String {
        let share = |of: f64| percent(Some(if self.seconds > 0.0 { of / self.seconds } else { 0.0 }));
        format!(
            "watched for {}; {} interval{}, tracking on for {} of the time; looking cost {} of one processor, the program's \
             loss included",
            seconds(self.seconds),
            self.intervals,
            if self.intervals == 1 { "" } else { "s" },
            share(self.tracked_seconds),
            share(self.looked_seconds),
        )
    }
}

/// Intervals between two changes of the working set.
pub struct Phase<'a> {
    /// Its intervals; at least one.
    pub rounds: &'a [PagesRound],
}

impl<'a> Watched<'a> {
    /// The phases, in order.
    pub fn phases(&self) -> Vec<Phase<'a>> {
        let same = |_: &PagesRound, next: &PagesRound| !next.new_phase;
        self.rounds.chunk_by(same).map(|rounds| Phase { rounds }).collect()
    }

    /// The answer.
    pub fn headline(&self) -> String {
        self.totals().headline()
    }

    /// What it was watched for, and what that cost.
    pub fn summary(&self) -> String {
        self.totals().summary()
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.rounds.iter().for_each(|round| totals.add(round));
        totals
    }

    /// The observed target.
    pub fn target(&self) -> String {
        match self.header.command.is_empty() {
            true => self
                .header
                .options
                .get("target")
                .map_or_else(String::new, |target| format!("process or cgroup {target}")),
            false => {
                self.header.command.iter().map(|word| crate::format::shell_word(word)).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// A line a phase.
    pub fn phases_table(&self) -> Table {
        let mut table =
            Table::new(&["from", "to", "working set", "largest", "half of it costs", "resident", "files", "tracked"]);
        for phase in self.phases() {
            let (first, last) = (&phase.rounds[0], &phase.rounds[phase.rounds.len() - 1]);
            let known = || phase.rounds.iter().filter_map(|round| round.wss_bytes);
            let half = phase.shown().and_then(|round| {
                let half = round.wss_bytes? / 2;
                // The curve is of this interval alone, which may need less than the last ones together.
                let cost = Some(round.misses_at(half)).filter(|misses| *misses > TOLERATED_MISSES);
                let cost = cost.filter(|_| half >= round.blind_below && !round.is_lower_bound());
                cost.map(|misses| format!("{} refaults/s", count(Some(misses.round() as u64))))
            });
            let tracked = phase.rounds.iter().filter(|round| round.tracking).count();
            table.row(
                Tone::Plain,
                vec![
                    format!("{:.1} s", begin(first)),
                    format!("{:.1} s", last.t_ns as f64 / 1e9),
                    bytes(known().next_back()),
                    bytes(known().max()),
                    half.unwrap_or_else(|| "-".into()),
                    bytes(phase.shown().map(|round| round.tracked_bytes)),
                    bytes(phase.shown().and_then(|round| round.file_bytes)),
                    format!("{tracked} of {}", phase.rounds.len()),
                ],
            );
        }
        table
    }
}

impl<'a> Phase<'a> {
    /// The interval that stands for it: the last that was tracked.
    pub fn shown(&self) -> Option<&'a PagesRound> {
        self.rounds.iter().rfind(|round| round.tracking)
    }

    /// From its first second to its last.
    pub fn name(&self) -> String {
        let (first, last) = (&self.rounds[0], &self.rounds[self.rounds.len() - 1]);
        let wss =
            self.shown().and_then(|round| round.wss_bytes).map_or(String::new(), |wss| format!(": {}", Bytes(wss)));
        format!("{:.0} to {:.0} s{wss}", begin(first), last.t_ns as f64 / 1e9)
    }
}

/// The second at which an interval began.
pub fn begin(round: &PagesRound) -> f64 {
    (round.t_ns as f64 / 1e9 - round.seconds).max(0.0)
}

#[cfg(test)]
pub mod tests {
    use model::{AgeBytes, MappingHeat, MissPoint, RecordKind};

    use super::*;

    pub fn header() -> Header {
        Header { command: vec!["solve".into(), "<input>".into()], ..crate::fixture::header(RecordKind::Watch) }
    }

    /// Two phases of three intervals, in each of which the last is not tracked.
    pub fn rounds() -> Vec<PagesRound> {
        (1..=6u64)
            .map(|second| {
                let mib = if second <= 3 { 64 } else { 16 };
                let point = |mib: u64, misses_per_second| MissPoint { bytes: mib << 20, misses_per_second };
                let heat = MappingHeat {
                    pid: 42,
                    start: 0x5000_0000,
                    end: 0x5000_0000 + (64 << 20),
                    name: "/usr/lib/<big>.so".into(),
                    resident: 64 << 20,
                    touched: mib << 20,
                    blind: 0,
                    parts: vec![Some(1.0), Some(mib as f32 / 64.0), None, Some(0.0)],
                };
                let round = PagesRound {
                    tracking: true,
                    new_phase: second == 4,
                    tracked_bytes: 80 << 20,
                    file_bytes: Some(20 << 20),
                    wss_bytes: Some(mib << 20),
                    misses: vec![point(0, 900.0), point(mib / 4, 400.0), point(mib, 0.0)],
                    heat: vec![heat],
                    ages: vec![AgeBytes { below: Some(1.0), bytes: mib << 20 }],
                    ..PagesRound::default()
                };
                let round = if second % 3 == 0 { PagesRound::default() } else { round };
                PagesRound { t_ns: second * 1_000_000_000, seconds: 1.0, ..round }
            })
            .collect()
    }

    #[test]
    fn a_phase_lasts_until_the_next_begins() {
        let (header, rounds) = (header(), rounds());
        let watched = Watched { header: &header, rounds: &rounds, notes: &[] };
        assert_eq!(watched.headline(), "needs about 64.0 MiB at peak, 16.0 MiB at its end");
        let rows: Vec<_> = watched.phases_table().rows.into_iter().map(|(_, cells)| cells.join("|")).collect();
        assert_eq!(rows[0], "0.0 s|3.0 s|64.0 MiB|64.0 MiB|400 refaults/s|80.0 MiB|20.0 MiB|2 of 3");
        assert!(rows.len() == 2 && rows[1].contains("16.0 MiB"), "{rows:?}");
        assert!(watched.summary().contains("tracking on for 66.7 % of the time"), "{}", watched.summary());
        assert_eq!(watched.phases()[1].name(), "3 to 6 s: 16.0 MiB");
    }

    #[test]
    fn files_in_memory_make_the_need_a_lower_bound() {
        let (header, mut rounds) = (header(), rounds());
        rounds[1].files_in_memory_bytes = 80 << 20;
        rounds[1].largest_file_in_memory = Some("/dev/shm/x".into());
        let watched = Watched { header: &header, rounds: &rounds, notes: &[] };
        assert_eq!(
            watched.headline(),
            "needs at least 64.0 MiB at peak, 16.0 MiB at its end, and up to 80.0 MiB more: reads and writes of files in memory \
             (/dev/shm/x) are not seen"
        );
    }

    #[test]
    fn late_scans_make_the_need_a_lower_bound() {
        let (header, mut rounds) = (header(), rounds());
        rounds[1].scans_late_seconds = 0.75;
        rounds[2].scans_late_seconds = 0.4;
        let watched = Watched { header: &header, rounds: &rounds, notes: &[] };
        assert_eq!(
            watched.headline(),
            "needs at least 64.0 MiB at peak, 16.0 MiB at its end: scans came up to 0.8 s late"
        );
    }

    #[test]
    fn huge_pages_make_the_need_an_upper_bound() {
        let (header, mut rounds) = (header(), rounds());
        for round in &mut rounds {
            (round.huge_touched_bytes, round.touched_bytes) = (62 << 20, 64 << 20);
        }
        rounds[1].scans_late_seconds = 0.75;
        let watched = Watched { header: &header, rounds: &rounds, notes: &[] };
        assert_eq!(
            watched.headline(),
            "needs at most 64.0 MiB at peak, 16.0 MiB at its end: 62.0 MiB are huge pages, each of which counts as a whole"
        );
    }

    #[test]
    fn without_anything_known_that_is_told() {
        let header = header();
        let rounds = [PagesRound::default()];
        let watched = Watched { header: &header, rounds: &rounds, notes: &[] };
        assert!(watched.headline().contains("is unknown"));
        assert_eq!(watched.phases_table().rows[0].1[2], "-");
    }
}

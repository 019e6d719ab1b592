//! Where intervals are told: in a view, as lines, as JSON, and in a record.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use model::{Bytes, PagesRound, TOLERATED_MISSES, WatchInterval};
use record::Entry;
use report::{Totals, shell_word};
use session::input::is_dash;
use session::say;
use session::sink::Sink;

use super::view::{Key, View};
use crate::json_lines::JsonLines;

/// An interval that is shorter begins or ends at a fraction of a second that must be shown.
const LEAST_WHOLE_SECONDS: f64 = 0.95;

/// Where it is to be told.
pub struct Places<'a> {
    /// JSON lines go to this file, or to standard output for `-`.
    pub json: Option<&'a Path>,
    /// Lines for people are printed, but where there is a view.
    pub has_lines: bool,
    pub has_view: bool,
    /// A command has standard output.
    pub has_command: bool,
}

/// Where it is told, and what was told before.
pub struct Told {
    pub view: Option<View>,
    lines: Option<Box<dyn Write>>,
    json: Option<JsonLines>,
    pub sink: Option<Sink>,
    /// The last round, and what stands of those before it.
    last: Option<PagesRound>,
    peak: Option<u64>,
    /// The working set of some interval so far is a lower bound.
    is_least: bool,
    totals: Totals,
    /// Of what is not watched there is nothing to sum up.
    pub has_summary: bool,
    has_command: bool,
    /// Notes that came while the view had the terminal.
    kept_notes: String,
}

impl Told {
    /// The view has the terminal to itself. Lines go to standard error where something else goes to standard output.
    pub fn to(places: &Places) -> anyhow::Result<Told> {
        let Places { has_view, .. } = *places;
        let is_taken = places.has_command || places.json.is_some_and(is_dash);
        let json = places.json.map(JsonLines::to).transpose()?;
        let lines: Option<Box<dyn Write>> = match is_taken {
            _ if !places.has_lines || has_view => None,
            false => Some(Box::new(say::Lines::open()?)),
            true => Some(Box::new(say::Beside)),
        };
        let view = if has_view { Some(View::open()?) } else { None };
        Ok(Told {
            view,
            lines,
            json,
            sink: None,
            last: None,
            peak: None,
            is_least: false,
            totals: Totals::default(),
            has_summary: places.has_lines,
            has_command: places.has_command,
            kept_notes: String::new(),
        })
    }

    /// What the reader should know, as a sentence.
    pub fn note(&mut self, note: &str) -> anyhow::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.write_all(format!("{note}\n").as_bytes())?,
            None => self.kept_notes += &format!("{note}\n"),
        }
        self.append(|| Entry::Note(note.into()))
    }

    /// An interval that others may follow.
    pub fn tell(&mut self, round: PagesRound) -> anyhow::Result<()> {
        self.interval(round, true)
    }

    /// An interval that the end cut short. It has no line: the summary follows.
    pub fn tell_last(&mut self, round: PagesRound) -> anyhow::Result<()> {
        self.interval(round, false)
    }

    /// What all of them come to. `remedy`: what would make the figure better first.
    pub fn summary(&mut self, remedy: Option<&str>) -> anyhow::Result<()> {
        if !self.has_summary {
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.kept_notes);
        text += &match self.totals.intervals() {
            0 => "it ended before watching began, so the memory that it needs is unknown\n".to_string(),
            _ => format!("{}\n{}\n", self.totals.headline(), self.totals.summary()),
        };
        if self.has_command && self.totals.intervals() <= 1 && !self.totals.has_need() {
            text += "`bursar run -- COMMAND` measures the peak of a command that ends so soon\n";
        }
        text.extend(remedy.map(|remedy| format!("for a better figure: {remedy}\n")));
        if let Some(path) = self.sink.as_ref().and_then(Sink::path) {
            text += &format!("details: bursar report {}\n", shell_word(&path.to_string_lossy()));
        }
        // The terminal is as it was before, and keeps what is written there.
        self.view = None;
        match &mut self.lines {
            Some(lines) => lines.write_all(text.as_bytes())?,
            None => say::beside(format_args!("{text}")),
        }
        Ok(())
    }

    fn interval(&mut self, round: PagesRound, has_line: bool) -> anyhow::Result<()> {
        self.append(|| Entry::Pages(Box::new(round.clone())))?;
        self.totals.add(&round);
        let round = round.standing(self.last.as_ref());
        self.peak = self.peak.max(round.wss_bytes);
        self.is_least |= round.is_lower_bound();
        let line = line(&round, self.peak, self.is_least);
        if let Some(lines) = self.lines.as_mut().filter(|_| has_line) {
            lines.write_all(format!("{line}\n").as_bytes())?;
        }
        if let Some(json) = &mut self.json {
            json.write(&WatchInterval::of(&round, self.peak))?;
        }
        self.leave_closed();
        if let Some(view) = &mut self.view {
            let shown = view.show(&round, line);
            self.unless_closed(shown)?;
        }
        self.last = Some(round);
        Ok(())
    }

    /// Waits for keys in the view, if there is one, at most so long.
    pub fn wait(&mut self, patience: Duration) -> std::io::Result<Option<Key>> {
        self.leave_closed();
        let waited = self.view.as_mut().map_or(Ok(None), |view| view.wait(patience));
        self.unless_closed(waited)
    }

    /// A terminal that was closed while something was done on it has not failed.
    fn unless_closed<T: Default>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        if done.is_err() && self.view.as_ref().is_some_and(View::is_over) {
            self.view = None;
            return Ok(T::default());
        }
        done
    }

    /// A command that outlives its terminal goes on, and what is written is written on.
    fn leave_closed(&mut self) {
        self.view.take_if(|view| view.is_over());
    }

    fn append(&mut self, entry: impl FnOnce() -> Entry) -> anyhow::Result<()> {
        self.sink.as_mut().map_or(Ok(()), |sink| sink.append(entry()))
    }
}

impl Drop for Told {
    /// However it ends, the record is whole.
    fn drop(&mut self) {
        self.sink.take().map(Sink::seal);
    }
}

/// One interval in one line. `is_least`: the peak is a lower bound.
fn line(round: &PagesRound, peak: Option<u64>, is_least: bool) -> String {
    let unseen = round.unseen_in_files();
    // Half of a lower bound says nothing.
    let half = round
        .wss_bytes
        .filter(|_| !round.is_lower_bound())
        .map(|now| now / 2)
        .filter(|half| *half >= round.blind_below.max(1));
    // The working set is of the last intervals together, the curve of one alone, which may need less than they.
    let is_of_before = half.is_some_and(|half| round.misses_at(half) <= TOLERATED_MISSES);
    let needs = match (round.wss_bytes, peak) {
        (Some(0), Some(0)) => "no memory was accessed a second time yet, so its need is unknown".into(),
        (Some(now), Some(peak)) => {
            let about = if round.is_lower_bound() { "at least" } else { "about" };
            let least = if is_least && !round.is_lower_bound() { "at least " } else { "" };
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
            ::report::printable(name)
        )
    });
    let late = round.late_scans().map_or_else(String::new, |seconds| format!("; scans came up to {seconds:.1} s late"));
    let huge = match round.huge_touched_bytes {
        huge if huge * 2 > round.touched_bytes => {
            format!("; an upper bound: {} are huge pages, each of which counts as a whole", Bytes(huge))
        }
        _ => String::new(),
    };
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
        "{:.decimals$} s: {phase}{needs}{in_files}{late}{huge}{less}; {} of {}{files} touched{lost}{blind}; tracking is {tracking}, looking costs {:.1} %",
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
            line(&round, Some(80 << 20), false),
            "7 s: needs about 64.0 MiB now, 80.0 MiB at peak; 32.0 MiB would cost 400 refaults/s; 60.0 MiB of 100 MiB touched; \
             tracking is on, looking costs 0.0 %"
        );
        let short = PagesRound { t_ns: 7_200_000_000, seconds: 0.2, ..round.clone() };
        assert!(line(&short, None, false).starts_with("7.2 s: "), "{}", line(&short, None, false));
        let reads = PagesRound { file_bytes: Some(300 << 20), file_touched_bytes: Some(20 << 20), ..round.clone() };
        assert!(line(&reads, None, false).contains("60.0 MiB of 100 MiB, and 20.0 MiB of 300 MiB of files touched;"));
        let off = PagesRound { tracking: false, new_phase: true, ..round.clone() };
        let off = line(&off, None, false);
        assert!(off.starts_with("7 s: new phase, ") && off.contains("tracking is off"), "{off}");
        let blind = PagesRound { blind_below: 40 << 20, blind_bytes: 1 << 20, ..round.clone() };
        assert!(!line(&blind, None, false).contains("would cost"), "below that nothing is known");
        let quiet = PagesRound { misses: vec![MissPoint { bytes: 0, misses_per_second: 9.0 }], ..round.clone() };
        assert!(
            line(&quiet, Some(80 << 20), false).starts_with(
                "7 s: needed about 64.0 MiB in the last intervals, 80.0 MiB at peak; this interval alone needed less than 32.0 MiB; 60.0"
            ),
            "{}",
            line(&quiet, Some(80 << 20), false)
        );
        let quiet = PagesRound { tracking: false, ..quiet };
        assert!(line(&quiet, None, false).contains("; the last tracked interval alone needed less than 32.0 MiB;"));
        assert!(line(&PagesRound::default(), None, false).contains("its need is unknown yet;"));
        let least = PagesRound { accessed_at_least: Some(3 << 20), ..PagesRound::default() };
        assert!(line(&least, None, false).contains("its need is unknown yet; it accessed 3.00 MiB so far;"));
        let none = PagesRound { wss_bytes: Some(0), ..PagesRound::default() };
        assert!(line(&none, Some(0), false).contains("no memory was accessed a second time yet"));
        let huge = PagesRound { huge_touched_bytes: 40 << 20, ..round.clone() };
        assert!(line(&huge, Some(80 << 20), false).contains(
            "needs about 64.0 MiB now, 80.0 MiB at peak; an upper bound: 40.0 MiB are huge pages, each of which counts as a whole;"
        ));
        let unseen = PagesRound {
            files_in_memory_bytes: 80 << 20,
            largest_file_in_memory: Some("/dev/shm/x".into()),
            ..round.clone()
        };
        assert!(line(&unseen, Some(80 << 20), true).starts_with(
            "7 s: needs at least 64.0 MiB now, 80.0 MiB at peak, and up to 80.0 MiB more: reads and writes of files in memory \
             (/dev/shm/x) are not seen; 60.0 MiB of"
        ));
        assert!(line(&round, Some(80 << 20), true).contains("needs about 64.0 MiB now, at least 80.0 MiB at peak;"));
        let late = PagesRound { scans_late_seconds: 0.8, ..round.clone() };
        assert!(line(&late, Some(80 << 20), true).starts_with(
            "7 s: needs at least 64.0 MiB now, 80.0 MiB at peak; scans came up to 0.8 s late; 60.0 MiB of"
        ));
        let little = PagesRound { files_in_memory_bytes: 6 << 20, ..unseen };
        assert!(line(&little, Some(80 << 20), false).contains("needs about 64.0 MiB now, 80.0 MiB at peak;"));
    }
}

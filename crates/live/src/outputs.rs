//! The destinations of intervals: a view, lines, JSON, and a record.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::path::Path;
use std::time::Duration;

use history::input::is_dash;
use model::{PagesRound, WatchInterval};
use record::Entry;
use report::{Totals, bound_by_huge_pages, interval_line, shell_word};
use session::say;
use session::sink::Sink;

use crate::json_lines::JsonLines;
use crate::view::{Key, View};

/// Which outputs to open.
pub(crate) struct Destinations<'a> {
    /// Write JSON lines to this file, or to standard output for `-`.
    pub(crate) json: Option<&'a Path>,
    /// Print lines for people, unless there is a view.
    pub(crate) has_lines: bool,
    pub(crate) has_view: bool,
    /// A command uses standard output.
    pub(crate) has_command: bool,
}

/// The open outputs, with the state that the next interval needs.
pub(crate) struct Outputs {
    pub(crate) view: Option<View>,
    lines: Option<Box<dyn Write>>,
    json: Option<JsonLines>,
    pub(crate) sink: Option<Sink>,
    /// The last interval, combined with valid results of those before.
    last: Option<PagesRound>,
    peak: Option<u64>,
    /// Whether the working set of any interval so far is a lower bound.
    is_least: bool,
    totals: Totals,
    /// False if nothing is watched, so that there is nothing to sum up.
    pub(crate) has_summary: bool,
    has_command: bool,
    /// Notes held back while the view uses the terminal.
    kept_notes: String,
}

/// Whether to show the view: standard input and output are a terminal.
pub(crate) fn has_view(quiet: bool, json: Option<&Path>) -> bool {
    !quiet && !json.is_some_and(is_dash) && stdin().is_terminal() && stdout().is_terminal()
}

impl Outputs {
    /// Opens the outputs. While there is a view, nothing else uses the terminal. Lines go to standard error if
    /// something else uses standard output.
    pub(crate) fn to(places: &Destinations) -> anyhow::Result<Outputs> {
        let Destinations { has_view, .. } = *places;
        let is_taken = places.has_command || places.json.is_some_and(is_dash);
        let json = places.json.map(JsonLines::to).transpose()?;
        let lines: Option<Box<dyn Write>> = match is_taken {
            _ if !places.has_lines || has_view => None,
            false => Some(Box::new(say::Lines::open()?)),
            true => Some(Box::new(say::Beside)),
        };
        let view = if has_view { Some(View::open()?) } else { None };
        Ok(Outputs {
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

    /// Prints a note for the reader, a sentence.
    pub(crate) fn note(&mut self, note: &str) -> anyhow::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.write_all(format!("{note}\n").as_bytes())?,
            None => self.kept_notes += &format!("{note}\n"),
        }
        self.append(|| Entry::Note(note.into()))
    }

    /// Reports an interval that is not the last.
    pub(crate) fn report(&mut self, round: PagesRound) -> anyhow::Result<()> {
        self.interval(round, true)
    }

    /// Reports the last interval, which was cut short. It has no line, because the summary follows.
    pub(crate) fn report_last(&mut self, round: PagesRound) -> anyhow::Result<()> {
        self.interval(round, false)
    }

    /// Prints the summary. `remedy`: what to do first for a better figure.
    pub(crate) fn summary(&mut self, remedy: Option<&str>) -> anyhow::Result<()> {
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
        // Close the view, which restores the terminal and would erase the text.
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
        self.is_least |= round.is_lower_bound() && bound_by_huge_pages(&round).is_none();
        let line = interval_line(&round, self.peak, self.is_least);
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

    /// Waits for keys in the view, if there is one, for at most `patience`.
    pub(crate) fn wait(&mut self, patience: Duration) -> std::io::Result<Option<Key>> {
        self.leave_closed();
        let waited = self.view.as_mut().map_or(Ok(None), |view| view.wait(patience));
        self.unless_closed(waited)
    }

    /// Ignores errors on a terminal that was closed meanwhile.
    fn unless_closed<T: Default>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        if done.is_err() && self.view.as_ref().is_some_and(View::is_over) {
            self.view = None;
            return Ok(T::default());
        }
        done
    }

    /// Closes the view if its terminal was closed: the command and the other outputs go on.
    fn leave_closed(&mut self) {
        self.view.take_if(|view| view.is_over());
    }

    fn append(&mut self, entry: impl FnOnce() -> Entry) -> anyhow::Result<()> {
        self.sink.as_mut().map_or(Ok(()), |sink| sink.append(entry()))
    }
}

impl Drop for Outputs {
    /// Seals the record however watching ends.
    fn drop(&mut self) {
        self.sink.take().map(Sink::seal);
    }
}

//! Where intervals are told: in a view, as lines, as JSON, and in a record.

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

/// Where it is to be told.
pub(crate) struct Places<'a> {
    /// JSON lines go to this file, or to standard output for `-`.
    pub(crate) json: Option<&'a Path>,
    /// Lines for people are printed, but where there is a view.
    pub(crate) has_lines: bool,
    pub(crate) has_view: bool,
    /// A command has standard output.
    pub(crate) has_command: bool,
}

/// Where it is told, and what was told before.
pub(crate) struct Told {
    pub(crate) view: Option<View>,
    lines: Option<Box<dyn Write>>,
    json: Option<JsonLines>,
    pub(crate) sink: Option<Sink>,
    /// The last round, and what stands of those before it.
    last: Option<PagesRound>,
    peak: Option<u64>,
    /// The working set of some interval so far is a lower bound.
    is_least: bool,
    totals: Totals,
    /// Of what is not watched there is nothing to sum up.
    pub(crate) has_summary: bool,
    has_command: bool,
    /// Notes that came while the view had the terminal.
    kept_notes: String,
}

/// Whether there is a terminal for the picture.
pub(crate) fn has_view(quiet: bool, json: Option<&Path>) -> bool {
    !quiet && !json.is_some_and(is_dash) && stdin().is_terminal() && stdout().is_terminal()
}

impl Told {
    /// The view has the terminal to itself. Lines go to standard error where something else goes to standard output.
    pub(crate) fn to(places: &Places) -> anyhow::Result<Told> {
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
    pub(crate) fn note(&mut self, note: &str) -> anyhow::Result<()> {
        match &mut self.lines {
            Some(lines) => lines.write_all(format!("{note}\n").as_bytes())?,
            None => self.kept_notes += &format!("{note}\n"),
        }
        self.append(|| Entry::Note(note.into()))
    }

    /// An interval that others may follow.
    pub(crate) fn tell(&mut self, round: PagesRound) -> anyhow::Result<()> {
        self.interval(round, true)
    }

    /// An interval that the end cut short. It has no line: the summary follows.
    pub(crate) fn tell_last(&mut self, round: PagesRound) -> anyhow::Result<()> {
        self.interval(round, false)
    }

    /// What all of them come to. `remedy`: what would make the figure better first.
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

    /// Waits for keys in the view, if there is one, at most so long.
    pub(crate) fn wait(&mut self, patience: Duration) -> std::io::Result<Option<Key>> {
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

//! The short form of a report: the answer, what it rests on and what to paste, within a number of lines.

mod attribution;
mod budget;
mod run;

use std::path::Path;

use model::{Doubt, UNMATCHED_NOTE};

use super::Style;
use super::table::Page;
use crate::figures::doubt_lines;
use crate::format::shell_word;
use crate::tables::Tone;

pub use attribution::attribution;
pub use budget::budget;
pub use run::run;

/// Lines of the short report of a run, at most.
pub const MOST_RUN_LINES: usize = 15;

/// Lines of the short report of a budget, at most.
pub const MOST_BUDGET_LINES: usize = 25;

/// Lines of the short report of attribution, at most.
pub const MOST_ATTRIBUTION_LINES: usize = 20;

/// Notes that it shows, at most.
const MOST_NOTES: usize = 3;

/// Lines that a note may take.
const MOST_NOTE_LINES: usize = 3;

/// What a short report needs beside the record.
#[derive(Clone, Copy, Debug)]
pub struct Aside<'a> {
    /// What belongs into the first lines, below the doubts.
    pub warnings: &'a [String],
    /// Notes of the record and of the answer that change how the answer must be read. What concerns the machine alone is not among them.
    pub notes: &'a [String],
    /// Where the record is kept, if it is.
    pub record: Option<&'a Path>,
}

/// Which sections give way where there are too many lines: the later ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Answer,
    /// A pattern that matches nothing: what was asked for is not there.
    Unmatched,
    Doubt,
    Fact,
    Note,
    Comparison,
}

struct Section {
    rank: Rank,
    text: String,
}

/// Sections in the order in which they are shown.
struct Short {
    style: Style,
    sections: Vec<Section>,
}

impl Short {
    fn new(style: Style) -> Short {
        Short { style, sections: Vec::new() }
    }

    fn section(&mut self, rank: Rank, write: impl FnOnce(&mut Page)) {
        let mut page = Page::new(self.style);
        write(&mut page);
        self.sections.push(Section { rank, text: page.finish() });
    }

    /// Why the answer may not be of the job: the gravest doubt always, and the others where they fit.
    fn doubts(&mut self, doubts: &[Doubt]) {
        for (number, line) in doubt_lines(doubts).enumerate() {
            let rank = if number == 0 { Rank::Answer } else { Rank::Doubt };
            self.section(rank, |page| page.paragraph(Tone::Warning, &line));
        }
    }

    /// Below the doubts, where they fit.
    fn warnings(&mut self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            self.section(Rank::Doubt, |page| page.paragraph(Tone::Warning, &warning));
        }
    }

    fn notes<'a>(&mut self, notes: impl Iterator<Item = &'a String>) {
        for note in notes {
            let rank = if note.starts_with(UNMATCHED_NOTE) { Rank::Unmatched } else { Rank::Note };
            self.section(rank, |page| page.paragraph(Tone::Plain, &format!("note: {note}")));
        }
    }

    /// The report in `most` lines; the last says where the record and all that was left out are.
    fn finish(self, most: usize, record: Option<&Path>) -> String {
        let mut room = most.saturating_sub(1);
        let mut notes = 0;
        let mut shown = vec![false; self.sections.len()];
        let mut order: Vec<usize> = (0..self.sections.len()).collect();
        order.sort_by_key(|index| self.sections[*index].rank);
        for index in order {
            let section = &self.sections[index];
            let lines = section.text.lines().count();
            let is_note = section.rank == Rank::Note;
            let fits = lines <= room && !(is_note && (notes == MOST_NOTES || lines > MOST_NOTE_LINES));
            if fits || section.rank == Rank::Answer {
                shown[index] = true;
                room = room.saturating_sub(lines);
                notes += usize::from(is_note);
            }
        }
        let left_out = |rank| self.sections.iter().zip(&shown).filter(|(s, shown)| s.rank == rank && !**shown).count();
        let left_out = [("doubt", left_out(Rank::Doubt)), ("note", left_out(Rank::Unmatched) + left_out(Rank::Note))];
        let mut text: String =
            self.sections.iter().zip(&shown).filter(|(_, shown)| **shown).map(|(s, _)| s.text.as_str()).collect();
        text += &last_line(self.style, record, &left_out);
        text
    }
}

/// Where the record of a report that leaves something out is.
pub fn details(record: &Path, style: Style) -> String {
    last_line(style, Some(record), &[])
}

fn last_line(style: Style, record: Option<&Path>, left_out: &[(&str, usize)]) -> String {
    let more: Vec<String> = left_out
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{count} more {what}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    let mut page = Page::new(style);
    match record {
        Some(path) => {
            let file = shell_word(&path.to_string_lossy());
            let what: Vec<String> = std::iter::once("details".to_string()).chain(more).collect();
            let details = format!("{}: bursar report {file}", what.join(" and "));
            let both = format!("record {file}   {details}");
            let fits = both.chars().count() <= page.width();
            page.line(Tone::Dim, if fits { &both } else { &details });
        }
        None if more.is_empty() => {}
        None => page.line(Tone::Dim, &format!("and {}: give -v", more.join(" and "))),
    }
    page.finish()
}

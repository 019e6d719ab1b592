//! Who held the memory, in a few lines.

use std::path::Path;

use super::{MOST_ATTRIBUTION_LINES, Rank, Short};
use crate::attribution::{
    Attributed, beside, init_sentence, largest_parts_table, largest_sentence, libraries_table, short_headline,
    short_scaling_table, times_table,
};
use crate::comm::sent_sentence;
use crate::format::printable;
use crate::tables::{Table, Tone};
use crate::terminal::Style;

/// Rows of a table of functions or libraries.
const MOST_ROWS: usize = 3;

/// Who held the memory; the first line is the answer. What was asked for by an option has at least a line.
pub fn attribution(attributed: &Attributed, record: Option<&Path>, style: Style) -> String {
    let mut short = Short::new(style);
    let Some(shown) = attributed.shown() else {
        short.section(Rank::Answer, |page| page.paragraph(Tone::Strong, "no run was recorded"));
        return short.finish(MOST_ATTRIBUTION_LINES, record);
    };
    let head = short_headline(shown, attributed.went_on(), attributed.files_in_memory());
    short.section(Rank::Answer, |page| page.paragraph(Tone::Strong, &head));
    short.warnings(beside(shown));
    let parts = match attributed.attributions {
        _ if shown.ranks == 0 => None,
        [_] => Some(largest_parts_table(shown)),
        _ => Some(short_scaling_table(&attributed.scale())),
    };
    if let Some(table) = parts {
        short.section(Rank::Fact, |page| page.table(&table));
    }
    let libraries = attributed.by_library().then(|| libraries_table(shown));
    for table in libraries.into_iter().chain([times_table(shown)]) {
        short.section(Rank::Fact, |page| page.table(&first_rows(table)));
    }
    let sent = shown.comm_matrix.as_ref().map(sent_sentence);
    for sentence in largest_sentence(shown).into_iter().chain(init_sentence(shown)).chain(sent) {
        short.section(Rank::Fact, |page| page.paragraph(Tone::Plain, &sentence));
    }
    let notes: Vec<String> = attributed.notes.iter().chain(&shown.notes).map(|note| printable(note)).collect();
    short.notes(notes.iter());
    short.finish(MOST_ATTRIBUTION_LINES, record)
}

/// The table's first rows, and how many more there are.
fn first_rows(mut table: Table) -> Table {
    if let Some(more @ 1..) = table.rows.len().checked_sub(MOST_ROWS) {
        table.rows.truncate(MOST_ROWS);
        let rest = vec![String::new(); table.header.len() - 1];
        table.row(Tone::Dim, std::iter::once(format!("and {more} more")).chain(rest).collect());
    }
    table
}

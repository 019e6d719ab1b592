//! Sets of runs beside each other.

use super::Style;
use super::table::Page;
use crate::diff::Diff;
use crate::format::printable;
use crate::tables::Tone;

/// The figures of sets of runs; its first line is the answer.
pub fn diff(diff: &Diff, style: Style) -> String {
    let mut page = Page::new(style);
    page.paragraph(Tone::Strong, &diff.headline());
    page.gap();
    page.table(&diff.sets_table());
    page.gap();
    page.table(&diff.table());
    for note in &diff.notes {
        page.paragraph(Tone::Dim, &printable(note));
    }
    page.finish()
}

//! Tasks of a workflow by rule.

use super::Style;
use super::table::Page;
use crate::format::printable;
use crate::tables::Tone;
use crate::tasks::Tasks;

/// The tasks of a workflow; its first line is the answer.
pub fn tasks(tasks: &Tasks, style: Style) -> String {
    let mut page = Page::new(style);
    page.paragraph(Tone::Strong, &tasks.headline());
    page.gap();
    page.table(&tasks.table());
    for left_out in &tasks.left_out {
        page.paragraph(Tone::Dim, &printable(&format!("note: {} is left out: {}", left_out.path, left_out.why)));
    }
    page.finish()
}

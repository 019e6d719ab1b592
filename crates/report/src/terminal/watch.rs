//! What was watched.

use super::Style;
use super::table::Page;
use crate::format::printable;
use crate::tables::Tone;
use crate::watch::Watched;

/// What was watched; its first line is the answer.
pub fn watch(watched: &Watched, style: Style) -> String {
    let mut page = Page::new(style);
    page.paragraph(Tone::Strong, &watched.headline());
    page.paragraph(Tone::Plain, &printable(&watched.target()));
    page.paragraph(Tone::Plain, &watched.summary());
    for note in watched.notes {
        page.paragraph(Tone::Warning, &printable(note));
    }
    page.gap();
    page.table(&watched.phases_table());
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::{header, rounds};

    #[test]
    fn the_answer_comes_first_then_the_phases() {
        let (header, rounds) = (header(), rounds());
        let notes = ["cut".to_string()];
        let text =
            watch(&Watched { header: &header, rounds: &rounds, notes: &notes }, Style { width: 110, color: false });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "needs about 64.0 MiB at peak, 16.0 MiB at its end");
        assert!(lines.contains(&"cut") && text.contains("half of it costs"), "{text}");
    }
}

//! The replay of intermittent tracking.

use model::PhaseReplay;

use super::Style;
use super::table::Page;
use crate::phases;
use crate::tables::Tone;

/// The replay; its first line is the answer.
pub fn phases(replay: &PhaseReplay, style: Style) -> String {
    let mut page = Page::new(style);
    page.paragraph(Tone::Strong, &phases::headline(replay));
    page.gap();
    page.table(&phases::arms_table(replay));
    page.gap();
    page.table(&phases::records_table(replay));
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::tests::replay;

    #[test]
    fn the_answer_comes_first_then_the_arms_then_the_records() {
        let text = phases(&replay(), Style { width: 120, color: false });
        assert!(text.starts_with("with the adaptive threshold"), "{text}");
        assert!(text.find("fixed 0.05") < text.find("b.bursar"), "{text}");
    }
}

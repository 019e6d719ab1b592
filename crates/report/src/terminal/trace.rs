//! The curve of a trace.

use model::TraceCurve;

use super::Style;
use super::table::Page;
use crate::format::printable;
use crate::tables::Tone;
use crate::trace;

/// The curve of a trace; its first line is the answer.
pub fn trace(curve: &TraceCurve, style: Style) -> String {
    let mut page = Page::new(style);
    page.paragraph(Tone::Strong, &trace::headline(curve));
    page.paragraph(Tone::Plain, &printable(&trace::made_from(curve)));
    if let Some(read_as) = trace::read_as(curve) {
        page.paragraph(Tone::Plain, &printable(&read_as));
    }
    if let Some(warning) = trace::warning(curve) {
        page.paragraph(Tone::Warning, &printable(&warning));
    }
    page.gap();
    page.table(&trace::points_table(curve));
    for mut table in [trace::tenants_table(curve), trace::windows_table(curve)] {
        if !table.rows.is_empty() {
            page.gap();
            table.rows.iter_mut().for_each(|(_, cells)| cells[0] = printable(&cells[0]));
            page.table(&table);
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::curve;

    #[test]
    fn the_answer_comes_first_then_the_curve_then_its_parts() {
        let text = trace(&curve(), Style { width: 100, color: false });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "needs 100 pages (400 KiB) for at most 1 % misses");
        assert_eq!(lines[3..6], ["size   miss ratio", "50          100 %", "100        0.83 %"]);
        assert!(lines[7].starts_with("tenant") && lines[8].starts_with("<north>"));
        assert!(lines[10].starts_with("from second") && lines[11].contains("   -   "), "{}", lines[11]);
    }
}

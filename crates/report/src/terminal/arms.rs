//! Ways to run a command, compared.

use model::ArmsReport;

use super::Style;
use super::table::Page;
use crate::arms::{arms_table, command, headline, left_out, sentences};
use crate::format::printable;
use crate::tables::Tone;

/// Ways to run a command, compared; the first line is the answer.
pub fn arms(report: &ArmsReport, style: Style) -> String {
    let mut page = Page::new(style);
    page.paragraph(Tone::Strong, &printable(&headline(report)));
    page.paragraph(Tone::Plain, &printable(&command(report)));
    page.gap();
    page.table(&arms_table(report));
    page.gap();
    for sentence in sentences(report) {
        page.paragraph(Tone::Plain, &printable(&sentence));
    }
    for why in left_out(report) {
        page.paragraph(Tone::Dim, &printable(&format!("not tried: {why}")));
    }
    if !report.settings.is_empty() {
        page.heading("To keep it");
    }
    for setting in &report.settings {
        page.paragraph(Tone::Plain, &printable(&format!("{}:", setting.place)));
        setting.lines.iter().for_each(|line| page.line(Tone::Plain, &format!("    {}", printable(line))));
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::fixture;

    #[test]
    fn the_answer_comes_first_and_the_lines_to_keep_it_last() {
        let told = arms(&fixture::report(), Style { width: 100, color: false });
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines[0].starts_with("glibc-hugetlb is the way to run it: 10.0 % faster"), "{told}");
        assert!(told.contains("not tried: always: it needs root"), "{told}");
        assert_eq!(lines.last(), Some(&"    export A=<1>"), "{told}");
        assert!(
            lines.iter().any(|line| line.starts_with("advise  ") && line.ends_with(" 6")),
            "a row of a table: {told}"
        );
        assert!(told.contains("dropped before the end: advise (slower than glibc-hugetlb)"), "{told}");
    }
}

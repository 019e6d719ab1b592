//! The page of ways to run a command, compared.

use model::ArmsReport;

use super::markup::Html;
use super::page;
use crate::arms::{arms_table, command, headline, left_out, sentences};

/// Ways to run a command, compared, as one HTML file that needs nothing else.
pub fn arms(report: &ArmsReport) -> String {
    let mut html = Html::default();
    page::open(&mut html, report.command.first().map_or("bursar", |word| word.rsplit('/').next().unwrap_or(word)));
    html.element("h1", "", &headline(report));
    html.paragraph("command", &command(report));
    sentences(report).iter().for_each(|sentence| html.paragraph("", sentence));
    html.heading("Ways");
    html.table("arms", &arms_table(report));
    left_out(report).iter().for_each(|why| html.paragraph("quiet", &format!("not tried: {why}")));
    if !report.settings.is_empty() {
        html.heading("To keep it");
    }
    for setting in &report.settings {
        html.element("h3", "", &setting.place);
        html.element("pre", "", &setting.lines.join("\n"));
    }
    page::close(&mut html);
    html.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::fixture;

    #[test]
    fn what_comes_from_the_command_is_escaped() {
        let page = arms(&fixture::report());
        assert!(page.contains("<h1>glibc-hugetlb is the way to run it"), "{page}");
        assert!(page.contains("&lt;x&gt;") && page.contains("export A=&lt;1&gt;"));
        assert!(!page.contains("<x>"));
    }
}

//! Tables, wrapped paragraphs and colours within a width.

use unicode_width::UnicodeWidthStr;

use super::Style;
use crate::tables::{Table, Tone};
use model::printable_lines;

/// Where the figures of [`Page::fact`] begin.
const FACT_COLUMN: usize = 16;

/// A report being written.
pub struct Page {
    style: Style,
    text: String,
}

/// The table's lines within the width.
fn lines(table: &Table, style: Style) -> Vec<String> {
    let header = &table.header;
    let columns = header.len();
    let all = || std::iter::once(header).chain(table.rows.iter().map(|(_, cells)| cells));
    let widths: Vec<usize> = (0..columns).map(|c| all().map(|r| r[c].width()).max().unwrap_or(0)).collect();
    let total = widths.iter().sum::<usize>();
    let Some(gap) = [3, 2, 1].into_iter().find(|gap| total + gap * (columns - 1) <= style.width) else {
        return stacked(table, style);
    };
    let mut lines = vec![paint(&aligned(table, header, &widths, gap), Tone::Dim, style)];
    for (tone, cells) in &table.rows {
        lines.push(paint(&aligned(table, cells, &widths, gap), *tone, style));
    }
    lines
}

fn aligned(table: &Table, cells: &[String], widths: &[usize], gap: usize) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let padding = " ".repeat(width - cell.width());
        let separation = if column == 0 { String::new() } else { " ".repeat(gap) };
        line += &if table.is_words(column) { separation + cell + &padding } else { separation + &padding + cell };
    }
    line.trim_end().to_string()
}

/// For a terminal too narrow for the columns: each row a paragraph of named figures.
fn stacked(table: &Table, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for (tone, cells) in &table.rows {
        lines.push(paint(cells[0].trim_end(), *tone, style));
        let figures: Vec<String> =
            table.header.iter().zip(cells).skip(1).map(|(name, cell)| format!("{name} {cell}")).collect();
        lines.extend(joined(&figures, "    ", style.width).iter().map(|line| paint(line, Tone::Plain, style)));
    }
    lines
}

impl Page {
    /// An empty report.
    pub fn new(style: Style) -> Page {
        Page { style: Style { width: style.width.max(40), ..style }, text: String::new() }
    }

    /// The report.
    pub fn finish(self) -> String {
        self.text
    }

    /// A paragraph, wrapped; lines after the first are indented.
    pub fn paragraph(&mut self, tone: Tone, text: &str) {
        for line in wrapped(text, "  ", self.style.width) {
            self.line(tone, &line);
        }
    }

    /// The answer, what it is made of and what else belongs into the first line. Where they do not fit, what it is made of comes below.
    pub fn answer(&mut self, tone: Tone, answer: &str, aside: &str, rest: &[String]) {
        let joined =
            |parts: &[&str]| parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("   ");
        let rest = rest.join("   ");
        let (all, first) = (joined(&[answer, aside, &rest]), joined(&[answer, &rest]));
        if all.width() <= self.style.width {
            self.line(tone, &all);
        } else if first.width() <= self.style.width && !aside.is_empty() {
            self.line(tone, &first);
            self.paragraph(tone, &format!("  {aside}"));
        } else {
            self.paragraph(tone, &joined(&[answer, aside]));
            self.line(tone, &format!("  {rest}"));
        }
    }

    /// A named figure, wrapped below itself.
    pub fn fact(&mut self, name: &str, text: &str) {
        for line in wrapped(&format!("{name:<FACT_COLUMN$}{text}"), &" ".repeat(FACT_COLUMN), self.style.width) {
            self.line(Tone::Plain, &line);
        }
    }

    /// Items in a row, as many to a line as fit.
    pub fn items(&mut self, tone: Tone, items: &[String]) {
        for line in joined(items, "", self.style.width) {
            self.line(tone, &line);
        }
    }

    /// One line as it is, for text that must not be broken.
    pub fn line(&mut self, tone: Tone, line: &str) {
        self.text += &paint(line, tone, self.style);
        self.text.push('\n');
    }

    /// A heading with an empty line before it.
    pub fn heading(&mut self, text: &str) {
        self.text.push('\n');
        self.paragraph(Tone::Strong, text);
    }

    /// An empty line.
    pub fn gap(&mut self) {
        self.text.push('\n');
    }

    /// A table; nothing if it has no rows.
    pub fn table(&mut self, table: &Table) {
        if !table.rows.is_empty() {
            for line in lines(table, self.style) {
                self.text += &line;
                self.text.push('\n');
            }
        }
    }

    /// The width in use.
    pub fn width(&self) -> usize {
        self.style.width
    }
}

fn joined(items: &[String], indent: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.width() + 3 + item.width() <= width => *line += &format!("   {item}"),
            _ => lines.push(format!("{indent}{item}")),
        }
    }
    lines
}

/// A paragraph in lines of at most this width where words allow it; those after the first begin with `indent`.
pub fn paragraph(text: &str, indent: &str, width: usize) -> String {
    wrapped(text, indent, width).join("\n")
}

fn wrapped(text: &str, indent: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => *line += &format!(" {word}"),
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word.to_string()),
        }
    }
    lines
}

/// The only place that writes ESC: what the text brings is replaced.
fn paint(text: &str, tone: Tone, style: Style) -> String {
    let text = printable_lines(text);
    let code = match tone {
        Tone::Strong => "1",
        Tone::Dim => "2",
        Tone::Good => "32",
        Tone::Warning => "33",
        Tone::Bad => "31",
        Tone::Plain => return text,
    };
    if style.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["memory", "total", "heap"]);
        table.row(Tone::Good, vec!["peak µ".to_string(), "402 MiB".to_string(), "-".to_string()]);
        table
    }

    #[test]
    fn figures_are_aligned_to_the_right() {
        let mut page = Page::new(Style { width: 60, color: false });
        page.table(&table());
        assert_eq!(page.finish(), "memory     total   heap\npeak µ   402 MiB      -\n");
    }

    #[test]
    fn a_table_that_does_not_fit_becomes_named_figures() {
        assert_eq!(lines(&table(), Style { width: 18, color: false }), ["peak µ", "    total 402 MiB", "    heap -"]);
    }

    #[test]
    fn text_brings_no_escape_sequences() {
        let mut page = Page::new(Style { width: 60, color: true });
        let mut evil = Table::new(&["a\u{1b}[1m", "b"]);
        evil.row(Tone::Plain, vec!["x\u{1b}]0;title\u{7}".to_string(), "\u{9b}2J".to_string()]);
        page.table(&evil);
        page.paragraph(Tone::Plain, "\u{202e}turned\r");
        page.items(Tone::Plain, &["\u{1b}c".to_string()]);
        let text = page.finish().replace("\u{1b}[2m", "").replace("\u{1b}[0m", "");
        assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{text:?}");
        assert!(
            stacked(&evil, Style { width: 10, color: true }).iter().all(|line| !line.contains(['\u{9b}', '\u{7}']))
        );
    }

    #[test]
    fn colours_only_when_asked() {
        assert!(lines(&table(), Style { width: 60, color: true })[1].starts_with("\x1b[32mpeak"));
        assert!(!lines(&table(), Style { width: 60, color: false })[1].contains('\x1b'));
    }
}

//! Tables, wrapped paragraphs and colours within a width.

use unicode_width::UnicodeWidthStr;

use super::Style;

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    Dim,
    Good,
    Warning,
    Bad,
}

/// Rows of cells below a header; the first column is to the left, the others to the right.
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<(Tone, Vec<String>)>,
    left_last: bool,
}

/// A report being written.
pub struct Page {
    style: Style,
    text: String,
}

impl Table {
    /// A table of these columns.
    pub fn new(header: &[&'static str]) -> Table {
        Table { header: header.to_vec(), rows: Vec::new(), left_last: false }
    }

    /// The same with words, not figures, in its last column.
    pub fn with_words_last(mut self) -> Table {
        self.left_last = true;
        self
    }

    /// Adds a row; it must have as many cells as the header.
    pub fn row(&mut self, tone: Tone, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push((tone, cells));
    }

    fn lines(&self, style: Style) -> Vec<String> {
        let header: Vec<String> = self.header.iter().map(|name| name.to_string()).collect();
        let columns = header.len();
        let all = || std::iter::once(&header).chain(self.rows.iter().map(|(_, cells)| cells));
        let widths: Vec<usize> = (0..columns).map(|c| all().map(|r| r[c].width()).max().unwrap_or(0)).collect();
        let total = widths.iter().sum::<usize>();
        let Some(gap) = [3, 2, 1].into_iter().find(|gap| total + gap * (columns - 1) <= style.width) else {
            return self.stacked(style);
        };
        let mut lines = vec![paint(&self.aligned(&header, &widths, gap), Tone::Dim, style)];
        for (tone, cells) in &self.rows {
            lines.push(paint(&self.aligned(cells, &widths, gap), *tone, style));
        }
        lines
    }

    fn aligned(&self, cells: &[String], widths: &[usize], gap: usize) -> String {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let padding = " ".repeat(width - cell.width());
            let left = column == 0 || (self.left_last && column + 1 == cells.len());
            let separation = if column == 0 { String::new() } else { " ".repeat(gap) };
            line += &if left { separation + cell + &padding } else { separation + &padding + cell };
        }
        line.trim_end().to_string()
    }

    /// For a terminal too narrow for the columns: each row a paragraph of named figures.
    fn stacked(&self, style: Style) -> Vec<String> {
        let mut lines = Vec::new();
        for (tone, cells) in &self.rows {
            lines.push(paint(cells[0].trim_end(), *tone, style));
            let figures: Vec<String> =
                self.header.iter().zip(cells).skip(1).map(|(name, cell)| named(name, cell)).collect();
            lines.extend(joined(&figures, "    ", style.width));
        }
        lines
    }
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
            for line in table.lines(self.style) {
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

fn named(name: &str, figure: &str) -> String {
    if name.is_empty() { figure.to_string() } else { format!("{name} {figure}") }
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

fn paint(text: &str, tone: Tone, style: Style) -> String {
    let code = match tone {
        Tone::Strong => "1",
        Tone::Dim => "2",
        Tone::Good => "32",
        Tone::Warning => "33",
        Tone::Bad => "31",
        Tone::Plain => return text.to_string(),
    };
    if style.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
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
        assert_eq!(table().lines(Style { width: 18, color: false }), ["peak µ", "    total 402 MiB", "    heap -"]);
    }

    #[test]
    fn colours_only_when_asked() {
        assert!(table().lines(Style { width: 60, color: true })[1].starts_with("\x1b[32mpeak"));
        assert!(!table().lines(Style { width: 60, color: false })[1].contains('\x1b'));
    }
}

//! HTML as text, with everything that comes from a record escaped.

use crate::tables::{Table, Tone};
use model::printable_lines;

/// A page being written.
#[derive(Default)]
pub struct Html(String);

impl Html {
    /// What has been written.
    pub fn finish(self) -> String {
        self.0
    }

    /// Adds markup as it is.
    pub fn raw(&mut self, markup: &str) {
        self.0 += markup;
        self.0.push('\n');
    }

    /// Adds an element with escaped text.
    pub fn element(&mut self, tag: &str, class: &str, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.raw(&format!("<{tag}{class}>{}</{tag}>", escape(text)));
    }

    /// Adds a heading of a section.
    pub fn heading(&mut self, text: &str) {
        self.element("h2", "", text);
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, class: &str, text: &str) {
        self.element("p", class, text);
    }

    /// Adds a table in a box of its own that scrolls by itself; nothing if it has no rows.
    pub fn table(&mut self, id: &str, table: &Table) {
        if table.rows.is_empty() {
            return;
        }
        let class = |column| if table.is_words(column) { " class=\"words\"" } else { "" };
        let mut markup = format!("<div class=\"scroll\"><table id=\"{id}\"><thead><tr>");
        for (column, name) in table.header.iter().enumerate() {
            markup += &format!("<th{}>{}</th>", class(column), escape(name));
        }
        markup += "</tr></thead><tbody>";
        for (tone, cells) in &table.rows {
            markup += &format!("<tr class=\"{}\">", tone_class(*tone));
            for (column, cell) in cells.iter().enumerate() {
                markup += &format!("<td{}>{}</td>", class(column), escape(cell));
            }
            markup += "</tr>";
        }
        markup += "</tbody></table></div>";
        self.raw(&markup);
    }
}

/// Text as it must stand in HTML, attributes included.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable_lines(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(c),
        }
    }
    escaped
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Strong => "strong",
        Tone::Dim => "dim",
        Tone::Good => "good",
        Tone::Warning => "warning",
        Tone::Bad => "bad",
    }
}

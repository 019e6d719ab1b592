//! The commands with bursar in code blocks of the documentation.

use std::path::{Path, PathBuf};

/// A command as a page shows it.
#[derive(Debug)]
pub struct Shown {
    /// Relative to the root of the repository.
    pub page: PathBuf,
    pub line: usize,
    /// On one line, without the prompt and a trailing comment.
    pub text: String,
}

/// Values for the words in capitals of a synopsis. Other such words, for example FILE, are names of files that tests/docs/prepare makes.
const PLACEHOLDERS: [(&str, &str); 14] = [
    ("SIZE", "1G"),
    ("COMMAND", "./solver input.dat"),
    ("N", "2"),
    ("PID", "4711"),
    ("MAX", "2"),
    ("LIST", "advise"),
    ("TIME", "10s"),
    ("USER", "ada"),
    ("USER:GROUP", "root:root"),
    ("NAME=VALUE", "LEVEL=9"),
    ("SHARE", "95%"),
    ("COLUMN", "User"),
    ("PLUGIN", "cgroup"),
    ("VERSION", "22.05.8"),
];

impl Shown {
    /// The command to type: with every optional part of a synopsis, and with the first of alternatives.
    pub fn command(&self) -> String {
        let plain = self.text.replace(" [OPTIONS]", "").replace('…', "").replace(['[', ']'], "");
        let words = plain.split(' ').map(|word| {
            let first = if word == "|" { word } else { word.split('|').next().unwrap_or_default() };
            PLACEHOLDERS.iter().find(|(name, _)| *name == first).map_or(first, |(_, value)| value)
        });
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The arguments of each call of bursar in it: two for `bursar run -- bursar provision -- app`.
    pub fn calls(&self) -> Vec<Vec<String>> {
        let command = words(&self.command());
        if command.first().is_some_and(|program| program == "kubectl" || program == "helm") {
            return Vec::new();
        }
        let starts = command.iter().enumerate().filter(|(_, word)| *word == "bursar");
        starts.map(|(at, _)| command[at..].to_vec()).collect()
    }
}

/// All of them, page by page.
pub fn shown(root: &Path) -> Vec<Shown> {
    let mut pages = vec![root.join("README.md")];
    add_pages(&root.join("docs"), &mut pages);
    pages.sort();
    pages
        .iter()
        .flat_map(|page| of_page(page.strip_prefix(root).unwrap(), &std::fs::read_to_string(page).unwrap()))
        .collect()
}

fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|end| end == "md") {
            pages.push(path);
        }
    }
}

fn of_page(page: &Path, text: &str) -> Vec<Shown> {
    let (mut language, mut found, mut open) = (None, Vec::<Shown>::new(), false);
    for (number, line) in text.lines().map(str::trim).enumerate() {
        if let Some(name) = line.strip_prefix("```") {
            language = if language.is_some() { None } else { Some(name) };
            continue;
        }
        // A terminal session has commands behind prompts; a single command may be part of bursar's advice. A profile begins with such a
        // line.
        let prompt = line.strip_prefix("# ").or_else(|| line.strip_prefix("$ "));
        let command = match language {
            Some("sh") => Some(line),
            Some("text") => {
                prompt.or_else(|| (line.starts_with("bursar ") && !line.starts_with("bursar profile ")).then_some(line))
            }
            _ => None,
        };
        let Some(command) = command.or_else(|| open.then_some(line)) else { continue };
        let (part, continues) = command.strip_suffix('\\').map_or((command, false), |part| (part, true));
        match found.last_mut().filter(|_| open) {
            Some(shown) => shown.text += part,
            None => found.push(Shown { page: page.into(), line: number + 1, text: part.into() }),
        }
        open = continues;
    }
    for shown in &mut found {
        shown.text = without_comment(&shown.text).trim().into();
    }
    found.retain(|shown| shown.text.split(' ').any(|word| word == "bursar" || word == "--bursar"));
    found
}

fn without_comment(line: &str) -> &str {
    line.find(" #").map_or(line, |at| &line[..at])
}

/// Splits a line as a shell does, up to a redirection or a pipe.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == ' ' => words.push(String::new()),
            None if "|<>;&".contains(c) => break,
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

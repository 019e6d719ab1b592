//! The words of a command: its arguments, and what stands in those that are texts, such as scripts and queries.

use std::path::Path;

/// Part of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Word<'a> {
    pub text: &'a str,
    pub from: Source,
}

/// Where a word stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// It is an argument, or a word of a shell's script.
    Argument,
    /// In another text: SQL, awk, Python. There `a.b` is seldom a file.
    Code,
    /// The same, between quotes.
    Quoted,
}

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];
/// An argument that holds one of these is a text.
const OF_TEXTS: [char; 9] = ['(', ')', '{', '}', ';', '$', '"', '\'', '|'];

/// Of a command that starts in `folder`.
pub fn of<'a>(command: &'a [String], folder: &Path) -> Vec<Word<'a>> {
    let is_shell = |word: &String| SHELLS.contains(&word.rsplit('/').next().unwrap_or_default());
    let is_letters = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
    let mut words = Vec::new();
    for (place, argument) in command.iter().enumerate() {
        let is_text = argument.contains(|c: char| c.is_whitespace() || OF_TEXTS.contains(&c));
        if !is_text || folder.join(argument).is_file() {
            words.push(Word { text: argument, from: Source::Argument });
        } else if place > 1 && is_letters(&command[place - 1]) && command[..place].iter().any(is_shell) {
            of_script(argument, &mut words);
        } else {
            of_code(argument, &mut words);
        }
    }
    words
}

/// Words of a shell's script, with its operators; `2>` is `>`, and `2>&1`, which names no file, is left out.
fn of_script<'a>(script: &'a str, words: &mut Vec<Word<'a>>) {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '|' | '&' | '(' | ')' | '<' | '>');
    let mut add = |text| words.push(Word { text, from: Source::Argument });
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        let at = rest.find(is_end).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(at);
        let is_descriptor = behind.starts_with(['<', '>']) && word.bytes().all(|byte| byte.is_ascii_digit());
        if !word.is_empty() {
            rest = behind;
            if !is_descriptor {
                add(word);
            }
            continue;
        }
        let (operator, behind) = rest.split_at(first.len_utf8());
        rest = behind;
        if let (">", Some(descriptor)) = (operator, behind.strip_prefix('&')) {
            rest = descriptor.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        } else if operator == ">" {
            rest = behind.trim_start_matches(['>', '|']);
            add(">");
        } else if !first.is_whitespace() && !matches!(first, '"' | '\'') {
            add(operator);
        }
    }
}

/// Names and numbers of a text, and what stands between them.
fn of_code<'a>(code: &'a str, words: &mut Vec<Word<'a>>) {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~');
    let mut rest = code.trim_start();
    let mut quote = None;
    while let Some(first) = rest.chars().next() {
        let is_end = |c: char| c.is_whitespace() || is_name(c) != is_name(first);
        let at = rest.find(is_end).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(at);
        let is_quoted = quote.is_some() && behind.chars().next() == quote;
        words.push(Word { text, from: if is_quoted { Source::Quoted } else { Source::Code } });
        quote =
            text.chars().next_back().filter(|c| matches!(c, '"' | '\'') && !behind.starts_with(char::is_whitespace));
        rest = behind.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(command: &[&str]) -> Vec<String> {
        let command: Vec<String> = command.iter().map(|word| word.to_string()).collect();
        of(&command, Path::new("/nowhere")).iter().map(|word| word.text.to_string()).collect()
    }

    #[test]
    fn a_script_is_split_at_blanks_quotes_and_operators() {
        let script = "fit 'x.dat' 2>&1 >>out.txt|sort;cat <a";
        let expected = ["sh", "-ec", "fit", "x.dat", ">", "out.txt", "|", "sort", ";", "cat", "<", "a"];
        assert_eq!(texts(&["sh", "-ec", script]), expected);
    }

    #[test]
    fn names_and_numbers_of_code_stand_alone() {
        assert_eq!(texts(&["awk", "$1>5{print}", "a.txt"]), ["awk", "$", "1", ">", "5", "{", "print", "}", "a.txt"]);
        let query = [String::from("sqlite3"), String::from("select x from 'a.db' where s = 'a b'")];
        let words = of(&query, Path::new("/nowhere"));
        let quoted: Vec<&str> = words.iter().filter(|word| word.from == Source::Quoted).map(|word| word.text).collect();
        assert_eq!(quoted, ["a.db"]);
    }
}

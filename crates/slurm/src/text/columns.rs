//! The line of column names, the delimiter, and how a line is cut into fields.

use std::borrow::Cow;

use crate::error::Error;

use super::fields::{Fields, align, has_form};
use crate::kind;

/// What a column may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    JobId,
    State,
    Elapsed,
    Size,
    Count,
    Time,
    /// A list with commas.
    Tres,
    /// One field of any content.
    Word,
    /// Text of the user's, in which delimiters and line ends may stand.
    Text,
}

/// Columns that are read, by their names in lower case.
const KNOWN: [(&str, &str, Form); 18] = [
    ("jobid", "JobID", Form::JobId),
    ("jobidraw", "JobIDRaw", Form::JobId),
    ("jobname", "JobName", Form::Text),
    ("state", "State", Form::State),
    ("elapsedraw", "ElapsedRaw", Form::Elapsed),
    ("elapsed", "Elapsed", Form::Elapsed),
    ("maxrss", "MaxRSS", Form::Size),
    ("user", "User", Form::Word),
    ("reqmem", "ReqMem", Form::Word),
    ("alloctres", "AllocTRES", Form::Tres),
    ("nnodes", "NNodes", Form::Count),
    ("alloccpus", "AllocCPUS", Form::Count),
    ("ntasks", "NTasks", Form::Count),
    ("tresusageintot", "TRESUsageInTot", Form::Tres),
    ("tresusageinmax", "TRESUsageInMax", Form::Tres),
    ("start", "Start", Form::Time),
    ("end", "End", Form::Time),
    ("comment", "Comment", Form::Text),
];

/// Other columns in which delimiters may stand.
const TEXTS: [&str; 14] = [
    "submitline",
    "workdir",
    "admincomment",
    "systemcomment",
    "extra",
    "reason",
    "nodelist",
    "container",
    "constraints",
    "flags",
    "stdout",
    "stderr",
    "stdin",
    "licenses",
];

/// The columns of a text, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub names: Vec<String>,
    pub forms: Vec<Form>,
    delimiter: String,
    quotes: Quotes,
}

/// What a quotation mark means. sacct quotes nothing: a name has its own marks as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    /// A character like others.
    Plain,
    /// Another tool wrote the file as CSV: a field in quotation marks may hold delimiters.
    Csv,
}

/// A line that cannot be used: why, and the job or step that it seems to be of.
pub type Unusable = (String, Option<String>);

/// As sacct prints a column's name.
pub fn printed(name: &str) -> &str {
    KNOWN.iter().find(|(known, ..)| *known == name).map_or(name, |(_, printed, _)| printed)
}

impl Header {
    /// The line of names, which may follow others.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(lines: &[&str]) -> Result<(usize, Header), Error> {
        if let Some((at, header)) = lines.iter().enumerate().find_map(|(at, line)| Some((at, Header::of(line)?))) {
            return Ok((at, header));
        }
        let is_ruler = |line: &&str| line.len() > 3 && line.chars().all(|c| c == '-' || c == ' ');
        Err(if lines.iter().any(is_ruler) { Error::Aligned } else { Error::NoNames })
    }

    /// `None`: the line is none.
    pub fn of(line: &str) -> Option<Header> {
        let line = line.trim_start_matches('\u{feff}').trim();
        let after = line.find(|c: char| !c.is_ascii_alphanumeric() && !"\"' _-".contains(c)).unwrap_or(line.len());
        let own: String =
            line[after..].chars().take_while(|c| !c.is_ascii_alphanumeric() && !"\"'".contains(*c)).collect();
        let delimiters = [own.as_str(), "|", "\t", ",", ";"];
        let read = delimiters.iter().filter(|delimiter| !delimiter.is_empty() && line.contains(**delimiter));
        read.map(|delimiter| Header::with(line, delimiter)).filter(Header::is_one).max_by_key(Header::known)
    }

    fn with(line: &str, delimiter: &str) -> Header {
        // With --parsable instead of --parsable2 each line ends in a delimiter.
        let line = line.strip_suffix(delimiter).or(line.strip_suffix(delimiter.trim_end())).unwrap_or(line);
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
        };
        let names: Vec<String> = line.split(delimiter).map(plain).collect();
        let names: Vec<String> =
            names.into_iter().map(|name| if name == "ncpus" { "alloccpus".into() } else { name }).collect();
        let names: Vec<String> =
            names.into_iter().map(|name| if name == "allocnodes" { "nnodes".into() } else { name }).collect();
        let form = |name: &String| match KNOWN.iter().find(|(known, ..)| known == name) {
            Some((.., form)) => *form,
            None if TEXTS.contains(&name.as_str()) => Form::Text,
            None => Form::Word,
        };
        let forms = names.iter().map(form).collect();
        // Tools that write CSV quote fields only where they must, so names of columns may stand without quotes.
        let is_csv = line.starts_with('"') || [",", ";", "\t"].contains(&delimiter);
        let quotes = if is_csv && delimiter.len() == 1 { Quotes::Csv } else { Quotes::Plain };
        Header { names, forms, delimiter: delimiter.to_string(), quotes }
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    fn is_one(&self) -> bool {
        (self.has("jobid") || self.has("jobidraw")) && self.known() >= 2
    }

    fn known(&self) -> usize {
        KNOWN.iter().filter(|(name, ..)| self.has(name)).count()
    }

    /// # Errors
    /// If a column lacks without which nothing can be said.
    pub fn check(&self, by: Option<&str>) -> Result<(), Error> {
        if !self.has("state") {
            return Err(Error::NoColumn("State"));
        }
        if !["maxrss", "tresusageintot", "tresusageinmax"].iter().any(|name| self.has(name)) {
            return Err(Error::NoColumn("MaxRSS"));
        }
        match by {
            Some(by) if !self.has(by) => return Err(Error::NoColumnOfKinds(by.into())),
            None if !self.has("jobname") => return Err(Error::NoColumn("JobName")),
            _ => {}
        }
        debug_assert!(by.is_none_or(|by| kind::COLUMNS.contains(&by)));
        Ok(())
    }

    /// The fields of the first line, and of those after it that belong to it: a name may hold delimiters and line ends. The second: how many lines
    /// were read.
    pub fn read<'a>(&'a self, lines: &[&'a str], most_lines: usize) -> (Result<Fields<'a>, Unusable>, usize) {
        if let Some(fields) = self.one(lines[0]) {
            return (Ok(Fields::new(self, fields)), 1);
        }
        let mut text = lines[0].to_string();
        let mut used = 1;
        while self.cut(&text).len() < self.names.len()
            && used < most_lines.min(lines.len())
            && !self.begins(lines[used])
        {
            text.push('\n');
            text.push_str(lines[used]);
            used += 1;
            if let Some(fields) = self.quoted(&text) {
                return (Ok(Fields::new(self, fields)), used);
            }
        }
        let parts = self.cut(&text);
        let id = parts.first().map(|id| id.trim().to_string());
        let id = id.filter(|id| self.forms[0] == Form::JobId && has_form(Form::JobId, id));
        let known = self.names.len();
        if parts.len() < known {
            let reason = format!("with {} fields instead of {known}", parts.len());
            // What follows may be whole.
            return (Err((reason, id)), if used == lines.len().min(most_lines) { 1 } else { used });
        }
        match align(&self.forms, &parts, &self.delimiter) {
            Some(fields) => (Ok(Fields::new(self, fields.into_iter().map(Into::into).collect())), used),
            None => (Err((format!("with {} fields instead of {known}", parts.len()), id)), used),
        }
    }

    /// A line that has a field for each column.
    fn one<'a>(&self, line: &'a str) -> Option<Vec<Cow<'a, str>>> {
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(fields) = self.quoted(line) {
            return Some(fields);
        }
        let mut fields: Vec<&str> = line.split(self.delimiter.as_str()).collect();
        if fields.len() == self.names.len() + 1 && fields.last().is_some_and(|last| last.trim().is_empty()) {
            fields.pop();
        }
        (fields.len() == self.names.len()).then(|| fields.into_iter().map(Into::into).collect())
    }

    /// The fields of a line of CSV in which some stand in quotation marks, one for each column. `None`: it is no such line.
    fn quoted(&self, line: &str) -> Option<Vec<Cow<'static, str>>> {
        if !line.contains('"') {
            return None;
        }
        // sacct quotes no job id, so a line whose id is quoted was written by another tool, whatever the delimiter.
        let delimiter = self.delimiter.chars().next().filter(|one| self.delimiter.len() == one.len_utf8())?;
        let is_csv = self.quotes == Quotes::Csv || (self.forms[0] == Form::JobId && line.starts_with('"'));
        let mut fields = unquoted(line, delimiter).filter(|_| is_csv)?;
        if fields.len() == self.names.len() + 1 && fields.last().is_some_and(|last| last.trim().is_empty()) {
            fields.pop();
        }
        (fields.len() == self.names.len()).then(|| fields.into_iter().map(Into::into).collect())
    }

    /// Without the delimiter at its end that --parsable has.
    fn cut(&self, text: &str) -> Vec<String> {
        let mut fields: Vec<String> = text.split(self.delimiter.as_str()).map(str::to_string).collect();
        if fields.len() > self.names.len() && fields.last().is_some_and(|last| last.trim().is_empty()) {
            fields.pop();
        }
        fields
    }

    /// Whether a line is that of another job or step.
    fn begins(&self, line: &str) -> bool {
        let Some(fields) = self.one(line) else { return false };
        self.forms.iter().zip(&fields).all(|(form, field)| has_form(*form, field))
    }
}

/// Fields of which some stand in quotation marks, as RFC 4180 has them: from the field's start to its end, a mark within it twice. `None`: the
/// marks stand in another way.
fn unquoted(line: &str, delimiter: char) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let Some(inner) = rest.strip_prefix('"') else {
            match rest.split_once(delimiter) {
                Some((field, after)) => {
                    fields.push(field.to_string());
                    rest = after;
                    continue;
                }
                None => {
                    fields.push(rest.to_string());
                    return Some(fields);
                }
            }
        };
        let (field, after) = until_closed(inner)?;
        fields.push(field);
        match after.strip_prefix(delimiter) {
            Some(after) => rest = after,
            None if after.trim().is_empty() => return Some(fields),
            None => return None,
        }
    }
}

/// The text up to the closing quotation mark, and what follows it.
fn until_closed(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        field.push_str(before);
        match after.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None => return Some((field, after)),
        }
    }
}

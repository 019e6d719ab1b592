//! CSV and plain text: a reference per line.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::BufRead;

use super::error::{Bad, TraceError, shown};
use super::format::{Column, Columns};
use super::lines::Lines;
use super::{Record, Records};

/// What separates columns: the first of these that the first line has.
const SEPARATORS: [u8; 5] = [b',', b'\t', b';', b'|', b' '];

/// The usual names.
const KEYS: &[&str] = &["key", "id", "obj_id", "object_id", "object", "page", "block", "lbn", "lba", "address", "url"];
const BYTES: &[&str] = &["bytes", "size", "obj_size", "object_size", "length", "len"];
const TIMES: &[&str] = &["time", "seconds", "timestamp", "clock_time", "ts"];
const TENANTS: &[&str] = &["tenant", "client", "client_id", "namespace", "volume"];

/// More tenants than these, and the column holds something else.
const MOST_TENANTS: usize = 1 << 12;

/// Its reader.
pub struct Text {
    lines: Lines,
    separator: Option<u8>,
    columns: Places,
    /// The first line, if it is a reference and has not been given out.
    first: Option<Vec<u8>>,
    tenants: Tenants,
}

/// Columns by number, from 0.
struct Places {
    key: usize,
    bytes: Option<usize>,
    time: Option<usize>,
    tenant: Option<usize>,
}

#[derive(Default)]
struct Tenants {
    names: Vec<String>,
    known: HashMap<String, u32>,
}

impl Text {
    /// Looks at the first line for separator and names.
    pub fn new(input: Box<dyn BufRead + Send>, columns: &Columns) -> Result<Text, TraceError> {
        let mut lines = Lines::new(input);
        let Some(first) = lines.next()?.map(|(_, line)| line.to_vec()) else {
            let columns = Places { key: 0, bytes: None, time: None, tenant: None };
            return Ok(Text { lines, separator: None, columns, first: None, tenants: Tenants::default() });
        };
        // A byte-order mark is no part of the first name.
        let first = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&first).to_vec();
        let separator = SEPARATORS.into_iter().find(|separator| first.contains(separator));
        let (places, has_names) = places(&first, separator, columns)?;
        let first = (!has_names).then_some(first);
        Ok(Text { lines, separator, columns: places, first, tenants: Tenants::default() })
    }
}

impl Records for Text {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return self.columns.record(1, &first, self.separator, &mut self.tenants).map(Some);
        }
        while let Some((number, line)) = self.lines.next()? {
            if !line.is_empty() {
                return self.columns.record(number, line, self.separator, &mut self.tenants).map(Some);
            }
        }
        Ok(None)
    }

    fn tenants(&self) -> &[String] {
        &self.tenants.names
    }
}

impl Places {
    fn record(
        &self,
        number: u64,
        line: &[u8],
        separator: Option<u8>,
        tenants: &mut Tenants,
    ) -> Result<Record, TraceError> {
        let (mut key, mut bytes, mut time, mut tenant) = (None, None, None, None);
        for (column, field) in fields(line, separator).enumerate() {
            let is = |place: Option<usize>| place == Some(column);
            if column == self.key {
                key = Some(field);
            }
            if is(self.bytes) {
                bytes = Some(field);
            }
            if is(self.time) {
                time = Some(field);
            }
            if is(self.tenant) {
                tenant = Some(field);
            }
        }
        let has_too_few = [(self.bytes, bytes), (self.time, time), (self.tenant, tenant)]
            .iter()
            .any(|(place, field)| place.is_some() && field.is_none());
        let Some(key) = key.filter(|key| !key.is_empty() && !has_too_few) else {
            return Err(Bad::at_line(number, format!("too few columns in {}", shown(line))));
        };
        let bytes = match bytes {
            None => None,
            Some(field) => Some(
                parsed(field)
                    .ok_or_else(|| Bad::at_line(number, format!("{} is not a number of bytes", shown(field))))?,
            ),
        };
        let seconds = match time {
            None => None,
            Some(field) => Some(
                parsed::<f64>(field)
                    .filter(|seconds| seconds.is_finite())
                    .ok_or_else(|| Bad::at_line(number, format!("{} is not a time in seconds", shown(field))))?,
            ),
        };
        let tenant = match tenant {
            None => None,
            Some(field) => Some(tenants.number(field).ok_or_else(|| {
                let what = format!("more than {MOST_TENANTS} tenants; the column holds something else");
                TraceError::Columns(format!("line {number}: {what}"))
            })?),
        };
        Ok(Record { key: key_of(key), bytes, seconds, tenant })
    }
}

impl Tenants {
    fn number(&mut self, field: &[u8]) -> Option<u32> {
        let name = String::from_utf8_lossy(field);
        if let Some(number) = self.known.get(name.as_ref()) {
            return Some(*number);
        }
        let number = self.names.len();
        (number < MOST_TENANTS).then(|| {
            self.names.push(name.to_string());
            self.known.insert(name.into_owned(), number as u32);
            number as u32
        })
    }
}

/// Where what stands, and whether the first line is one of names.
fn places(first: &[u8], separator: Option<u8>, columns: &Columns) -> Result<(Places, bool), TraceError> {
    let names: Vec<String> =
        fields(first, separator).map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()).collect();
    let asked = [&columns.key, &columns.bytes, &columns.time, &columns.tenant];
    let by_number = asked.iter().any(|column| matches!(column, Some(Column::Number(_))));
    let by_name = asked.iter().any(|column| matches!(column, Some(Column::Name(_))));
    let usual = |of: &[&str]| names.iter().position(|name| of.contains(&name.as_str()));
    let has_names = !by_number && (by_name || usual(KEYS).is_some());
    let find = |column: &Option<Column>, of: &[&str]| match column {
        Some(Column::Number(number)) => Ok(Some(number - 1)),
        Some(Column::Name(name)) => {
            let at = names.iter().position(|known| *known == name.to_ascii_lowercase());
            at.map(Some).ok_or_else(|| {
                let known = names.join(", ");
                let way_out = if by_number { "; with numbers, there is no line of names" } else { "" };
                TraceError::Columns(format!("there is no column '{name}' among '{known}'{way_out}"))
            })
        }
        None if has_names => Ok(usual(of)),
        None => Ok(None),
    };
    let key = find(&columns.key, KEYS)?.or((names.len() <= 1).then_some(0)).ok_or_else(|| {
        TraceError::Columns(
            "no column is known to hold what is referenced; name it with --key-column NAME, or --key-column 1 for the first"
                .to_string(),
        )
    })?;
    let beside = |column: &Option<Column>, of: &[&str]| {
        // A name that was given to the key is not taken for something else by its sound.
        Ok::<_, TraceError>(find(column, of)?.filter(|at| column.is_some() || *at != key))
    };
    let (bytes, time) = (beside(&columns.bytes, BYTES)?, beside(&columns.time, TIMES)?);
    Ok((Places { key, bytes, time, tenant: beside(&columns.tenant, TENANTS)? }, has_names))
}

/// The fields of a line, without the blanks around them; one that begins with a quotation mark ends with one.
fn fields(line: &[u8], separator: Option<u8>) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let quoted = line.strip_prefix(b"\"").and_then(|inner| {
            let ends =
                |at: &usize| inner[*at] == b'"' && inner.get(at + 1).copied().is_none_or(|c| Some(c) == separator);
            (0..inner.len()).find(ends).map(|end| (&inner[..end], inner.get(end + 2..)))
        });
        let (field, after) = quoted.unwrap_or_else(|| match line.iter().position(|byte| Some(*byte) == separator) {
            Some(end) => (line[..end].trim_ascii(), Some(&line[end + 1..])),
            None => (line.trim_ascii(), None),
        });
        // Blanks may stand in a row.
        rest = if separator == Some(b' ') { after.map(<[u8]>::trim_ascii_start) } else { after };
        Some(field)
    })
}

fn parsed<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// A number as it is; `0x` and hexadecimal digits as their number; other text, or a number written in another way, by its hash.
fn key_of(field: &[u8]) -> u64 {
    let is_plain = field == b"0" || (field[0] != b'0' && field.iter().all(u8::is_ascii_digit));
    let hex = field.strip_prefix(b"0x").and_then(|digits| std::str::from_utf8(digits).ok());
    let number = if is_plain { parsed(field) } else { hex.and_then(|digits| u64::from_str_radix(digits, 16).ok()) };
    number.unwrap_or_else(|| {
        let mut hasher = DefaultHasher::new();
        hasher.write(field);
        hasher.finish()
    })
}

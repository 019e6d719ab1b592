//! CSV and plain text: a reference per line.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use super::error::{Bad, Place, TraceError, shown};
use super::fields::{fields, whole_number};
use super::input::Input;
use super::layout::is_delete;
use super::lines::Lines;
use super::plan::{Plan, is_remark};
use super::time::{TimeUnit, iso_seconds};
use super::{Record, Records};

/// Maximum number of tenants: with more, the column holds something else.
const MAX_TENANTS: usize = 1 << 12;

/// Addresses on a disk are below 2^this; the bits above hold the disk's number.
const VOLUME_BITS: u32 = 52;

/// A time beyond this (the year 5138) is not in seconds.
const LATEST_SECONDS: f64 = 1e11;

/// Reads this format.
pub struct Text {
    lines: Lines,
    plan: Plan,
    tenants: Tenants,
    volumes: Tenants,
    left_out: u64,
    assumes_seconds: bool,
}

#[derive(Default)]
struct Tenants {
    names: Vec<String>,
    known: HashMap<String, u32>,
}

impl Text {
    /// Reads by a plan. Columns that are not in it are not parsed.
    pub fn new(input: Input, plan: Plan) -> Text {
        let (tenants, volumes) = (Tenants::default(), Tenants::default());
        Text { lines: Lines::new(input), plan, tenants, volumes, left_out: 0, assumes_seconds: false }
    }
}

impl Records for Text {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        let Text { lines, plan, tenants, volumes, left_out, assumes_seconds } = self;
        while let Some((number, line)) = lines.next()? {
            // A byte-order mark is not part of the first field.
            let line = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
            if line.trim_ascii().is_empty() || plan.names_at == Some(number) || is_remark(line) {
                continue;
            }
            if let Some((record, is_number)) = record(plan, number, line, tenants, volumes)? {
                *assumes_seconds |= is_number;
                return Ok(Some(record));
            }
            *left_out += 1;
        }
        Ok(None)
    }

    fn place(&self) -> Place {
        Place::Line(self.lines.number())
    }

    fn tenants(&self) -> &[String] {
        &self.tenants.names
    }

    fn assumes_seconds(&self) -> bool {
        self.assumes_seconds
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }

    fn bad_percent(&self) -> u64 {
        1
    }
}

/// The reference in a line, and whether its time is a number of unknown unit; `None` if the line is not a reference.
fn record(
    plan: &Plan,
    number: u64,
    line: &[u8],
    tenants: &mut Tenants,
    volumes: &mut Tenants,
) -> Result<Option<(Record, bool)>, TraceError> {
    let (mut key, mut time, mut tenant) = (None, None, None);
    let (mut bytes, mut sizes, mut disk) = (0u64, 0, Vec::new());
    let is = |place: Option<usize>, column: usize| place == Some(column);
    for (column, field) in fields(line, plan.separator).enumerate() {
        if is(plan.operation, column) && is_delete(field) {
            return Ok(None);
        }
        if column == plan.key {
            key = Some(field);
        }
        if plan.bytes.contains(&column) {
            let more = whole_number(field)
                .ok_or_else(|| Bad::at_line(number, format!("{} is not a number of bytes", shown(field))))?;
            bytes = bytes.saturating_add(more);
            sizes += 1;
        }
        if is(plan.time.map(|(at, _)| at), column) {
            time = Some(field);
        }
        if is(plan.tenant, column) {
            tenant = Some(field);
        }
        if plan.volume.contains(&column) {
            disk.extend_from_slice(field);
            disk.push(b',');
        }
    }
    let bytes = bytes.saturating_mul(plan.size_unit);
    let has_too_few = sizes < plan.bytes.len()
        || (plan.time.is_some() && time.is_none())
        || (plan.tenant.is_some() && tenant.is_none());
    let Some(key) = key.filter(|key| !key.is_empty() && !has_too_few) else {
        return Err(Bad::at_line(number, format!("too few columns in {}", shown(line))));
    };
    if line.contains(&0) {
        return Err(Bad::at_line(number, format!("a NUL byte in {}", shown(line))));
    }
    let seconds = match (time, plan.time) {
        (Some(field), Some((_, unit))) => Some(seconds(field, unit, number)?),
        _ => None,
    };
    let is_number = seconds.is_some_and(|(_, is_number)| is_number);
    let too_many = |what: &str| {
        let what = format!("more than {MAX_TENANTS} {what}; the column holds something else");
        TraceError::Columns(format!("line {number}: {what}"))
    };
    let tenant = match tenant {
        None => None,
        Some(field) => Some(tenants.number(field).ok_or_else(|| too_many("tenants"))?),
    };
    let key = match plan.address {
        None => key_of(key),
        Some(unit) => {
            let address = address(key).and_then(|address| address.checked_mul(unit));
            let is_on_disk = |address: &u64| address.saturating_add(bytes.max(1) - 1) >> VOLUME_BITS == 0;
            let address = address.filter(|address| plan.volume.is_empty() || is_on_disk(address));
            let address = address.ok_or_else(|| Bad::at_line(number, format!("{} is not an address", shown(key))))?;
            let volume =
                if plan.volume.is_empty() { 0 } else { volumes.number(&disk).ok_or_else(|| too_many("disks"))? };
            address | u64::from(volume) << VOLUME_BITS
        }
    };
    let seconds = seconds.map(|(seconds, _)| seconds);
    Ok(Some((Record { key, bytes: (sizes > 0).then_some(bytes), seconds, tenant }, is_number)))
}

/// A time as seconds, and whether it is a number of unknown unit.
fn seconds(field: &[u8], unit: Option<TimeUnit>, number: u64) -> Result<(f64, bool), TraceError> {
    let text = std::str::from_utf8(field).unwrap_or("");
    let parsed = text.parse::<f64>().ok().filter(|time| time.is_finite());
    match (parsed, unit) {
        (Some(time), Some(unit)) => Ok((time / unit.per_second(), false)),
        (Some(time), None) if time.abs() < LATEST_SECONDS => Ok((time, true)),
        (Some(_), None) => Err(TraceError::Columns(format!(
            "line {number}: the time {} cannot be in seconds; give its unit with --time-unit ms, us, 100ns or ns",
            shown(field)
        ))),
        (None, _) => iso_seconds(text)
            .map(|seconds| (seconds, false))
            .ok_or_else(|| Bad::at_line(number, format!("{} is not a time in seconds", shown(field)))),
    }
}

fn address(field: &[u8]) -> Option<u64> {
    let hex = field.strip_prefix(b"0x").or_else(|| field.strip_prefix(b"0X"));
    match hex.and_then(|digits| std::str::from_utf8(digits).ok()) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => whole_number(field),
    }
}

impl Tenants {
    fn number(&mut self, field: &[u8]) -> Option<u32> {
        let name = String::from_utf8_lossy(field);
        if let Some(number) = self.known.get(name.as_ref()) {
            return Some(*number);
        }
        let number = self.names.len();
        (number < MAX_TENANTS).then(|| {
            self.names.push(name.to_string());
            self.known.insert(name.into_owned(), number as u32);
            number as u32
        })
    }
}

/// Plain numbers as they are; `0x` and hexadecimal digits as their number; other text, or a number in another notation,
/// by its hash.
fn key_of(field: &[u8]) -> u64 {
    let is_plain = field == b"0" || (field[0] != b'0' && field.iter().all(u8::is_ascii_digit));
    let hex = field.strip_prefix(b"0x").and_then(|digits| std::str::from_utf8(digits).ok());
    let number =
        if is_plain { whole_number(field) } else { hex.and_then(|digits| u64::from_str_radix(digits, 16).ok()) };
    number.unwrap_or_else(|| {
        let mut hasher = DefaultHasher::new();
        hasher.write(field);
        hasher.finish()
    })
}

//! The columns of a line of text: found from the first lines, or specified.

use super::error::{TraceError, shown};
use super::fields::{fields, whole_number};
use super::format::{Column, Columns, Format};
use super::layout::Layout;
use super::time::TimeUnit;
use super::unpack::SHAPE_BYTES;

/// Column separators: the first of these in the first line and in half of the others. A blank also stands for tabs and
/// for runs of both.
const SEPARATORS: [u8; 5] = [b',', b'\t', b';', b'|', b' '];

/// Number of first lines examined.
const LINES: usize = 200;

/// The usual column names.
const KEYS: &[&str] = &[
    "key",
    "id",
    "obj_id",
    "object_id",
    "object",
    "obj",
    "page",
    "block",
    "lbn",
    "lba",
    "sector",
    "address",
    "addr",
    "offset",
    "url",
    "uri",
    "hashed_path_query",
    "hashed_host_path_query",
    "cachekey",
    "cache_key",
    "anonymized_key",
];
const BYTES: &[&str] =
    &["bytes", "size", "obj_size", "object_size", "length", "len", "response_size", "size_bytes", "objectsize"];
/// Sizes of disk accesses, in blocks.
const BLOCKS: &[&str] =
    &["blocks", "nblocks", "num_blocks", "block_count", "sectors", "nsectors", "num_sectors", "sector_count"];
const TIMES: &[&str] = &["time", "seconds", "timestamp", "clock_time", "ts", "relative_unix", "unix_time", "datetime"];
const TENANTS: &[&str] = &["tenant", "client", "client_id", "namespace", "volume"];
const VOLUMES: &[&str] = &[
    "volume",
    "volume_id",
    "volumeid",
    "disk",
    "disknumber",
    "disk_number",
    "lun",
    "device",
    "device_id",
    "asu",
    "hostname",
];

/// Bytes of a disk block.
const BLOCK_BYTES: u64 = 512;

/// Columns, from 0.
pub struct Plan {
    pub separator: Option<u8>,
    /// Number of the line of names.
    pub names_at: Option<u64>,
    pub key: usize,
    /// Their sum is the size, in units of this many bytes.
    pub bytes: Vec<usize>,
    pub size_unit: u64,
    /// With its unit; without one it is seconds, if that is plausible.
    pub time: Option<(usize, Option<TimeUnit>)>,
    pub tenant: Option<usize>,
    /// Columns that identify a disk; each disk has its own addresses.
    pub volume: Vec<usize>,
    /// The key is an address, in units of this many bytes.
    pub address: Option<u64>,
    pub page_bytes: Option<u64>,
    pub operation: Option<usize>,
    /// The layout, and a description of what it implies.
    pub layout: Option<Layout>,
    pub implies: String,
}

/// The first lines of a text without comments, each with its number.
struct Sample<'a> {
    lines: Vec<(u64, &'a [u8])>,
    /// The last comment before the first line.
    remark: Option<&'a [u8]>,
    separator: Option<u8>,
}

/// Whether a line is a comment.
pub fn is_remark(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
}

impl Plan {
    /// Makes a plan from the text's first bytes. `format`: text of some kind.
    pub fn of(head: &[u8], format: &Format) -> Result<Plan, TraceError> {
        let sample = Sample::of(head);
        match format {
            Format::Layout(layout) => Ok(sample.known(*layout)),
            Format::Csv(columns) => sample.columns(columns),
            _ => sample.columns(&Columns::default()),
        }
    }
}

impl<'a> Sample<'a> {
    fn of(head: &'a [u8]) -> Sample<'a> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let mut all: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
        // The last line may continue beyond the bytes examined.
        if head.len() + 3 >= SHAPE_BYTES && all.len() > 1 {
            all.pop();
        }
        let mut sample = Sample { lines: Vec::new(), remark: None, separator: None };
        for (number, line) in (1..).zip(all) {
            let line = line.trim_ascii();
            if is_remark(line) {
                if sample.lines.is_empty() {
                    sample.remark = Some(&line[1..]);
                }
            } else if !line.is_empty() && sample.lines.len() < LINES {
                sample.lines.push((number, line));
            }
        }
        let has = |separator: &u8| {
            let is = |byte: &u8| byte == separator || (*separator == b' ' && *byte == b'\t');
            let with = sample.lines.iter().filter(|(_, line)| line.iter().any(is)).count();
            sample.lines.first().is_some_and(|(_, line)| line.iter().any(is)) && with * 2 >= sample.lines.len()
        };
        sample.separator = SEPARATORS.into_iter().find(has);
        sample
    }

    fn split(&self, line: &'a [u8]) -> Vec<&'a [u8]> {
        fields(line, self.separator).collect()
    }

    /// The fields of a possible line of names, in lower case.
    fn names(&self, line: &[u8]) -> Vec<String> {
        names(line, self.separator)
    }

    /// The plan for a published layout.
    fn known(&self, layout: Layout) -> Plan {
        let shape = layout.shape();
        let first = self.lines.first();
        let names_at = first.filter(|(_, line)| {
            let of = |line| fields(line, Some(shape.separator)).collect::<Vec<_>>();
            !layout.fits(&of(line)) && self.lines.get(1).is_none_or(|(_, line)| layout.fits(&of(line)))
        });
        Plan {
            separator: Some(shape.separator),
            names_at: names_at.map(|(number, _)| *number),
            key: shape.key,
            bytes: shape.bytes.to_vec(),
            size_unit: 1,
            time: Some((shape.time.0, Some(shape.time.1))),
            tenant: shape.tenant,
            volume: shape.volume.to_vec(),
            address: shape.address,
            page_bytes: shape.page_bytes,
            operation: shape.operation,
            layout: Some(layout),
            implies: layout.implies(),
        }
    }

    /// Layouts that nearly all lines match, except the first, which may hold names.
    fn candidates(&self) -> Vec<Layout> {
        let lines = if self.lines.len() > 1 { &self.lines[1..] } else { &self.lines[..] };
        let is_of = |layout: &Layout| {
            let shape = layout.shape();
            let fits =
                |(_, line): &&(u64, &[u8])| layout.fits(&fields(line, Some(shape.separator)).collect::<Vec<_>>());
            let fitting = lines.iter().filter(fits).count();
            shape.names.is_empty() && fitting > 0 && fitting * 10 >= lines.len() * 9
        };
        Layout::ALL.into_iter().filter(is_of).collect()
    }

    fn columns(&self, columns: &Columns) -> Result<Plan, TraceError> {
        let asked = [&columns.key, &columns.bytes, &columns.time, &columns.tenant];
        let by_number = asked.iter().any(|column| matches!(column, Some(Column::Number(_))));
        let by_name = asked.iter().any(|column| matches!(column, Some(Column::Name(_))));
        let first = self.lines.first().map(|(_, line)| self.names(line)).unwrap_or_default();
        let has_keys = |names: &[String]| names.iter().any(|name| KEYS.contains(&TimeUnit::of_name(name).1));
        let width = self.lines.first().map_or(0, |(_, line)| self.split(line).len());
        let is_as_wide = |names: &[String]| names.len() == width;
        let remark = self.remark.map(|line| self.names(line)).filter(|names| is_as_wide(names));
        let has_names = !by_number && (has_keys(&first) || (by_name && remark.is_none()));
        let names = match remark {
            _ if by_number => Vec::new(),
            Some(remark) if !has_keys(&first) && (by_name || has_keys(&remark)) => remark,
            _ if has_names => first.clone(),
            _ => Vec::new(),
        };
        if columns == &Columns::default() {
            if let Some(layout) = Layout::ALL.into_iter().find(|l| !names.is_empty() && l.shape().names == names) {
                return Ok(self.known(layout));
            }
            if names.is_empty() {
                match self.candidates()[..] {
                    [layout] => return Ok(self.known(layout)),
                    [] => {}
                    ref several => {
                        let several = several.iter().map(|layout| layout.name()).collect::<Vec<_>>().join(" or ");
                        return Err(TraceError::Columns(format!("it may be {several}; say which with --format")));
                    }
                }
            }
        }
        let key = self.key(&columns.key, &names, width)?;
        let beside = |column: &Option<Column>, of: &[&str]| {
            // The key's column is not also used for something else because of its name.
            Ok::<_, TraceError>(find(column, &names, of)?.filter(|at| column.is_some() || *at != key))
        };
        let (named, time) = (beside(&columns.bytes, BYTES)?, beside(&columns.time, TIMES)?);
        let tenant = beside(&columns.tenant, TENANTS)?;
        let name = names.get(key).map_or("", String::as_str);
        let (address, address_name) = match name {
            "offset" | "address" | "addr" => (Some(1), true),
            "lba" | "lbn" | "sector" => (Some(BLOCK_BYTES), true),
            // This only matters if pages are requested.
            _ => (columns.key.is_some().then_some(1), false),
        };
        let volume = names.iter().position(|name| address_name && VOLUMES.contains(&name.as_str()));
        let is_disk = address == Some(BLOCK_BYTES);
        let blocks = || names.iter().position(|name| is_disk && BLOCKS.contains(&name.as_str()));
        let bytes = named.or_else(blocks);
        let is_extent = (name == "offset" || is_disk) && bytes.is_some() && columns.key.is_none();
        let size_unit = if is_disk && bytes.is_some_and(|at| self.is_in_blocks(at, &names)) { BLOCK_BYTES } else { 1 };
        // Columns selected by number have the units of a known layout that matches.
        let unit = time.and_then(|at| {
            let of_name = names.get(at).and_then(|name| TimeUnit::of_name(name).0);
            let known = self.candidates().into_iter().map(|layout| layout.shape().time);
            of_name.or_else(|| known.into_iter().find(|(column, _)| *column == at).map(|(_, unit)| unit))
        });
        let part = |what: &str, at: Option<usize>| {
            at.map_or_else(String::new, |at| match names.get(at) {
                Some(name) => format!(", {what} in '{name}'"),
                None => format!(", {what} in column {}", at + 1),
            })
        };
        let sizes = match size_unit {
            1 => part("bytes", bytes),
            unit => part(&format!("blocks of {unit} bytes"), bytes),
        };
        let implies = format!(
            "{}{}{}{}",
            part("keys", Some(key)).trim_start_matches(", "),
            sizes,
            part("time", time),
            part("disks", volume)
        );
        Ok(Plan {
            separator: self.separator,
            names_at: self.lines.first().filter(|_| has_names).map(|(number, _)| *number),
            key,
            bytes: bytes.into_iter().collect(),
            size_unit,
            time: time.map(|at| (at, unit)),
            tenant,
            volume: volume.into_iter().collect(),
            address,
            page_bytes: is_extent.then_some(4096),
            operation: None,
            layout: None,
            implies,
        })
    }

    /// Whether a disk's sizes are in blocks: by the column's name, or because one of them is not a multiple of a block.
    fn is_in_blocks(&self, column: usize, names: &[String]) -> bool {
        let name = names.get(column).map_or("", String::as_str);
        let sizes = || self.lines.iter().filter_map(|(_, line)| whole_number(self.split(line).get(column)?));
        BLOCKS.contains(&name) || !name.contains("bytes") && sizes().any(|size| size % BLOCK_BYTES != 0)
    }

    fn key(&self, asked: &Option<Column>, names: &[String], width: usize) -> Result<usize, TraceError> {
        if let Some(key) = asked.as_ref().map(|_| find(asked, names, &[])).transpose()?.flatten() {
            return Ok(key);
        }
        let first = self.lines.first().map_or(&b""[..], |(_, line)| line);
        if first.starts_with(b"{\"") || first.starts_with(b"[{") {
            let what = "it is JSON, which is not read; convert it to CSV, for example with jq -r";
            return Err(TraceError::OtherFile(what.to_string()));
        }
        let known: Vec<usize> = (0..names.len()).filter(|at| KEYS.contains(&names[*at].as_str())).collect();
        match known[..] {
            [key] => return Ok(key),
            [_, _, ..] => {
                let known = known.iter().map(|at| format!("'{}'", names[*at])).collect::<Vec<_>>().join(" or ");
                return Err(TraceError::Columns(format!(
                    "what is referenced may be in column {known}; say which with --key-column NAME"
                )));
            }
            [] if width <= 1 => return Ok(0),
            [] => {}
        }
        let layouts = Layout::ALL.map(Layout::name).join(", ");
        Err(TraceError::Columns(format!(
            "no column of {} is known to hold what is referenced; name it with --key-column NAME, or --key-column 1 for the first, and the sizes likewise \
             with --size-column. It is none of the layouts {layouts}",
            shown(self.split(first).join(&b" | "[..]).as_slice())
        )))
    }
}

fn find(column: &Option<Column>, names: &[String], of: &[&str]) -> Result<Option<usize>, TraceError> {
    match column {
        Some(Column::Number(number)) => Ok(Some(number - 1)),
        Some(Column::Name(name)) => {
            let wanted = name.to_lowercase();
            let at = names.iter().position(|known| *known == wanted || *known == plain_name(&wanted));
            at.map(Some).ok_or_else(|| {
                let known = names.join(", ");
                let way_out = if names.is_empty() { "; with numbers, there is no line of names" } else { "" };
                TraceError::Columns(format!("there is no column '{name}' among '{known}'{way_out}"))
            })
        }
        None => Ok(names.iter().position(|name| of.contains(&TimeUnit::of_name(name).1))),
    }
}

/// Normalises a name for comparison: `object id` and `Object-ID` are `object_id`; text in brackets counts only if it is
/// a unit of time.
fn plain_name(name: &str) -> String {
    let name = name.trim().to_lowercase();
    let (unit, _) = TimeUnit::of_name(&name);
    let bare = name.split(['(', '[']).next().unwrap_or(&name).trim().replace([' ', '-'], "_");
    match unit {
        Some(unit) if name.contains(['(', '[']) => format!("{bare}_{unit}"),
        _ => bare,
    }
}

/// The names in a line. Separators within brackets do not count.
fn names(line: &[u8], separator: Option<u8>) -> Vec<String> {
    let mut depth = 0usize;
    let hidden: Vec<u8> = line
        .iter()
        .map(|byte| {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                byte if Some(*byte) == separator && depth > 0 => return b'_',
                _ => {}
            }
            *byte
        })
        .collect();
    let line = if separator == Some(b' ') { hidden.trim_ascii() } else { &hidden };
    fields(line, separator).map(|name| plain_name(&String::from_utf8_lossy(name))).collect()
}

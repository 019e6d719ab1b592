//! Layouts of published text traces, recognised by the shape of their lines.

use super::time::TimeUnit;

/// A published layout of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// MSR Cambridge: time, host, disk, Read or Write, offset, bytes, response time.
    Msr,
    /// SPC-1 (UMass): unit, block, bytes, R or W, seconds.
    Spc,
    /// Alibaba block traces: device, R or W, offset, bytes, microseconds.
    Alibaba,
    /// Twitter's twemcache clusters: seconds, key, its bytes, bytes of the value, client, operation, time to live.
    Twitter,
    /// IBM Cloud Object Storage: milliseconds, request, object, bytes, first byte, last byte.
    IbmCos,
    /// Wikimedia's upload and text caches: seconds, hash, type of image (upload), bytes, time to the first byte.
    WikiCdn,
    /// CloudPhysics as CSV: version, microseconds, command, bytes, block.
    CloudPhysics,
}

/// The columns of a layout, from 0.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub separator: u8,
    /// Required kind of each column.
    pub columns: &'static [FieldKind],
    /// Number of columns that a line may lack at its end.
    pub optional: usize,
    /// The names in its first line; empty if it has no such line.
    pub names: &'static [&'static str],
    pub key: usize,
    /// Their sum is the size.
    pub bytes: &'static [usize],
    pub time: (usize, TimeUnit),
    pub tenant: Option<usize>,
    /// Columns that identify a disk; each disk has its own addresses.
    pub volume: &'static [usize],
    /// The key is an address, in units of this many bytes.
    pub address: Option<u64>,
    /// Accesses are cut into pages of this size by default.
    pub page_bytes: Option<u64>,
    /// The column of the operation.
    pub operation: Option<usize>,
}

/// What a field must kind like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Anything.
    Any,
    /// Digits.
    Number,
    /// At least 16 digits: a time in microseconds, or finer.
    LongNumber,
    /// A number with or without sign and fraction.
    Decimal,
    /// No number.
    Word,
    /// Read or Write.
    ReadWrite,
    /// R or W.
    Letter,
    /// An operation of memcached.
    Memcached,
    /// REST.GET.OBJECT and so on.
    Rest,
}

impl FieldKind {
    fn fits(self, field: &[u8]) -> bool {
        let is_one_of = |words: &[&str]| words.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes()));
        let is_decimal = || std::str::from_utf8(field).is_ok_and(|text| text.parse::<f64>().is_ok());
        let is_number = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
        match self {
            FieldKind::Any => true,
            FieldKind::Number => is_number,
            FieldKind::LongNumber => is_number && field.len() >= 16,
            FieldKind::Decimal => is_decimal(),
            FieldKind::Word => !is_decimal(),
            FieldKind::ReadWrite => is_one_of(&["read", "write"]),
            FieldKind::Letter => is_one_of(&["r", "w"]),
            FieldKind::Memcached => is_one_of(&[
                "get", "gets", "set", "add", "replace", "cas", "append", "prepend", "delete", "incr", "decr",
            ]),
            FieldKind::Rest => field.starts_with(b"REST."),
        }
    }
}

impl Layout {
    /// All of them.
    pub const ALL: [Layout; 7] = [
        Layout::Msr,
        Layout::Spc,
        Layout::Alibaba,
        Layout::Twitter,
        Layout::IbmCos,
        Layout::WikiCdn,
        Layout::CloudPhysics,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Msr => "msr",
            Layout::Spc => "spc",
            Layout::Alibaba => "alibaba",
            Layout::Twitter => "twitter",
            Layout::IbmCos => "ibm-cos",
            Layout::WikiCdn => "wiki-cdn",
            Layout::CloudPhysics => "cloudphysics",
        }
    }

    /// Its columns.
    pub fn shape(self) -> Shape {
        use FieldKind::*;
        let block = Shape {
            separator: b',',
            columns: &[],
            optional: 0,
            names: &[],
            key: 0,
            bytes: &[],
            time: (0, TimeUnit::Seconds),
            tenant: None,
            volume: &[],
            address: Some(1),
            page_bytes: Some(4096),
            operation: None,
        };
        let objects = Shape { address: None, page_bytes: None, ..block };
        match self {
            Layout::Msr => Shape {
                columns: &[LongNumber, Word, Number, ReadWrite, Number, Number, Decimal],
                key: 4,
                bytes: &[5],
                time: (0, TimeUnit::Ticks),
                tenant: Some(1),
                volume: &[1, 2],
                ..block
            },
            Layout::Spc => Shape {
                columns: &[Number, Number, Number, Letter, Decimal],
                key: 1,
                bytes: &[2],
                time: (4, TimeUnit::Seconds),
                tenant: Some(0),
                volume: &[0],
                address: Some(512),
                ..block
            },
            Layout::Alibaba => Shape {
                columns: &[Number, Letter, Number, Number, LongNumber],
                key: 2,
                bytes: &[3],
                time: (4, TimeUnit::Micros),
                tenant: Some(0),
                volume: &[0],
                ..block
            },
            Layout::Twitter => Shape {
                columns: &[Number, Any, Number, Number, Any, Memcached, Decimal],
                key: 1,
                bytes: &[2, 3],
                tenant: Some(4),
                operation: Some(5),
                ..objects
            },
            Layout::IbmCos => Shape {
                separator: b' ',
                columns: &[Number, Rest, Any, Number, Number, Number],
                optional: 3,
                key: 2,
                bytes: &[3],
                time: (0, TimeUnit::Millis),
                operation: Some(1),
                ..objects
            },
            Layout::WikiCdn => Shape {
                separator: b'\t',
                columns: &[Number, Any, Word, Number, Decimal],
                key: 1,
                bytes: &[3],
                ..objects
            },
            Layout::CloudPhysics => Shape {
                columns: &[Number, Number, Any, Number, Number],
                names: &["version", "time", "op", "size", "lbn"],
                key: 4,
                bytes: &[3],
                time: (1, TimeUnit::Micros),
                address: Some(512),
                page_bytes: None,
                ..block
            },
        }
    }

    /// Whether a line with these fields may have this layout.
    pub fn fits(self, fields: &[&[u8]]) -> bool {
        let shape = self.shape();
        let fewest = shape.columns.len() - shape.optional;
        (fewest..=shape.columns.len()).contains(&fields.len())
            && shape.columns.iter().zip(fields).all(|(kind, field)| kind.fits(field))
    }

    /// Description of what it implies, for people.
    pub fn implies(self) -> String {
        let shape = self.shape();
        let numbers = |columns: &[usize]| columns.iter().map(|c| (c + 1).to_string()).collect::<Vec<_>>().join(" and ");
        let key = match shape.address {
            Some(1) => format!("addresses in column {}", shape.key + 1),
            Some(unit) => format!("addresses in column {}, in blocks of {unit} bytes", shape.key + 1),
            None => format!("keys in column {}", shape.key + 1),
        };
        let disks = match shape.volume {
            [] => String::new(),
            columns => format!(", disks apart by column {}", numbers(columns)),
        };
        let (time, unit) = shape.time;
        let bytes = numbers(shape.bytes);
        format!("{key}, bytes in {bytes}, time in {} ({unit}){disks}", time + 1)
    }
}

/// Whether an operation deletes an object, so that it is not a reference.
pub fn is_delete(operation: &[u8]) -> bool {
    let operation = operation.strip_prefix(b"REST.").unwrap_or(operation);
    operation.get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"delete"))
}

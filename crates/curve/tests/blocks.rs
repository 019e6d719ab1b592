//! References read in blocks equal those read one by one, for every format, however the input is cut or broken.

use std::io::{self, Cursor, Read, Write};

use curve::Object;
use curve::trace::{Columns, Format, Layout, Needs, Reading, Record, Trace, TraceError};
use proptest::prelude::*;

/// The first bytes of a trace are examined before it is read; traces longer than this are read in pieces.
const LOOKED_AT: usize = 64 << 10;

/// Returns bytes in pieces of these lengths, cyclically.
struct Pieces {
    bytes: Cursor<Vec<u8>>,
    lengths: Vec<usize>,
    next: usize,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.next = (self.next + 1) % self.lengths.len();
        let length = into.len().min(self.lengths[self.next]);
        self.bytes.read(&mut into[..length])
    }
}

/// The result of reading a trace: its references, the error message, and its counts.
#[derive(Debug, PartialEq)]
struct Given<T> {
    references: Vec<T>,
    error: Option<String>,
    skipped: (u64, Option<String>),
    left_out: u64,
}

impl<T> Given<T> {
    fn of(trace: &Trace, references: Vec<T>, error: Option<TraceError>) -> Given<T> {
        let (skipped, first) = trace.skipped();
        Given {
            references,
            error: error.map(|error| error.to_string()),
            skipped: (skipped, first.map(ToString::to_string)),
            left_out: trace.left_out(),
        }
    }
}

fn one_by_one<T>(mut trace: Trace, of: impl Fn(&Record) -> T) -> Given<T> {
    let mut references = Vec::new();
    loop {
        match trace.read() {
            Ok(Some(record)) => references.push(of(&record)),
            Ok(None) => return Given::of(&trace, references, None),
            Err(error) => return Given::of(&trace, references, Some(error)),
        }
    }
}

fn in_blocks<T>(
    mut trace: Trace,
    most: usize,
    read: impl Fn(&mut Trace, &mut Vec<T>) -> Result<(), TraceError>,
) -> Given<T> {
    let mut references = Vec::new();
    loop {
        let mut block = Vec::new();
        let result = read(&mut trace, &mut block);
        assert!(block.len() <= most);
        let is_last = block.len() < most;
        references.append(&mut block);
        match result {
            Err(error) => return Given::of(&trace, references, Some(error)),
            Ok(()) if is_last => return Given::of(&trace, references, None),
            Ok(()) => {}
        }
    }
}

/// A trace, and how to read it.
#[derive(Clone, Debug)]
struct Case {
    format: Format,
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    page_bytes: Option<u64>,
    skips_bad: bool,
}

impl Case {
    fn open(&self) -> Result<Trace, TraceError> {
        let needs = Needs { bytes: true, time: false, tenant: false };
        let reading = Reading { page_bytes: self.page_bytes, skips_bad: self.skips_bad, time_unit: None, needs };
        let bytes = Cursor::new(self.bytes.clone());
        Trace::open(Pieces { bytes, lengths: self.lengths.clone(), next: 0 }, &self.format, &reading)
    }

    fn check(&self, most: usize) -> Result<(), TestCaseError> {
        let Ok(trace) = self.open() else { return Ok(()) };
        let keys = one_by_one(trace, |record| record.key);
        let blocks = in_blocks(self.open().unwrap(), most, |trace, into| trace.keys(into, most));
        prop_assert_eq!(blocks, keys);
        let object = |record: &Record| record.bytes.map(|bytes| Object { key: record.key, bytes });
        let objects = one_by_one(self.open().unwrap(), object);
        // A truncated first line has no column of bytes.
        if objects.references.contains(&None) {
            return Ok(());
        }
        let Given { references, error, skipped, left_out } = objects;
        let objects = Given { references: references.into_iter().flatten().collect(), error, skipped, left_out };
        let blocks = in_blocks(self.open().unwrap(), most, |trace, into| trace.objects(into, most));
        prop_assert_eq!(blocks, objects);
        Ok(())
    }
}

fn little_endian(fields: &[(u64, usize)]) -> Vec<u8> {
    fields.iter().flat_map(|(number, bytes)| number.to_le_bytes()[..*bytes].to_vec()).collect()
}

/// A record of a format; malformed on request.
fn record(format: &Format, version: u64, key: u64, bytes: u32, is_bad: bool) -> Vec<u8> {
    let bytes = u64::from(bytes % 20_000);
    match format {
        Format::OracleGeneral => {
            let next = if is_bad { -3i64 } else { -1 };
            little_endian(&[(7, 4), (key, 8), (bytes, 4), (next as u64, 8)])
        }
        Format::Vscsi => {
            let (block, bad) = (key >> 20, u64::from(is_bad));
            match version {
                1 => little_endian(&[(7, 4), (bytes, 4), (1, 4), (0x28, 2), ((1 + bad) << 8, 2), (block, 8), (9, 8)]),
                _ => little_endian(&[
                    (0x28, 2),
                    ((2 + bad) << 8, 2),
                    (7, 4),
                    (bytes, 4),
                    (1, 4),
                    (block, 8),
                    (9, 8),
                    (1, 8),
                ]),
            }
        }
        Format::Lackey if is_bad => b" L what\n".to_vec(),
        Format::Lackey => format!(" L {:x},{}\n", key >> 20, bytes).into_bytes(),
        _ if is_bad => b"5,many\n".to_vec(),
        _ => format!("{key},{bytes}\n").into_bytes(),
    }
}

fn formats() -> impl Strategy<Value = (Format, u64)> {
    prop_oneof![
        Just((Format::OracleGeneral, 0)),
        Just((Format::Vscsi, 1)),
        Just((Format::Vscsi, 2)),
        Just((Format::Lackey, 0)),
        Just((Format::Csv(Columns::default()), 0)),
    ]
}

/// Traces of some hundred records after those examined first, a few malformed, cut anywhere.
fn cases() -> impl Strategy<Value = Case> {
    let records = prop::collection::vec((any::<u64>(), any::<u32>(), prop::bool::weighted(0.02)), 1..300);
    let lengths = prop::collection::vec(1usize..100, 1..8);
    let how = (prop::bool::weighted(0.7), any::<bool>(), prop::bool::weighted(0.2));
    (formats(), records, 0..200usize, lengths, how).prop_map(
        |((format, version), records, cut, lengths, (is_long, skips_bad, has_pages))| {
            let title = if matches!(format, Format::Csv(_)) { &b"key,size\n"[..] } else { b"" };
            let first = record(&format, version, 77 << 20, 4096, false);
            let before = if is_long { LOOKED_AT / first.len() } else { 1 };
            let rest = records.iter().flat_map(|(key, bytes, is_bad)| record(&format, version, *key, *bytes, *is_bad));
            let mut bytes = [title, &first.repeat(before)].concat();
            bytes.extend(rest);
            bytes.truncate(bytes.len() - cut.min(bytes.len()));
            let page_bytes = (has_pages && matches!(format, Format::Vscsi | Format::Lackey)).then_some(4096);
            Case { format, bytes, lengths, page_bytes, skips_bad }
        },
    )
}

proptest! {
    #[test]
    fn blocks_equal_single_records(case in cases(), most in 1usize..5000) {
        case.check(most)?;
    }

    #[test]
    fn blocks_equal_single_records_of_broken_traces(case in cases(), keep in 0.3f64..1.0, flip in any::<bool>()) {
        let mut packed = zstd::stream::encode_all(&case.bytes[..], 0).unwrap();
        packed.truncate((packed.len() as f64 * keep) as usize);
        if let Some(last) = packed.last_mut().filter(|_| flip) {
            *last ^= 1;
        }
        Case { bytes: packed, ..case.clone() }.check(1000)?;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&case.bytes).unwrap();
        let mut packed = encoder.finish().unwrap();
        packed.truncate((packed.len() as f64 * keep) as usize);
        Case { bytes: packed, ..case }.check(1000)?;
    }
}

fn all_formats() -> Vec<Format> {
    let own = [Format::Auto, Format::Csv(Columns::default()), Format::OracleGeneral, Format::Vscsi, Format::Lackey];
    own.into_iter().chain(Layout::ALL.map(Format::Layout)).collect()
}

/// First bytes that lead into each reader and each decompressor.
const BEGINNINGS: [&[u8]; 16] = [
    b"",
    b"key,size\n",
    b"1,2,3,4,5,6,7\n",
    b" L 10,4\n",
    b"# time, id\n",
    b"\xef\xbb\xbf",
    &[0, 0, 0, 2],
    &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    &[0x1f, 0x8b, 8, 0],
    &[0x28, 0xb5, 0x2f, 0xfd],
    &[0xfd, b'7', b'z', b'X', b'Z', 0],
    b"LZIP\x01",
    b"BZh9\x31\x41\x59\x26",
    &[4, 0x22, 0x4d, 0x18],
    &[0xff, 6, 0, 0, b's', b'N', b'a', b'P', b'p', b'Y'],
    &[0x5d, 0, 0, 0x80, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0],
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_a_reader_panic(
        beginning in 0..BEGINNINGS.len(),
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..600),
            "[ ,;\\t0-9a-fLSIx\"#.:\\-\\n]{0,600}".prop_map(String::into_bytes),
        ],
        format in 0..all_formats().len(),
        skips_bad in any::<bool>(),
        page_bytes in prop_oneof![Just(None), Just(Some(4096u64))],
    ) {
        let bytes = [BEGINNINGS[beginning], &bytes].concat();
        let case = Case { format: all_formats()[format].clone(), bytes, lengths: vec![7, 64], page_bytes, skips_bad };
        let Ok(mut trace) = case.open() else { return Ok(()) };
        // An access to 2^64 bytes has more pages than a test can read.
        let most = 2000;
        let mut keys = Vec::new();
        let read = trace.keys(&mut keys, most);
        prop_assert!(keys.len() <= most);
        if read.is_ok() && keys.len() < most {
            prop_assert!(matches!(trace.read(), Ok(None)));
        }
    }
}

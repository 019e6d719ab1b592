//! VMware's vscsi: requests to a virtual disk, in little-endian records with the layout of C structures. Version 1 has
//! 32 bytes: serial number (u32), bytes (u32), scatter-gather elements (u32), command (u16), version (u16), block
//! (u64), time in microseconds (u64). Version 2 has 40: command (u16), version (u16), serial number, bytes, elements
//! (u32 each), block, time, response time (u64 each). The version's high byte distinguishes them.

use super::binary::{Binary, number};
use super::error::{Bad, Place, TraceError};
use super::input::Input;
use super::{Record, Records};
use crate::item::Object;

const BLOCK_BYTES: u64 = 512;

/// Reads this format.
pub struct Vscsi {
    input: Binary,
    version: Version,
}

enum Version {
    One,
    Two,
}

/// Record lengths of the versions.
const ONE: usize = 32;
const TWO: usize = 40;

impl Vscsi {
    /// The first record shows the version.
    pub fn new(mut input: Input) -> Result<Vscsi, TraceError> {
        let head = input.peek(ONE)?;
        let version = match (head.get(3), head.get(15)) {
            (Some(2), _) => Version::Two,
            (_, Some(1)) | (None, _) => Version::One,
            _ => return Err(Bad::at_byte(0, "neither version 1 nor version 2 of vscsi")),
        };
        Ok(Vscsi { input: Binary::new(input), version })
    }

    /// Decodes records directly in the input's buffer; `of` converts an object to an item.
    fn decode_all<T>(&mut self, into: &mut Vec<T>, most: usize, of: impl Fn(Object) -> T) -> Result<(), TraceError> {
        match self.version {
            Version::One => self.input.decode_all(into, most, |offset, record| Ok(of(one(offset, record)?))),
            Version::Two => self.input.decode_all(into, most, |offset, record| Ok(of(two(offset, record)?))),
        }
    }
}

impl Records for Vscsi {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        let (object, micros) = match self.version {
            Version::One => {
                let Some((offset, record)) = self.input.take::<ONE>()? else { return Ok(None) };
                (one(offset, &record)?, number::<8>(&record, 24))
            }
            Version::Two => {
                let Some((offset, record)) = self.input.take::<TWO>()? else { return Ok(None) };
                (two(offset, &record)?, number::<8>(&record, 24))
            }
        };
        let Object { key, bytes } = object;
        Ok(Some(Record { key, bytes: Some(bytes), seconds: Some(micros as f64 / 1e6), tenant: None }))
    }

    fn place(&self) -> Place {
        match self.version {
            Version::One => self.input.place::<ONE>(),
            Version::Two => self.input.place::<TWO>(),
        }
    }

    fn keys(&mut self, into: &mut Vec<u64>, most: usize) -> Result<(), TraceError> {
        self.decode_all(into, most, |object| object.key)
    }

    fn objects(&mut self, into: &mut Vec<Object>, most: usize) -> Result<(), TraceError> {
        self.decode_all(into, most, |object| object)
    }
}

#[inline]
fn one(offset: u64, record: &[u8; ONE]) -> Result<Object, TraceError> {
    object(offset, 1, number::<2>(record, 14), number::<8>(record, 16), number::<4>(record, 4))
}

#[inline]
fn two(offset: u64, record: &[u8; TWO]) -> Result<Object, TraceError> {
    object(offset, 2, number::<2>(record, 2), number::<8>(record, 16), number::<4>(record, 8))
}

#[inline]
fn object(offset: u64, expected: u64, version: u64, block: u64, bytes: u64) -> Result<Object, TraceError> {
    if version >> 8 != expected {
        return Err(Bad::at_byte(offset, format!("not a record of version {expected} of vscsi")));
    }
    match block.checked_mul(BLOCK_BYTES) {
        Some(key) => Ok(Object { key, bytes }),
        None => Err(Bad::at_byte(offset, format!("block {block} is on no disk"))),
    }
}

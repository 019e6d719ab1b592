//! VMware's vscsi: what a virtual disk was asked for, in records of the C structures' layout, little-endian. Version 1 has 32
//! bytes: serial number (u32), bytes (u32), scatter-gather elements (u32), command (u16), version (u16), block (u64), time in
//! microseconds (u64). Version 2 has 40: command (u16), version (u16), serial number, bytes, elements (u32 each), block, time,
//! response time (u64 each). The version's high byte says which it is.

use std::io::{BufRead, Cursor, Read};

use super::binary::{Binary, number};
use super::error::{Bad, TraceError};
use super::{Record, Records};

const BLOCK_BYTES: u64 = 512;

/// Its reader.
pub struct Vscsi {
    input: Binary,
    version: Version,
}

enum Version {
    One,
    Two,
}

impl Vscsi {
    /// The first record says which version it is.
    pub fn new(mut input: Box<dyn BufRead + Send>) -> Result<Vscsi, TraceError> {
        let mut head = Vec::new();
        input.by_ref().take(32).read_to_end(&mut head)?;
        let version = match (head.get(3), head.get(15)) {
            (Some(2), _) => Version::Two,
            (_, Some(1)) | (None, _) => Version::One,
            _ => return Err(Bad::at_byte(0, "neither version 1 nor version 2 of vscsi")),
        };
        Ok(Vscsi { input: Binary::new(Box::new(Cursor::new(head).chain(input))), version })
    }

    fn record(&self, offset: u64, version: u64, block: u64, bytes: u64, micros: u64) -> Result<Record, TraceError> {
        let expected = match self.version {
            Version::One => 1,
            Version::Two => 2,
        };
        if version >> 8 != expected {
            return Err(Bad::at_byte(offset, format!("not a record of version {expected} of vscsi")));
        }
        let Some(key) = block.checked_mul(BLOCK_BYTES) else {
            return Err(Bad::at_byte(offset, format!("block {block} is on no disk")));
        };
        Ok(Record { key, bytes: Some(bytes), seconds: Some(micros as f64 / 1e6), tenant: None })
    }
}

impl Records for Vscsi {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        let read = match self.version {
            Version::One => self.input.take::<32>()?.map(|(offset, r)| {
                let (version, block, bytes) = (number::<2>(&r, 14), number::<8>(&r, 16), number::<4>(&r, 4));
                self.record(offset, version, block, bytes, number::<8>(&r, 24))
            }),
            Version::Two => self.input.take::<40>()?.map(|(offset, r)| {
                let (version, block, bytes) = (number::<2>(&r, 2), number::<8>(&r, 16), number::<4>(&r, 8));
                self.record(offset, version, block, bytes, number::<8>(&r, 24))
            }),
        };
        read.transpose()
    }
}

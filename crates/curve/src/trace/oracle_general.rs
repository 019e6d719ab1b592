//! libCacheSim's oracleGeneral: packed records of 24 bytes, little-endian: time in seconds (u32), object (u64), size in
//! bytes (u32), number of the object's next request (i64; -1 or the maximum if there is none).

use super::binary::{Binary, number};
use super::error::{Bad, Place, TraceError};
use super::input::Input;
use super::{Record, Records};
use crate::item::Object;

/// Reads this format.
pub struct OracleGeneral(Binary);

impl OracleGeneral {
    pub fn new(input: Input) -> OracleGeneral {
        OracleGeneral(Binary::new(input))
    }
}

const BYTES: usize = 24;

impl Records for OracleGeneral {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        let Some((offset, record)) = self.0.take::<BYTES>()? else { return Ok(None) };
        let Object { key, bytes } = object(offset, &record)?;
        Ok(Some(Record { key, bytes: Some(bytes), seconds: Some(number::<4>(&record, 0) as f64), tenant: None }))
    }

    fn place(&self) -> Place {
        self.0.place::<BYTES>()
    }

    fn keys(&mut self, into: &mut Vec<u64>, most: usize) -> Result<(), TraceError> {
        self.0.decode_all(into, most, |offset, record| Ok(object(offset, record)?.key))
    }

    fn objects(&mut self, into: &mut Vec<Object>, most: usize) -> Result<(), TraceError> {
        self.0.decode_all(into, most, object)
    }
}

#[inline]
fn object(offset: u64, record: &[u8; BYTES]) -> Result<Object, TraceError> {
    let next_request = number::<8>(record, 16) as i64;
    // The only field that distinguishes these records from other bytes; some converters write -2 for "unknown".
    if next_request < -2 {
        return Err(Bad::at_byte(offset, format!("{next_request} is no number of a next request")));
    }
    Ok(Object { key: number::<8>(record, 4), bytes: number::<4>(record, 12) })
}

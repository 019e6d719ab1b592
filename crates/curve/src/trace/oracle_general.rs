//! libCacheSim's oracleGeneral: packed records of 24 bytes, little-endian: time in seconds (u32), object (u64), size in bytes
//! (u32), number of the object's next request (i64; -1 or the largest if there is none).

use std::io::BufRead;

use super::binary::{Binary, number};
use super::error::{Bad, TraceError};
use super::{Record, Records};

/// Its reader.
pub struct OracleGeneral(Binary);

impl OracleGeneral {
    pub fn new(input: Box<dyn BufRead + Send>) -> OracleGeneral {
        OracleGeneral(Binary::new(input))
    }
}

impl Records for OracleGeneral {
    fn next(&mut self) -> Result<Option<Record>, TraceError> {
        let Some((offset, record)) = self.0.take::<24>()? else { return Ok(None) };
        let next_request = number::<8>(&record, 16) as i64;
        // The one field that tells these records from other bytes; some converters write -2 for "not known".
        if next_request < -2 {
            return Err(Bad::at_byte(offset, format!("{next_request} is no number of a next request")));
        }
        Ok(Some(Record {
            key: number::<8>(&record, 4),
            bytes: Some(number::<4>(&record, 12)),
            seconds: Some(number::<4>(&record, 0) as f64),
            tenant: None,
        }))
    }
}

//! Records of one length, one after the other.

use std::io::{BufRead, ErrorKind};

use super::error::{Bad, Place, TraceError};
use super::unpack::is_broken;

/// Reads binary records and knows where it is.
pub struct Binary {
    input: Box<dyn BufRead + Send>,
    offset: u64,
    ended: bool,
}

impl Binary {
    pub fn new(input: Box<dyn BufRead + Send>) -> Binary {
        Binary { input, offset: 0, ended: false }
    }

    /// The next `N` bytes and their offset; `None` at the end. What is left at the end and is shorter is malformed.
    pub fn take<const N: usize>(&mut self) -> Result<Option<(u64, [u8; N])>, TraceError> {
        let (mut record, mut have) = ([0; N], 0);
        while have < N && !self.ended {
            match self.input.read(&mut record[have..]) {
                Ok(0) => self.ended = true,
                Ok(more) => have += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_broken(&error) => {
                    self.ended = true;
                    let what = format!("the compressed data is cut short or broken here ({error})");
                    return Err(TraceError::Cut(Bad { place: Place::Byte(self.offset), what }));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let offset = self.offset;
        self.offset += have as u64;
        match have {
            0 => Ok(None),
            all if all == N => Ok(Some((offset, record))),
            rest => Err(Bad::at_byte(offset, format!("the trace is cut short: {rest} bytes of a record of {N}"))),
        }
    }
}

/// A little-endian number within a record.
pub fn number<const W: usize>(record: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..W].copy_from_slice(&record[at..at + W]);
    u64::from_le_bytes(bytes)
}

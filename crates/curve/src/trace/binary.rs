//! Consecutive records of one length.

use std::io::{self, BufRead, ErrorKind, Read};

use super::error::{Bad, Place, TraceError};
use super::input::Input;
use super::unpack::is_broken;

/// Reads binary records and counts the offset.
pub struct Binary {
    input: Input,
    offset: u64,
    ended: bool,
}

impl Binary {
    pub fn new(input: Input) -> Binary {
        Binary { input, offset: 0, ended: false }
    }

    /// The offset of the last record of `N` bytes.
    pub fn place<const N: usize>(&self) -> Place {
        Place::Byte(self.offset.saturating_sub(N as u64))
    }

    /// The next `N` bytes and their offset; `None` at the end. A shorter rest at the end is malformed.
    pub fn take<const N: usize>(&mut self) -> Result<Option<(u64, [u8; N])>, TraceError> {
        let (mut record, mut have) = ([0; N], 0);
        while have < N && !self.ended {
            match self.input.read(&mut record[have..]) {
                Ok(0) => self.ended = true,
                Ok(more) => have += more,
                Err(error) => self.failed(error)?,
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

    /// Decodes the next records of `N` bytes directly in the input's buffer, until there are `most` in all; fewer at
    /// the end. After an error the next record is the one after the malformed one, as after [`take`](Binary::take).
    pub fn decode_all<const N: usize, T>(
        &mut self,
        into: &mut Vec<T>,
        most: usize,
        decode: impl Fn(u64, &[u8; N]) -> Result<T, TraceError>,
    ) -> Result<(), TraceError> {
        while into.len() < most {
            let wanted = most - into.len();
            let mut at = self.offset;
            let ready = self.ready()?;
            let mut failure = None;
            for record in ready.chunks_exact(N).take(wanted) {
                // The chunks have that length.
                let Some(record) = record.first_chunk::<N>() else { break };
                let decoded = decode(at, record);
                at += N as u64;
                match decoded {
                    Ok(item) => into.push(item),
                    Err(error) => {
                        failure = Some(error);
                        break;
                    }
                }
            }
            let used = at - self.offset;
            self.input.consume(used as usize);
            self.offset = at;
            if let Some(error) = failure {
                return Err(error);
            }
            if used == 0 {
                // Either a record that continues beyond the buffer, or the end.
                match self.take::<N>()? {
                    Some((offset, record)) => into.push(decode(offset, &record)?),
                    None => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// The input's buffer; empty at the end.
    fn ready(&mut self) -> Result<&[u8], TraceError> {
        while !self.ended {
            match self.input.fill_buf() {
                Ok([]) => self.ended = true,
                // A non-empty buffer is returned again.
                Ok(_) => return Ok(self.input.fill_buf()?),
                Err(error) => self.failed(error)?,
            }
        }
        Ok(&[])
    }

    /// Handles a read error; an interrupted read is no error.
    fn failed(&mut self, error: io::Error) -> Result<(), TraceError> {
        if error.kind() == ErrorKind::Interrupted {
            return Ok(());
        }
        if is_broken(&error) {
            self.ended = true;
            let what = format!("the compressed data is cut short or broken here ({error})");
            return Err(TraceError::Cut(Bad { place: Place::Byte(self.offset), what }));
        }
        Err(error.into())
    }
}

/// A little-endian number within a record.
#[inline]
pub fn number<const W: usize>(record: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..W].copy_from_slice(&record[at..at + W]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    /// Decodes a number; numbers from 250 on are malformed.
    fn decode(offset: u64, record: &[u8; 3]) -> Result<u8, TraceError> {
        if record[2] < 250 { Ok(record[2]) } else { Err(Bad::at_byte(offset, "malformed")) }
    }

    fn all(
        bytes: &[u8],
        buffer: usize,
        mut next: impl FnMut(&mut Binary, &mut Vec<u8>) -> Result<bool, TraceError>,
    ) -> (Vec<u8>, Vec<String>) {
        let input = BufReader::with_capacity(buffer, Cursor::new(bytes.to_vec()));
        let mut records = Binary::new(Input::of(input));
        let (mut decoded, mut errors) = (Vec::new(), Vec::new());
        loop {
            match next(&mut records, &mut decoded) {
                Ok(true) => {}
                Ok(false) => return (decoded, errors),
                Err(error) => errors.push(error.to_string()),
            }
        }
    }

    #[test]
    fn batches_decode_like_single_records_wherever_cut() {
        let bytes: Vec<u8> = (0..8).flat_map(|at| [0, 0, if at % 3 == 1 { 250 } else { at }]).collect();
        for length in 0..=bytes.len() {
            let bytes = &bytes[..length];
            let alone = all(bytes, 64, |records, into| {
                let Some((offset, record)) = records.take::<3>()? else { return Ok(false) };
                into.push(decode(offset, &record)?);
                Ok(true)
            });
            for buffer in 1..=bytes.len() + 1 {
                for block in 1..=9 {
                    let together = all(bytes, buffer, |records, into| {
                        let most = into.len() + block;
                        records.decode_all(into, most, decode)?;
                        Ok(into.len() == most)
                    });
                    assert_eq!(together, alone, "{length} bytes, {buffer} in the buffer, {block} together");
                }
            }
        }
    }
}

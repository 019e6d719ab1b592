//! The file while it is written: a header, then frames that are only ever appended.
//!
//! ```text
//! header  8 bytes  89 'B' 'U' 'R' 'S' 'A' 'R' 0A
//!         u32 LE   version
//! frame   u32 LE   length of the payload, at least 1
//!         u32 LE   CRC-32 (IEEE) of the payload
//!         …        payload: one entry as JSON
//! ```

use std::io::{self, Read};

/// The version of both forms of the record, framed and sealed. `docs/record.md` tells what each has.
pub const VERSION: u32 = 8;

/// The first byte keeps the file from passing as text, the last one tells of a transfer that changed line ends.
pub(crate) const MAGIC: [u8; 8] = *b"\x89BURSAR\n";

/// Bytes before the first frame, of a record and of a log that the runtime writes inside a process.
pub const HEADER_BYTES: u64 = 12;

/// No entry is as large; a length beyond it is damage, and is not allocated.
const LARGEST: u32 = 1 << 30;

/// The bytes before the first frame.
pub(crate) fn file_header() -> Vec<u8> {
    [&MAGIC[..], &VERSION.to_le_bytes()].concat()
}

/// One frame around a payload.
pub(crate) fn frame(payload: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(payload.len()).ok().filter(|length| *length <= LARGEST);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::FileTooLarge, "an entry is larger than 1 GiB"))?;
    Ok([&length.to_le_bytes()[..], &crc32fast::hash(payload).to_le_bytes(), payload].concat())
}

/// Reads frames up to the first that is not whole.
///
/// What follows a bad frame is not looked for: a sample means nothing without the series named before it.
#[derive(Debug)]
pub struct Frames<R> {
    input: R,
    payload: Vec<u8>,
    good: u64,
}

impl<R: Read> Frames<R> {
    /// Begins at the first frame, behind the file header.
    pub fn new(input: R) -> Self {
        Frames { input, payload: Vec::new(), good: HEADER_BYTES }
    }

    /// The next payload; `None` at the end or where the file is cut or damaged.
    ///
    /// # Errors
    /// What the input says.
    #[expect(clippy::should_implement_trait, reason = "what it gives is lent, and no iterator lends")]
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.payload.clear();
        let mut head = [0; 8];
        if !fill(&mut self.input, &mut head)? {
            return Ok(None);
        }
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let checksum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        // after a crash a file system may leave zeros, and the checksum of nothing is 0
        if length == 0 || length > LARGEST {
            return Ok(None);
        }
        let read = (&mut self.input).take(length.into()).read_to_end(&mut self.payload)?;
        if read < length as usize || crc32fast::hash(&self.payload) != checksum {
            return Ok(None);
        }
        self.good += 8 + u64::from(length);
        Ok(Some(&self.payload))
    }

    /// Where the last whole frame ends, in bytes from the start of the file.
    pub fn good_bytes(&self) -> u64 {
        self.good
    }
}

/// Fills the buffer; false if the input ends before.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(bytes: &[u8]) -> (Vec<Vec<u8>>, u64) {
        let mut frames = Frames::new(bytes);
        let mut all = Vec::new();
        while let Some(payload) = frames.next().unwrap() {
            all.push(payload.to_vec());
        }
        (all, frames.good_bytes())
    }

    #[test]
    fn frames_are_read_as_they_were_written() {
        let bytes = [frame(b"one").unwrap(), frame(b"two, longer").unwrap()].concat();
        let (all, good) = payloads(&bytes);
        assert_eq!(all, [b"one".to_vec(), b"two, longer".to_vec()]);
        assert_eq!(good, HEADER_BYTES + bytes.len() as u64);
    }

    #[test]
    fn a_tail_of_zeros_is_no_frame() {
        let bytes = [frame(b"one").unwrap(), vec![0; 4096]].concat();
        assert_eq!(payloads(&bytes).0, [b"one".to_vec()]);
    }

    #[test]
    fn a_length_that_was_damaged_is_not_allocated() {
        let mut bytes = frame(b"one").unwrap();
        bytes[3] = 0xff;
        assert_eq!(payloads(&bytes), (vec![], HEADER_BYTES));
    }

    #[test]
    fn every_flipped_bit_of_a_frame_is_noticed() {
        let bytes = frame(b"some payload").unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(payloads(&flipped).0.len(), 0, "bit {bit}");
        }
    }
}

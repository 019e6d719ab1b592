//! Lines and their numbers.

use std::io::{BufRead, ErrorKind};

use super::error::{Bad, Place, TraceError};
use super::input::Input;
use super::unpack::is_broken;

/// A longer line does not belong to a trace.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Reads lines without their ends.
pub struct Lines {
    input: Input,
    number: u64,
    line: Vec<u8>,
    ended: bool,
}

impl Lines {
    pub fn new(input: Input) -> Lines {
        Lines { input, number: 0, line: Vec::new(), ended: false }
    }

    /// Number of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The next line and its number, from 1; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, TraceError> {
        self.line.clear();
        self.number += 1;
        let mut is_too_long = false;
        loop {
            if self.ended {
                break;
            }
            let read = match self.input.fill_buf() {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if is_broken(&error) => {
                    self.ended = true;
                    let what = format!("the compressed data is cut short or broken here ({error})");
                    return Err(TraceError::Cut(Bad { place: Place::Line(self.number), what }));
                }
                Err(error) => return Err(error.into()),
            };
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            if self.line.len() + part.len() > MAX_LINE_BYTES {
                is_too_long = true;
            } else {
                self.line.extend_from_slice(part);
            }
            let used = end.map_or(read.len(), |end| end + 1);
            self.ended = read.is_empty();
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if is_too_long {
            return Err(Bad::at_line(self.number, format!("longer than {MAX_LINE_BYTES} characters")));
        }
        if self.ended && self.line.is_empty() {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some((self.number, &self.line)))
    }
}

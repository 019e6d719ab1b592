//! A trace's bytes, with a look-ahead before reading.

use std::io::{self, BufRead, BufReader, Read};

use super::unpack::is_broken;

/// Large enough that a system call costs little compared with the copy, small enough for a processor's cache.
const BUFFER_BYTES: usize = 512 << 10;

/// Bytes to read, in order. Records are decoded directly in the buffer.
pub struct Input {
    /// Bytes read ahead, and how many of them were consumed.
    head: Vec<u8>,
    read: usize,
    rest: Box<dyn BufRead + Send>,
}

impl Input {
    /// Reads from an unbuffered input.
    pub fn buffered(input: impl Read + Send + 'static) -> Input {
        Input::of(BufReader::with_capacity(BUFFER_BYTES, input))
    }

    /// Reads from a buffered input.
    pub fn of(input: impl BufRead + Send + 'static) -> Input {
        Input { head: Vec::new(), read: 0, rest: Box::new(input) }
    }

    /// The next bytes without consuming them; fewer than requested at the end. If compressed data is broken within
    /// them, reads return that error after them.
    pub fn peek(&mut self, bytes: usize) -> io::Result<&[u8]> {
        let missing = bytes.saturating_sub(self.head.len() - self.read);
        match self.rest.by_ref().take(missing as u64).read_to_end(&mut self.head) {
            Err(error) if is_broken(&error) => self.rest = Box::new(BufReader::new(Failing(Some(error)))),
            read => drop(read?),
        }
        let ahead = &self.head[self.read..];
        Ok(&ahead[..ahead.len().min(bytes)])
    }
}

impl BufRead for Input {
    #[inline]
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.read < self.head.len() { Ok(&self.head[self.read..]) } else { self.rest.fill_buf() }
    }

    #[inline]
    fn consume(&mut self, bytes: usize) {
        if self.read < self.head.len() {
            self.read += bytes;
        } else {
            self.rest.consume(bytes);
        }
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read == self.head.len() {
            return self.rest.read(into);
        }
        let ahead = &self.head[self.read..];
        let length = ahead.len().min(into.len());
        into[..length].copy_from_slice(&ahead[..length]);
        self.read += length;
        Ok(length)
    }
}

/// An input that fails once and then ends.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

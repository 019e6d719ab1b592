//! A trace's bytes, whose first can be looked at before they are read.

use std::io::{self, BufRead, BufReader, Read};

use super::unpack::is_broken;

/// Large enough that a system call costs little beside what it copies, small enough for a processor's cache.
const BUFFER_BYTES: usize = 512 << 10;

/// Bytes to read, in the order of the input. Records are decoded where they lie in the buffer.
pub struct Input {
    /// What has been looked at ahead, and how much of it has been read.
    head: Vec<u8>,
    read: usize,
    rest: Box<dyn BufRead + Send>,
}

impl Input {
    /// Reads from an input without a buffer of its own.
    pub fn buffered(input: impl Read + Send + 'static) -> Input {
        Input::of(BufReader::with_capacity(BUFFER_BYTES, input))
    }

    /// Reads from an input that has a buffer.
    pub fn of(input: impl BufRead + Send + 'static) -> Input {
        Input { head: Vec::new(), read: 0, rest: Box::new(input) }
    }

    /// The next bytes, which stay to be read: so many, or fewer if there are no more. Where compressed data is broken within them,
    /// reading gives that error after them.
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

//! Decompresses on a separate thread, a few buffers ahead of the reader.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Bytes of a buffer: small enough to stay in a processor's cache until they are read.
const BUFFER_BYTES: usize = 256 << 10;

/// Buffers that may wait for the reader.
const BUFFERS_AHEAD: usize = 3;

/// Reads what the other thread has decompressed.
pub struct Ahead {
    filled: Receiver<io::Result<Vec<u8>>>,
    used: Sender<Vec<u8>>,
    buffer: Vec<u8>,
    at: usize,
}

impl Ahead {
    /// Starts the thread, in which `open` creates the reader. The thread ends at the first error, at the end of the
    /// input, or when this reader is dropped.
    pub fn new<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static) -> io::Result<Ahead> {
        let (filled, receiver) = sync_channel(BUFFERS_AHEAD);
        let (used, reused) = channel();
        thread::Builder::new().name("decompress".to_string()).spawn(move || {
            if let Err(error) = open().and_then(|reader| fill(reader, &filled, &reused)) {
                // Ignore the error if the reader was dropped.
                let _ = filled.send(Err(error));
            }
        })?;
        Ok(Ahead { filled: receiver, used, buffer: Vec::new(), at: 0 })
    }
}

fn fill(mut reader: impl Read, filled: &SyncSender<io::Result<Vec<u8>>>, reused: &Receiver<Vec<u8>>) -> io::Result<()> {
    loop {
        let mut buffer = reused.try_recv().unwrap_or_default();
        buffer.resize(BUFFER_BYTES, 0);
        let (mut length, mut failure) = (0, None);
        while length < buffer.len() {
            match reader.read(&mut buffer[length..]) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let is_full = length == buffer.len();
        buffer.truncate(length);
        // Pass on the bytes read before an error first.
        if filled.send(Ok(buffer)).is_err() {
            return Ok(());
        }
        match failure {
            Some(error) => return Err(error),
            None if !is_full => return Ok(()),
            None => {}
        }
    }
}

impl BufRead for Ahead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.buffer.len() {
            // At the end of the input the sender is dropped: return an empty buffer.
            let next = self.filled.recv().unwrap_or_else(|_| Ok(Vec::new()))?;
            let old = std::mem::replace(&mut self.buffer, next);
            self.at = 0;
            // At the end the thread takes no more buffers.
            let _ = self.used.send(old);
        }
        Ok(&self.buffer[self.at..])
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let length = ready.len().min(into.len());
        into[..length].copy_from_slice(&ready[..length]);
        self.consume(length);
        Ok(length)
    }
}

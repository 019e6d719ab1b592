//! Decompresses the input, if its first bytes show that it is compressed.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::{LzipReader, LzmaReader, XzReader};

use super::ahead::Ahead;
use super::error::TraceError;
use super::input::Input;
use super::magic::{HEAD_BYTES, Packing, is_binary, other_file};

/// The longest match distance of zstd, as a power of two: that of `zstd --long=31`.
const ZSTD_WINDOW_LOG_MAX: u32 = 31;

/// Maximum number of nested compressions.
const MAX_LAYERS: usize = 3;

/// Bytes at the start of the trace that decide whether it is text and which layout it has.
pub const SHAPE_BYTES: usize = 64 << 10;

/// Decompresses the input if it is compressed. `is_text`: it is text, or not known to be binary records. Unsupported
/// containers, and binary data where text is expected, are errors.
pub fn unpack(input: impl Read + Send + 'static, is_text: bool) -> Result<Input, TraceError> {
    let mut input = Input::buffered(input);
    for _ in 0..=MAX_LAYERS {
        let head = input.peek(HEAD_BYTES)?;
        let Some(packing) = Packing::of(head, is_text) else {
            if let Some((name, advice)) = other_file(head) {
                return Err(TraceError::OtherFile(format!("it is {name}, which is not read; {advice}")));
            }
            return Ok(input);
        };
        input = Input::of(Ahead::new(move || open(packing, input))?);
    }
    Err(TraceError::OtherFile(format!("it is compressed more than {MAX_LAYERS} times")))
}

/// Refuses binary data where text is expected.
pub fn expect_text(head: &[u8]) -> Result<(), TraceError> {
    if is_binary(head) {
        let what = "it is binary data of no known kind, and no text; name its --format, or decompress it first";
        return Err(TraceError::OtherFile(what.to_string()));
    }
    Ok(())
}

fn open(packing: Packing, packed: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read>> {
    Ok(match packing {
        Packing::Gzip => Box::new(MultiGzDecoder::new(packed)),
        Packing::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
            Box::new(decoder)
        }
        Packing::Xz => Box::new(XzReader::new(packed, true)),
        Packing::LzmaAlone => Box::new(LzmaReader::new_mem_limit(packed, u32::MAX, None)?),
        Packing::Lzip => Box::new(LzipReader::new(packed)),
        Packing::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
        Packing::Lz4 => Box::new(Frames(lz4_flex::frame::FrameDecoder::new(packed))),
        Packing::Snappy => Box::new(snap::read::FrameDecoder::new(packed)),
    })
}

/// Consecutive LZ4 frames: the decoder stops after each.
struct Frames<R: BufRead>(lz4_flex::frame::FrameDecoder<R>);

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(into) {
                Ok(0) if !into.is_empty() && !self.0.get_mut().fill_buf()?.is_empty() => {}
                end => return end,
            }
        }
    }
}

/// Whether an error means that a compressed stream is broken or ends too early.
pub fn is_broken(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    // zstd returns `Other` for invalid data; no system call does.
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
        || (error.kind() == Other && error.raw_os_error().is_none())
}

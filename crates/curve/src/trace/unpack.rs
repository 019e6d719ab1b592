//! Compressed or not: by the first bytes.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Enough that a record costs no system call.
const BUFFER: usize = 256 << 10;

/// The input, decompressed if it is compressed.
pub fn unpack(mut input: impl Read + 'static) -> io::Result<Box<dyn BufRead>> {
    let mut first = Vec::new();
    input.by_ref().take(ZSTD.len() as u64).read_to_end(&mut first)?;
    let (is_gzip, is_zstd) = (first.starts_with(GZIP), first.starts_with(ZSTD));
    let input = BufReader::with_capacity(BUFFER, Cursor::new(first).chain(input));
    Ok(match () {
        () if is_gzip => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input))),
        () if is_zstd => Box::new(BufReader::with_capacity(BUFFER, zstd::stream::read::Decoder::with_buffer(input)?)),
        () => Box::new(input),
    })
}

/// Whether an error says that a compressed stream is broken or ends too early.
pub fn is_broken(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    // zstd says `Other` where it finds nonsense; no system call does.
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
        || (error.kind() == Other && error.raw_os_error().is_none())
}

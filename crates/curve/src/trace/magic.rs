//! Recognises compression and other containers by their first bytes.

/// Bytes of the input that [`Packing::of`] and [`other_file`] examine.
pub const HEAD_BYTES: usize = 512;

/// A supported compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// RFC 1952, one or more members.
    Gzip,
    /// RFC 8878, one or more frames, windows up to 2 GiB.
    Zstd,
    /// xz, one or more streams.
    Xz,
    /// The older format of the xz tools, `.lzma`. It has no magic number.
    LzmaAlone,
    /// lzip, one or more members.
    Lzip,
    /// bzip2, one or more streams.
    Bzip2,
    /// The LZ4 frame format, and the legacy one.
    Lz4,
    /// The framing format of snappy.
    Snappy,
}

impl Packing {
    /// The compression of an input that begins with `head`. `is_text`: the trace is text, so that weak signs may
    /// decide.
    pub fn of(head: &[u8], is_text: bool) -> Option<Packing> {
        match head {
            // The method is always 8 (deflate), and three flags are reserved.
            [0x1f, 0x8b, 8, flags, ..] if flags & 0xe0 == 0 => Some(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            // Skippable frames, which zstd and LZ4 share: the next frame decides.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, a, b, c, d, ..] => {
                let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
                let next = length.checked_add(8).and_then(|next| head.get(next..));
                Some(next.and_then(|next| Packing::of(next, is_text)).unwrap_or(Packing::Zstd))
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
            [b'L', b'Z', b'I', b'P', 0 | 1, ..] => Some(Packing::Lzip),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, ..] => Some(Packing::Bzip2),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, ..] => Some(Packing::Bzip2),
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Some(Packing::Lz4),
            [0xff, 6, 0, 0, b's', b'N', b'a', b'P', b'p', b'Y', ..] => Some(Packing::Snappy),
            _ if is_text && is_lzma_alone(head) => Some(Packing::LzmaAlone),
            _ => None,
        }
    }
}

/// Checks for properties below 225, a dictionary size as encoders make them, a plausible length, and the first byte of
/// the range coder, which is 0.
fn is_lzma_alone(head: &[u8]) -> bool {
    let Some(head) = head.first_chunk::<14>() else { return false };
    let dictionary = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    let length = u64::from_le_bytes([head[5], head[6], head[7], head[8], head[9], head[10], head[11], head[12]]);
    let is_made = dictionary >= 1 << 12 && (dictionary.is_power_of_two() || (dictionary / 3 * 2).is_power_of_two());
    head[0] < 225 && is_made && (length == u64::MAX || length < 1 << 40) && head[13] == 0
}

/// An unsupported kind of file: its name, and what to do.
pub fn other_file(head: &[u8]) -> Option<(&'static str, &'static str)> {
    const DECOMPRESS: &str = "decompress it first";
    const UNPACK: &str = "unpack the trace first";
    const EXPORT: &str = "export it as CSV";
    const RECODE: &str = "convert it with iconv -t UTF-8";
    let starts = |magic: &[u8]| head.starts_with(magic);
    Some(match () {
        () if starts(&[0x1f, 0x9d]) => ("compressed by compress (.Z)", DECOMPRESS),
        () if starts(&[0x1f, 0x1e]) => ("compressed by pack (.z)", DECOMPRESS),
        () if starts(&[0x1f, 0xa0]) => ("compressed by compress -H (.Z)", DECOMPRESS),
        () if starts(b"\x89LZO\0\r\n\x1a\n") => ("compressed by lzop", DECOMPRESS),
        () if starts(b"LRZI") => ("compressed by lrzip", DECOMPRESS),
        () if starts(b"ZPAQ") || starts(b"7kSt") => ("compressed by zpaq", DECOMPRESS),
        () if starts(&[0xce, 0xb2, 0xcf, 0x81]) => ("compressed by brotli", DECOMPRESS),
        () if starts(&[0x78, 0x01]) || starts(&[0x78, 0x9c]) || starts(&[0x78, 0xda]) => {
            ("a zlib stream", "decompress it first, for example with pigz -dz")
        }
        () if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") || starts(b"PK\x07\x08") => ("a zip archive", UNPACK),
        () if starts(b"7z\xbc\xaf\x27\x1c") => ("a 7z archive", UNPACK),
        () if starts(b"Rar!\x1a\x07") => ("a rar archive", UNPACK),
        () if starts(b"!<arch>\n") => ("an ar archive", UNPACK),
        () if head.get(257..262) == Some(b"ustar") => ("a tar archive", UNPACK),
        () if starts(b"070701") && head.get(6..110).is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit)) => {
            ("a cpio archive", UNPACK)
        }
        () if starts(b"MSCF\0\0\0\0") => ("a cabinet archive", UNPACK),
        () if starts(b"PAR1") => ("a Parquet file", EXPORT),
        () if starts(b"ARROW1\0\0") || starts(b"FEA1") => ("an Arrow file", EXPORT),
        () if starts(b"ORC") && head.get(3).is_some_and(|byte| *byte < 0x20) => ("an ORC file", EXPORT),
        () if starts(b"Obj\x01") => ("an Avro file", EXPORT),
        () if starts(b"SQLite format 3\0") => ("an SQLite database", EXPORT),
        () if starts(b"\x89HDF\r\n\x1a\n") => ("an HDF5 file", EXPORT),
        () if starts(b"\x93NUMPY") => ("a NumPy array", EXPORT),
        () if starts(b"PERFILE2") => ("a recording of perf", "export it as text with perf script"),
        () if starts(&[0x7f, b'E', b'L', b'F']) => ("a program", "give a trace of its references"),
        () if starts(&0x1234_5678_9abc_def0u64.to_le_bytes()) => {
            ("libCacheSim's lcs", "convert it to oracleGeneral with traceConv")
        }
        () if starts(&[0xff, 0xfe, 0, 0]) || starts(&[0, 0, 0xfe, 0xff]) => ("UTF-32 text", RECODE),
        () if starts(&[0xff, 0xfe]) || starts(&[0xfe, 0xff]) => ("UTF-16 text", RECODE),
        () => return None,
    })
}

/// One byte in this many may be a control character: terminal colours, or a stray one.
const CONTROL_SHARE: usize = 100;

/// Whether bytes expected to be text are binary: a NUL byte, many control characters, or mostly invalid UTF-8.
pub fn is_binary(head: &[u8]) -> bool {
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 11 | 14..=26 | 28..=31 | 127);
    let control = head.iter().filter(|byte| is_control(byte)).count();
    // Text in another encoding, such as Latin-1, has some invalid bytes.
    let invalid: usize = head.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    head.contains(&0) || control * CONTROL_SHARE > head.len() || invalid * 4 > head.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_compression() {
        for text in
            ["BZh9 is a key\n", "PK\n", "LZIP\n", "x^2,1\n", "7z,1\n", "OR,C\n", "ORC,1\n", "1\n2\n3\n4\n5\n6\n7\n8\n"]
        {
            assert_eq!(Packing::of(text.as_bytes(), true), None, "{text}");
            assert_eq!(other_file(text.as_bytes()), None, "{text}");
            assert!(!is_binary(text.as_bytes()), "{text}");
        }
        assert!(!is_binary("schöne,größe,µs\n".as_bytes()) && !is_binary(b"caf\xe9,latin 1 text\n"));
    }

    #[test]
    fn bytes_that_are_no_text_are_binary() {
        assert!(is_binary(b"1\n2\n\0\n") && is_binary(&[0x81, 0xfe, 0xc3, 0x99, b'1']));
        assert!(is_binary(&(1..=255).collect::<Vec<u8>>()));
    }

    #[test]
    fn a_skippable_frame_takes_the_next_frames_format() {
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 7, 7];
        assert_eq!(Packing::of(&[&skipped[..], &[4, 0x22, 0x4d, 0x18]].concat(), true), Some(Packing::Lz4));
        assert_eq!(Packing::of(&[&skipped[..], &[0x28, 0xb5, 0x2f, 0xfd]].concat(), true), Some(Packing::Zstd));
    }
}

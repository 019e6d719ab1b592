//! Text of any encoding and line ends that sacct's output has after it went through a site's tools.

use crate::error::Error;

/// UTF-8, or UTF-16 with its mark; lines that are not UTF-8 are taken for Latin-1. Line ends become `\n`.
pub fn decode(bytes: &[u8]) -> Result<String, Error> {
    let packed: [(&[u8], &str); 4] =
        [(&[0x1f, 0x8b], "zcat"), (b"\xfd7zXZ", "xzcat"), (&[0x28, 0xb5, 0x2f, 0xfd], "zstdcat"), (b"BZh", "bzcat")];
    if let Some((_, unpack)) = packed.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(Error::Compressed(unpack));
    }
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => by_line(rest),
        _ => by_line(bytes),
    };
    Ok(if text.contains('\n') { text.replace("\r\n", "\n") } else { text.replace('\r', "\n") })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    String::from_utf16_lossy(&units)
}

fn by_line(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match std::str::from_utf8(line) {
            Ok(line) => text.push_str(line),
            Err(_) => text.extend(line.iter().map(|byte| char::from(*byte))),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_marks_and_line_ends_are_read() {
        let text = |bytes: &[u8]| decode(bytes).unwrap();
        assert_eq!(text(b"caf\xe9\nna\xc3\xafve\n"), "café\nnaïve\n");
        assert_eq!(text(b"\xef\xbb\xbfa|b\r\n1|2\r\n"), "a|b\n1|2\n");
        assert_eq!(text(b"a\rb\r"), "a\nb\n");
        assert_eq!(text(&[0xff, 0xfe, b'a', 0, b'|', 0]), "a|");
        assert_eq!(text(&[0xfe, 0xff, 0, b'a', 0, b'|']), "a|");
        assert!(decode(&[0x1f, 0x8b, 8, 0]).unwrap_err().to_string().contains("zcat"));
    }
}

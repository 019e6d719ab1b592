//! The fields of a line.

/// The fields of a line, without surrounding blanks; a field that begins with a quotation mark ends with one. A blank
/// as separator stands for a run of blanks and tabs.
pub fn fields(line: &[u8], separator: Option<u8>) -> impl Iterator<Item = &[u8]> {
    let is_separator = move |byte: &u8| Some(*byte) == separator || (separator == Some(b' ') && *byte == b'\t');
    let mut rest = Some(if separator == Some(b' ') { line.trim_ascii() } else { line });
    std::iter::from_fn(move || {
        let line = rest?;
        let quoted = line.strip_prefix(b"\"").and_then(|inner| {
            let ends = |at: &usize| inner[*at] == b'"' && inner.get(at + 1).is_none_or(is_separator);
            (0..inner.len()).find(ends).map(|end| (&inner[..end], inner.get(end + 2..)))
        });
        let (field, after) = quoted.unwrap_or_else(|| match line.iter().position(is_separator) {
            Some(end) => (line[..end].trim_ascii(), Some(&line[end + 1..])),
            None => (line.trim_ascii(), None),
        });
        rest = if separator == Some(b' ') { after.map(<[u8]>::trim_ascii_start) } else { after };
        Some(field)
    })
}

/// A whole number, also written as `4096.0` or `1e6`.
pub fn whole_number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    const EXACT: f64 = (1u64 << 53) as f64;
    let number: f64 = text.parse().ok()?;
    (number.fract() == 0.0 && (0.0..=EXACT).contains(&number)).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_be_written_as_fractions_and_powers() {
        for (text, number) in
            [("4096", 4096), ("4096.0", 4096), ("1e6", 1_000_000), ("0", 0), ("18446744073709551615", u64::MAX)]
        {
            assert_eq!(whole_number(text.as_bytes()), Some(number), "{text}");
        }
        for text in ["", "-1", "4096.5", "nan", "inf", "1e30", "ten", "0x10"] {
            assert_eq!(whole_number(text.as_bytes()), None, "{text}");
        }
    }
}

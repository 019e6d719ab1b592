//! Figures as text.

use model::Bytes;
pub use model::seconds;

pub use model::printable;
use model::steers;

/// What stands for a figure that could not be had.
pub const UNKNOWN: &str = "-";

/// Bytes in IEC units.
pub fn bytes(value: Option<u64>) -> String {
    or_unknown(value, |v| Bytes(v).to_string())
}

/// Rising sizes as [`bytes`] prints them, with as many more digits as tell each from the one before where they differ.
pub fn distinct_bytes(sizes: &[u64]) -> Vec<String> {
    let plain: Vec<String> = sizes.iter().map(|size| bytes(Some(*size))).collect();
    let is_alike = |at: usize, other: usize| sizes[at] != sizes[other] && plain[at] == plain[other];
    let needs_more = |at: usize| (at > 0 && is_alike(at, at - 1)) || (at + 1 < sizes.len() && is_alike(at, at + 1));
    let label = |at: usize| {
        let unit = plain[at].split(' ').nth(1).unwrap_or_default();
        let of_unit = match unit {
            "KiB" => 10,
            "MiB" => 20,
            "GiB" => 30,
            "TiB" => 40,
            _ => return plain[at].clone(),
        };
        let value = sizes[at] as f64 / (1u64 << of_unit) as f64;
        // A page is 0.004 of a MiB.
        if needs_more(at) { format!("{value:.3} {unit}") } else { plain[at].clone() }
    };
    (0..sizes.len()).map(label).collect()
}

/// Bytes in four characters, for tables of many columns.
pub fn short_bytes(value: u64) -> String {
    let mut scaled = value as f64;
    for unit in ["", "K", "M", "G", "T", "P"] {
        match scaled {
            v if unit.is_empty() && v < 999.5 => return format!("{v}"),
            v if v < 9.95 && !unit.is_empty() => return format!("{v:.1}{unit}"),
            v if v < 999.5 => return format!("{v:.0}{unit}"),
            _ => scaled /= 1024.0,
        }
    }
    format!("{scaled:.0}E")
}

/// Bytes that are a lower bound: rounded down, and in no larger unit than they fill.
pub fn floor_bytes(value: u64) -> String {
    let units = ["", "K", "M", "G", "T", "P", "E"];
    let unit = (value.max(1).ilog2() / 10) as usize;
    let one = 1u64 << (10 * unit);
    match (value / one, units[unit]) {
        (whole, "") => whole.to_string(),
        (whole @ 0..10, name) => format!("{whole}.{}{name}", u128::from(value % one) * 10 / u128::from(one)),
        (whole, name) => format!("{whole}{name}"),
    }
}

/// A duration that may be unknown.
pub fn opt_seconds(value: Option<f64>) -> String {
    or_unknown(value, seconds)
}

/// Microseconds in units a person reads at a glance.
pub fn short(us: Option<f64>) -> String {
    or_unknown(us, |us| match us {
        us if us < 0.9995 => format!("{:.0} ns", us * 1e3),
        us if us < 9.995 => format!("{us:.2} µs"),
        us if us < 99.95 => format!("{us:.1} µs"),
        us if us < 999.5 => format!("{us:.0} µs"),
        us => seconds(us / 1e6),
    })
}

/// A share as a percentage.
pub fn percent(value: Option<f64>) -> String {
    or_unknown(value.filter(|v| v.is_finite()), |share| match share * 100.0 {
        v if v != 0.0 && v < 9.995 => format!("{} %", trimmed(v, 2)),
        v => format!("{} %", trimmed(v, 1)),
    })
}

/// A ratio such as a slow-down; a lower bound is marked `>`.
pub fn ratio(value: Option<f64>, lower_bound: bool) -> String {
    or_unknown(value.filter(|v| v.is_finite()), |v| {
        let mark = if lower_bound { "> " } else { "" };
        if v < 9.995 { format!("{mark}{v:.2}x") } else { format!("{mark}{v:.1}x") }
    })
}

/// A score between 0 and 1; an upper bound is marked `<`.
pub fn score(value: Option<f64>, upper_bound: bool) -> String {
    or_unknown(value.filter(|v| v.is_finite()), |v| format!("{}{v:.2}", if upper_bound { "< " } else { "" }))
}

/// A count with its thousands apart.
pub fn count(value: Option<u64>) -> String {
    or_unknown(value, |v| {
        let digits = v.to_string();
        let mut text = String::new();
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i) % 3 == 0 {
                text.push(',');
            }
            text.push(digit);
        }
        text
    })
}

/// The text of a known figure, or `-`.
pub fn or_unknown<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_string(), text)
}

/// A word as a shell would take it, with nothing in it that could steer a terminal: `$'…'`, which bash, zsh and POSIX of 2024 know, where
/// the word has such characters.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=+.,:/@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else if word.chars().any(steers) {
        format!("$'{}'", word.chars().map(escaped).collect::<String>())
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A character within `$'…'`.
fn escaped(c: char) -> String {
    match c {
        '\n' => r"\n".into(),
        '\t' => r"\t".into(),
        '\r' => r"\r".into(),
        '\'' | '\\' => format!("\\{c}"),
        // Of as many digits as the shell reads at most, since a digit may follow.
        c if steers(c) && c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
        c if steers(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.into(),
    }
}

fn trimmed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_look_alike_have_more_digits() {
        let mib = |mib: f64| (mib * (1u64 << 20) as f64) as u64;
        let labels = distinct_bytes(&[mib(112.0), mib(278.75), mib(279.25), mib(400.0)]);
        assert_eq!(labels, ["112 MiB", "278.750 MiB", "279.250 MiB", "400 MiB"]);
        assert_eq!(distinct_bytes(&[5, 6]), ["5 B", "6 B"]);
        assert!(distinct_bytes(&[]).is_empty());
    }

    #[test]
    fn an_unknown_figure_is_never_zero() {
        assert_eq!(bytes(None), "-");
        assert_eq!(bytes(Some(0)), "0 B");
        assert_eq!(percent(None), "-");
        assert_eq!(ratio(Some(f64::NAN), false), "-");
        assert_eq!(count(None), "-");
    }

    #[test]
    fn short_bytes_have_four_characters_at_most() {
        for (bytes, text) in
            [(0, "0"), (999, "999"), (1000, "1.0K"), (1 << 20, "1.0M"), (64 << 20, "64M"), (1023 << 20, "1.0G")]
        {
            assert_eq!(short_bytes(bytes), text);
        }
        assert!((0..64).all(|shift| short_bytes(u64::MAX >> shift).len() <= 4));
    }

    #[test]
    fn a_lower_bound_is_never_rounded_up() {
        for (bytes, text) in [
            (0, "0"),
            (1023, "1023"),
            (990 << 20, "990M"),
            (1000 << 20, "1000M"),
            ((1 << 30) - 1, "1023M"),
            (1 << 30, "1.0G"),
            ((2 << 30) - 1, "1.9G"),
            ((10 << 30) - 1, "9.9G"),
            ((11 << 30) - 1, "10G"),
            (u64::MAX, "15E"),
        ] {
            assert_eq!(floor_bytes(bytes), text);
        }
    }

    #[test]
    fn shares_ratios_and_counts() {
        assert_eq!(percent(Some(0.05)), "5 %");
        assert_eq!(percent(Some(0.1434)), "14.3 %");
        assert_eq!(percent(Some(0.0012)), "0.12 %");
        assert_eq!(ratio(Some(1.5), true), "> 1.50x");
        assert_eq!(score(Some(0.667), true), "< 0.67");
        assert_eq!(count(Some(1234567)), "1,234,567");
    }

    #[test]
    fn words_are_quoted_as_a_shell_needs() {
        assert_eq!(shell_word("a.out"), "a.out");
        assert_eq!(shell_word("it's <b>"), r"'it'\''s <b>'");
        assert_eq!(printable("a\u{1b}[31mb"), "a\u{fffd}[31mb");
        assert_eq!(shell_word("print('a')\n\tb\\n"), r"$'print(\'a\')\n\tb\\n'");
    }

    #[test]
    fn bash_reads_the_same_word_and_the_terminal_no_control_character() {
        let steering = (1..=0x2069).filter_map(char::from_u32).filter(|c| steers(*c));
        for word in steering.map(|c| format!("1{c}2 '\\")) {
            let shown = shell_word(&word);
            assert_eq!(printable(&shown), shown);
            let script = format!("printf %s {shown}");
            let bash = std::process::Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output();
            assert_eq!(String::from_utf8(bash.unwrap().stdout).unwrap(), word, "{shown}");
        }
    }
}

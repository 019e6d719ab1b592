//! Sizes as people write and read them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const UNITS: [(&str, u64); 7] = [
    ("EiB", 1 << 60),
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// A number of bytes. Prints in IEC units (`1.50 GiB`); reads `4096`, `512M`, `512MiB`, `1.5g`, all binary, as Slurm
/// and systemd do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A size that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseBytesError {
    text: String,
    is_too_large: bool,
}

impl Bytes {
    /// One MiB.
    pub const MIB: u64 = 1 << 20;

    /// The size in whole MiB, rounded up: what Slurm and Kubernetes are given, so that a limit is never below the answer.
    pub fn mib_ceil(self) -> u64 {
        self.0.div_ceil(Self::MIB)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = UNITS.iter().find(|(_, unit)| self.0 >= *unit).unwrap_or(&("B", 1));
        let text = match self.0 as f64 / *unit as f64 {
            _ if *unit == 1 => format!("{} {name}", self.0),
            value if value >= 100.0 => format!("{value:.0} {name}"),
            value if value >= 10.0 => format!("{value:.1} {name}"),
            value => format!("{value:.2} {name}"),
        };
        f.pad(&text)
    }
}

impl fmt::Display for ParseBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_too_large {
            return write!(f, "'{}' is too large a size; it must be below 16E", self.text);
        }
        write!(
            f,
            "'{}' is not a size; write bytes or a number with K, M, G, T, P or E, such as 512M or 1.5GiB",
            self.text
        )
    }
}

impl std::error::Error for ParseBytesError {}

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseBytesError { text: text.to_string(), is_too_large: false };
        let too_large = || ParseBytesError { is_too_large: true, ..error() };
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, suffix) = trimmed.split_at(digits);
        let unit = match suffix.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1u64,
            "k" | "kb" | "ki" | "kib" => 1 << 10,
            "m" | "mb" | "mi" | "mib" => 1 << 20,
            "g" | "gb" | "gi" | "gib" => 1 << 30,
            "t" | "tb" | "ti" | "tib" => 1 << 40,
            "p" | "pb" | "pi" | "pib" => 1 << 50,
            "e" | "eb" | "ei" | "eib" => 1 << 60,
            _ => return Err(error()),
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(unit).map(Bytes).ok_or_else(too_large);
        }
        let value = number.parse::<f64>().map_err(|_| error())? * unit as f64;
        // As f64, `u64::MAX` is 16E.
        if value < u64::MAX as f64 { Ok(Bytes(value.round() as u64)) } else { Err(too_large()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_slurm_systemd_and_kubernetes_users_write() {
        for (text, bytes) in [
            ("4096", 4096),
            ("512M", 512 << 20),
            ("512MiB", 512 << 20),
            ("512Mi", 512 << 20),
            ("1.5g", 3 << 29),
            ("2 GiB", 2 << 30),
            ("1T", 1 << 40),
            ("1.50P", 3 << 49),
            ("2 PiB", 2 << 50),
            ("1E", 1 << 60),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_size_and_says_how_to_write_one() {
        for text in ["", "M", "twelve", "12Q", "-5M", "1.2.3G", "inf", "nan"] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains("is not a size") && error.contains("512M"), "{error}");
        }
        for text in ["99999999999T", "16E", "99999999999999999999", "16.0E"] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert_eq!(error, format!("'{text}' is too large a size; it must be below 16E"));
        }
    }

    #[test]
    fn prints_iec_units_with_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (15 << 20, "15.0 MiB"),
            (402 << 20, "402 MiB"),
            (3 << 29, "1.50 GiB"),
            (3 << 49, "1.50 PiB"),
            (1 << 60, "1.00 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn whole_mebibytes_are_rounded_up() {
        assert_eq!(Bytes((402 << 20) + 1).mib_ceil(), 403);
        assert_eq!(Bytes(402 << 20).mib_ceil(), 402);
    }
}

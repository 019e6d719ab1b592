//! Versions of Slurm.

use std::fmt;
use std::str::FromStr;

/// Year, month, patch level: `24.11.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl FromStr for Version {
    type Err = String;

    /// Reads `24.11`, `24.11.5`, `24.11.5-1`, `slurm 24.11.5` and `slurm-wlm 22.05.8`.
    fn from_str(text: &str) -> Result<Version, String> {
        let error = || format!("'{text}' is not a version of Slurm; write one such as 24.11.5");
        let last = text.split_whitespace().last().ok_or_else(error)?;
        let mut parts = last.trim_start_matches("slurm-").split(['.', '-', '~', '+']).map(str::parse::<u32>);
        let (Some(Ok(year)), Some(Ok(month))) = (parts.next(), parts.next()) else { return Err(error()) };
        let patch = parts.next().and_then(Result::ok).unwrap_or(0);
        if (1..100).contains(&year) && month < 100 { Ok(Version(year, month, patch)) } else { Err(error()) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_sacct_and_people_write() {
        for (text, version) in [
            ("slurm 24.11.5", Version(24, 11, 5)),
            ("slurm-wlm 22.05.8", Version(22, 5, 8)),
            ("23.11", Version(23, 11, 0)),
            ("25.11.1-1", Version(25, 11, 1)),
        ] {
            assert_eq!(text.parse(), Ok(version), "{text}");
        }
        for text in ["", "slurm", "24", "v0.0.42", "2024.11.5"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
        assert_eq!(Version(22, 5, 8).to_string(), "22.05.8");
    }
}

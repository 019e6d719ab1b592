//! Values as sacct prints them.

use std::time::UNIX_EPOCH;

use model::Bytes;

/// A size and how far it was rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    pub bytes: u64,
    /// Half of its last digit.
    half_step: u64,
    /// It has a unit; else it is bytes, or MiB where Slurm keeps MiB.
    has_unit: bool,
}

impl Size {
    /// A figure of what was used; the largest number that is printed so. `None`: the digits that are printed say nothing.
    pub fn at_most(self) -> Option<u64> {
        if self.half_step.saturating_mul(2) > self.bytes {
            return (self.half_step == 0 || self.bytes == 0 && self.half_step <= 1 << 10).then_some(self.bytes);
        }
        Some(if self.is_rough() { self.bytes.saturating_add(self.half_step) } else { self.bytes })
    }

    /// A figure of what was asked for, which Slurm keeps in MiB.
    pub fn in_mib(self) -> u64 {
        const MOST_MIB: u64 = 1 << 26;
        if self.has_unit || self.bytes >= MOST_MIB { self.bytes } else { self.bytes << 20 }
    }

    /// It was rounded to more than 1 %.
    pub fn is_rough(self) -> bool {
        self.half_step.saturating_mul(100) > self.bytes && self.half_step > 1 << 10
    }

    /// It was rounded to no more than KiB.
    pub fn is_exact(self) -> bool {
        self.half_step <= 1 << 9
    }
}

/// `10.50M`, `4096`; `None`: empty. Those that Slurm prints without one are none, too.
pub fn size(text: &str) -> Result<Option<Size>, ()> {
    let text = text.trim();
    if matches!(text, "" | "?" | "UNLIMITED" | "INVALID" | "N/A" | "None" | "Unknown" | "null") {
        return Ok(None);
    }
    let bytes = text.parse::<Bytes>().map_err(|_| ())?.0;
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len().min(18) as i32);
    let one = if unit.trim().is_empty() { 1 } else { format!("1{unit}").parse::<Bytes>().map_err(|_| ())?.0 };
    // sacct prints decimals where a number is not whole: without them it is exact.
    let half_step = if decimals == 0 || one == 1 { 0.0 } else { one as f64 / 2.0 / 10f64.powi(decimals) };
    Ok(Some(Size { bytes, half_step: half_step as u64, has_unit: one > 1 }))
}

/// A part of a list such as `cpu=1,mem=400M,node=1`; also by Slurm's numbers, where they stand for names.
pub fn tres(list: &str, kind: &str) -> Result<Option<Size>, ()> {
    let number = match kind {
        "mem" => "2",
        "vmem" => "7",
        _ => "",
    };
    let parts = list.split(',').filter_map(|part| part.split_once('='));
    let mut values = parts.filter(|(name, _)| [kind, number].contains(&name.trim())).map(|(_, value)| size(value));
    values.next().unwrap_or(Ok(None))
}

/// A whole number; `None`: empty.
pub fn count(text: &str) -> Result<Option<u64>, ()> {
    match text {
        "" | "UNLIMITED" | "INVALID" | "Unknown" | "None" | "N/A" => Ok(None),
        text => match text.parse() {
            Ok(number) => Ok(Some(number)),
            // Slurm prints large ones with a unit of 1024.
            Err(_) => size(text).map(|size| size.map(|size| size.bytes)),
        },
    }
}

/// `ElapsedRaw` and `Elapsed`: seconds, or `[DAYS-][[HOURS:]MINUTES:]SECONDS[.FRACTION]`.
pub fn seconds(text: &str) -> Option<f64> {
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (days.parse::<u64>().ok()?, clock),
        None => (0, text),
    };
    let parts: Vec<&str> = clock.split(':').collect();
    if parts.len() > 3 {
        return None;
    }
    let (last, before) = parts.split_last()?;
    if !last.starts_with(|c: char| c.is_ascii_digit()) || last.contains(['e', 'E', '+', '-']) {
        return None;
    }
    // `1-02` is a day and two hours, `1-02:30` and half an hour, as Slurm reads them.
    let last_unit = match (text.contains('-'), parts.len()) {
        (true, 1) => 3600.0,
        (true, 2) => 60.0,
        _ => 1.0,
    };
    let mut total = last.parse::<f64>().ok()? * last_unit;
    for (at, part) in before.iter().rev().enumerate() {
        total += part.parse::<u64>().ok()? as f64 * last_unit * 60f64.powi(at as i32 + 1);
    }
    Some(total + days as f64 * 86_400.0)
}

/// As seconds, of any time zone, since only what lies between is of interest. `None`: not printed, or not begun.
pub fn time(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches('Z');
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(|seconds| *seconds > 0);
    }
    // A zone, as of `%z`, is the same for all.
    let text = match text.get(19..).and_then(|rest| rest.find(['+', '-'])) {
        Some(at) => text.get(..19 + at)?,
        None => text,
    };
    let time = humantime::parse_rfc3339_weak(text.trim()).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_times_are_read_in_each_form() {
        for (text, wanted) in [
            ("600", 600.0),
            ("00:10:00", 600.0),
            ("10:00", 600.0),
            ("10:00.500", 600.5),
            ("00:00:01.250", 1.25),
            ("1-00:00:10", 86_410.0),
            ("10-02:03:04", 871_384.0),
            ("1-02", 93_600.0),
            ("1-02:30", 95_400.0),
            ("100:00:00", 360_000.0),
        ] {
            assert_eq!(seconds(text), Some(wanted), "{text}");
        }
        for text in ["", "soon", "1:2:3:4", "-1", "1-", "inf", "nan", "1e3", "Unknown"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_keep_how_far_they_were_rounded() {
        let read = |text| size(text).unwrap().unwrap();
        assert_eq!(read("10.50M").at_most(), Some(21 << 19));
        assert_eq!(read("1.50P").bytes, 3 << 49);
        assert!(read("86020K").is_exact() && read("88084480").is_exact() && !read("84.00M").is_exact());
        // 15 to 25 GiB are printed so; below 5 GiB nothing is left.
        assert_eq!(read("0.02T").at_most(), Some((0.025 * (1u64 << 40) as f64) as u64));
        assert_eq!((read("0.00T").at_most(), read("0").at_most(), read("0K").at_most()), (None, Some(0), Some(0)));
        assert_eq!(
            (read("400").in_mib(), read("400M").in_mib(), read("419430400").in_mib()),
            (400 << 20, 400 << 20, 400 << 20)
        );
        assert_eq!((size(""), size("?"), size("16?"), size("much")), (Ok(None), Ok(None), Err(()), Err(())));
    }

    #[test]
    fn times_are_read_in_each_form() {
        let wanted = time("2026-01-01T00:10:00");
        assert!(wanted.is_some());
        for text in ["2026-01-01 00:10:00", "2026-01-01T00:10:00Z", "2026-01-01T00:10:00+0100", "1767226200"] {
            assert_eq!(time(text), wanted, "{text}");
        }
        assert_eq!((time("Unknown"), time("None"), time(""), time("0")), (None, None, None, None));
    }
}

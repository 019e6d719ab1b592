//! Times in traces: numbers in a unit, or ISO 8601.

use std::fmt;
use std::str::FromStr;

/// The unit of a numeric time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// 100 ns, as on Windows.
    Ticks,
    /// Nanoseconds.
    Nanos,
}

impl TimeUnit {
    /// All, the longest first.
    pub const ALL: [TimeUnit; 5] =
        [TimeUnit::Seconds, TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Ticks, TimeUnit::Nanos];

    /// How many of them make a second.
    pub fn per_second(self) -> f64 {
        match self {
            TimeUnit::Seconds => 1.0,
            TimeUnit::Millis => 1e3,
            TimeUnit::Micros => 1e6,
            TimeUnit::Ticks => 1e7,
            TimeUnit::Nanos => 1e9,
        }
    }

    /// The unit at the end of a column's name, as in `time_ms`, `timestamp (us)` or `ts [ns]`, and the name without it.
    pub fn of_name(name: &str) -> (Option<TimeUnit>, &str) {
        let bare = name.trim_end_matches([')', ']', ' ']);
        let Some(at) = bare.rfind([' ', '_', '(', '[', '-', '.']) else { return (None, name) };
        let unit = match &bare[at + 1..] {
            "s" | "sec" | "secs" | "seconds" => TimeUnit::Seconds,
            "ms" | "msec" | "millis" | "milliseconds" => TimeUnit::Millis,
            "us" | "µs" | "usec" | "micros" | "microseconds" => TimeUnit::Micros,
            "100ns" => TimeUnit::Ticks,
            "ns" | "nsec" | "nanos" | "nanoseconds" => TimeUnit::Nanos,
            _ => return (None, name),
        };
        (Some(unit), bare[..at].trim_end_matches([' ', '_', '(', '[', '-', '.']))
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeUnit::Seconds => "s",
            TimeUnit::Millis => "ms",
            TimeUnit::Micros => "us",
            TimeUnit::Ticks => "100ns",
            TimeUnit::Nanos => "ns",
        })
    }
}

impl FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeUnit, String> {
        let unit = TimeUnit::ALL.into_iter().find(|unit| unit.to_string() == text);
        unit.ok_or_else(|| format!("'{text}' is not a unit of time; it is one of s, ms, us, ns, 100ns"))
    }
}

/// Seconds since 1970 of `2024-01-31` or `2024-01-31T12:30:00`; the `T` may be a blank, and a fraction, `Z`, `+01:00`
/// or `+0100` may follow. UTC without a zone.
pub fn iso_seconds(text: &str) -> Option<f64> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.split('-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_since_1970(year, month, day) as f64 * 86_400.0;
    if rest.is_empty() {
        return Some(days);
    }
    let (clock, rest) = rest.strip_prefix(['T', 't', ' '])?.split_at_checked(8)?;
    let mut parts = clock.split(':').map(digits);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    // A leap second is 60.
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let end = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (fraction, zone) = rest.split_at(end);
    let fraction = match fraction.strip_prefix(['.', ',']) {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            format!("0.{digits}").parse::<f64>().ok()?
        }
        None if fraction.is_empty() => 0.0,
        _ => return None,
    };
    Some(days + (hour * 3600 + minute * 60 + second) as f64 + fraction - zone_seconds(zone)?)
}

fn zone_seconds(zone: &str) -> Option<f64> {
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(0.0);
    }
    let sign = if zone.starts_with('-') { -1.0 } else { 1.0 };
    let figures: String = zone[1..].chars().filter(|c| *c != ':').collect();
    let (hours, minutes) = figures.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { 0 } else { digits(minutes)? };
    Some(sign * (digits(hours)? * 3600 + minutes * 60) as f64)
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// In the Gregorian calendar; the year begins in March here, so that the leap day is its last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_times_are_seconds_since_1970() {
        // As `date -u -d TIME +%s.%N` prints them.
        for (text, seconds) in [
            ("1970-01-01", 0.0),
            ("2024-01-01T00:00:00Z", 1_704_067_200.0),
            ("2024-02-29 23:59:59.25", 1_709_251_199.25),
            ("2000-03-01T00:00:00+01:00", 951_865_200.0),
            ("1999-12-31T23:00:00-0100", 946_684_800.0),
        ] {
            assert_eq!(iso_seconds(text), Some(seconds), "{text}");
        }
        for text in [
            "",
            "soon",
            "2024-13-01",
            "2024-01-01T",
            "2024-01-01Tnoon",
            "2024-01-01T00:00:00.Z",
            "2024-1-1",
            "2024-01-01x",
        ] {
            assert_eq!(iso_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_may_end_with_a_unit() {
        assert_eq!(TimeUnit::of_name("timestamp (ms)"), (Some(TimeUnit::Millis), "timestamp"));
        assert_eq!(TimeUnit::of_name("time_us"), (Some(TimeUnit::Micros), "time"));
        assert_eq!(TimeUnit::of_name("ts"), (None, "ts"));
        assert_eq!(TimeUnit::of_name("obj_id"), (None, "obj_id"));
    }
}

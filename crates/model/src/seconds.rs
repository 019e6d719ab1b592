//! Durations as people read them.

/// A duration in units a person reads at a glance; `-` where it is not finite.
pub fn seconds(value: f64) -> String {
    match value {
        v if !v.is_finite() => "-".to_string(),
        v if v < 0.0 => format!("-{}", seconds(-v)),
        0.0 => "0 s".to_string(),
        v if v < 0.01 => format!("{:.2} ms", v * 1e3),
        v if v < 1.0 => format!("{:.0} ms", v * 1e3),
        v if v < 9.995 => format!("{v:.2} s"),
        v if v < 120.0 => format!("{v:.1} s"),
        v if v < 7200.0 => format!("{} min {:02} s", v.round() as u64 / 60, v.round() as u64 % 60),
        v => format!("{} h {:02} min", (v / 60.0).round() as u64 / 60, (v / 60.0).round() as u64 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_units_of_their_size() {
        for (value, text) in [
            (0.0, "0 s"),
            (0.0042, "4.20 ms"),
            (0.25, "250 ms"),
            (1.234, "1.23 s"),
            (12.34, "12.3 s"),
            (200.4, "3 min 20 s"),
            (7260.0, "2 h 01 min"),
        ] {
            assert_eq!(seconds(value), text);
        }
    }
}

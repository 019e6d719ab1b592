//! Student's t distribution.

use std::f64::consts::PI;

/// The probability that a value of Student's t with so many degrees of freedom (at least 1) exceeds `t`. Exact but for rounding (about
/// 1e-15). O(degrees).
pub fn above(t: f64, degrees: usize) -> f64 {
    let angle = (t.abs() / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // Abramowitz and Stegun, 26.7.3 and 26.7.4.
    let is_odd = degrees % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = if degrees == 1 { 0.0 } else { term };
    let mut step = if is_odd { 2.0 } else { 1.0 };
    while step + 1.0 < degrees as f64 - 0.5 {
        term *= step / (step + 1.0) * cosine * cosine;
        sum += term;
        step += 2.0;
    }
    let within = if is_odd { 2.0 / PI * (angle + sine * sum) } else { sine * sum };
    let tail = ((1.0 - within) / 2.0).clamp(0.0, 0.5);
    if t >= 0.0 { tail } else { 1.0 - tail }
}

/// The value that Student's t distribution with so many degrees of freedom (at least 1) exceeds with this probability (above 1e-12, at
/// most 0.5).
pub fn exceeded_with(probability: f64, degrees: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while above(high, degrees) > probability && high < 1e13 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if above(middle, degrees) > probability { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, degrees, expected) in [
            (0.025, 1, 12.706),
            (0.025, 2, 4.3027),
            (0.025, 3, 3.1824),
            (0.05, 4, 2.1318),
            (0.005, 9, 3.2498),
            (0.0005, 4, 8.6103),
            (0.0005, 30, 3.6460),
            (0.0001, 11, 5.4528),
        ] {
            let found = exceeded_with(probability, degrees);
            assert!((found / expected - 1.0).abs() < 1e-3, "{probability} {degrees}: {found} {expected}");
        }
    }

    #[test]
    fn both_tails_are_alike() {
        assert!((above(-1.3, 7) + above(1.3, 7) - 1.0).abs() < 1e-12);
        assert_eq!(above(0.0, 5), 0.5);
    }
}

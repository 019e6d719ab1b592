//! Runs compared with a limit that none may exceed.

use crate::check::{Finding, Verdict};
use crate::sample::Sample;
use crate::student::exceeded_with;

/// A first run of at most this share of the limit needs no second one.
const FAR_BELOW: f64 = 0.8;
/// How likely the next run may exceed the limit, at most.
const NEXT_EXCEEDS: f64 = 0.01;

/// Compares runs (at least one) with a limit. One run above it fails. Runs below it pass once the next run is expected to stay below, too.
/// `is_last`: no more runs can be made.
pub fn below_limit(values: &[f64], limit: f64, is_last: bool) -> Option<Finding> {
    let sample = Sample::of(values)?;
    let value = values.iter().copied().fold(f64::MIN, f64::max);
    let count = sample.count as f64;
    let noise = (sample.count > 1).then(|| {
        let deviation = (sample.squares / (count - 1.0) * (1.0 + 1.0 / count)).sqrt();
        exceeded_with(NEXT_EXCEEDS, sample.count - 1) * deviation
    });
    let verdict = match noise {
        _ if value > limit => Some(Verdict::Failed),
        None if value <= FAR_BELOW * limit || is_last => Some(Verdict::Passed),
        Some(noise) if sample.mean + noise <= limit => Some(Verdict::Passed),
        Some(_) if is_last => Some(Verdict::Undecided),
        _ => None,
    };
    Some(Finding { value, bound: limit, noise, verdict })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_above_the_limit_fails() {
        assert_eq!(below_limit(&[1.0, 1.0, 11.0], 10.0, false).unwrap().verdict, Some(Verdict::Failed));
    }

    #[test]
    fn one_run_far_below_passes_and_one_near_it_needs_another() {
        assert_eq!(below_limit(&[8.0], 10.0, false).unwrap().verdict, Some(Verdict::Passed));
        assert_eq!(below_limit(&[9.0], 10.0, false).unwrap().verdict, None);
        assert_eq!(below_limit(&[9.0, 9.01, 9.02], 10.0, false).unwrap().verdict, Some(Verdict::Passed));
    }

    #[test]
    fn runs_that_may_exceed_it_next_time_cannot_be_decided() {
        assert_eq!(below_limit(&[9.0, 9.9, 8.1], 10.0, true).unwrap().verdict, Some(Verdict::Undecided));
        assert_eq!(below_limit(&[9.9], 10.0, true).unwrap().verdict, Some(Verdict::Passed));
        assert_eq!(below_limit(&[], 10.0, true), None);
    }
}

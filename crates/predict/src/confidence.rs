//! How likely an answer must be to suffice.

/// A probability between 0.5 and 0.999. The default is 0.95.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// `None` if the probability is outside of 0.5 to 0.999.
    pub fn new(probability: f64) -> Option<Self> {
        (0.5..=0.999).contains(&probability).then_some(Self(probability))
    }

    /// The probability.
    pub fn probability(self) -> f64 {
        self.0
    }
}

impl Default for Confidence {
    fn default() -> Self {
        Self(0.95)
    }
}

/// The value that Student's t distribution with so many degrees of freedom stays below with this probability (at least 0.5). An expansion
/// in 1/degrees (Cornish and Fisher), exact for 1 and 2 degrees; elsewhere within 2 % up to a probability of 0.995.
pub fn student_quantile(probability: f64, degrees: usize) -> f64 {
    if degrees <= 1 {
        return (std::f64::consts::PI * (probability - 0.5)).tan();
    }
    if degrees == 2 {
        let above = 2.0 * probability - 1.0;
        return above * (2.0 / (1.0 - above * above)).sqrt();
    }
    let n = degrees as f64;
    let z = normal_quantile(probability);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * n)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * n * n * n)
}

/// Abramowitz and Stegun, 26.2.23: within 0.0005.
pub fn normal_quantile(probability: f64) -> f64 {
    let t = (-2.0 * (1.0 - probability).max(1e-300).ln()).sqrt();
    let above = 2.515517 + 0.802853 * t + 0.010328 * t * t;
    t - above / (1.0 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn student_quantiles_are_those_of_the_tables() {
        for (probability, degrees, expected) in [
            (0.975, 1, 12.706),
            (0.975, 2, 4.303),
            (0.975, 3, 3.182),
            (0.95, 4, 2.132),
            (0.975, 9, 2.262),
            (0.975, 30, 2.042),
            (0.95, 1000, 1.646),
        ] {
            let quantile = student_quantile(probability, degrees);
            assert!((quantile / expected - 1.0).abs() < 0.02, "{probability} {degrees}: {quantile} {expected}");
        }
    }

    #[test]
    fn refuses_what_is_no_confidence() {
        assert!([0.0, 0.49, 1.0, f64::NAN].into_iter().all(|probability| Confidence::new(probability).is_none()));
    }
}

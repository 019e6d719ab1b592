//! Values of one figure over equal runs.

/// Mean and spread of values.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub count: usize,
    pub mean: f64,
    /// Sum of the squared distances from the mean.
    pub squares: f64,
}

impl Sample {
    /// `None` of no values, or of values that are no numbers.
    pub fn of(values: &[f64]) -> Option<Sample> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Sample { count: values.len(), mean, squares })
    }

    /// The squared standard error of the mean by this sample alone; `None` of one value.
    fn own_error(&self) -> Option<f64> {
        let count = self.count as f64;
        (self.count > 1).then(|| self.squares / (count - 1.0) / count)
    }
}

/// The standard error of `runs` - `factor` × `baseline` (their means), with its degrees of freedom; `None` if neither has a spread.
pub fn error(baseline: &Sample, runs: &Sample, factor: f64) -> Option<(f64, usize)> {
    let degrees = (baseline.count + runs.count).checked_sub(2).filter(|degrees| *degrees > 0)?;
    let variance = (baseline.squares + runs.squares) / degrees as f64;
    let pooled = variance * (1.0 / runs.count as f64 + factor * factor / baseline.count as f64);
    // Where only few runs have a larger spread than the baseline's, the pooled error is too small.
    let separate = runs
        .own_error()
        .zip(baseline.own_error())
        .map_or(0.0, |(of_runs, of_baseline)| of_runs + factor * factor * of_baseline);
    Some((pooled.max(separate).sqrt(), degrees))
}

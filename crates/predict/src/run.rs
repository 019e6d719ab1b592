//! What is known of a past run.

/// Memory that a run needed, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Need {
    /// The run completed and needed this much.
    Exactly(f64),
    /// The run was killed at a limit of this size: it needs more.
    MoreThan(f64),
}

/// One past run of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Numbers known before the run starts, always the same ones in the same order within a kind. The first is the size of the input.
    pub features: Vec<f64>,
    /// The memory it needed.
    pub need: Need,
    /// Its run time: the weight of its waste.
    pub seconds: f64,
}

/// A completed run, with the logarithms that several predictors need.
#[derive(Clone, Debug)]
pub struct Completed {
    pub features: Vec<f64>,
    pub logs: Vec<f64>,
    pub bytes: f64,
    pub log_bytes: f64,
}

impl Completed {
    pub fn new(features: Vec<f64>, bytes: f64) -> Self {
        let logs = logs(&features);
        Self { features, logs, bytes, log_bytes: bytes.max(1.0).ln() }
    }
}

/// Logarithms of the features. What is below 1, such as an empty input, counts as 1.
pub fn logs(features: &[f64]) -> Vec<f64> {
    features.iter().map(|value| value.max(1.0).ln()).collect()
}

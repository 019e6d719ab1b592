//! Simple ways to choose a request, with which predictions are compared.

/// A past task.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub input_bytes: f64,
    pub peak_bytes: f64,
    pub seconds: f64,
    pub requested_bytes: f64,
}

/// A way to choose the request from past tasks of the kind.
#[derive(Clone, Copy, Debug)]
pub enum Baseline {
    /// What the user requested.
    Requested,
    /// The largest peak so far and a tenth.
    Largest,
    /// Least squares on the size of the input, plus the standard deviation of the errors.
    Linear,
    /// The request of least waste over past tasks, whatever their input (Tovar et al.).
    LeastWaste,
}

impl Baseline {
    pub const ALL: [Self; 4] = [Self::Requested, Self::Largest, Self::Linear, Self::LeastWaste];

    pub fn name(self) -> &'static str {
        match self {
            Self::Requested => "requested by the user",
            Self::Largest => "largest so far + 10 %",
            Self::Linear => "linear + deviation",
            Self::LeastWaste => "least expected waste",
        }
    }

    /// What to ask for, in bytes.
    pub fn ask(self, past: &[Task], task: &Task) -> f64 {
        let largest = largest(past);
        match self {
            Self::Largest if !past.is_empty() => 1.1 * largest,
            Self::Linear if past.len() >= 2 => linear(past, task.input_bytes).max(1e6),
            Self::LeastWaste if !past.is_empty() => least_waste(past, largest),
            _ => task.requested_bytes,
        }
    }

    /// What to ask for after a failure, in bytes.
    pub fn retry(self, past: &[Task], failed: f64) -> f64 {
        match self {
            Self::Requested | Self::Largest => 2.0 * failed,
            Self::Linear => largest(past).max(2.0 * failed),
            Self::LeastWaste => {
                if largest(past) > failed {
                    largest(past)
                } else {
                    2.0 * failed
                }
            }
        }
    }
}

fn largest(past: &[Task]) -> f64 {
    past.iter().map(|task| task.peak_bytes).fold(0.0, f64::max)
}

fn linear(past: &[Task], input: f64) -> f64 {
    let count = past.len() as f64;
    let mean = |of: fn(&Task) -> f64| past.iter().map(of).sum::<f64>() / count;
    let (inputs, peaks) = (mean(|task| task.input_bytes), mean(|task| task.peak_bytes));
    let square: f64 = past.iter().map(|task| (task.input_bytes - inputs).powi(2)).sum();
    let product: f64 = past.iter().map(|task| (task.input_bytes - inputs) * (task.peak_bytes - peaks)).sum();
    let slope = if square > 0.0 { product / square } else { 0.0 };
    let at = |input: f64| peaks + slope * (input - inputs);
    let deviation =
        (past.iter().map(|task| (task.peak_bytes - at(task.input_bytes)).powi(2)).sum::<f64>() / count).sqrt();
    at(input) + deviation
}

fn least_waste(past: &[Task], largest: f64) -> f64 {
    let mut peaks: Vec<f64> = past.iter().map(|task| task.peak_bytes).collect();
    peaks.sort_by(f64::total_cmp);
    let step = (peaks.len() / 200).max(1);
    let waste = |given: f64| -> f64 {
        let of = |task: &Task| task.seconds * if task.peak_bytes <= given { given } else { given + largest };
        past.iter().map(|task| of(task) - task.seconds * task.peak_bytes).sum()
    };
    let candidates = peaks.iter().copied().step_by(step).chain([largest]);
    candidates.min_by(|&a, &b| waste(a).total_cmp(&waste(b))).unwrap_or(largest)
}

//! The cheapest runs that make an answer possible.

use model::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::MIN_RUNS;

/// Of the size that is asked for, the smallest first: small runs are cheap, and a trend takes sizes that differ. Beyond four times the
/// largest, answers have a wide interval.
const SHARES: [f64; 5] = [1.0 / 16.0, 1.0 / 8.0, 1.0 / 4.0, 1.0 / 32.0, 1.0 / 2.0];
/// Sizes that differ by less are one.
const SAME_SIZE_RATIO: f64 = 1.3;

/// What `--plan` prints.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Plan {
    /// The kind of the command.
    pub kind: String,
    /// Completed runs of the kind.
    pub runs: usize,
    /// Sizes of the inputs of the runs to make, bytes.
    pub planned_bytes: Vec<u64>,
}

impl Plan {
    /// For an input of `asked` bytes, when runs of these sizes are known.
    pub fn of(kind: &str, asked: f64, known: &[f64]) -> Plan {
        let mut sizes: Vec<f64> = Vec::new();
        let differs = |sizes: &[f64], size: f64| {
            sizes.iter().all(|other| (size.max(1.0) / other.max(1.0)).ln().abs() >= SAME_SIZE_RATIO.ln())
        };
        for &size in known {
            if differs(&sizes, size) {
                sizes.push(size);
            }
        }
        let mut planned_bytes = Vec::new();
        for size in SHARES.map(|share| (asked * share).ceil()) {
            if sizes.len() < MIN_RUNS && size >= 1.0 && differs(&sizes, size) {
                sizes.push(size);
                planned_bytes.push(size as u64);
            }
        }
        planned_bytes.sort_unstable();
        Plan { kind: kind.into(), runs: known.len(), planned_bytes }
    }

    /// For people.
    pub fn text(&self) -> String {
        let sizes: Vec<String> = self.planned_bytes.iter().map(|bytes| Bytes(*bytes).to_string()).collect();
        if sizes.is_empty() {
            return format!(
                "{}: {} completed runs of different sizes are known: nothing has to be run\n",
                self.kind, self.runs
            );
        }
        format!(
            "{}: run it with inputs of {}\n  known        {} completed runs; an answer takes {MIN_RUNS}, of different sizes\n  \
             make them    bursar run -- COMMAND with each; or bursar predict --learn INPUT… -- COMMAND; or\n               \
             bursar predict --learn --scale-with 'head -c {{}} INPUT' -- COMMAND\n",
            self.kind,
            sizes.join(", "),
            self.runs
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = (1u64 << 30) as f64;

    #[test]
    fn the_cheapest_sizes_that_differ_are_planned() {
        let planned = |known: &[f64]| Plan::of("fit", 16.0 * GIB, known).planned_bytes;
        let gib = |sizes: &[u64]| sizes.iter().map(|size| size << 30).collect::<Vec<u64>>();
        assert_eq!(planned(&[]), gib(&[1, 2, 4]));
        assert_eq!(planned(&[2.1 * GIB]), gib(&[1, 4]));
        assert_eq!(planned(&[3.0 * GIB, 3.1 * GIB, 3.2 * GIB]), gib(&[1, 2]));
        assert_eq!(planned(&[GIB, 3.0 * GIB, 9.0 * GIB]), gib(&[]));
        assert_eq!(Plan::of("fit", 0.0, &[]).planned_bytes, gib(&[]));
    }
}

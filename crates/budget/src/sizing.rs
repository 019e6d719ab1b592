//! Whether the trials show that a program without a known rule sizes itself by its limit.

use model::Outcome;

use crate::Evidence;

/// A run held less if it held less than this share of what every reference held.
const LESS: f64 = 0.9;

/// A run that completed under a limit although it never had the memory that runs without a limit held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLess {
    /// Its limit, bytes.
    pub limit_bytes: u64,
    /// Its peak charge, bytes.
    pub peak_bytes: u64,
    /// The minimum of the unreclaimable peaks of the runs without a limit, bytes.
    pub held_bytes: u64,
}

/// The run under a limit that shows this best. Without swap, heap cannot be reclaimed, so the program never requested as much.
pub fn held_less(evidence: &Evidence) -> Option<HeldLess> {
    let held = |r: &crate::Reference| Some(r.floor_bytes?.saturating_sub(r.breakdown.kernel.unwrap_or(0)));
    let held_bytes = evidence.references.iter().map(held).min().flatten()?;
    let ended_well = evidence.search_trials().filter(|t| t.outcome == Outcome::Ok);
    let of = ended_well.filter_map(|t| Some((t.limit_bytes?, t.peak_charge_bytes?)));
    let (limit_bytes, peak_bytes) = of.min_by_key(|(_, peak)| *peak)?;
    ((peak_bytes as f64) < LESS * held_bytes as f64).then_some(HeldLess { limit_bytes, peak_bytes, held_bytes })
}

#[cfg(test)]
mod tests {
    use model::{Breakdown, Trial};

    use super::*;
    use crate::{MIB, Reference};

    fn evidence(held_mib: [u64; 2], peak_mib: u64, outcome: Outcome) -> Evidence {
        let reference = |held: u64| Reference {
            floor_bytes: Some((held + 1) * MIB),
            breakdown: Breakdown { kernel: Some(MIB), ..Default::default() },
            ..Default::default()
        };
        let trial = Trial { outcome, peak_charge_bytes: Some(peak_mib * MIB), ..crate::tests::trial(266, 1.0) };
        Evidence { references: held_mib.map(reference).to_vec(), trials: vec![trial], ..Default::default() }
    }

    #[test]
    fn a_run_that_never_had_what_the_references_held_held_less() {
        let found = held_less(&evidence([256, 260], 142, Outcome::Ok)).unwrap();
        assert_eq!((found.limit_bytes, found.peak_bytes, found.held_bytes), (266 * MIB, 142 * MIB, 256 * MIB));
        assert_eq!(held_less(&evidence([256, 260], 250, Outcome::Ok)), None);
        assert_eq!(held_less(&evidence([150, 260], 142, Outcome::Ok)), None, "a reference held as little");
        assert_eq!(held_less(&evidence([256, 260], 142, Outcome::Oom)), None, "it was killed before it could");
    }
}

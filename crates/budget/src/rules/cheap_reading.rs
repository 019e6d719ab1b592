//! Requests another reference after a trial that passed although its refaults should have made it too slow.

use model::{Bytes, Outcome};

use super::reference::{affordable, reference};
use crate::analysis::Analysis;
use crate::effort::runs_of_a_trial;
use crate::predict::LEAST_PRICE;
use crate::step::Step;

/// Either a refault costs almost nothing here, or the machine has become faster since the references. In the second case smaller limits
/// would pass by mistake, so a new reference comes first. A search does this once, and not if a reference already followed a trial. Jobs so
/// short that a trial repeats them are excluded.
pub fn step(a: &Analysis) -> Option<Step> {
    affordable(a).filter(|_| !a.settings.sizes_itself && runs_of_a_trial(a.evidence) == 1)?;
    let allowed = a.settings.slowdown * a.reference?.median;
    let limit = a.bracket.passed?;
    let passed = a.evidence.search_trials().filter(|t| t.limit_bytes == Some(limit) && t.outcome == Outcome::Ok);
    let again = passed.filter_map(|t| t.refaults).max()? * a.settings.page_bytes;
    let last = a.evidence.references.last()?.run;
    let is_first = a.evidence.search_trials().all(|t| t.run > last);
    (is_first && again as f64 * LEAST_PRICE >= allowed)
        .then(|| reference(format!("it read {} again and lost no time: has the machine become faster?", Bytes(again))))
}

#[cfg(test)]
mod tests {
    use model::Trial;

    use super::*;
    use crate::tests::trial;
    use crate::{Evidence, MIB, Reference, Settings};

    fn reference(run: u32, wall_seconds: f64) -> Reference {
        Reference {
            run,
            wall_seconds,
            stall_seconds: Some(0.0),
            peak_charge_bytes: Some(286 * MIB),
            floor_bytes: Some(5 * MIB),
            held_bytes: Some(4 * MIB),
            refaults: Some(0),
            ..Reference::default()
        }
    }

    fn passed(run: u32, limit: u64, wall_seconds: f64, refaults: u64) -> Trial {
        Trial {
            run,
            outcome: Outcome::Ok,
            runtime_ratio: Some(wall_seconds / 3.49),
            stall_seconds: Some(0.0),
            refaults: Some(refaults),
            peak_charge_bytes: Some(limit * MIB),
            ..trial(limit, wall_seconds)
        }
    }

    /// `sqlite3` scans a file of 281 MiB five times. The trial at 255 MiB passed, but by then the job takes 3.05 s without a limit.
    fn goes_through_a_file(refaults: u64) -> Evidence {
        Evidence {
            references: vec![reference(0, 3.38), reference(1, 3.60)],
            trials: vec![passed(2, 286, 3.49, 0), passed(3, 255, 3.53, refaults)],
            ..Evidence::default()
        }
    }

    #[test]
    fn adds_a_reference_when_a_trial_refaults_much_and_passes() {
        let (settings, mut evidence) = (Settings::default(), goes_through_a_file(96_774));
        let Some(Step::Reference { why, .. }) = step(&Analysis::of(&settings, &evidence)) else {
            panic!("no reference")
        };
        assert_eq!(why, "it read 378 MiB again and lost no time: has the machine become faster?");
        evidence.learn(&settings, reference(4, 3.05));
        let a = Analysis::of(&settings, &evidence);
        assert_eq!((a.bracket.failed, a.bracket.passed), (Some(255 * MIB), Some(286 * MIB)));
        assert_eq!(step(&a), None);
    }

    #[test]
    fn accepts_cheap_refaults_if_a_later_reference_is_as_slow() {
        let (settings, mut evidence) = (Settings::default(), goes_through_a_file(96_774));
        evidence.learn(&settings, reference(4, 3.50));
        let a = Analysis::of(&settings, &evidence);
        assert_eq!((a.bracket.passed, step(&a)), (Some(255 * MIB), None));
    }

    #[test]
    fn adds_no_reference_when_a_trial_refaults_little() {
        assert_eq!(step(&Analysis::of(&Settings::default(), &goes_through_a_file(10_000))), None);
    }
}

//! The speed of the machine changes during a search: selects the references with which a run is compared.

use model::Spread;

use crate::Reference;

/// Run times within this ratio agree.
const AGREE: f64 = 1.05;

/// A reference after trials that is outside the range of earlier ones by this ratio shows that the machine has changed.
const CHANGED: f64 = 1.025;

/// The references in stretches of equal machine speed; none is empty.
pub fn stretches(references: &[Reference]) -> Vec<&[Reference]> {
    let mut found = Vec::new();
    let mut begin = 0;
    if references.is_empty() {
        return found;
    }
    for i in 1..references.len() {
        let before = &references[begin..i];
        let walls = || before.iter().map(|r| r.wall_seconds);
        let (least, most) = (walls().fold(f64::INFINITY, f64::min), walls().fold(0.0, f64::max));
        let wall = references[i].wall_seconds;
        let follows_trials = references[i].run > references[i - 1].run + 1;
        // A single reference does not show the variation.
        if follows_trials && before.len() > 1 && (wall > most * CHANGED || wall < least / CHANGED) {
            found.push(before);
            begin = i;
        }
    }
    found.push(&references[begin..]);
    found
}

/// The stretch nearest to a run.
pub fn nearest(references: &[Reference], run: u32) -> &[Reference] {
    let stretches = stretches(references);
    let mut chosen = stretches.first().copied().unwrap_or_default();
    for next in stretches.into_iter().skip(1) {
        let (Some(last), Some(first)) = (chosen.last(), next.first()) else { break };
        if first.run.saturating_sub(run) <= run.saturating_sub(last.run) {
            chosen = next;
        }
    }
    chosen
}

/// All references of a stretch, unless two or more that agree show that the first one was slow: it warms up the machine (clocks, memory of
/// the host, caches of the storage).
pub fn timed(stretch: &[Reference]) -> &[Reference] {
    match stretch.split_first() {
        Some((first, rest)) if rest.len() >= 2 => {
            let walls = || rest.iter().map(|r| r.wall_seconds);
            let (least, most) = (walls().fold(f64::INFINITY, f64::min), walls().fold(0.0, f64::max));
            let is_slow_alone = most <= least * AGREE && first.wall_seconds > most * AGREE;
            if is_slow_alone { rest } else { stretch }
        }
        _ => stretch,
    }
}

/// Run times, in seconds; `None`: no reference, or no time taken.
pub fn spread(references: &[Reference]) -> Option<Spread> {
    let walls: Vec<f64> = references.iter().map(|r| r.wall_seconds).collect();
    Spread::of(&walls).filter(|spread| spread.median > 0.0)
}

/// The median run time, in seconds.
pub fn median(references: &[Reference]) -> Option<f64> {
    Some(spread(references)?.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(runs: &[(u32, f64)]) -> Vec<Reference> {
        runs.iter().map(|(run, wall)| Reference { run: *run, wall_seconds: *wall, ..Reference::default() }).collect()
    }

    fn lengths(runs: &[(u32, f64)]) -> Vec<usize> {
        stretches(&made(runs)).iter().map(|stretch| stretch.len()).collect()
    }

    #[test]
    fn a_reference_that_differs_after_trials_begins_a_stretch() {
        assert_eq!(lengths(&[]), [] as [usize; 0]);
        assert_eq!(lengths(&[(0, 4.5), (1, 4.6), (2, 5.2)]), [3], "one after the other: noise");
        assert_eq!(lengths(&[(0, 4.5), (1, 4.6), (4, 4.65)]), [3], "it has not changed");
        assert_eq!(lengths(&[(0, 4.5), (1, 4.6), (5, 5.0), (6, 5.1), (9, 4.5)]), [2, 2, 1]);
    }

    #[test]
    fn a_run_belongs_to_the_nearest_stretch_and_midway_to_the_later() {
        let references = made(&[(0, 4.5), (1, 4.6), (5, 5.0)]);
        let first_of = |run| nearest(&references, run)[0].run;
        assert_eq!([0, 2, 3, 4, 5, 9].map(first_of), [0, 0, 5, 5, 5, 5]);
    }
}

//! Which accesses miss the TLB.
//!
//! An LRU cache of C entries keeps a page for about as long as it takes to access C others, a time that is nearly the same for all:
//! the t with sum of (1 - e^(-rate t)) over all pages = C. A page misses when it was not accessed for as long, which has the chance
//! e^(-rate t) (Che, Tung and Wang, 2002).

/// Entries of a second-level TLB for pages of 4 KiB: 1536 and 2048 are usual.
const ENTRIES: f64 = 1536.0;
const SHORTEST: f64 = 1e-9;
const LONGEST: f64 = 1e6;
/// Of halving: to a part in a million.
const STEPS: u32 = 45;

/// Pages that are accessed equally often.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Entries of the TLB that they need.
    pub entries: f64,
    /// Accesses per second of each.
    pub rate: f64,
}

/// Of each, the accesses per second that miss; none where all have room.
pub fn misses(loads: &[Load]) -> Vec<f64> {
    let held = |time: f64| -> f64 { loads.iter().map(|load| load.entries * (1.0 - (-load.rate * time).exp())).sum() };
    if held(LONGEST) <= ENTRIES {
        return vec![0.0; loads.len()];
    }
    // Times are many orders of magnitude apart.
    let (mut short, mut long) = (SHORTEST.ln(), LONGEST.ln());
    for _ in 0..STEPS {
        let middle = (short + long) / 2.0;
        if held(middle.exp()) < ENTRIES { short = middle } else { long = middle }
    }
    let kept = short.exp();
    loads.iter().map(|load| load.entries * load.rate * (-load.rate * kept).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(entries: f64, rate: f64) -> Load {
        Load { entries, rate }
    }

    #[test]
    fn what_has_room_in_the_tlb_never_misses() {
        assert_eq!(misses(&[load(512.0, 1000.0), load(1024.0, 3.0)]), [0.0, 0.0]);
        assert_eq!(misses(&[]), [0.0; 0]);
    }

    #[test]
    fn of_much_more_than_has_room_nearly_all_misses() {
        let missed = misses(&[load(1e6, 10.0)]);
        assert!((0.99e7..1e7).contains(&missed[0]), "{missed:?}");
    }

    #[test]
    fn of_twice_as_much_as_has_room_half_misses() {
        let missed = misses(&[load(2.0 * ENTRIES, 100.0)])[0] / (2.0 * ENTRIES * 100.0);
        assert!((missed - 0.5).abs() < 0.01, "{missed}");
    }

    #[test]
    fn what_is_hot_stays_in_the_tlb_and_what_is_cold_misses_each_time() {
        let missed = misses(&[load(512.0, 3000.0), load(1e5, 1.0)]);
        assert!(missed[0] < 1.0, "{missed:?}");
        assert!((0.95e5..1e5).contains(&missed[1]), "{missed:?}");
    }

    #[test]
    fn of_what_has_no_room_the_hotter_misses_more() {
        let missed = misses(&[load(20_000.0, 500.0), load(180_000.0, 6.0)]);
        assert!(missed[0] > 8e6 && missed[1] > 1e6 && missed[0] > 7.0 * missed[1], "{missed:?}");
    }
}

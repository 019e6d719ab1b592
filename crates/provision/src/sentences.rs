//! Sentences about what a pool served.

use model::{Bytes, seconds};

use crate::stats::Figures;

/// From this size on, unwritten memory of a pool is reported, if it is a quarter of the peak.
const LEAST_UNWRITTEN_BYTES: u64 = 16 << 20;
/// From this size on, copies by forks are reported.
const LEAST_COPIED_BYTES: u64 = 16 << 20;

/// The memory from a pool, as a clause.
pub fn from_pool(name: &str, figures: &Figures) -> String {
    let present = format!("populated in {}", seconds(figures.populate_seconds));
    let beside = match Bytes(figures.zeroed_beside_bytes) {
        Bytes(0) => String::new(),
        bytes => format!(", {bytes} zeroed beside it"),
    };
    let (peak, all) = (Bytes(figures.pool_bytes_peak), Bytes(figures.served_bytes));
    match peak < all {
        true => format!("up to {peak} at a time from pool {name}, {all} over the run, {present}{beside}"),
        false => format!("{peak} from pool {name}, {present}{beside}"),
    }
}

/// The size that the pool should have had, as a sentence; `None`: it was large enough. A program whose calls failed might
/// have asked for more if they had not.
pub fn too_small(figures: &Figures) -> Option<String> {
    let (failed, at_least) = match figures.failed {
        0 => (String::new(), ""),
        calls => (format!(", {calls} of which failed"), "at least "),
    };
    let (calls, wanted) = (figures.fallbacks, Bytes(figures.demand_bytes_peak));
    let noun = if calls == 1 { "call" } else { "calls" };
    (calls > 0).then(|| format!("the pool was too small for {calls} {noun}{failed}; it needs {at_least}{wanted}"))
}

/// Memory taken from a pool and never written, as a sentence; `None`: not enough to matter.
pub fn unwritten(figures: &Figures) -> Option<String> {
    let (bytes, peak) = (figures.unwritten_bytes, figures.pool_bytes_peak);
    let matters = bytes >= LEAST_UNWRITTEN_BYTES && bytes >= peak / 4;
    let why = if figures.fallbacks > 0 { "; what came later found the pool empty for it" } else { "" };
    matters.then(|| {
        format!(
            "about {} of {} from the pool was never written: the program asks for more than it uses{why}",
            Bytes(bytes),
            Bytes(peak)
        )
    })
}

/// Memory that children have as copies and would share without a pool, as a sentence; `None`: not enough to matter.
pub fn copied(figures: &Figures) -> Option<String> {
    let (copies, peak) = (Bytes(figures.copied_bytes), Bytes(figures.pool_bytes_peak));
    let matters = copies.0 >= LEAST_COPIED_BYTES;
    matters.then(|| {
        format!(
            "{copies} were copied at forks, beside {peak} of the pool: each child of a process with several threads has a copy of all, \
             where without a pool it would share it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unserved_call_is_in_the_singular() {
        let of = |fallbacks| too_small(&Figures { fallbacks, demand_bytes_peak: 4 << 20, ..Figures::default() });
        assert_eq!(of(1).unwrap(), "the pool was too small for 1 call; it needs 4.00 MiB");
        assert!(of(2).unwrap().contains("for 2 calls") && of(0).is_none());
        let failed = Figures { fallbacks: 3, failed: 2, demand_bytes_peak: 4 << 20, ..Figures::default() };
        let sentence = "the pool was too small for 3 calls, 2 of which failed; it needs at least 4.00 MiB";
        assert_eq!(too_small(&failed).unwrap(), sentence);
    }
}

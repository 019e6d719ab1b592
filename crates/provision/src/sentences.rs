//! What a pool served, in sentences.

use model::{Bytes, seconds};

use crate::told::Figures;

/// Memory of a pool that was never written is said from this on, if it is a quarter of what was taken.
const LEAST_UNWRITTEN_BYTES: u64 = 16 << 20;
/// Copies that forks have made are said from this on.
const LEAST_COPIED_BYTES: u64 = 16 << 20;

/// What came from a pool, in half a sentence.
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

/// How much larger a pool should have been, as a sentence.
pub fn too_small(figures: &Figures) -> Option<String> {
    let failed = match figures.failed {
        0 => String::new(),
        calls => format!(", {calls} of which failed"),
    };
    let (calls, wanted) = (figures.fallbacks, Bytes(figures.demand_bytes_peak));
    let noun = if calls == 1 { "call" } else { "calls" };
    (calls > 0).then(|| format!("the pool was too small for {calls} {noun}{failed}; {wanted} would have served all"))
}

/// How much of a pool was taken and never written, as a sentence; `None`: not enough to matter.
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

/// How much memory children have as copies that they would share without a pool, as a sentence.
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
    fn one_call_that_a_pool_did_not_serve_is_in_the_singular() {
        let of = |fallbacks| too_small(&Figures { fallbacks, demand_bytes_peak: 4 << 20, ..Figures::default() });
        assert_eq!(of(1).unwrap(), "the pool was too small for 1 call; 4.00 MiB would have served all");
        assert!(of(2).unwrap().contains("for 2 calls") && of(0).is_none());
    }
}

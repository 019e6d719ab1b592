//! Costs of memory management on this machine, as text.

use anyhow::Context;
use model::Bytes;

use super::costs::Calibrated;

/// Description of each cost, by its name in [`model::Costs`].
const NAMES: [(&str, &str); 20] = [
    ("base_fault_ns", "a fault that gives 4 KiB"),
    ("huge_fault_ns", "a fault that gives a huge page"),
    ("zero_ns", "zeroing a huge page"),
    ("collapse_base_ns", "collapsing a region to a huge page"),
    ("collapse_page_ns", "and for each page present"),
    ("collapse_stall_ns", "waiting of a thread that touches it meanwhile"),
    ("split_ns", "splitting a huge page"),
    ("populate_huge_ns", "populating a huge page ahead"),
    ("cow_ns", "copying 4 KiB on write"),
    (
        "walk_dependent_ns",
        "saved by a huge page where the page table is in the last cache, per access that waits for the one before",
    ),
    ("walk_independent_ns", "saved there per access that does not"),
    ("walk_near_dependent_ns", "saved where the page table is in the core's cache, per access that waits"),
    ("walk_near_independent_ns", "saved there per access that does not"),
    ("walk_memory_dependent_ns", "saved where it is in no cache, per access that waits"),
    ("walk_memory_independent_ns", "saved there per access that does not"),
    ("access_dependent_ns", "an access in pages of 4 KiB that waits for the one before"),
    ("access_independent_ns", "an access that does not"),
    ("pool_page_ns", "a fault on a huge page zeroed before"),
    ("page_out_ns", "swapping 4 KiB out"),
    ("page_in_ns", "and in again"),
];

/// A line for each cost, with the reason if it is assumed.
///
/// # Errors
/// The costs cannot be converted to JSON.
pub fn cost_lines(calibrated: &Calibrated) -> anyhow::Result<Vec<String>> {
    let costs = serde_json::to_value(&calibrated.costs).context("the costs could not be printed")?;
    let why = |name: &str| {
        let assumed = calibrated.assumed.iter().find(|(assumed, _)| assumed == name);
        assumed.map(|(_, why)| format!("  (assumed: {why})")).unwrap_or_default()
    };
    let line = |(name, what): (&str, &str)| {
        format!("{:>11} ns  {what}{}", format!("{:.0}", costs[name].as_f64().unwrap_or_default()), why(name))
    };
    let kept = Bytes(calibrated.costs.last_cache_bytes as u64);
    let kept =
        format!("{kept:>11}     that the last cache keeps of what a program accesses{}", why("last_cache_bytes"));
    Ok(NAMES.into_iter().map(line).chain([kept]).collect())
}

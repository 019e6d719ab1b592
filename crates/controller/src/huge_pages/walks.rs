//! Page walks in the form that predictions need.

use advise::Walks;
use track::regions::Region;

/// What is known of the page walks of a region.
pub fn walks(region: &Region) -> Walks {
    let Region { near, memory, ns_per_miss, ns_per_memory_miss, .. } = *region;
    Walks { near, memory, ns_per_miss, ns_per_memory_miss }
}

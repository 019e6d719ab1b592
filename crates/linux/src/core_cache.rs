//! The caches of a core.

use std::path::Path;

use crate::file;

/// The assumed size where it is unknown.
const USUAL_BYTES: u64 = 1 << 20;

/// Bytes of the first core's L2 cache, which most cores have to themselves.
pub fn second_bytes() -> u64 {
    of(2).unwrap_or(USUAL_BYTES)
}

/// Bytes of the last-level cache, which cores share.
pub fn last_bytes() -> u64 {
    (3..=4).rev().find_map(of).unwrap_or_else(second_bytes)
}

/// Reads sysfs, where index 0 and 1 are the L1 caches, and further indexes equal the level.
fn of(level: u32) -> Option<u64> {
    let text = file::read_if_present(Path::new(&format!("/sys/devices/system/cpu/cpu0/cache/index{level}/size")));
    text.and_then(|text| bytes(text.trim()))
}

/// `1024K`.
fn bytes(text: &str) -> Option<u64> {
    let unit = [('K', 10), ('M', 20)].into_iter().find(|(unit, _)| text.ends_with(*unit));
    let (digits, shift) = unit.map_or((text, 0), |(unit, shift)| (text.trim_end_matches(unit), shift));
    digits.parse::<u64>().ok().map(|number| number << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        assert_eq!(["1024K", "2M", "512", "x", ""].map(bytes), [Some(1 << 20), Some(2 << 20), Some(512), None, None]);
        assert!(second_bytes() > 0 && last_bytes() >= second_bytes());
    }
}

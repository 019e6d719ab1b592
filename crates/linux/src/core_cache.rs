//! The caches of a core.

use std::path::Path;

use crate::file;

/// Where it is not told.
const USUAL_BYTES: u64 = 1 << 20;

/// Bytes of the second cache of the first core: the last that most cores have to themselves.
pub fn second_bytes() -> u64 {
    of(2).unwrap_or(USUAL_BYTES)
}

/// Bytes of the last cache before memory, which cores share.
pub fn last_bytes() -> u64 {
    (3..=4).rev().find_map(of).unwrap_or_else(second_bytes)
}

/// After the caches of the first level, one for data and one for code, the number of each is its level.
fn of(level: u32) -> Option<u64> {
    let told = file::read_if_there(Path::new(&format!("/sys/devices/system/cpu/cpu0/cache/index{level}/size")));
    told.and_then(|text| bytes(text.trim()))
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

//! The pages to scan: one of every 2^level neighbours, chosen by hash.
//!
//! The choice depends only on the page's number, and a page chosen at one level is chosen at all lower levels. So a
//! sample can be thinned while everything known of the remaining pages is kept (SHARDS, Waldspurger et al. 2015, 3.2).
//! Unlike in SHARDS, every group of neighbours has exactly one page in the sample, so the sampled pages stand for an
//! exact number of bytes.

/// The sampled page of group `group` of 2^level pages.
pub fn chosen(group: u64, level: u32) -> u64 {
    (0..level).rev().fold(group, |group, below| 2 * group + (mix(group ^ u64::from(below) << 58) & 1))
}

/// The chosen pages from `first` to `end` (exclusive), in rising order.
pub fn chosen_within(first: u64, end: u64, level: u32) -> impl Iterator<Item = u64> {
    let groups = first >> level..((end.max(1) - 1) >> level) + 1;
    groups.map(move |group| chosen(group, level)).filter(move |page| (first..end).contains(page))
}

/// Hashes a number (SplitMix64's finalizer).
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_one_page_also_chosen_at_lower_levels() {
        for level in 1..12 {
            for group in 0..100 {
                let page = chosen(group, level);
                assert_eq!(page >> level, group);
                assert_eq!(chosen(page >> (level - 1), level - 1), page);
            }
        }
    }

    #[test]
    fn strided_pages_are_sampled_in_proportion() {
        let met = chosen_within(0, 1 << 20, 6).filter(|page| page % 64 == 0).count();
        assert!((200..=312).contains(&met), "{met} of 16384 groups, 256 expected");
    }

    #[test]
    fn a_range_within_one_group_has_its_page_or_none() {
        let page = chosen(7, 9);
        assert_eq!(chosen_within(page, page + 1, 9).collect::<Vec<_>>(), [page]);
        assert_eq!(chosen_within(page + 1, 8 << 9, 9).count(), 0);
        assert_eq!(chosen_within(5, 5, 0).count(), 0);
    }
}

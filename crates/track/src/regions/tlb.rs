//! Which accesses miss the TLB.
//!
//! An LRU cache of C entries keeps a page for about as long as it takes to access C others. That time t is nearly the
//! same for all pages and solves: sum of (1 - e^(-rate t)) over all pages = C. An access misses if the page was not
//! accessed for that long, which has the probability e^(-rate t) (Che, Tung and Wang, 2002).
//!
//! The same model shows which misses find the page table entry in the core's second-level cache or in the last-level
//! cache, which also hold the program's data. A miss costs a tenth if the entry is in the second-level cache rather
//! than in the last-level one, and a miss that goes to memory costs at least as much. Huge pages bring little to hot regions
//! whose page tables stay in a cache.

use std::collections::BTreeMap;

/// Entries of a second-level TLB for 4 KiB pages: 1536 and 2048 are usual.
const ENTRIES: f64 = 1536.0;
/// Page table entries, of 8 bytes, in a cache line.
const ENTRIES_PER_LINE: f64 = 8.0;
const MIN_SECONDS: f64 = 1e-9;
const MAX_SECONDS: f64 = 1e6;
/// Rates that differ by less than this part (1/100) are grouped.
const RATE_CLASSES: f64 = 100.0;
/// Bisection steps: precise to one part in a million.
const STEPS: u32 = 45;

/// Pages with the same access rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// TLB entries that they need.
    pub entries: f64,
    /// Accesses per second of each.
    pub rate: f64,
}

/// TLB misses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Misses {
    /// Misses per second.
    pub rate: f64,
    /// Share of them that find the page table entry in the second-level cache.
    pub near: f64,
    /// Share of them that find it in no cache.
    pub memory: f64,
}

/// The misses of each load; none if the TLB holds all. `second_lines` and `last_lines`: sizes of the caches. O(loads).
pub fn misses(loads: &[Load], second_lines: f64, last_lines: f64) -> Vec<Misses> {
    let alike = alike(loads);
    let Some(kept) = kept(ENTRIES, |time| alike.iter().map(|load| load.entries * held(load.rate, time)).sum()) else {
        return vec![Misses::default(); loads.len()];
    };
    let rate = |load: &Load| load.entries * load.rate * (-load.rate * kept).exp();
    let of_line = |load: &Load| rate(load) / lines(load).max(1.0);
    // Each miss also brings one data line, another each time.
    let data: f64 = alike.iter().map(rate).sum();
    let in_table: Vec<(f64, f64)> = alike.iter().map(|load| (lines(load), of_line(load))).collect();
    let in_cache =
        |time: f64| in_table.iter().map(|(lines, rate)| lines * held(*rate, time)).sum::<f64>() + data * time;
    let [second, last] = [second_lines, last_lines.max(second_lines)].map(|lines| kept_in(lines, in_cache));
    let of = |load: &Load| Misses {
        rate: rate(load),
        near: held(of_line(load), second),
        memory: 1.0 - held(of_line(load), last),
    };
    loads.iter().map(of).collect()
}

/// Groups loads with nearly the same rate: a large program has many loads, and the search evaluates all of them in each
/// step.
fn alike(loads: &[Load]) -> Vec<Load> {
    let mut alike: BTreeMap<i64, Load> = BTreeMap::new();
    for load in loads.iter().filter(|load| load.rate > 0.0 && load.entries > 0.0) {
        let together = alike.entry((load.rate.ln() * RATE_CLASSES) as i64).or_default();
        let entries = together.entries + load.entries;
        let rate = (together.entries * together.rate + load.entries * load.rate) / entries;
        *together = Load { entries, rate };
    }
    alike.into_values().collect()
}

/// Cache lines that the page table entries occupy.
fn lines(load: &Load) -> f64 {
    load.entries / ENTRIES_PER_LINE
}

/// Probability that a page with this access rate was accessed within `time`.
fn held(rate: f64, time: f64) -> f64 {
    1.0 - (-rate * time).exp()
}

/// How long a cache of `entries` keeps an entry, where `accessed` gives the entries accessed within a time; `None`: for
/// ever.
fn kept(entries: f64, accessed: impl Fn(f64) -> f64) -> Option<f64> {
    (accessed(MAX_SECONDS) > entries).then(|| kept_in(entries, accessed))
}

fn kept_in(entries: f64, accessed: impl Fn(f64) -> f64) -> f64 {
    // Bisect logarithms, since times differ by many orders of magnitude.
    let (mut short, mut long) = (MIN_SECONDS.ln(), MAX_SECONDS.ln());
    for _ in 0..STEPS {
        let middle = (short + long) / 2.0;
        if accessed(middle.exp()) < entries { short = middle } else { long = middle }
    }
    short.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_LINES: f64 = 16_384.0;
    const LAST_LINES: f64 = 262_144.0;

    fn rates(loads: &[Load]) -> Vec<f64> {
        misses(loads, SECOND_LINES, LAST_LINES).into_iter().map(|misses| misses.rate).collect()
    }

    fn load(entries: f64, rate: f64) -> Load {
        Load { entries, rate }
    }

    #[test]
    fn pages_that_fit_in_the_tlb_never_miss() {
        assert_eq!(rates(&[load(512.0, 1000.0), load(1024.0, 3.0)]), [0.0, 0.0]);
        assert_eq!(rates(&[]), [0.0; 0]);
    }

    #[test]
    fn nearly_all_miss_far_beyond_the_tlb() {
        let missed = rates(&[load(1e6, 10.0)]);
        assert!((0.99e7..1e7).contains(&missed[0]), "{missed:?}");
    }

    #[test]
    fn nearly_equal_loads_miss_as_one_load() {
        let many: Vec<Load> = (0..1000).map(|number| load(200.0, 10.0 + 1e-6 * f64::from(number))).collect();
        let (all, one) =
            (misses(&many, SECOND_LINES, LAST_LINES), misses(&[load(2e5, 10.0)], SECOND_LINES, LAST_LINES));
        let missed: f64 = all.iter().map(|misses| misses.rate).sum();
        assert!((missed / one[0].rate - 1.0).abs() < 1e-3, "{missed} {one:?}");
        assert!((all[500].near - one[0].near).abs() < 1e-3 && (all[500].memory - one[0].memory).abs() < 1e-3);
    }

    #[test]
    fn half_miss_at_twice_the_tlb() {
        let missed = rates(&[load(2.0 * ENTRIES, 100.0)])[0] / (2.0 * ENTRIES * 100.0);
        assert!((missed - 0.5).abs() < 0.01, "{missed}");
    }

    #[test]
    fn hot_pages_stay_in_the_tlb_and_cold_ones_miss() {
        let missed = rates(&[load(512.0, 3000.0), load(1e5, 1.0)]);
        assert!(missed[0] < 1.0, "{missed:?}");
        assert!((0.95e5..1e5).contains(&missed[1]), "{missed:?}");
    }

    #[test]
    fn beyond_the_tlb_hotter_pages_miss_more() {
        let missed = rates(&[load(20_000.0, 500.0), load(180_000.0, 6.0)]);
        assert!(missed[0] > 8e6 && missed[1] > 1e6 && missed[0] > 7.0 * missed[1], "{missed:?}");
    }

    #[test]
    fn page_tables_share_the_cache_with_data() {
        // Random accesses to this many MiB of pages. Measured: huge pages save 6, 24, 45 and 80 % of what they save
        // with 4 GiB.
        let near = |mib: f64| misses(&[load(mib * 256.0, 1e7 / (mib * 256.0))], SECOND_LINES, LAST_LINES)[0].near;
        let far = [128.0, 256.0, 512.0, 1024.0].map(|mib| 1.0 - near(mib));
        let expected = [0.05, 0.29, 0.57, 0.77];
        for (far, expected) in far.into_iter().zip(expected) {
            assert!((far - expected).abs() < 0.05, "{far} {expected}");
        }
    }

    #[test]
    fn with_a_hot_tenth_the_rest_is_far() {
        let hot = load(26_112.0, 18e6 / 26_112.0);
        let found = misses(&[hot, load(236_032.0, 2e6 / 236_032.0)], SECOND_LINES, LAST_LINES);
        assert!(found[0].near > 0.9 && found[1].near < 0.1, "{found:?}");
        assert!(found[0].memory < 0.001 && (0.3..0.5).contains(&found[1].memory), "{found:?}");
    }
}

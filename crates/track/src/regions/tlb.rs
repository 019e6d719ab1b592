//! Which accesses miss the TLB.
//!
//! An LRU cache of C entries keeps a page for about as long as it takes to access C others, a time that is nearly the same for all:
//! the t with sum of (1 - e^(-rate t)) over all pages = C. A page misses when it was not accessed for as long, which has the chance
//! e^(-rate t) (Che, Tung and Wang, 2002).
//!
//! The same tells which misses find the entry of the page table in the core's second cache or in the last one, beside the lines of data that
//! the program brings there: the first cost a tenth of the second, and these no more than those that find it in memory. What is accessed most is
//! hardly worth huge pages if its page tables stay in a cache.

use std::collections::BTreeMap;

/// Entries of a second-level TLB for pages of 4 KiB: 1536 and 2048 are usual.
const ENTRIES: f64 = 1536.0;
/// Entries of a page table, of 8 bytes, in a line of a cache.
const ENTRIES_PER_LINE: f64 = 8.0;
const SHORTEST: f64 = 1e-9;
const LONGEST: f64 = 1e6;
/// Rates are alike that differ by less than a part in so many.
const ALIKE: f64 = 100.0;
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

/// What misses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Misses {
    /// Accesses per second.
    pub rate: f64,
    /// Share of them that find the entry of the page table in the second cache.
    pub near: f64,
    /// Share of them that find it in no cache.
    pub memory: f64,
}

/// Of each, the accesses that miss; none where all have room. The second cache has room for so many lines, and the last one. O(loads).
pub fn misses(loads: &[Load], second_lines: f64, last_lines: f64) -> Vec<Misses> {
    let alike = alike(loads);
    let Some(kept) = kept(ENTRIES, |time| alike.iter().map(|load| load.entries * held(load.rate, time)).sum()) else {
        return vec![Misses::default(); loads.len()];
    };
    let rate = |load: &Load| load.entries * load.rate * (-load.rate * kept).exp();
    let of_line = |load: &Load| rate(load) / lines(load).max(1.0);
    // Each miss also brings a line of data, another each time.
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

/// Those together whose rates differ by next to nothing: of a large program there are many, and its times are sought in steps.
fn alike(loads: &[Load]) -> Vec<Load> {
    let mut alike: BTreeMap<i64, Load> = BTreeMap::new();
    for load in loads.iter().filter(|load| load.rate > 0.0 && load.entries > 0.0) {
        let together = alike.entry((load.rate.ln() * ALIKE) as i64).or_default();
        let entries = together.entries + load.entries;
        let rate = (together.entries * together.rate + load.entries * load.rate) / entries;
        *together = Load { entries, rate };
    }
    alike.into_values().collect()
}

/// Lines of the cache that the entries of the page table are in.
fn lines(load: &Load) -> f64 {
    load.entries / ENTRIES_PER_LINE
}

/// Whether what is accessed so often was accessed within such a time.
fn held(rate: f64, time: f64) -> f64 {
    1.0 - (-rate * time).exp()
}

/// How long a cache of so many entries keeps one, if so many are accessed in a time; `None`: for ever.
fn kept(entries: f64, accessed: impl Fn(f64) -> f64) -> Option<f64> {
    (accessed(LONGEST) > entries).then(|| kept_in(entries, accessed))
}

fn kept_in(entries: f64, accessed: impl Fn(f64) -> f64) -> f64 {
    // Times are many orders of magnitude apart.
    let (mut short, mut long) = (SHORTEST.ln(), LONGEST.ln());
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
    fn what_has_room_in_the_tlb_never_misses() {
        assert_eq!(rates(&[load(512.0, 1000.0), load(1024.0, 3.0)]), [0.0, 0.0]);
        assert_eq!(rates(&[]), [0.0; 0]);
    }

    #[test]
    fn of_much_more_than_has_room_nearly_all_misses() {
        let missed = rates(&[load(1e6, 10.0)]);
        assert!((0.99e7..1e7).contains(&missed[0]), "{missed:?}");
    }

    #[test]
    fn many_that_are_nearly_alike_miss_as_one_would() {
        let many: Vec<Load> = (0..1000).map(|number| load(200.0, 10.0 + 1e-6 * f64::from(number))).collect();
        let (all, one) =
            (misses(&many, SECOND_LINES, LAST_LINES), misses(&[load(2e5, 10.0)], SECOND_LINES, LAST_LINES));
        let missed: f64 = all.iter().map(|misses| misses.rate).sum();
        assert!((missed / one[0].rate - 1.0).abs() < 1e-3, "{missed} {one:?}");
        assert!((all[500].near - one[0].near).abs() < 1e-3 && (all[500].memory - one[0].memory).abs() < 1e-3);
    }

    #[test]
    fn of_twice_as_much_as_has_room_half_misses() {
        let missed = rates(&[load(2.0 * ENTRIES, 100.0)])[0] / (2.0 * ENTRIES * 100.0);
        assert!((missed - 0.5).abs() < 0.01, "{missed}");
    }

    #[test]
    fn what_is_hot_stays_in_the_tlb_and_what_is_cold_misses_each_time() {
        let missed = rates(&[load(512.0, 3000.0), load(1e5, 1.0)]);
        assert!(missed[0] < 1.0, "{missed:?}");
        assert!((0.95e5..1e5).contains(&missed[1]), "{missed:?}");
    }

    #[test]
    fn of_what_has_no_room_the_hotter_misses_more() {
        let missed = rates(&[load(20_000.0, 500.0), load(180_000.0, 6.0)]);
        assert!(missed[0] > 8e6 && missed[1] > 1e6 && missed[0] > 7.0 * missed[1], "{missed:?}");
    }

    #[test]
    fn page_tables_stay_in_the_cache_as_far_as_they_have_room_beside_the_data() {
        // Random accesses to so many MiB of pages; measured here, huge pages save 6, 24, 45 and 80 % of what they save of 4 GiB.
        let near = |mib: f64| misses(&[load(mib * 256.0, 1e7 / (mib * 256.0))], SECOND_LINES, LAST_LINES)[0].near;
        let far = [128.0, 256.0, 512.0, 1024.0].map(|mib| 1.0 - near(mib));
        let expected = [0.05, 0.29, 0.57, 0.77];
        for (far, expected) in far.into_iter().zip(expected) {
            assert!((far - expected).abs() < 0.05, "{far} {expected}");
        }
    }

    #[test]
    fn where_most_accesses_go_to_a_tenth_the_rest_is_far() {
        let hot = load(26_112.0, 18e6 / 26_112.0);
        let found = misses(&[hot, load(236_032.0, 2e6 / 236_032.0)], SECOND_LINES, LAST_LINES);
        assert!(found[0].near > 0.9 && found[1].near < 0.1, "{found:?}");
        assert!(found[0].memory < 0.001 && (0.3..0.5).contains(&found[1].memory), "{found:?}");
    }
}

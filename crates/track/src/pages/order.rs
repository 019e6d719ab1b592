//! Whether pages are accessed again in the same order as before: always in a loop or a pointer chase, half of the time
//! by chance.
//!
//! The order of two pages found by one scan is unknown, but distances depend on it. It is learnt from pages that two
//! scans separate: of two pages found by neighbouring scans at their previous access and by neighbouring scans now, how
//! many keep their order. What holds between scans is taken to hold within a scan.

/// Each scan reduces the weight of the earlier ones by this share.
const DECAY: f64 = 1.0 / 128.0;
/// Prior: this many pairs, half of them in order.
const PRIOR_PAIRS: f64 = 16.0;

/// Counts of pairs of pages; older scans have less weight.
#[derive(Debug, Default)]
pub struct Order {
    kept: f64,
    reversed: f64,
    /// Of the last scan: (scan that found the pages before, number of pages), rising.
    last: Vec<(u64, u32)>,
}

impl Order {
    /// Takes in scan `now`: (scan that found the pages before, number of pages), rising.
    pub fn learn(&mut self, now: u64, groups: Vec<(u64, u32)>) {
        self.kept *= 1.0 - DECAY;
        self.reversed *= 1.0 - DECAY;
        let seen = |scan: u64| groups.binary_search_by_key(&scan, |group| group.0).map_or(0, |at| groups[at].1);
        for (scan, pages) in &self.last {
            // If the last scan found a page, this scan cannot find it as last found before that: no reversed pair is
            // possible there.
            if scan + 3 <= now {
                self.kept += f64::from(*pages) * f64::from(seen(scan + 1));
            }
            self.reversed += f64::from(*pages) * scan.checked_sub(1).map_or(0.0, |scan| f64::from(seen(scan)));
        }
        self.last = groups;
    }

    /// Share of pairs of pages that keep their order.
    pub fn kept(&self) -> f64 {
        (self.kept + PRIOR_PAIRS / 2.0) / (self.kept + self.reversed + PRIOR_PAIRS)
    }

    /// Number of pairs learnt from; older scans have less weight.
    pub fn pairs(&self) -> f64 {
        self.kept + self.reversed
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::mix;
    use super::*;

    /// Scans of 10 pages each of a program that accesses 1000 pages in the order of `next`.
    fn kept(mut next: impl FnMut(u64) -> u64) -> f64 {
        let mut order = Order::default();
        let mut seen = vec![0; 1000];
        for scan in 1..1000 {
            let mut pages: Vec<u64> = (0..10).map(|at| next(scan * 10 + at)).collect();
            pages.sort_unstable();
            pages.dedup();
            let mut before: Vec<u64> = pages.iter().map(|page| seen[*page as usize]).collect();
            before.sort_unstable();
            order.learn(scan, before.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect());
            pages.iter().for_each(|page| seen[*page as usize] = scan);
        }
        order.kept()
    }

    #[test]
    fn loops_keep_order_chance_half_to_and_fro_none() {
        assert!(kept(|at| (at + 3) % 1000) > 0.95);
        let chance = kept(|at| mix(at) % 1000);
        assert!((0.4..0.6).contains(&chance), "{chance}");
        assert!(kept(|at| if at / 1000 % 2 == 0 { at % 1000 } else { 999 - at % 1000 }) < 0.1);
    }

    #[test]
    fn without_scans_order_is_by_chance() {
        assert_eq!(Order::default().kept(), 0.5);
    }
}

//! LRU stack distances of pages that a scan found accessed.
//!
//! A scan shows which pages were accessed since the scan before, but not their order: pages of one scan are tied. The
//! distance of a tied page is a random variable. It depends on the page's position among the others at its previous
//! access and at this one. Each page therefore gets a distance drawn from that distribution. The mean would be wrong
//! for a program that accesses all of its memory between two scans: every distance would be three quarters of the
//! memory, as if a quarter of it were not needed.

use super::order::Order;
use super::stack::Stack;

/// A page that a scan found accessed. A sampled page stands for its group of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The last earlier scan that found it accessed.
    pub seen: u64,
    /// Number of pages that it stands for.
    pub pages: u64,
}

/// Draws distances. Learns from each scan whether pages keep their order.
#[derive(Debug, Default)]
pub struct Distances {
    order: Order,
    draws: u32,
}

/// The pages tied with a page, grouped by when scans found them accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie {
    /// Found with the page at its previous access, not now.
    pub left: u64,
    /// Found with the page at its previous access and now, without the page itself.
    pub stayed: u64,
    /// Found with the page now, and before it at its previous access.
    pub joined: u64,
}

impl Distances {
    /// Scan `now` found these pages accessed, given in rising order of `seen`. Calls `emit` for each with the number of
    /// other pages accessed since its previous access. O(n log n) for n pages.
    pub fn of(&mut self, now: u64, accesses: &[Access], stack: &Stack, mut emit: impl FnMut(u64, Access)) {
        let groups = accesses.chunk_by(|one, other| one.seen == other.seen);
        self.order.learn(now, groups.map(|group| (group[0].seen, group.len() as u32)).collect());
        let places: Vec<_> = accesses.iter().map(|access| stack.above(access.seen)).collect();
        let (mut older, mut from) = (0, 0);
        while from < accesses.len() {
            let (newer, same) = places[from];
            let together = places[from..].iter().take_while(|place| **place == places[from]).count();
            let group = &accesses[from..from + together];
            let both: u64 = group.iter().map(|access| access.pages).sum();
            for access in group {
                let stayed = both - access.pages;
                let tie = Tie { left: same.saturating_sub(both), stayed, joined: older };
                emit(newer + self.draw(tie), *access);
            }
            older += both;
            from += together;
        }
    }

    /// The number of tied pages accessed between the page's previous access and this one.
    pub fn draw(&mut self, tie: Tie) -> u64 {
        self.draws = self.draws.wrapping_add(1);
        tie.between(self.order.kept(), spread(self.draws)).round() as u64
    }
}

impl Tie {
    /// `kept`: the share of pairs of pages that keep their order. `draw`: three random numbers, uniform over [0, 1):
    /// the kind of program, and, where the order is random, the page's position in the tie at its previous access and
    /// now.
    ///
    /// If all pairs keep their order, as in a loop, every other page comes in between. If all are reversed, only the
    /// pages that followed at the previous access come in between, each of them twice. If half keep it, the two
    /// positions are independent.
    fn between(self, kept: f64, draw: [f64; 3]) -> f64 {
        let [kind, then, now] = draw;
        let Tie { left, stayed, joined } = self;
        let (left, stayed, joined) = (left as f64, stayed as f64, joined as f64);
        match () {
            () if kind < 2.0 * kept - 1.0 => left + stayed + joined,
            () if kind < 1.0 - 2.0 * kept => stayed * (1.0 - then),
            () => left * (1.0 - then) + stayed * (1.0 - then * (1.0 - now)) + joined * now,
        }
    }
}

/// The n-th point of a low-discrepancy sequence in the unit cube (Roberts' R3). Deterministic, so that two runs agree.
fn spread(n: u32) -> [f64; 3] {
    [0.819_172_513_396_164_4, 0.671_043_606_703_789_2, 0.549_700_477_901_970_2]
        .map(|step: f64| (0.5 + step * f64::from(n)).fract())
}

#[cfg(test)]
mod tests {
    use super::super::choice::mix;
    use super::*;

    const PAGES: u64 = 1000;
    const BURSTS: u64 = 50;

    /// Exact distance of each access: distinct other pages since the previous access of that page.
    fn exact(accesses: &[u64]) -> Vec<u64> {
        let mut stack: Vec<u64> = Vec::new();
        let mut distances = Vec::new();
        for page in accesses {
            if let Some(at) = stack.iter().rev().position(|other| other == page) {
                distances.push(at as u64);
                stack.remove(stack.len() - 1 - at);
            }
            stack.push(*page);
        }
        distances
    }

    /// Distances that scans show when they come after these numbers of accesses.
    fn scanned(accesses: &[u64], ends: impl Iterator<Item = usize>) -> Vec<u64> {
        let (mut stack, mut distances) = (Stack::default(), Distances::default());
        let mut seen = vec![0; PAGES as usize];
        let (mut found, mut from) = (Vec::new(), 0);
        for (now, end) in (1..).zip(ends) {
            let mut pages = accesses[from..end].to_vec();
            from = end;
            pages.sort_unstable();
            pages.dedup();
            let known = pages.iter().map(|page| seen[*page as usize]).filter(|seen| *seen > 0);
            let mut again: Vec<Access> = known.map(|seen| Access { seen, pages: 1 }).collect();
            again.sort_unstable_by_key(|access| access.seen);
            distances.of(now, &again, &stack, |others, _| found.push(others));
            for page in pages {
                let before = std::mem::replace(&mut seen[page as usize], now);
                if before > 0 {
                    stack.remove(before, 1);
                }
                stack.add(now, 1);
            }
        }
        found
    }

    /// The smallest memory that misses at most one access in a hundred.
    fn working_set(mut distances: Vec<u64>) -> u64 {
        distances.sort_unstable();
        distances[(distances.len() * 99).div_ceil(100) - 1] + 1
    }

    fn burst(kind: &str, number: u64) -> Vec<u64> {
        let mut pages: Vec<u64> = (0..PAGES).collect();
        match kind {
            "shuffled" => pages.sort_by_key(|page| mix(page + number * PAGES)),
            "to and fro" if number % 2 == 1 => pages.reverse(),
            _ => {}
        }
        pages
    }

    #[test]
    fn bursts_need_all_that_they_touch() {
        for kind in ["loop", "shuffled", "to and fro"] {
            let accesses: Vec<u64> = (0..BURSTS).flat_map(|number| burst(kind, number)).collect();
            let truth = working_set(exact(&accesses));
            for scan in [PAGES / 3, PAGES / 2, PAGES * 2 / 3, PAGES, PAGES * 2] {
                let ends = (1..).map(|at| (at * scan) as usize).take_while(|end| *end <= accesses.len());
                let seen = working_set(scanned(&accesses, ends));
                assert!(seen.abs_diff(truth) * 20 <= truth, "{kind}, scans of {scan} accesses: {seen}, not {truth}");
            }
        }
    }

    #[test]
    fn a_scan_in_the_middle_of_each_burst_changes_nothing() {
        for kind in ["loop", "shuffled"] {
            let accesses: Vec<u64> = (0..BURSTS).flat_map(|number| burst(kind, number)).collect();
            // Bursts are apart: one scan after each, and one somewhere within it.
            let ends = (0..BURSTS).flat_map(|at: u64| [at * PAGES + mix(at) % PAGES, (at + 1) * PAGES]);
            let seen = working_set(scanned(&accesses, ends.map(|end| end as usize)));
            assert!((950..=1000).contains(&seen), "{kind}: {seen}");
        }
    }

    #[test]
    fn the_curve_of_a_program_without_order_is_the_exact_one() {
        let accesses: Vec<u64> = (0..BURSTS).flat_map(|number| burst("shuffled", number)).collect();
        let (exact, seen) = (exact(&accesses), scanned(&accesses, (1..=BURSTS).map(|at| (at * PAGES) as usize)));
        let missed = |distances: &[u64], size: u64| {
            distances.iter().filter(|distance| **distance >= size).count() as f64 / distances.len() as f64
        };
        for size in (100..1000).step_by(100) {
            let (truth, seen) = (missed(&exact, size), missed(&seen, size));
            assert!((truth - seen).abs() < 0.02, "at {size}: {seen}, not {truth}");
        }
    }

    #[test]
    fn draws_are_uniform() {
        for dimension in 0..3 {
            let mut parts = [0; 10];
            (0..1000).for_each(|n| parts[(spread(n)[dimension] * 10.0) as usize] += 1);
            assert!(parts.iter().all(|part| (95..=105).contains(part)), "{parts:?}");
        }
    }

    #[test]
    fn a_tie_of_one_page_has_distance_zero() {
        let mut distances = Distances::default();
        assert_eq!(distances.draw(Tie { left: 0, stayed: 0, joined: 0 }), 0);
    }
}

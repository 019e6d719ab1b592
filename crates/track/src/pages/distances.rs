//! LRU stack distances of pages that a scan found accessed.
//!
//! A scan shows which pages were accessed since the scan before, not in which order. Pages of one scan are a tie. The distance
//! of a page in a tie is a random variable: it depends on the page's place among the others at its previous access and at this
//! one. Each page therefore gets a distance drawn from that distribution. The mean would be wrong for a program that accesses
//! all of its memory between two scans: every distance would be three quarters of the memory, and a quarter would seem to
//! be not needed.

use super::order::Order;
use super::stack::Stack;

/// A page, or a group of neighbours that one sampled page stands for, that a scan found accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The scan that saw it last before.
    pub seen: u64,
    /// Pages that it stands for.
    pub pages: u64,
}

/// Draws distances; learns from each scan whether pages keep their order.
#[derive(Debug, Default)]
pub struct Distances {
    order: Order,
    draws: u32,
}

/// The pages around a tie, by what scans know of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie {
    /// Seen together with the page then, and not now.
    pub left: u64,
    /// Seen together with the page then and now, itself not included.
    pub stayed: u64,
    /// Seen together with the page now, and earlier than it then.
    pub joined: u64,
}

impl Distances {
    /// Scan `now` found these pages accessed, in rising order of `seen`. Passes for each the pages that were accessed since its
    /// previous access, itself not included. O(n log n) of n pages.
    pub fn of(&mut self, now: u64, accesses: &[Access], stack: &Stack, mut tell: impl FnMut(u64, Access)) {
        let groups = accesses.chunk_by(|one, other| one.seen == other.seen);
        self.order.see(now, groups.map(|group| (group[0].seen, group.len() as u32)).collect());
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
                tell(newer + self.draw(tie), *access);
            }
            older += both;
            from += together;
        }
    }

    /// The pages of a tie that were accessed between the page's previous access and this one.
    pub fn draw(&mut self, tie: Tie) -> u64 {
        self.draws = self.draws.wrapping_add(1);
        tie.between(self.order.kept(), spread(self.draws)).round() as u64
    }
}

impl Tie {
    /// `kept`: the share of pairs of pages that keep their order. `draw`: three shares, even over [0, 1): which kind of
    /// program it is, and the page's place in the tie then and now where that is chance.
    ///
    /// Where all pairs keep their order, as in a loop, each other page comes in between. Where all are reversed, only pages that
    /// followed the page then do, and each of them did so twice. Where half keep it, the places then and now are independent.
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

/// The n-th point of an even sequence in the unit cube (Roberts' R3): without chance, so that two runs agree.
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

    /// The exact distance of each access: distinct other pages since the previous access of that page.
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

    /// What scans see that end after these numbers of accesses.
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
            // Bursts are apart: a scan after each, and one somewhere within it.
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
    fn draws_are_even() {
        for dimension in 0..3 {
            let mut parts = [0; 10];
            (0..1000).for_each(|n| parts[(spread(n)[dimension] * 10.0) as usize] += 1);
            assert!(parts.iter().all(|part| (95..=105).contains(part)), "{parts:?}");
        }
    }

    #[test]
    fn a_tie_of_one_is_nothing() {
        let mut distances = Distances::default();
        assert_eq!(distances.draw(Tie { left: 0, stayed: 0, joined: 0 }), 0);
    }
}

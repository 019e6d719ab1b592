//! Whether pages are accessed again in the order in which they were accessed before: always in a loop or a chase, half of the
//! time by chance.
//!
//! Two pages that one look sees are in an order that nobody knows, and a distance needs it. It is learnt from pages that two
//! looks tell apart: of two that neighbouring looks saw last and that neighbouring looks see again, how many keep their order.
//! What holds from look to look is taken to hold within one.

/// A look forgets so much of those before.
const FORGET: f64 = 1.0 / 128.0;
/// Pairs, half of them in order, that are believed before any is seen.
const PRIOR: f64 = 16.0;

/// Pairs of pages, those of old looks counting less.
#[derive(Debug, Default)]
pub struct Order {
    kept: f64,
    reversed: f64,
    /// Of the last look: when its pages were seen before, rising, and how many.
    last: Vec<(u64, u32)>,
}

impl Order {
    /// Look `now` sees pages again: when they were seen before, rising, and how many.
    pub fn see(&mut self, now: u64, groups: Vec<(u64, u32)>) {
        self.kept *= 1.0 - FORGET;
        self.reversed *= 1.0 - FORGET;
        let seen = |look: u64| groups.binary_search_by_key(&look, |group| group.0).map_or(0, |at| groups[at].1);
        for (look, pages) in &self.last {
            // Pages that the last look saw could not be seen by it again, the other way round.
            if look + 3 <= now {
                self.kept += f64::from(*pages) * f64::from(seen(look + 1));
            }
            self.reversed += f64::from(*pages) * look.checked_sub(1).map_or(0.0, |look| f64::from(seen(look)));
        }
        self.last = groups;
    }

    /// Of pairs of pages, the share that keeps its order.
    pub fn kept(&self) -> f64 {
        (self.kept + PRIOR / 2.0) / (self.kept + self.reversed + PRIOR)
    }

    /// Pairs that this was learnt from, those of old scans counting less.
    pub fn pairs(&self) -> f64 {
        self.kept + self.reversed
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::mix;
    use super::*;

    /// Looks of 10 pages each at a program that accesses 1000 pages in the order of `next`.
    fn kept(mut next: impl FnMut(u64) -> u64) -> f64 {
        let mut order = Order::default();
        let mut seen = vec![0; 1000];
        for look in 1..1000 {
            let mut pages: Vec<u64> = (0..10).map(|at| next(look * 10 + at)).collect();
            pages.sort_unstable();
            pages.dedup();
            let mut before: Vec<u64> = pages.iter().map(|page| seen[*page as usize]).collect();
            before.sort_unstable();
            order.see(look, before.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect());
            pages.iter().for_each(|page| seen[*page as usize] = look);
        }
        order.kept()
    }

    #[test]
    fn a_loop_keeps_its_order_chance_half_of_it_and_going_to_and_fro_none() {
        assert!(kept(|at| (at + 3) % 1000) > 0.95);
        let chance = kept(|at| mix(at) % 1000);
        assert!((0.4..0.6).contains(&chance), "{chance}");
        assert!(kept(|at| if at / 1000 % 2 == 0 { at % 1000 } else { 999 - at % 1000 }) < 0.1);
    }

    #[test]
    fn nothing_seen_is_by_chance() {
        assert_eq!(Order::default().kept(), 0.5);
    }
}

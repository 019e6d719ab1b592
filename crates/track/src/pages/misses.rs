//! How many accesses would have missed, by memory size.

use model::MissPoint;

/// Sizes per power of two: 1.1 % apart.
const FINENESS: u32 = 64;

/// Accesses by the smallest size, in pages, at which they hit.
#[derive(Clone, Debug, Default)]
pub struct Misses {
    by_size: Vec<f64>,
}

impl Misses {
    /// Adds accesses that hit with `pages` pages of memory and miss with less.
    pub fn add(&mut self, pages: u64, accesses: f64) {
        let at = ((pages.max(1) as f64).log2() * f64::from(FINENESS)).round() as usize;
        if at >= self.by_size.len() {
            self.by_size.resize(at + 1, 0.0);
        }
        self.by_size[at] += accesses;
    }

    /// The curve over `seconds`. It begins with the misses of zero memory.
    pub fn curve(&self, seconds: f64, page_bytes: u64) -> Vec<MissPoint> {
        let mut left: f64 = self.by_size.iter().sum();
        let per_second = |misses: f64| if seconds > 0.0 { misses.max(0.0) / seconds } else { 0.0 };
        let mut points = vec![MissPoint { bytes: 0, misses_per_second: per_second(left) }];
        for (at, accesses) in self.by_size.iter().enumerate().filter(|(_, accesses)| **accesses > 0.0) {
            left -= accesses;
            let pages = (at as f64 / f64::from(FINENESS)).exp2().round() as u64;
            points.push(MissPoint { bytes: pages * page_bytes, misses_per_second: per_second(left) });
        }
        // Any remainder of the sum is rounding.
        if let Some(last) = points.last_mut() {
            last.misses_per_second = 0.0;
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_misses_accesses_that_need_more() {
        let mut misses = Misses::default();
        misses.add(1, 5.0);
        misses.add(1024, 10.0);
        let curve: Vec<_> = misses.curve(10.0, 4096).iter().map(|p| (p.bytes / 4096, p.misses_per_second)).collect();
        assert_eq!(curve, [(0, 1.5), (1, 1.0), (1024, 0.0)]);
    }

    #[test]
    fn no_accesses_give_no_misses() {
        assert_eq!(Misses::default().curve(0.0, 4096), [MissPoint { bytes: 0, misses_per_second: 0.0 }]);
    }
}

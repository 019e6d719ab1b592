//! How many pages need which limit: exact up to 2048 pages, then to 1 part in 1024.

/// Buckets per power of two.
const FINENESS: u32 = 10;

/// Weights by needed limit, in pages.
#[derive(Default)]
pub struct Histogram {
    weights: Vec<u64>,
}

impl Histogram {
    /// `weight` more pages need a limit of `pages` (at least 1).
    pub fn add(&mut self, pages: u64, weight: u64) {
        let bucket = bucket(pages);
        if bucket >= self.weights.len() {
            self.weights.resize(bucket + 1, 0);
        }
        self.weights[bucket] += weight;
    }

    /// Rising: a limit in pages that is too little, the next that was told apart from it and is enough, and the weight
    /// that needs it.
    pub fn needs(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let bounds = |bucket| (upper(bucket) - (1 << shift(bucket)), upper(bucket));
        self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0).map(move |(bucket, weight)| {
            let (too_little, enough) = bounds(bucket);
            (too_little, enough, *weight)
        })
    }
}

fn bucket(pages: u64) -> usize {
    let below = pages.saturating_sub(1);
    let shift = (u64::BITS - below.leading_zeros()).saturating_sub(FINENESS + 1);
    ((shift as usize) << FINENESS) + (below >> shift) as usize
}

fn shift(bucket: usize) -> usize {
    (bucket >> FINENESS).saturating_sub(1)
}

fn upper(bucket: usize) -> u64 {
    let shift = shift(bucket);
    let within = bucket - (shift << FINENESS);
    (within as u64 + 1) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_rounded_up_by_less_than_a_thousandth() {
        for pages in (1..100_000).chain((1..40).map(|bits| (1u64 << bits) + 1)) {
            let kept = upper(bucket(pages));
            assert!(kept >= pages && (kept - pages) as f64 <= pages as f64 / 1024.0, "{pages} kept as {kept}");
            assert!(pages > 2048 || kept == pages);
            assert!(kept - (1 << shift(bucket(pages))) < pages);
        }
    }
}

//! Generated references, the same for the same seed.
#![allow(dead_code, reason = "each user takes its part")]

/// xorshift64*.
pub struct Random(u64);

impl Random {
    /// `seed` must not be 0.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        ((self.next() as u128 * end as u128) >> 64) as u64
    }

    /// Uniform from 0 to 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Zipf's law by rejection-inversion (Hörmann and Derflinger, 1996). A multiplication that depends on the seed spreads
/// the ranks over the pages.
pub struct Zipf {
    random: Random,
    pages: u64,
    exponent: f64,
    from: f64,
    to: f64,
    squeeze: f64,
    shift: u64,
}

impl Zipf {
    /// `exponent` must not be 1.
    pub fn new(exponent: f64, pages: u64, seed: u64) -> Zipf {
        let zipf = Zipf { random: Random::new(seed), pages, exponent, from: 0.0, to: 0.0, squeeze: 0.0, shift: 0 };
        Zipf {
            from: zipf.integral(1.5) - 1.0,
            to: zipf.integral(pages as f64 + 0.5),
            squeeze: 2.0 - zipf.inverse(zipf.integral(2.5) - 2f64.powf(-exponent)),
            shift: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24,
            ..zipf
        }
    }

    pub fn page(&mut self) -> u64 {
        let rank = loop {
            let u = self.to + self.random.share() * (self.from - self.to);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, self.pages as f64);
            if rank - x <= self.squeeze || u >= self.integral(rank + 0.5) - rank.powf(-self.exponent) {
                break rank as u64;
            }
        };
        (rank * 2_654_435_761 + self.shift) % self.pages
    }

    pub fn pages(mut self, references: usize) -> Vec<u64> {
        (0..references).map(|_| self.page()).collect()
    }

    fn integral(&self, x: f64) -> f64 {
        (x.powf(1.0 - self.exponent) - 1.0) / (1.0 - self.exponent)
    }

    fn inverse(&self, u: f64) -> f64 {
        (1.0 + u * (1.0 - self.exponent)).powf(1.0 / (1.0 - self.exponent))
    }
}

/// Uniformly random pages.
pub fn uniform(pages: u64, references: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..references).map(|_| random.below(pages)).collect()
}

/// A loop over the pages.
pub fn cycle(pages: u64, references: usize) -> Vec<u64> {
    (0..references as u64).map(|i| i % pages).collect()
}

/// Three phases with different working sets.
pub fn phased(pages: u64, references: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let phase = |i: usize| i * 3 / references;
    let size = |phase| [pages / 2, pages / 10, pages / 4][phase];
    (0..references).map(|i| phase(i) as u64 * pages + random.below(size(phase(i)))).collect()
}

/// The textbook algorithm: a hash map of last times, and a Fenwick tree with one leaf per reference. The leaves set
/// between two references are counted as the difference of two prefix sums.
pub struct Textbook {
    tree: Vec<i64>,
    last: std::collections::HashMap<u64, usize>,
    now: usize,
    /// References by stack distance.
    pub distances: Vec<u64>,
}

impl Textbook {
    /// With room for this many references.
    pub fn new(references: usize) -> Textbook {
        let tree = vec![0; references + 1];
        Textbook { tree, last: std::collections::HashMap::new(), now: 0, distances: Vec::new() }
    }

    pub fn reference(&mut self, keys: &[u64]) {
        for key in keys {
            if let Some(before) = self.last.insert(*key, self.now) {
                let distance = (self.sum(self.now) - self.sum(before + 1)) as usize;
                if distance >= self.distances.len() {
                    self.distances.resize(distance + 1, 0);
                }
                self.distances[distance] += 1;
                self.add(before, -1);
            }
            self.add(self.now, 1);
            self.now += 1;
        }
    }

    /// By cache size, the share of references with at least this distance or none, which an LRU of that size would
    /// miss.
    pub fn miss_ratios(&self) -> Vec<f64> {
        let mut hits = 0;
        let ratio = |hits: u64| (self.now as u64 - hits) as f64 / self.now as f64;
        let mut ratios = vec![1.0];
        ratios.extend(self.distances.iter().map(|references| {
            hits += references;
            ratio(hits)
        }));
        ratios
    }

    fn add(&mut self, at: usize, by: i64) {
        let mut i = at + 1;
        while i < self.tree.len() {
            self.tree[i] += by;
            i += i & i.wrapping_neg();
        }
    }

    fn sum(&self, end: usize) -> i64 {
        let (mut i, mut sum) = (end, 0);
        while i > 0 {
            sum += self.tree[i];
            i &= i - 1;
        }
        sum
    }
}

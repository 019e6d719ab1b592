//! Million references per second, beside a textbook Fenwick tree with the standard hash map:
//! `cargo run --release -p curve --example throughput`.

use std::collections::HashMap;
use std::time::Instant;

use curve::ExactLru;

const REFERENCES: usize = 10_000_000;

fn main() {
    println!("{:28} {:>10} {:>10} {:>10} {:>7}", "M references/s", "one by one", "all", "textbook", "ratio");
    for (name, keys) in [
        ("zipf 0.9, 1 M pages", zipf(0.9, 1 << 20)),
        ("zipf 1.2, 1 M pages", zipf(1.2, 1 << 20)),
        ("uniform, 1 M pages", Random(3).by(|r| r.below(1 << 20)).take(REFERENCES).collect()),
        ("loop of 76 800 pages", (0..REFERENCES as u64).map(|i| i % 76_800).collect()),
    ] {
        let (single, sum) = timed(|| {
            let mut lru = ExactLru::new();
            keys.iter().map(|key| lru.access(*key).unwrap_or(0)).sum()
        });
        let (all, sum_all) = timed(|| {
            let (mut lru, mut sum) = (ExactLru::new(), 0);
            lru.access_all(&keys, |distance| sum += distance.unwrap_or(0));
            sum
        });
        let (textbook, sum_textbook) = timed(|| textbook(&keys));
        assert!(sum == sum_all && sum == sum_textbook, "the engines disagree");
        println!("{name:28} {single:>10.1} {all:>10.1} {textbook:>10.1} {:>6.1}x", all / textbook);
    }
}

fn timed(run: impl FnOnce() -> u64) -> (f64, u64) {
    let start = Instant::now();
    let sum = run();
    (REFERENCES as f64 / 1e6 / start.elapsed().as_secs_f64(), sum)
}

/// One leaf per reference.
fn textbook(keys: &[u64]) -> u64 {
    let mut tree = vec![0i32; keys.len() + 1];
    let mut last: HashMap<u64, usize> = HashMap::new();
    let mut total = 0;
    for (now, key) in keys.iter().enumerate() {
        if let Some(before) = last.insert(*key, now) {
            total += (last.len() as i64 - sum(&tree, before + 1) as i64) as u64;
            add(&mut tree, before, -1);
        }
        add(&mut tree, now, 1);
    }
    total
}

fn add(tree: &mut [i32], at: usize, by: i32) {
    let mut i = at + 1;
    while i < tree.len() {
        tree[i] += by;
        i += i & i.wrapping_neg();
    }
}

fn sum(tree: &[i32], end: usize) -> i32 {
    let (mut i, mut sum) = (end, 0);
    while i > 0 {
        sum += tree[i];
        i &= i - 1;
    }
    sum
}

/// Ranks by inverting the cumulative distribution, spread over the pages by a multiplication.
fn zipf(exponent: f64, pages: u64) -> Vec<u64> {
    let mut cumulative = Vec::with_capacity(pages as usize);
    let mut sum = 0.0;
    for rank in 1..=pages {
        sum += (rank as f64).powf(-exponent);
        cumulative.push(sum);
    }
    let rank = |r: &mut Random| {
        let at = r.next() as f64 / u64::MAX as f64 * sum;
        (cumulative.partition_point(|c| *c < at) as u64 * 0x9e37_79b1) % pages
    };
    Random(1).by(rank).take(REFERENCES).collect()
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((self.next() as u128 * end as u128) >> 64) as u64
    }

    fn by(mut self, make: impl Fn(&mut Random) -> u64) -> impl Iterator<Item = u64> {
        std::iter::from_fn(move || Some(make(&mut self)))
    }
}

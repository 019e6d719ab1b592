//! How often the interval holds the need, over repetitions with known kinds.

use predict::{Confidence, History, Need, Run};

const REPETITIONS: u64 = 1000;

/// Numbers that depend on the seed alone (xorshift64*).
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// The share of repetitions in which the interval held the need of one more run, in percent. Sizes range from 1 to 64 GB.
fn coverage(runs: usize, need: impl Fn(f64, f64) -> f64) -> f64 {
    let held = (1..=REPETITIONS).filter(|seed| {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut draw = || {
            let features = vec![1e9 * 64f64.powf(random.uniform()), if random.uniform() < 0.4 { 2.0 } else { 1.0 }];
            let bytes = need(features[0], features[1]) * (1.0 + 0.03 * random.normal());
            (features, bytes)
        };
        let mut history = History::new(Confidence::default());
        for _ in 0..runs {
            let (features, bytes) = draw();
            history.learn(Run { features, need: Need::Exactly(bytes), seconds: 60.0 });
        }
        let (features, bytes) = draw();
        let (low, high) = history.ask(&features, None).unwrap().interval_bytes;
        low <= bytes && bytes <= high
    });
    held.count() as f64 * 100.0 / REPETITIONS as f64
}

fn assert_covers(need: impl Fn(f64, f64) -> f64) {
    for runs in [20, 50, 100] {
        let coverage = coverage(runs, &need);
        println!("{runs} runs: {coverage:.1} %");
        assert!((92.0..=98.0).contains(&coverage), "of {runs} runs: {coverage} %");
    }
}

#[test]
fn holds_a_need_that_grows_linearly() {
    assert_covers(|size, _| 2e8 + 1.7 * size);
}

#[test]
fn holds_a_need_that_grows_with_n_log_n() {
    assert_covers(|size, _| size * size.log2() / 20.0);
}

#[test]
fn holds_a_need_with_two_modes_by_an_option() {
    assert_covers(|size, option| if option == 2.0 { 3.0 * size } else { 5e8 + 0.8 * size });
}

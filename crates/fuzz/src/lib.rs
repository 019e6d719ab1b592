//! Foreign input, changed at random, for every parser that reads it. On stable Rust, without instrumentation.
//!
//! The corpus of a target is `corpus/TARGET/`. `make fuzz CASES=1000000` runs so many cases of each target; `make test` runs
//! few. A parser that a crate keeps to itself has its target beside it. A case depends on the seed and its number alone: `FUZZ_SEED` and `FUZZ_FIRST` repeat one.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// Cases of each target where `FUZZ_CASES` does not say otherwise.
const FEW_CASES: u64 = 2000;

/// Numbers at which programs are wrong.
const EDGES: [&str; 14] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "18446744073709551615",
    "1e308",
    "-1e308",
    "1e-320",
    "NaN",
    "null",
];

/// Numbers without order, the same for the same seed (xorshift64*).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Of case `case` with this seed.
    pub fn of(seed: u64, case: u64) -> Random {
        let mut random =
            Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ case.wrapping_mul(0xd134_2543_de82_ef95) | 1);
        random.below(2);
        random
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16;
        (number % end.max(1) as u64) as usize
    }
}

/// The files of `corpus/TARGET/`, in the order of their names.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// One input with one to eight changes.
pub fn changed(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus.get(random.below(corpus.len())).cloned().unwrap_or_default();
    for _ in 0..=random.below(8) {
        change(random, corpus, &mut bytes);
    }
    bytes
}

fn change(random: &mut Random, corpus: &[Vec<u8>], bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len());
    let end = (at + 1 + random.below(64)).min(bytes.len());
    match random.below(9) {
        _ if bytes.is_empty() => bytes.push(random.below(256) as u8),
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'\n', b'"', 0x1b][random.below(8)],
        2 => bytes[at] = random.below(256) as u8,
        3 => drop(bytes.drain(at..end)),
        4 => bytes.truncate(at),
        5 => {
            let part = bytes[at..end].to_vec();
            let copies = 1 + random.below(8);
            bytes.splice(at..at, part.repeat(copies));
        }
        6 => {
            let other = corpus.get(random.below(corpus.len())).map(Vec::as_slice).unwrap_or_default();
            let from = random.below(other.len());
            let to = (from + 1 + random.below(256)).min(other.len());
            bytes.splice(at..end, other[from..to].iter().copied());
        }
        7 => number(random, bytes, at),
        _ => {
            let word = (random.below(1 << 32) as u64).to_le_bytes();
            bytes.splice(at..(at + 4).min(bytes.len()), word[..4].iter().copied());
        }
    }
}

/// The next number in text becomes one of [`EDGES`].
fn number(random: &mut Random, bytes: &mut Vec<u8>, at: usize) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|digit| at + digit) else { return };
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let edge = EDGES[random.below(EDGES.len())];
    bytes.splice(start..start + length, edge.bytes());
}

/// Runs the cases of a target, each with an input made from its corpus.
pub fn run(target: &str, corpus: &[Vec<u8>], mut one: impl FnMut(&[u8])) {
    assert!(!corpus.is_empty(), "{target} has no corpus");
    run_cases(target, FEW_CASES, |random| one(&changed(random, corpus)));
}

/// Runs `FUZZ_CASES` cases of a target, or so few, each with numbers of its own. Says which one failed.
pub fn run_cases(target: &str, few: u64, mut one: impl FnMut(&mut Random)) {
    let from_environment = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let cases = from_environment("FUZZ_CASES").unwrap_or(few);
    let first = from_environment("FUZZ_FIRST").unwrap_or(0);
    let seed = from_environment("FUZZ_SEED").unwrap_or(1);
    for case in first..first.saturating_add(cases) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| one(&mut Random::of(seed, case)))) {
            eprintln!("{target} failed; again: FUZZ_SEED={seed} FUZZ_FIRST={case} FUZZ_CASES=1");
            resume_unwind(panic);
        }
    }
    let peak = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = peak.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("").to_string();
    println!("{target}: {cases} cases of seed {seed}; of the process {peak}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_the_same_again_and_cases_differ() {
        let corpus = vec![b"one 1 two 22".to_vec(), b"{\"three\": 3}".to_vec()];
        let of = |case| changed(&mut Random::of(1, case), &corpus);
        assert_eq!(of(7), of(7));
        let different: std::collections::BTreeSet<Vec<u8>> = (0..1000).map(of).collect();
        assert!(different.len() > 800, "{}", different.len());
    }
}

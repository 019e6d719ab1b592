//! Whole checks of simulated programs, with fixed seeds: how often growth is found, and how often it is reported where there is none.

use compare::{Check, Figure, Verdict};

const MOST_RUNS: u32 = 20;

/// xorshift64*, and normal values by Box and Muller.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (radius, angle) = ((1.0 - self.uniform()).ln() * -2.0, self.uniform() * std::f64::consts::TAU);
        radius.sqrt() * angle.cos()
    }
}

/// How the runs of a program of 100 MiB differ.
#[derive(Clone, Copy, Debug)]
enum Spread {
    Normal(f64),
    /// One run of ten needs 3 % more: another order of threads.
    TwoModes,
    /// A long tail upwards.
    Tail,
    /// Steps of huge pages.
    Steps,
    Uniform,
}

/// Heap, floor and App-MaxRSS of a run, in KiB: what the runtime adds to the heap differs a little from run to run.
fn run(random: &mut Random, spread: Spread, growth: f64) -> [f64; 3] {
    let factor = match spread {
        Spread::Normal(deviation) => 1.0 + deviation * random.normal(),
        Spread::TwoModes => 1.0 + if random.uniform() < 0.1 { 0.03 } else { 0.0005 * random.normal() },
        Spread::Tail => 1.0 + 0.005 * random.normal().exp(),
        Spread::Steps => 1.0 + 0.02 * (random.uniform() * 3.0).floor(),
        Spread::Uniform => 1.0 + 0.02 * random.uniform(),
    };
    let heap = 102_400.0 * factor * (1.0 + growth);
    [heap, heap + 1500.0 + 20.0 * random.normal(), heap + 2500.0 + 50.0 * random.normal()]
}

/// Failed, undecided, and the runs made, of `trials` checks.
fn checks(trials: u32, baseline: usize, spread: Spread, growth: f64, tolerance: f64) -> (u32, u32, f64) {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut failed, mut undecided, mut made) = (0, 0, 0);
    for _ in 0..trials {
        let check = Check::of(MOST_RUNS);
        let figure = |_| Figure { baseline: Vec::new(), runs: Vec::new(), tolerance, least: 512.0 };
        let mut figures: Vec<Figure> = (0..3).map(figure).collect();
        for _ in 0..baseline {
            let values = run(&mut random, spread, 0.0);
            figures.iter_mut().zip(values).for_each(|(figure, value)| figure.baseline.push(value));
        }
        let (mut runs, mut until) = (0, check.first());
        let look = loop {
            while runs < until {
                let values = run(&mut random, spread, growth);
                figures.iter_mut().zip(values).for_each(|(figure, value)| figure.runs.push(value));
                runs += 1;
            }
            let look = check.look(runs, &figures);
            match look.next {
                Some(next) => until = next,
                None => break look,
            }
        };
        let is = |verdict| look.findings.iter().any(|finding| finding.verdict == Some(verdict));
        made += runs;
        failed += u32::from(is(Verdict::Failed));
        undecided += u32::from(!is(Verdict::Failed) && is(Verdict::Undecided));
    }
    (failed, undecided, f64::from(made) / f64::from(trials))
}

#[test]
fn growth_beyond_the_noise_is_found() {
    for (baseline, growth, least) in
        [(5, 0.02, 80), (5, 0.05, 95), (5, 0.10, 95), (10, 0.02, 95), (10, 0.05, 95), (10, 0.10, 95)]
    {
        let (failed, undecided, runs) = checks(1000, baseline, Spread::Normal(0.01), growth, 0.0);
        println!(
            "baseline of {baseline}, growth of {growth}: {failed} of 1000 found, {undecided} undecided, {runs:.1} runs"
        );
        assert!(failed >= least * 10, "baseline of {baseline}, growth of {growth}: {failed} of 1000");
    }
}

#[test]
fn equal_programs_fail_in_less_than_one_of_a_hundred_checks() {
    for baseline in [1, 3, 5, 10] {
        for deviation in [0.0, 0.001, 0.01, 0.03] {
            let (failed, undecided, runs) = checks(4_000, baseline, Spread::Normal(deviation), 0.0, 0.0);
            println!(
                "baseline of {baseline}, runs differ by {deviation}: {failed} of 4000 failed, {undecided} undecided, {runs:.1} runs"
            );
            assert!(failed <= 40, "baseline of {baseline}, runs differ by {deviation}: {failed} of 4000");
        }
    }
}

#[test]
fn false_alarms_stay_rare_where_runs_are_not_normal() {
    for baseline in [3, 5, 10] {
        for spread in [Spread::TwoModes, Spread::Tail, Spread::Steps, Spread::Uniform] {
            let (failed, undecided, runs) = checks(4_000, baseline, spread, 0.0, 0.0);
            println!(
                "baseline of {baseline}, {spread:?}: {failed} of 4000 failed, {undecided} undecided, {runs:.1} runs"
            );
            // Three runs of few values may all have the same.
            let most = if baseline == 3 { 80 } else { 40 };
            assert!(failed <= most, "baseline of {baseline}, {spread:?}: {failed} of 4000");
        }
    }
}

#[test]
fn a_tolerance_saves_runs_and_fails_beyond_itself_alone() {
    let (failed, _, runs) = checks(1000, 5, Spread::Normal(0.01), 0.04, 0.05);
    assert!(failed <= 5, "{failed}");
    let (unchanged, _, fewer) = checks(1000, 5, Spread::Normal(0.01), 0.0, 0.05);
    println!("tolerance of 5 %: {runs:.1} runs near it, {fewer:.1} if unchanged");
    assert!(unchanged == 0 && fewer < runs && fewer < runs / 2.0, "{unchanged} {fewer} {runs}");
    let (failed, ..) = checks(1000, 5, Spread::Normal(0.01), 0.10, 0.05);
    assert!(failed >= 950, "{failed}");
}

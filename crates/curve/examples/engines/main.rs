//! Measures the engines: speed compared with a textbook algorithm, accuracy, memory, and time per reference by trace
//! length. `bench/curve` runs it.
//!
//! Each piece of the references is generated first and then given to one engine after the other, so that all are
//! measured under the same conditions. As in `bursar curve trace`, references come in batches that were just written.
//! Times include making the curve. Memory is measured in a separate process for each engine.

#[path = "../../tests/generate/mod.rs"]
mod generate;
mod plot;
mod race;

use std::time::{Duration, Instant};

use curve::{Engine, EngineKind, MissRatioCurve};
use generate::{Textbook, Zipf};

const EXPONENT: f64 = 0.9;
const REFERENCES: usize = 10_000_000;
const PAGES: u64 = 1_000_000;
const RUNS: u64 = 3;
/// References generated, and given to an engine, at a time.
const PIECE: usize = 1 << 20;
/// Trace lengths for the scaling, over a tenth as many pages. The textbook algorithm is too slow beyond the second
/// constant.
const LENGTHS: [usize; 7] = [100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000];
const TEXTBOOK_UP_TO: usize = 10_000_000;
/// Number of sizes at which curves are compared.
const SIZES: u64 = 10_000;

const ENGINES: [(&str, EngineKind); 4] = [
    ("exact", EngineKind::Exact),
    ("SHARDS 1 %", EngineKind::ShardsRate(0.01)),
    ("SHARDS fixed size 8192", EngineKind::ShardsSize(8192)),
    ("AET of 8192", EngineKind::Aet(8192)),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["memory", engine, references] => print_memory(engine, references.parse().expect("a number of references")),
        ["scaling", path] => scaling(path),
        ["race", bursar, mrc_profiler, folder, ref rows @ ..] => {
            race::race(bursar, mrc_profiler, std::path::Path::new(folder), rows);
        }
        [] => table(),
        _ => panic!("arguments: none, scaling FILE.svg, or race BURSAR MRCPROFILER FOLDER [ROW…]"),
    }
}

/// Times of the textbook algorithm and of every engine.
struct Race {
    textbook: Option<(Duration, Textbook)>,
    engines: Vec<(Duration, MissRatioCurve)>,
}

impl Race {
    fn run(references: usize, pages: u64, seed: u64, with_textbook: bool) -> Race {
        let mut textbook = with_textbook.then(|| (Duration::ZERO, Textbook::new(references)));
        let mut engines: Vec<(Duration, EngineKind, Box<dyn Engine<u64>>)> =
            ENGINES.iter().map(|(_, kind)| (Duration::ZERO, *kind, kind.build())).collect();
        let mut read = Vec::new();
        let mut zipf = Zipf::new(EXPONENT, pages, seed);
        let mut left = references;
        while left > 0 {
            let piece: Vec<u64> = (0..left.min(PIECE)).map(|_| zipf.page()).collect();
            left -= piece.len();
            if let Some((time, textbook)) = &mut textbook {
                *time += timed(|| textbook.reference(&piece));
            }
            for (time, kind, engine) in &mut engines {
                for batch in piece.chunks(kind.batch()) {
                    read.clear();
                    read.extend_from_slice(batch);
                    *time += timed(|| engine.reference(&read));
                }
            }
        }
        // Include work that an engine postpones until its curve is requested.
        if let Some((time, textbook)) = &mut textbook {
            *time += timed(|| drop(std::hint::black_box(textbook.miss_ratios())));
        }
        let curve = |(mut time, _, mut engine): (Duration, EngineKind, Box<dyn Engine<u64>>)| {
            let mut curve = None;
            time += timed(|| curve = Some(engine.curve()));
            (time, curve.expect("it was just made"))
        };
        Race { textbook, engines: engines.into_iter().map(curve).collect() }
    }
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn table() {
    println!(
        "zipf {EXPONENT}, {REFERENCES} references over {PAGES} pages, {RUNS} runs with other seeds; ratios within one run"
    );
    println!();
    let runs: Vec<Race> = (1..=RUNS).map(|seed| Race::run(REFERENCES, PAGES, seed, true)).collect();
    let speed = |time: Duration| REFERENCES as f64 / 1e6 / time.as_secs_f64();
    let textbook = |race: &Race| race.textbook.as_ref().map_or(Duration::ZERO, |(time, _)| *time);
    let exact = |race: &Race| race.engines[0].0;
    println!("| engine | M references/s | x textbook | x exact | MAE | memory | bar |");
    println!("|---|---|---|---|---|---|---|");
    let speeds = range(runs.iter().map(|race| speed(textbook(race))), 1);
    println!("| textbook: Fenwick tree, std hash map | {speeds} | 1 | - | 0 | - | - |");
    for (at, (name, _)) in ENGINES.iter().enumerate() {
        let time = |race: &Race| race.engines[at].0.as_secs_f64();
        let errors: Vec<f64> = runs.iter().map(|race| error(race, at)).collect();
        let of_textbook: Vec<f64> = runs.iter().map(|race| textbook(race).as_secs_f64() / time(race)).collect();
        let of_exact: Vec<f64> = runs.iter().map(|race| exact(race).as_secs_f64() / time(race)).collect();
        let (bytes, distinct) = memory(name, REFERENCES);
        let (memory_text, bar) = match at {
            0 => {
                let (longer_bytes, longer_distinct) = memory(name, 4 * REFERENCES);
                let (per_page, longer) = (bytes as f64 / distinct as f64, longer_bytes as f64 / longer_distinct as f64);
                let text = format!("{per_page:.1} B per distinct page; {longer:.1} of 4 times the references");
                let passes = least(&of_textbook) >= 8.0 && most(&errors) == 0.0 && per_page.max(longer) <= 60.0;
                (text, verdict("≥ 8x textbook, MAE 0, ≤ 60 B", passes))
            }
            1 => (mib(bytes), verdict("≥ 40x exact, MAE ≤ .005", least(&of_exact) >= 40.0 && most(&errors) <= 0.005)),
            2 => {
                let passes = least(&of_exact) >= 2.5 && most(&errors) <= 0.005 && bytes <= 6 << 20;
                (mib(bytes), verdict("≥ 2.5x exact, MAE ≤ .005, ≤ 6 MB", passes))
            }
            _ => (mib(bytes), "-".to_string()),
        };
        println!(
            "| {name} | {} | {} | {} | {} | {memory_text} | {bar} |",
            range(runs.iter().map(|race| speed(race.engines[at].0)), 1),
            range(of_textbook.into_iter(), 1),
            if at == 0 { "1".to_string() } else { range(of_exact.into_iter(), 1) },
            range(errors.into_iter(), 4),
        );
    }
}

/// Mean absolute error over all sizes up to the footprint, against the textbook algorithm.
fn error(race: &Race, engine: usize) -> f64 {
    let Some((_, textbook)) = &race.textbook else { return f64::NAN };
    let curve = &race.engines[engine].1;
    let truth = textbook.miss_ratios();
    let off = |(size, ratio): (usize, &f64)| (curve.miss_ratio_at(size as u64) - ratio).abs();
    let step = (truth.len() / SIZES as usize).max(1);
    // The exact curve is checked at every size.
    let step = if engine == 0 { 1 } else { step };
    let sizes = truth.iter().enumerate().skip(1).step_by(step);
    sizes.clone().map(off).sum::<f64>() / sizes.count() as f64
}

fn verdict(bar: &str, passes: bool) -> String {
    format!("{bar}: {}", if passes { "met" } else { "MISSED" })
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Median (min-max).
fn range(values: impl Iterator<Item = f64>, digits: usize) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (first, last) = (values[0], values[values.len() - 1]);
    if last == 0.0 {
        return "0".to_string();
    }
    format!("{:.digits$} ({first:.digits$}-{last:.digits$})", values[values.len() / 2])
}

fn mib(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / (1u64 << 20) as f64)
}

/// Growth of the peak resident set of a process that only runs this engine, and the number of distinct pages it
/// counted.
fn memory(engine: &str, references: usize) -> (u64, u64) {
    let own = std::env::current_exe().expect("the path of this program");
    let output = std::process::Command::new(own).args(["memory", engine, &references.to_string()]).output();
    let text = String::from_utf8(output.expect("this program again").stdout).expect("two numbers");
    let (bytes, distinct) = text.trim().split_once(' ').expect("two numbers");
    (bytes.parse().expect("a number"), distinct.parse().expect("a number"))
}

fn print_memory(engine: &str, references: usize) {
    let kind = ENGINES.iter().find(|(name, _)| *name == engine).expect("an engine").1;
    let mut zipf = Zipf::new(EXPONENT, PAGES, 1);
    let mut piece = vec![0; 4096];
    let before = largest_resident_set();
    let mut engine = kind.build();
    for _ in 0..references.div_ceil(piece.len()) {
        piece.iter_mut().for_each(|page| *page = zipf.page());
        engine.reference(&piece);
    }
    let curve: MissRatioCurve = engine.curve();
    println!("{} {}", largest_resident_set() - before, curve.distinct());
    assert!(curve.miss_ratio_at(1) > 0.0);
}

fn largest_resident_set() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    1024 * line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("KiB")
}

fn scaling(path: &str) {
    println!("zipf {EXPONENT} over a tenth as many pages as references; nanoseconds per reference");
    println!();
    let mut names = vec!["textbook"];
    names.extend(ENGINES.iter().map(|(name, _)| *name));
    println!("| references | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(names.len()));
    let mut lines: Vec<plot::Line> =
        names.iter().map(|name| plot::Line { name: name.to_string(), points: Vec::new() }).collect();
    for length in LENGTHS {
        let race = Race::run(length, length as u64 / 10, 1, length <= TEXTBOOK_UP_TO);
        let nanoseconds = |time: Duration| time.as_secs_f64() * 1e9 / length as f64;
        let textbook = race.textbook.as_ref().map(|(time, _)| nanoseconds(*time));
        let times = [textbook].into_iter().chain(race.engines.iter().map(|(time, _)| Some(nanoseconds(*time))));
        let mut cells = Vec::new();
        for (line, time) in lines.iter_mut().zip(times) {
            cells.push(time.map_or("-".to_string(), |time| format!("{time:.1}")));
            line.points.extend(time.map(|time| (length as f64, time)));
        }
        println!("| {length} | {} |", cells.join(" | "));
    }
    std::fs::write(path, plot::svg(&lines)).unwrap_or_else(|error| panic!("{path} cannot be written: {error}"));
}

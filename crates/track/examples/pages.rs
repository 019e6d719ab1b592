//! How true the live curve is, and what it costs: `pages PROGRAM accuracy|slowdown|reading [PATTERN...]`, where PROGRAM is
//! `bench/programs/references.c`, built. Needs root. Put the program and this on different processors.

#![allow(unsafe_code, missing_docs)]

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use curve::ExactLru;
use model::PagesRound;
use track::pages::{Pages, Scope, Settings};

const PAGES: u64 = 1 << 18;
const PATTERNS: [&str; 5] = ["zipf", "random", "phased", "chase", "loop"];
const WARM_UP: Duration = Duration::from_secs(8);
const SEEN: Duration = Duration::from_secs(16);

struct Program {
    path: String,
    pattern: String,
    child: Child,
    counter: File,
}

impl Program {
    fn start(path: &str, pattern: &str) -> Program {
        let counter = tempfile::NamedTempFile::new().expect("a temporary file");
        counter.as_file().write_all_at(&[0; 8], 0).expect("its 8 bytes");
        let child = Command::new("taskset")
            .args(["-c", "0", path, pattern, &PAGES.to_string()])
            .arg(counter.path())
            .spawn()
            .expect("the program");
        let counter = counter.reopen().expect("the counter");
        let program = Program { path: path.into(), pattern: pattern.into(), child, counter };
        while program.references() < PAGES {
            std::thread::sleep(Duration::from_millis(10));
        }
        program
    }

    fn references(&self) -> u64 {
        let mut bytes = [0; 8];
        self.counter.read_exact_at(&mut bytes, 0).expect("the counter");
        u64::from_ne_bytes(bytes)
    }

    fn pages(&self, overhead: f64) -> Pages {
        let settings = Settings { overhead, ..Settings::default() };
        Pages::start(Scope::Tree(self.child.id() as i32), settings).expect("root, and a kernel that lets it")
    }

    /// Rounds until so much time is over, and the references made meanwhile.
    fn rounds(&self, pages: &Pages, time: Duration) -> (Vec<PagesRound>, u64, u64) {
        pages.round().expect("a round");
        let (begin, from) = (Instant::now(), self.references());
        let mut rounds = Vec::new();
        while begin.elapsed() < time {
            std::thread::sleep(Duration::from_secs(1));
            rounds.extend(pages.round().expect("a round"));
        }
        (rounds, from, self.references())
    }

    /// Accesses by the pages they need, 1 and more, of the references from `from` to `to`.
    fn exact(&self, from: u64, to: u64) -> Vec<u64> {
        let mut child = Command::new(&self.path)
            .args([&self.pattern, &PAGES.to_string(), "-", &to.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program");
        let mut printed = BufReader::with_capacity(1 << 20, child.stdout.take().expect("its output"));
        let mut lru = ExactLru::new();
        // The program fills its memory in order first.
        (0..PAGES).for_each(|page| _ = lru.access(page));
        let mut needs = vec![0; PAGES as usize + 1];
        let mut number = [0; 4];
        for at in 0..to {
            printed.read_exact(&mut number).expect("as many as asked for");
            let distance = lru.access(u64::from(u32::from_ne_bytes(number))).expect("all were seen");
            if at >= from {
                needs[distance as usize + 1] += 1;
            }
        }
        child.wait().expect("our child");
        needs
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Misses of all rounds at a size.
fn misses_at(rounds: &[PagesRound], bytes: u64) -> f64 {
    let at = |round: &PagesRound| {
        let after = round.misses.partition_point(|point| point.bytes <= bytes);
        after.checked_sub(1).map_or(0.0, |at| round.misses[at].misses_per_second) * round.seconds
    };
    rounds.iter().map(at).sum()
}

fn mean(rounds: &[PagesRound], of: impl Fn(&PagesRound) -> f64) -> f64 {
    rounds.iter().map(of).sum::<f64>() / rounds.len() as f64
}

fn accuracy(path: &str, patterns: &[String], overhead: f64) {
    println!("| pattern | references/s | MAE, 5-100 % | worst, at | blind below | own | target | one in | interval |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for pattern in patterns {
        let program = Program::start(path, pattern);
        let pages = program.pages(overhead);
        program.rounds(&pages, WARM_UP);
        let (rounds, from, to) = program.rounds(&pages, SEEN);
        drop(pages);
        let needs = program.exact(from, to);
        let references = (to - from) as f64;
        let (mut left, mut next) = (to - from, 0);
        let mut errors = Vec::new();
        for size in 1..=PAGES {
            left -= needs[size as usize];
            if size * 20 < PAGES || size < next {
                continue;
            }
            next = size + PAGES / 200;
            let live = misses_at(&rounds, size * 4096) / references;
            if std::env::var_os("CURVE").is_some() {
                println!("{:.3} exact {:.4} live {:.4}", size as f64 / PAGES as f64, left as f64 / references, live);
            }
            errors.push(((live - left as f64 / references).abs(), size));
        }
        let mae = errors.iter().map(|(error, _)| error).sum::<f64>() / errors.len() as f64;
        let worst = errors.iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("some sizes");
        let seconds: f64 = rounds.iter().map(|round| round.seconds).sum();
        println!(
            "| {pattern} | {:.2} M | {mae:.4} | {:.3}, {:.0} % | {:.1} % | {:.2} % | {:.2} % | {} | {:.1} ms |",
            references / seconds / 1e6,
            worst.0,
            100.0 * worst.1 as f64 / PAGES as f64,
            100.0 * mean(&rounds, |round| round.blind_below as f64) / (PAGES * 4096) as f64,
            100.0 * mean(&rounds, |round| round.overhead.own),
            100.0 * mean(&rounds, |round| round.overhead.target),
            rounds.last().map_or(0, |round| round.one_in),
            1e3 * mean(&rounds, |round| round.interval),
        );
    }
}

/// References per second with and without, in turns.
fn slowdown(path: &str, patterns: &[String], overhead: f64) {
    const TURN: Duration = Duration::from_secs(4);
    println!("| pattern | references/s alone | slow-down, median of 5 | each |");
    println!("|---|---|---|---|");
    for pattern in patterns {
        let program = Program::start(path, pattern);
        let rate = || {
            let (begin, from) = (Instant::now(), program.references());
            std::thread::sleep(TURN);
            (program.references() - from) as f64 / begin.elapsed().as_secs_f64()
        };
        let mut each = Vec::new();
        let mut alone = 0.0;
        for _ in 0..5 {
            let before = rate();
            let pages = program.pages(overhead);
            // The controller finds its pace.
            std::thread::sleep(Duration::from_secs(5));
            let with = rate();
            drop(pages);
            let after = rate();
            alone = (before + after) / 2.0;
            each.push(alone / with - 1.0);
        }
        let told: Vec<_> = each.iter().map(|share| format!("{:+.1}", 100.0 * share)).collect();
        each.sort_by(f64::total_cmp);
        println!("| {pattern} | {:.2} M | {:+.1} % | {} |", alone / 1e6, 100.0 * each[2], told.join(" "));
    }
}

/// All Accessed bits of one GiB, and the same from smaps.
fn reading(path: &str) {
    let program = Program::start(path, "random");
    let pid = program.child.id() as i32;
    let mut tables = linux::pages::Tables::open().expect("root, and a kernel that lets it");
    let target = tables.target(pid).expect("a process");
    let mut bits = Vec::new();
    let mut smaps = Vec::new();
    for _ in 0..11 {
        let begin = Instant::now();
        let accessed = tables.accessed(&target).expect("page tables");
        bits.push(begin.elapsed().as_secs_f64());
        assert!(accessed >= PAGES / 2, "{accessed} pages");
        let begin = Instant::now();
        linux::pages::referenced(pid).expect("smaps");
        smaps.push(begin.elapsed().as_secs_f64());
    }
    bits.sort_by(f64::total_cmp);
    smaps.sort_by(f64::total_cmp);
    println!(
        "all bits of 1 GiB: {:.3} ms; smaps: {:.1} ms; {:.0} times",
        bits[5] * 1e3,
        smaps[5] * 1e3,
        smaps[5] / bits[5]
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, what, patterns @ ..] = arguments.as_slice() else {
        eprintln!("usage: pages PROGRAM accuracy|slowdown|reading [PATTERN...]");
        std::process::exit(2);
    };
    let patterns = if patterns.is_empty() { PATTERNS.map(String::from).to_vec() } else { patterns.to_vec() };
    let overhead = std::env::var("OVERHEAD").ok().and_then(|text| text.parse().ok()).unwrap_or(0.02);
    match what.as_str() {
        "accuracy" => accuracy(path, &patterns, overhead),
        "slowdown" => slowdown(path, &patterns, overhead),
        _ => reading(path),
    }
}

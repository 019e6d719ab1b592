//! Measures how accurate the live miss-rate curve is and what it costs: `pages PROGRAM accuracy|slowdown [PATTERN...]`,
//! `pages PROGRAM reading`, `pages PROGRAM watch BURSAR`, where PROGRAM is the compiled `bench/programs/references.c`;
//! `pages - programs COMMAND...`. Needs root. Run PROGRAM and this example on different processors.

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
/// Pages of a program of 8 GiB.
const MANY_PAGES: u64 = 1 << 21;
const WARM_UP: Duration = Duration::from_secs(8);
const SEEN: Duration = Duration::from_secs(16);

struct Program {
    path: String,
    pattern: String,
    child: Child,
    counter: File,
}

impl Program {
    fn start(path: &str, pattern: &str, pages: u64) -> Program {
        let counter = tempfile::NamedTempFile::new().expect("a temporary file");
        counter.as_file().write_all_at(&[0; 8], 0).expect("its 8 bytes");
        let child = Command::new("taskset")
            .args(["-c", "0", path, pattern, &pages.to_string()])
            .arg(counter.path())
            .spawn()
            .expect("the program");
        let counter = counter.reopen().expect("the counter");
        let program = Program { path: path.into(), pattern: pattern.into(), child, counter };
        while program.references() < pages {
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

    /// Scans the program for `time`. Returns the rounds, and the program's reference counter before and after.
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

    /// The references from `from` to `to` of the exact LRU simulation, counted by the number of pages that each needs
    /// (1 and more).
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
            printed.read_exact(&mut number).expect("as many references as requested");
            let distance = lru.access(u64::from(u32::from_ne_bytes(number))).expect("every page was filled before");
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
        let program = Program::start(path, pattern, PAGES);
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

/// Measures references per second with and without scans, in turns.
fn slowdown(path: &str, patterns: &[String], overhead: f64) {
    const TURN: Duration = Duration::from_secs(4);
    println!("| pattern | references/s alone | slow-down, median of 5 | each |");
    println!("|---|---|---|---|");
    for pattern in patterns {
        let program = Program::start(path, pattern, PAGES);
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
            // Give the controller time to settle on a pace.
            std::thread::sleep(Duration::from_secs(5));
            let with = rate();
            drop(pages);
            let after = rate();
            alone = (before + after) / 2.0;
            each.push(alone / with - 1.0);
        }
        let shown: Vec<_> = each.iter().map(|share| format!("{:+.1}", 100.0 * share)).collect();
        println!("| {pattern} | {:.2} M | {:+.1} % | {} |", alone / 1e6, 100.0 * median(each), shown.join(" "));
    }
}

/// Measures run times of shell commands with and without scans, in turns.
fn programs(commands: &[String], overhead: f64) {
    println!("| program | run time alone | slow-down, median of 5 pairs | each |");
    println!("|---|---|---|---|");
    for command in commands {
        let run = |tracked: bool| {
            let begin = Instant::now();
            let mut child =
                Command::new("taskset").args(["-c", "0", "sh", "-c", command]).spawn().expect("the program");
            let settings = Settings { overhead, ..Settings::default() };
            let pages = tracked.then(|| Pages::start(Scope::Tree(child.id() as i32), settings).expect("root"));
            assert!(child.wait().expect("our child").success(), "{command}");
            let time = begin.elapsed().as_secs_f64();
            drop(pages);
            time
        };
        run(false);
        let (mut each, mut alone) = (Vec::new(), Vec::new());
        for pair in 0..5 {
            // Alternate which of the two runs comes first.
            let first = run(pair % 2 == 0);
            let second = run(pair % 2 != 0);
            let (with, without) = if pair % 2 == 0 { (first, second) } else { (second, first) };
            each.push(with / without - 1.0);
            alone.push(without);
        }
        let shown: Vec<_> = each.iter().map(|share| format!("{:+.1}", 100.0 * share)).collect();
        let short: String = command.chars().take(60).collect();
        println!("| `{short}` | {:.2} s | {:+.1} % | {} |", median(alone), 100.0 * median(each), shown.join(" "));
    }
}

/// Measures the CPU time of `bursar watch` on a program of 8 GiB.
fn watch(path: &str, bursar: &str) {
    let program = Program::start(path, "random", MANY_PAGES);
    let mut child = Command::new(bursar)
        .args([
            "watch",
            "--intrusive",
            "--quiet",
            "--interval",
            "1s",
            "--json",
            "-",
            "--pid",
            &program.child.id().to_string(),
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("bursar");
    let mut printed = BufReader::new(child.stdout.take().expect("its output"));
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = printed.read_to_string(&mut text);
        text
    });
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("bursar");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
        (ticks(11) + ticks(12)) / 100.0
    };
    std::thread::sleep(WARM_UP);
    let (begin, before) = (Instant::now(), used());
    std::thread::sleep(Duration::from_secs(30));
    let share = (used() - before) / begin.elapsed().as_secs_f64();
    let _ = child.kill();
    let _ = child.wait();
    let lines = reader.join().expect("its lines").lines().count();
    println!("bursar watch at 1 s on 8 GiB: {:.2} % of one processor; {lines} intervals", 100.0 * share);
}

/// Times reading all Accessed bits of 1 GiB from page tables, and the same from smaps.
fn reading(path: &str) {
    let program = Program::start(path, "random", PAGES);
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
    let [bits, smaps] = [median(bits), median(smaps)];
    println!("all bits of 1 GiB: {:.3} ms; smaps: {:.1} ms; {:.0} times", bits * 1e3, smaps * 1e3, smaps / bits);
    let memory = linux::pages::mappings(pid).expect("mappings");
    let memory = memory.iter().max_by_key(|mapping| mapping.range.end - mapping.range.start).expect("its memory");
    for level in [6, 9, 12] {
        let addresses: Vec<u64> = memory.range.clone().step_by(4096 << level).collect();
        let mut states = Vec::new();
        let scan = || {
            let begin = Instant::now();
            tables.look(&target, &addresses, &mut states).expect("page tables");
            begin.elapsed().as_secs_f64()
        };
        let time = median(std::iter::repeat_with(scan).take(101).collect());
        println!("scan of {} pages: {:.1} us", addresses.len(), time * 1e6);
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, what, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: pages PROGRAM accuracy|slowdown|reading|watch|programs [PATTERN...|BURSAR|COMMAND...]");
        std::process::exit(2);
    };
    let patterns = if rest.is_empty() { PATTERNS.map(String::from).to_vec() } else { rest.to_vec() };
    let overhead = std::env::var("OVERHEAD").ok().and_then(|text| text.parse().ok()).unwrap_or(0.02);
    match what.as_str() {
        "accuracy" => accuracy(path, &patterns, overhead),
        "slowdown" => slowdown(path, &patterns, overhead),
        "programs" => programs(rest, overhead),
        "watch" => watch(path, rest.first().map_or("bursar", String::as_str)),
        _ => reading(path),
    }
}

//! Compares `bursar curve trace` with libCacheSim's mrcProfiler, end to end on the same files: run times, and the
//! distance between their curves.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::generate::Zipf;
use crate::{EXPONENT, PAGES, range};

/// Size of every object.
const OBJECT_BYTES: u32 = 4096;

/// Both print their curves at this many sizes, evenly up to the number of pages.
const SIZES: u64 = 20;

/// References per file, in millions.
const MILLIONS: [usize; 2] = [10, 60];

/// Number of pairs of runs by the time of mrcProfiler's first run: (maximum seconds, pairs). One pair if it takes
/// longer.
const PAIRS: [(f64, usize); 2] = [(2.0, 7), (10.0, 3)];

/// Shares of the objects that are sampled.
const SHARES: [(&str, f64); 3] = [("SHARDS 1 %", 0.01), ("SHARDS 10 %", 0.1), ("exact", 1.0)];

/// Format of a file.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    OracleGeneral,
    OracleGeneralZstd,
    Vscsi,
    Csv,
}

const FORMS: [Form; 4] = [Form::OracleGeneral, Form::OracleGeneralZstd, Form::Vscsi, Form::Csv];

impl Form {
    fn file(self, folder: &Path, millions: usize) -> PathBuf {
        let end = match self {
            Form::OracleGeneral => "oracleGeneral",
            Form::OracleGeneralZstd => "oracleGeneral.zst",
            Form::Vscsi => "vscsi",
            Form::Csv => "csv",
        };
        folder.join(format!("zipf-{millions}M.{end}"))
    }

    /// Arguments for mrcProfiler: keys are numbers, so that it does not hash them as text.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Form::OracleGeneral | Form::OracleGeneralZstd => &["oracleGeneral"],
            Form::Vscsi => &["vscsi"],
            Form::Csv => {
                &["csv", "-t", "time-col=1,obj-id-col=2,obj-size-col=3,delimiter=,,has-header=true,obj-id-is-num=true"]
            }
        }
    }

    fn record(self, number: usize, page: u64) -> Vec<u8> {
        let (seconds, bytes) = ((number / 1000) as u32, OBJECT_BYTES);
        match self {
            Form::OracleGeneral | Form::OracleGeneralZstd => {
                [&seconds.to_le_bytes()[..], &page.to_le_bytes(), &bytes.to_le_bytes(), &(-1i64).to_le_bytes()].concat()
            }
            Form::Vscsi => {
                let head = [number as u32, bytes, 1].map(u32::to_le_bytes).concat();
                let what = [0x28u16, 1 << 8].map(u16::to_le_bytes).concat();
                [head, what, [page, number as u64 * 1000].map(u64::to_le_bytes).concat()].concat()
            }
            Form::Csv => format!("{seconds},{page},{bytes}\n").into_bytes(),
        }
    }
}

/// Creates the file unless it exists. Files are kept between runs, because the same seed gives the same file.
fn make(folder: &Path, form: Form, millions: usize) -> io::Result<()> {
    let path = form.file(folder, millions);
    if path.exists() {
        return Ok(());
    }
    let part = path.with_extension("part");
    let file = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    let mut out: Box<dyn Write> = match form {
        Form::OracleGeneralZstd => Box::new(zstd::Encoder::new(file, 3)?.auto_finish()),
        _ => Box::new(file),
    };
    if form == Form::Csv {
        out.write_all(b"time,id,size\n")?;
    }
    let mut zipf = Zipf::new(EXPONENT, PAGES, 1);
    for number in 0..millions * 1_000_000 {
        out.write_all(&form.record(number, zipf.page()))?;
    }
    out.flush()?;
    drop(out);
    std::fs::rename(part, path)
}

/// The first word is the program, the others its arguments.
fn run(command: &[String]) -> (Duration, String) {
    let start = Instant::now();
    let output = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{} does not start: {error}", command[0]));
    let time = start.elapsed();
    assert!(output.status.success(), "{} ends with {}", command.join(" "), output.status);
    (time, String::from_utf8_lossy(&output.stdout).into_owned())
}

fn sizes() -> Vec<u64> {
    (1..=SIZES).map(|at| at * PAGES / SIZES / 1024 * 1024).collect()
}

fn bursar(program: &str, file: &str, share: f64, by_bytes: bool) -> Vec<String> {
    let unit = if by_bytes { u64::from(OBJECT_BYTES) } else { 1 };
    let sizes: Vec<String> = sizes().iter().map(|size| (size * unit).to_string()).collect();
    let sizes = sizes.join(",");
    let mut words = vec![program, "curve", "trace", file, "--csv", "-", "--sizes", &sizes];
    let percent = format!("{}%", share * 100.0);
    if share < 1.0 {
        words.extend(["--engine", "shards-rate", "--rate", &percent]);
    }
    if by_bytes {
        words.push("--bytes");
    }
    words.into_iter().map(String::from).collect()
}

/// Sizes are given, so that mrcProfiler need not count the objects in a pass of its own.
fn mrc_profiler(program: &str, form: Form, file: &str, share: f64, by_bytes: bool) -> Vec<String> {
    let unit = if by_bytes { u64::from(OBJECT_BYTES) } else { 1 };
    let sizes: Vec<String> = sizes().iter().map(|size| format!("{}KB", size * unit / 1024)).collect();
    let sizes = format!("--size={}", sizes.join(","));
    let parameters = format!("--profiler-params=FIX_RATE,{share},42");
    let mut words = vec![program, file];
    words.extend(form.arguments());
    words.extend(["--profiler=SHARDS", &parameters, &sizes]);
    if !by_bytes {
        words.push("--ignore-obj-size");
    }
    words.into_iter().map(String::from).collect()
}

/// Miss ratios in this column (from 0), of the lines that have one.
fn miss_ratios(text: &str, separator: char, column: usize) -> Vec<f64> {
    let ratio = |line: &str| line.split(separator).nth(column)?.parse::<f64>().ok();
    let ratios: Vec<f64> = text.lines().filter_map(ratio).collect();
    assert_eq!(ratios.len() as u64, SIZES, "a curve at every size in {text}");
    ratios
}

/// Runs the rows whose name contains one of `wanted`; all rows if that is empty. `own` and `other` are the two
/// programs; `folder` is for the files.
pub fn race(own: &str, other: &str, folder: &Path, wanted: &[&str]) {
    let pairs = PAIRS[0].1;
    println!(
        "zipf {EXPONENT} over {PAGES} pages; seconds from start to exit: median (least-most) of up to {pairs} pairs"
    );
    println!();
    println!(
        "| file | references | curve | bursar | mrcProfiler | mrcProfiler/bursar | largest difference | bar: above 1 |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for millions in MILLIONS {
        for form in FORMS {
            let by_bytes: &[bool] = if form == Form::OracleGeneral { &[false, true] } else { &[false] };
            for (share_name, share) in SHARES {
                for by_bytes in by_bytes {
                    row(own, other, folder, wanted, (form, millions, share_name, share, *by_bytes));
                }
            }
        }
    }
}

fn row(own: &str, other: &str, folder: &Path, wanted: &[&str], case: (Form, usize, &str, f64, bool)) {
    let (form, millions, share_name, share, by_bytes) = case;
    let path = form.file(folder, millions);
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let end = file_name.split_once('.').map_or("", |(_, end)| end);
    let curve = format!("{share_name}{}", if by_bytes { ", bytes" } else { "" });
    let name = format!("{end} | {millions} M | {curve}");
    if !wanted.is_empty() && !wanted.iter().any(|wanted| name.contains(wanted)) {
        return;
    }
    make(folder, form, millions).unwrap_or_else(|error| panic!("{} cannot be made: {error}", path.display()));
    let file = path.to_string_lossy();
    let ours = bursar(own, &file, share, by_bytes);
    let theirs = mrc_profiler(other, form, &file, share, by_bytes);
    let (mut own_times, mut other_times, mut apart) = (Vec::new(), Vec::new(), 0f64);
    let mut pair = |round: usize| {
        let first = (round % 2 == 0).then(|| run(&ours));
        let (other_time, other_text) = run(&theirs);
        let (own_time, own_text) = first.unwrap_or_else(|| run(&ours));
        let (a, b) = (miss_ratios(&own_text, ',', 3), miss_ratios(&other_text, '\t', 1));
        apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(apart, f64::max);
        own_times.push(own_time.as_secs_f64());
        other_times.push(other_time.as_secs_f64());
        other_time.as_secs_f64()
    };
    let first = pair(0);
    if let Some((_, pairs)) = PAIRS.iter().find(|(seconds, _)| first <= *seconds) {
        (1..=*pairs).for_each(|round| {
            pair(round);
        });
        // The first pair brought the file into the page cache.
        own_times.remove(0);
        other_times.remove(0);
    }
    let ratios: Vec<f64> = own_times.iter().zip(&other_times).map(|(own, other)| other / own).collect();
    let mut sorted = ratios.clone();
    sorted.sort_by(f64::total_cmp);
    let verdict = if sorted[sorted.len() / 2] > 1.0 { "met" } else { "MISSED" };
    println!(
        "| {name} | {} | {} | {} | {apart:.4} | {verdict} |",
        range(own_times.into_iter(), 3),
        range(other_times.into_iter(), 3),
        range(ratios.into_iter(), 2),
    );
}

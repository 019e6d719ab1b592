//! 500 simulated searches, with every step, its reason and the answer, compared with `golden/searches.txt`. When the planner's answers
//! change on purpose, rewrite the file and review the differences:
//! ```text
//! BURSAR_WRITE_GOLDEN=1 cargo test -p budget --test golden && git diff --word-diff crates/budget/tests/golden
//! ```
//!
//! One line is one search: its number; then its steps: `R` reference, `U` run without a limit for the comparison, `T` trial, `M` run
//! One line is one search: its number; its steps: `R` reference, `U` run without a limit for the comparison, `T` trial, `M` run for a
//! method, each with its limit in MiB, after `p` the predicted ratio, after `g` when it is given up, and after `=` the number of its reason
//! with the figures in it; the answer: `A` budget/passing/failing limit in MiB, `!` if confident, and its reason; last, after `#`, a digest
//! of everything to nine decimals, including the comparison's rows and notes.

#[path = "golden/program.rs"]
mod program;

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::path::Path;

use budget::{Settings, Step, method_notes, methods, next, stddev_seconds};
use model::{Answer, Method};

use program::MIB;

const SEARCHES: u64 = 500;

/// The maximum number of steps of a search.
const MOST_STEPS: usize = 100;

#[test]
fn simulated_searches_make_the_recorded_steps_and_answers() {
    let found = record();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/searches.txt");
    if std::env::var_os("BURSAR_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    let differs = known.lines().zip(found.lines()).find(|(known, found)| known != found);
    assert_eq!(differs, None, "the first line that differs");
    assert!(known == found, "{} lines were {}", found.lines().count(), known.lines().count());
}

/// The recorded searches cover every kind.
#[test]
fn recorded_searches_cover_every_step_and_outcome() {
    let text = include_str!("golden/searches.txt");
    let searches: Vec<&str> = text.lines().filter(|line| line.contains(";A")).collect();
    let confident = searches.iter().filter(|line| line.contains("! ")).count();
    assert_eq!(searches.len(), SEARCHES as usize);
    assert!((100..400).contains(&confident), "{confident} are confident");
    assert!([";R", ";U", ";T", ";M"].iter().all(|step| searches.iter().any(|line| line.contains(step))));
    assert!(text.len() < 300_000, "{}", text.len());
}

/// Reasons without their figures, numbered in order of appearance.
#[derive(Default)]
struct Reasons {
    numbers: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Reasons {
    fn short(&mut self, reason: &str) -> String {
        let (mut text, mut figures) = (String::new(), Vec::new());
        let mut figure = String::new();
        // A full stop belongs to a figure only inside it.
        let characters: Vec<char> = reason.chars().collect();
        for (i, c) in characters.iter().enumerate() {
            let is_within = *c == '.' && !figure.is_empty() && characters.get(i + 1).is_some_and(char::is_ascii_digit);
            if c.is_ascii_digit() || is_within {
                figure.push(*c);
                continue;
            }
            if !figure.is_empty() {
                text.push('~');
                figures.push(std::mem::take(&mut figure));
            }
            text.push(*c);
        }
        if !figure.is_empty() {
            text.push('~');
            figures.push(figure);
        }
        let number = *self.numbers.entry(text.clone()).or_insert_with(|| {
            self.texts.push(text);
            self.texts.len()
        });
        std::iter::once(format!("={number}")).chain(figures).collect::<Vec<_>>().join(" ")
    }
}

/// FNV-1a.
struct Digest(u64);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

impl Digest {
    /// Floating-point numbers count to nine decimals.
    fn add(&mut self, value: &impl Debug) {
        write!(self, "{value:.9?}").unwrap();
    }
}

/// All searches as text: the reasons, then a line for each search.
fn record() -> String {
    let mut reasons = Reasons::default();
    let lines: Vec<String> = (0..SEARCHES).map(|number| search(number, &mut reasons)).collect();
    let texts = reasons.texts.iter().enumerate().map(|(i, text)| format!("={} {text}", i + 1));
    texts.chain(lines).fold(String::new(), |all, line| all + &line + "\n")
}

fn search(number: u64, reasons: &mut Reasons) -> String {
    let (mut program, settings) = program::of(number);
    let (mut evidence, mut line, mut digest) = (program.evidence(), number.to_string(), Digest(0xcbf2_9ce4_8422_2325));
    for _ in 0..MOST_STEPS {
        let step = next(&settings, &evidence);
        digest.add(&step);
        line += &short(&step, reasons);
        match step {
            Step::Reference { compared: false, .. } => evidence.learn(&settings, program.reference()),
            Step::Reference { compared: true, .. } => {
                let trial = program.unlimited(&settings, &evidence);
                evidence.trials.push(trial);
            }
            Step::Trial { limit_bytes, .. } => {
                let trial = program.trial(&settings, &evidence, limit_bytes, None);
                evidence.trials.push(trial);
            }
            Step::Method { method, limit_bytes, .. } => {
                let trial = program.trial(&settings, &evidence, limit_bytes, Some(method));
                evidence.trials.push(trial);
            }
            Step::Done(answer) => {
                digest.add(&evidence.trials);
                digest.add(&methods(&settings, &evidence, &answer));
                digest.add(&method_notes(&settings, &evidence));
                digest.add(&stddev_seconds(&settings, &evidence));
                digest.add(&cut_short(&settings, &evidence));
                return line + &format!(" #{:016x}", digest.0);
            }
        }
    }
    panic!("search {number} does not end: {line}");
}

/// The answer of an interrupted search: no more trials are allowed.
fn cut_short(settings: &Settings, evidence: &budget::Evidence) -> Step {
    next(&Settings { max_trials: 0, runs: Some(1), compare: false, ..settings.clone() }, evidence)
}

fn short(step: &Step, reasons: &mut Reasons) -> String {
    let mib = |bytes: u64| bytes / MIB;
    let figure = |name: char, value: Option<f64>| value.map_or(String::new(), |value| format!("{name}{value:.3}"));
    match step {
        Step::Reference { compared, why } => format!(";{}{}", if *compared { 'U' } else { 'R' }, reasons.short(why)),
        Step::Trial { limit_bytes, give_up_after_seconds, predicted_ratio, why } => format!(
            ";T{}{}{}{}",
            mib(*limit_bytes),
            figure('p', *predicted_ratio),
            figure('g', *give_up_after_seconds),
            reasons.short(why)
        ),
        Step::Method { method, limit_bytes, give_up_after_seconds, predicted_ratio, why } => format!(
            ";M{}{}{}{}{}",
            letter(*method),
            mib(*limit_bytes),
            figure('p', *predicted_ratio),
            figure('g', *give_up_after_seconds),
            reasons.short(why)
        ),
        Step::Done(answer) => format!(";A{}", short_answer(answer, reasons)),
    }
}

fn short_answer(answer: &Answer, reasons: &mut Reasons) -> String {
    let mib = |bytes: Option<u64>| bytes.map_or("-".to_string(), |bytes| (bytes / MIB).to_string());
    format!(
        "{}/{}/{}{} {}",
        mib(answer.budget_bytes),
        mib(answer.smallest_passing_bytes),
        mib(answer.largest_failing_bytes),
        if answer.confident { "!" } else { "" },
        reasons.short(&answer.reason)
    )
}

fn letter(method: Method) -> char {
    match method {
        Method::AppMaxRss => 'a',
        Method::AppMaxRssLargest => 'l',
        Method::SysMaxRss => 's',
        Method::Unlimited => 'u',
        Method::Bursar => 'b',
    }
}

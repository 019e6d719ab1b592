//! Ways to run a command, compared: in sentences and in a table.

use model::{ArmFigures, ArmsEnded, ArmsReport, LEAST_GAIN};

use crate::format::{UNKNOWN, bytes, count, opt_seconds, seconds, shell_word};
use crate::tables::{Table, Tone};

/// The arm that the others are compared with.
const PLAIN: &str = "plain";

/// The command line as one would type it.
pub fn command(report: &ArmsReport) -> String {
    report.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The answer in one sentence.
pub fn headline(report: &ArmsReport) -> String {
    let (Some(gain), Some((low, high))) = (report.gain, report.interval) else {
        return "too few rounds were made to compare anything".into();
    };
    let with_interval = with_interval(gain, (low, high));
    let (low_share, high_share) = (signed(low), signed(high));
    match &report.best {
        Some(best) => {
            let memory = more_memory(report, best).map(|more| format!(", with {more}")).unwrap_or_default();
            format!(
                "{best} is the way to run it: {} faster than {PLAIN} ({low_share} to {high_share}){memory}",
                signed(gain)
            )
        }
        None if high < LEAST_GAIN => format!("huge pages gain nothing here: {}", with_error(gain, (low, high))),
        None if gain < 0.0 => format!(
            "no way is faster than {PLAIN}, as far as is known: {}, the next, took {} longer ({} gained to {} lost)",
            closest(report),
            signed(-gain),
            signed(high),
            signed(-low)
        ),
        None => format!("no way is surely faster than {PLAIN}: {} seems to gain {with_interval}", closest(report)),
    }
}

/// The way that seems to gain most.
fn closest(report: &ArmsReport) -> &str {
    let gaining = report.arms.iter().filter_map(|arm| Some((arm, arm.gain?)));
    gaining.max_by(|(_, one), (_, other)| one.total_cmp(other)).map_or("another", |(arm, _)| &arm.name)
}

/// What goes with the answer, as sentences.
pub fn sentences(report: &ArmsReport) -> Vec<String> {
    let mut sentences = Vec::new();
    let others: Vec<&str> =
        report.equal.iter().filter(|name| Some(*name) != report.best.as_ref()).map(String::as_str).collect();
    if !others.is_empty() {
        sentences.push(format!("as fast within 1 % of the run time: {}", others.join(", ")));
    }
    let dropped = report.arms.iter().filter_map(|arm| Some(format!("{} ({})", arm.name, arm.dropped.as_ref()?)));
    let dropped = dropped.collect::<Vec<_>>().join(", ");
    if !dropped.is_empty() {
        sentences.push(format!("dropped before the end: {dropped}"));
    }
    let rounds = report.rounds;
    sentences.push(match report.ended {
        ArmsEnded::Decided => format!("decided after {rounds} rounds"),
        ArmsEnded::Rounds => format!("ended after {rounds} rounds, as many as were allowed (--rounds)"),
        ArmsEnded::TimeLimit => format!("ended in round {rounds} by --time-limit"),
        ArmsEnded::Interrupted => format!("interrupted in round {rounds}; this is what was known then"),
    });
    sentences.extend(report.notes.iter().cloned());
    sentences
}

/// Each arm's figures; medians of its runs.
pub fn arms_table(report: &ArmsReport) -> Table {
    let header = ["way", "wall", "gain", "CPU", "peak memory", "faults", "rounds"];
    let mut table = Table::new(&header);
    for arm in &report.arms {
        let tone = match &report.best {
            Some(best) if *best == arm.name => Tone::Good,
            _ if arm.dropped.is_some() => Tone::Dim,
            _ => Tone::Plain,
        };
        let gain = arm.gain.zip(arm.interval).map(|(gain, interval)| with_interval(gain, interval));
        let cells = vec![
            arm.name.clone(),
            seconds(arm.wall_seconds),
            gain.unwrap_or_else(|| UNKNOWN.into()),
            opt_seconds(arm.cpu_seconds),
            bytes(arm.peak_bytes),
            count(arm.faults.minor.zip(arm.faults.major).map(|(minor, major)| minor + major)),
            count(Some(arm.rounds)),
        ];
        table.row(tone, cells);
    }
    table
}

/// Ways that were not run, and why.
pub fn left_out(report: &ArmsReport) -> Vec<String> {
    report.left_out.iter().map(|arm| format!("{}: {}", arm.name, arm.why)).collect()
}

fn figures<'a>(report: &'a ArmsReport, name: &str) -> Option<&'a ArmFigures> {
    report.arms.iter().find(|arm| arm.name == name)
}

/// How much more or less memory an arm takes than the plain run, in words.
fn more_memory(report: &ArmsReport, name: &str) -> Option<String> {
    let peak = |name| figures(report, name)?.peak_bytes.map(|bytes| bytes as f64).filter(|bytes| *bytes > 0.0);
    let more = peak(name)? / peak(PLAIN)? - 1.0;
    let word = if more < 0.0 { "less" } else { "more" };
    Some(format!("{} {word} memory", signed(more.abs())))
}

/// A share with its sign: that of a loss is negative.
fn signed(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The share, and both ends of its interval.
fn with_interval(share: f64, (low, high): (f64, f64)) -> String {
    format!("{} ({} to {})", signed(share), signed(low), signed(high))
}

/// The share, and how far the interval's farther end is from it: of narrow intervals, whose ends are about as far.
fn with_error(share: f64, (low, high): (f64, f64)) -> String {
    format!("{:.1} % ± {:.1} %", 100.0 * share, 100.0 * (share - low).max(high - share))
}

#[cfg(test)]
pub mod fixture {
    use model::{ArmSetting, FaultCounts, LeftOut};

    use super::*;

    pub fn report() -> ArmsReport {
        let arm = |name: &str, wall_seconds: f64, peak: u64| ArmFigures {
            name: name.into(),
            wall_seconds,
            cpu_seconds: Some(wall_seconds),
            peak_bytes: Some(peak << 20),
            faults: FaultCounts { minor: Some(1000), major: Some(0) },
            rounds: 6,
            ..ArmFigures::default()
        };
        let faster = ArmFigures { gain: Some(0.1), interval: Some((0.08, 0.12)), ..arm("glibc-hugetlb", 9.0, 105) };
        let dropped = Some("slower than glibc-hugetlb".to_string());
        let slower =
            ArmFigures { gain: Some(-0.02), interval: Some((-0.03, -0.01)), dropped, ..arm("advise", 10.2, 100) };
        ArmsReport {
            command: vec!["./a b".into(), "<x>".into()],
            ended: ArmsEnded::Decided,
            rounds: 6,
            arms: vec![arm("plain", 10.0, 100), faster, slower],
            left_out: vec![LeftOut { name: "always".into(), why: "it needs root".into() }],
            best: Some("glibc-hugetlb".into()),
            equal: vec!["glibc-hugetlb".into()],
            gain: Some(0.1),
            interval: Some((0.08, 0.12)),
            settings: vec![ArmSetting { place: "shell".into(), lines: vec!["export A=<1>".into()] }],
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_names_the_gain_its_interval_and_its_memory() {
        let told = headline(&fixture::report());
        assert_eq!(
            told,
            "glibc-hugetlb is the way to run it: 10.0 % faster than plain (8.0 % to 12.0 %), with 5.0 % more memory"
        );
    }

    #[test]
    fn no_gain_is_told_with_its_error() {
        let none =
            |gain, interval| ArmsReport { best: None, gain: Some(gain), interval: Some(interval), ..fixture::report() };
        assert_eq!(headline(&none(0.001, (-0.006, 0.008))), "huge pages gain nothing here: 0.1 % ± 0.7 %");
        let noisy = headline(&none(0.02, (-0.03, 0.06)));
        assert_eq!(noisy, "no way is surely faster than plain: glibc-hugetlb seems to gain 2.0 % (-3.0 % to 6.0 %)");
        let slower = headline(&none(-0.074, (-0.2, 0.03)));
        assert_eq!(
            slower,
            "no way is faster than plain, as far as is known: glibc-hugetlb, the next, took 7.4 % longer (3.0 % gained to 20.0 % lost)"
        );
        let nothing = ArmsReport { gain: None, ..fixture::report() };
        assert!(headline(&nothing).contains("too few rounds"));
    }

    #[test]
    fn an_interruption_and_equal_arms_are_told() {
        let equal = vec!["glibc-hugetlb".into(), "always".into()];
        let told = sentences(&ArmsReport { ended: ArmsEnded::Interrupted, equal, ..fixture::report() }).join("\n");
        assert!(told.contains("as fast within 1 % of the run time: always\n"), "{told}");
        assert!(told.contains("interrupted in round 6"), "{told}");
    }
}

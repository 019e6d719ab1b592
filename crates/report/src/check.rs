//! What a check came to, as a sentence, as JSON, as JUnit XML and as a Markdown table.

use std::fmt::Write;

use compare::runs::{Checked, Figure};
use compare::{RESOLUTION, Verdict};
use model::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::format::{printable, shell_word};

/// A figure that does not decide.
pub struct Shown {
    /// Which.
    pub figure: Figure,
    /// Mean of the runs.
    pub value: f64,
    /// Mean of the baseline.
    pub baseline: Option<f64>,
}

/// What a check came to.
pub struct Answer {
    /// The command that was checked.
    pub command: Vec<String>,
    /// The figures that decide.
    pub checked: Vec<Checked>,
    /// The others.
    pub shown: Vec<Shown>,
    /// Runs that were checked.
    pub runs: usize,
    /// Runs of the baseline; 0: none was named.
    pub baseline_runs: usize,
    /// How long the runs took together.
    pub seconds: f64,
    /// What the processes of a run held together at most, beside a maximum, where that decided more than what the largest held.
    pub together_bytes: Option<u64>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
    /// Why nothing was compared.
    pub unknown: Option<String>,
}

/// What `--json` prints.
#[derive(JsonSchema, Serialize)]
pub struct Json<'a> {
    passed: bool,
    decided: bool,
    reason: String,
    runs: usize,
    baseline_runs: usize,
    checks: Vec<CheckJson>,
    others: Vec<OtherJson>,
    notes: &'a [String],
}

#[derive(JsonSchema, Serialize)]
struct CheckJson {
    figure: Figure,
    value: f64,
    baseline: Option<f64>,
    bound: f64,
    passed: Option<bool>,
    noise: Option<f64>,
}

#[derive(JsonSchema, Serialize)]
struct OtherJson {
    figure: Figure,
    value: f64,
    baseline: Option<f64>,
}

impl Answer {
    /// Of all figures together.
    pub fn verdict(&self) -> Verdict {
        let has = |verdict| self.checked.iter().any(|checked| checked.finding.verdict == Some(verdict));
        if has(Verdict::Failed) {
            Verdict::Failed
        } else if self.unknown.is_some() || self.checked.iter().any(|c| c.finding.verdict != Some(Verdict::Passed)) {
            Verdict::Undecided
        } else {
            Verdict::Passed
        }
    }

    /// One line: what is the answer, and why.
    pub fn sentence(&self) -> String {
        let verdict = self.verdict();
        let of_verdict = self.checked.iter().filter(|c| c.finding.verdict == Some(verdict));
        // The figure that is furthest above its bound, or nearest to it.
        let foremost = of_verdict.max_by(|a, b| above(a).total_cmp(&above(b)));
        let made = self.made();
        match (verdict, foremost) {
            (Verdict::Passed, Some(checked)) => format!("passed: {} ({made})", self.told_passed(checked)),
            (Verdict::Failed, Some(checked)) if checked.baseline.is_none() => {
                let figures: Vec<&str> =
                    self.checked.iter().filter(|c| c.baseline.is_none()).map(|c| c.figure.name()).collect();
                format!("failed: {} ({made}; --max is of {})", told(checked), figures.join(" and "))
            }
            (Verdict::Failed, Some(checked)) => format!("failed: {} ({made})", told(checked)),
            (_, Some(checked)) => format!("cannot be decided: {} ({made})", self.told_undecided(checked)),
            (_, None) => {
                format!("cannot be decided: {}", self.unknown.as_deref().unwrap_or("no figure is known to compare"))
            }
        }
    }

    fn made(&self) -> String {
        let runs = |count: usize| if count == 1 { "1 run".to_string() } else { format!("{count} runs") };
        match self.baseline_runs {
            0 => runs(self.runs),
            baseline => format!("{}, baseline of {}", runs(self.runs), runs(baseline)),
        }
    }

    /// The largest process is not all of them: what they held together decided.
    fn told_passed(&self, checked: &Checked) -> String {
        let together =
            self.together_bytes.filter(|_| checked.figure == Figure::AppMaxRss && checked.baseline.is_none());
        together.map_or_else(
            || told(checked),
            |bytes| {
                let bound = checked.figure.text(checked.finding.bound);
                format!("its processes held at most {} together, of at most {bound}", Bytes(bytes))
            },
        )
    }

    fn told_undecided(&self, checked: &Checked) -> String {
        let name = checked.figure.name();
        match (checked.finding.noise, checked.baseline) {
            (None, _) => {
                format!(
                    "{name} has one run on each side, so its noise is unknown. Make a baseline of ten: bursar run -n 10"
                )
            }
            (Some(noise), Some(baseline)) => {
                let least = 100.0 * noise / baseline.max(1.0);
                let suffices = (100.0 * RESOLUTION).max(100.0 * checked.tolerance);
                format!(
                    "{name} differs so much between runs that growth of less than {least:.1} % is noise; {suffices:.0} % must be seen. \
                     Allow more runs (--runs), a baseline of more runs, or --tolerance {:.0}%",
                    least.ceil()
                )
            }
            (Some(noise), None) => format!(
                "{name} was {} at most, below the maximum of {}, but the next run may need {} more",
                checked.figure.text(checked.finding.value),
                checked.figure.text(checked.finding.bound),
                checked.figure.text(noise)
            ),
        }
    }

    /// For tools.
    pub fn json(&self) -> Json<'_> {
        let verdict = self.verdict();
        let check = |checked: &Checked| CheckJson {
            figure: checked.figure,
            value: checked.finding.value,
            baseline: checked.baseline,
            bound: checked.finding.bound,
            passed: passed(checked.finding.verdict),
            noise: checked.finding.noise,
        };
        let other = |shown: &Shown| OtherJson { figure: shown.figure, value: shown.value, baseline: shown.baseline };
        Json {
            passed: verdict == Verdict::Passed,
            decided: verdict != Verdict::Undecided,
            reason: self.sentence(),
            runs: self.runs,
            baseline_runs: self.baseline_runs,
            checks: self.checked.iter().map(check).collect(),
            others: self.shown.iter().map(other).collect(),
            notes: &self.notes,
        }
    }

    /// A table for a pull request.
    pub fn markdown(&self) -> String {
        let mut text = format!("**bursar check** {}\n\n", markdown(&self.sentence()));
        text.push_str("| figure | value | bound | baseline | change | noise | result |\n");
        text.push_str("|---|--:|--:|--:|--:|--:|---|\n");
        let change = |value: f64, baseline: Option<f64>| {
            baseline
                .filter(|base| *base > 0.0)
                .map_or("-".into(), |base| format!("{:+.1} %", 100.0 * (value / base - 1.0)))
        };
        for checked in &self.checked {
            let (figure, finding) = (checked.figure, &checked.finding);
            let of = |value: Option<f64>| value.map_or("-".into(), |value| figure.text(value));
            let result = match finding.verdict {
                Some(Verdict::Passed) => "passed",
                Some(Verdict::Failed) => "**failed**",
                _ => "not decided",
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {result} |",
                figure.name(),
                of(Some(finding.value)),
                of(Some(finding.bound)),
                of(checked.baseline),
                change(finding.value, checked.baseline),
                of(finding.noise)
            );
        }
        for shown in &self.shown {
            let base = shown.baseline.map_or("-".into(), |base| shown.figure.text(base));
            let _ = writeln!(
                text,
                "| {} | {} | - | {base} | {} | - | not checked |",
                shown.figure.name(),
                shown.figure.text(shown.value),
                change(shown.value, shown.baseline)
            );
        }
        let _ = writeln!(text, "\n{}: {}", self.made(), markdown(&self.command_line()));
        self.notes.iter().for_each(|note| _ = writeln!(text, "\n{}", markdown(note)));
        text
    }

    /// A test suite with a test case for each figure that decides.
    pub fn junit(&self) -> String {
        let has = |verdict| self.checked.iter().filter(|c| c.finding.verdict == Some(verdict)).count();
        let (failures, errors) = (has(Verdict::Failed), has(Verdict::Undecided) + usize::from(self.unknown.is_some()));
        let tests = self.checked.len() + usize::from(self.unknown.is_some());
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let counts =
            format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{:.3}\"", self.seconds);
        let _ = writeln!(xml, "<testsuites {counts}>\n  <testsuite name=\"bursar check\" {counts}>");
        let class = xml_text(&self.command_line());
        let sentence = xml_text(&self.sentence());
        for checked in &self.checked {
            let message = xml_text(&told(checked));
            let case = format!("    <testcase classname=\"{class}\" name=\"{}\"", case_name(checked));
            let _ = match checked.finding.verdict {
                Some(Verdict::Passed) => writeln!(xml, "{case}/>"),
                Some(Verdict::Failed) => writeln!(xml, "{case}><failure message=\"{message}\"/></testcase>"),
                _ => {
                    writeln!(xml, "{case}><error message=\"{}\"/></testcase>", xml_text(&self.told_undecided(checked)))
                }
            };
        }
        if self.unknown.is_some() {
            let _ = writeln!(
                xml,
                "    <testcase classname=\"{class}\" name=\"figures\"><error message=\"{sentence}\"/></testcase>"
            );
        }
        xml.push_str("  </testsuite>\n</testsuites>\n");
        xml
    }

    fn command_line(&self) -> String {
        self.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }
}

fn case_name(checked: &Checked) -> String {
    let bound = if checked.baseline.is_some() { "growth" } else { "maximum" };
    format!("{}: {bound}", checked.figure.name())
}

fn passed(verdict: Option<Verdict>) -> Option<bool> {
    match verdict? {
        Verdict::Passed => Some(true),
        Verdict::Failed => Some(false),
        Verdict::Undecided => None,
    }
}

fn above(checked: &Checked) -> f64 {
    checked.finding.value / checked.finding.bound.max(1e-9)
}

/// A figure beside its bound.
fn told(checked: &Checked) -> String {
    let (figure, finding) = (checked.figure, &checked.finding);
    let value = figure.text(finding.value);
    let Some(baseline) = checked.baseline.filter(|baseline| *baseline > 0.0) else {
        let relation = if finding.value > finding.bound { "exceeds the maximum of" } else { "of at most" };
        return format!("{} {value} {relation} {}", figure.name(), figure.text(finding.bound));
    };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let growth = finding.value / baseline - 1.0;
    let direction = if growth < 0.0 { "less" } else { "more" };
    let noise = finding.noise.map_or(String::new(), |noise| format!("; {} is noise", percent(noise / baseline)));
    let allowed =
        if checked.tolerance > 0.0 { format!(", {} allowed", percent(checked.tolerance)) } else { String::new() };
    format!(
        "{} {value}, {} {direction} than the baseline's {}{noise}{allowed}",
        figure.name(),
        percent(growth.abs()),
        figure.text(baseline)
    )
}

/// Text in an attribute of XML.
fn xml_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML 1.0 has no way to write these.
            '\u{fffe}' | '\u{ffff}' => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Text in Markdown: what would be markup or a mention of a person is shown as it is.
fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    for c in printable(text).chars() {
        if c.is_ascii_punctuation() && "\\`*_[]<>|#@~!&".contains(c) {
            let _ = write!(escaped, "&#{};", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use compare::Finding;

    use super::*;

    fn answer(verdict: Verdict, noise: Option<f64>) -> Answer {
        let finding = Finding { value: 110e6, bound: 100e6, noise, verdict: Some(verdict) };
        Answer {
            command: vec!["./a|b".into(), "<\"&\u{1b}[2J>".into(), "@all".into()],
            checked: vec![Checked { figure: Figure::Heap, baseline: Some(100e6), tolerance: 0.0, finding }],
            shown: vec![Shown { figure: Figure::RunTime, value: 1.5, baseline: Some(1.0) }],
            runs: 3,
            baseline_runs: 10,
            seconds: 4.5,
            together_bytes: None,
            notes: Vec::new(),
            unknown: None,
        }
    }

    #[test]
    fn one_line_says_the_figure_the_growth_and_the_noise() {
        let failed = answer(Verdict::Failed, Some(1e6)).sentence();
        assert_eq!(
            failed,
            "failed: heap 105 MiB, 10.0 % more than the baseline's 95.4 MiB; 1.0 % is noise (3 runs, baseline of 10 runs)"
        );
        let finding = Finding { value: 70e6, bound: 150e6, noise: None, verdict: Some(Verdict::Passed) };
        let checked = vec![Checked { figure: Figure::AppMaxRss, baseline: None, tolerance: 0.0, finding }];
        let passed = Answer { checked, together_bytes: Some(120 << 20), ..answer(Verdict::Passed, None) }.sentence();
        assert!(
            passed.starts_with("passed: its processes held at most 120 MiB together, of at most 143 MiB ("),
            "{passed}"
        );
        let undecided = answer(Verdict::Undecided, None).sentence();
        assert!(undecided.starts_with("cannot be decided: heap has one run on each side"), "{undecided}");
        let noisy = answer(Verdict::Undecided, Some(12.4e6)).sentence();
        assert!(noisy.contains("growth of less than 12.4 % is noise") && noisy.contains("--tolerance 13%"), "{noisy}");
    }

    #[test]
    fn names_are_no_markup() {
        let answer = answer(Verdict::Failed, Some(1e6));
        let junit = answer.junit();
        assert!(junit.contains("&lt;") && !junit.contains("<\"&") && !junit.contains('\u{1b}'), "{junit}");
        let markdown = answer.markdown();
        assert!(!markdown.contains("@all") && !markdown.contains("a|b") && !markdown.contains('\u{1b}'), "{markdown}");
        assert!(
            markdown.contains("| heap | 105 MiB | 95.4 MiB | 95.4 MiB | +10.0 % | 977 KiB | **failed** |"),
            "{markdown}"
        );
    }

    #[test]
    fn what_is_not_decided_is_neither_passed_nor_failed() {
        let json = serde_json::to_value(answer(Verdict::Undecided, None).json()).unwrap();
        assert_eq!((&json["passed"], &json["decided"]), (&false.into(), &false.into()));
        assert!(json["checks"][0]["passed"].is_null() && json["checks"][0]["noise"].is_null(), "{json}");
    }
}

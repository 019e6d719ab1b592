//! What a prediction came to, as JSON, as sentences, and as lines to paste.

use std::collections::BTreeMap;
use std::fmt::Write;

use model::Bytes;
use predict::{Beyond, Confidence, Forecast, INPUT_BYTES, LeftOut, NotGiven, Past, Unknown};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::limit_lines;
use crate::format::shell_word;

/// Byte-seconds.
const MIB_HOUR: f64 = Bytes::MIB as f64 * 3600.0;

/// Less waste, in byte-seconds, is shown as none.
const LEAST_WASTE: f64 = 0.01 * MIB_HOUR;

/// Reasons for leaving runs out that the short answer names.
const SHOWN_REASONS: usize = 2;

/// What a prediction came to.
pub struct Answer {
    /// The kind of the command.
    pub kind: String,
    /// Past runs that it is from.
    pub runs: Vec<Past>,
    /// Those that it is not from, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Of the run that is asked for.
    pub features: BTreeMap<String, f64>,
    /// How sure the request is to be.
    pub confidence: Confidence,
    /// What must fit.
    pub floor: Option<Forecast>,
    /// What pays, with page cache.
    pub knee: Option<Forecast>,
    /// Of the two, that which the request is from: the one that asks for more.
    pub asked: Forecast,
    /// The size of the input beside the largest seen; `None`: not known.
    pub extrapolation: Option<f64>,
    /// The feature that is farthest beyond those of all runs.
    pub beyond: Option<Beyond>,
    /// Numbers whose effect is not known.
    pub unknown: Vec<Unknown>,
    /// Numbers that were not given.
    pub not_given: Vec<NotGiven>,
}

/// What `--json` prints.
#[derive(JsonSchema, Serialize)]
pub struct Json<'a> {
    kind: &'a str,
    runs_used: Vec<Used<'a>>,
    runs_left_out: &'a [LeftOut],
    features: &'a BTreeMap<String, f64>,
    model: &'static str,
    predicted_bytes: Predicted,
    ask_bytes: u64,
    confidence: f64,
    probability: f64,
    interval_bytes: [u64; 2],
    extrapolation: Option<f64>,
    beyond: Option<&'a Beyond>,
    unknown: &'a [Unknown],
    not_given: &'a [NotGiven],
    retry_bytes: Vec<u64>,
    expected_waste_byte_seconds: f64,
    largest_waste_byte_seconds: f64,
}

#[derive(JsonSchema, Serialize)]
struct Used<'a> {
    record: &'a str,
    features: &'a BTreeMap<String, f64>,
    has_only_bounds: bool,
}

impl Used<'_> {
    fn of(run: &Past) -> Used<'_> {
        Used { record: &run.source, features: &run.features, has_only_bounds: run.has_only_bounds }
    }
}

#[derive(JsonSchema, Serialize)]
struct Predicted {
    floor: Option<u64>,
    knee: Option<u64>,
}

impl Answer {
    /// For tools.
    pub fn json(&self) -> Json<'_> {
        let asked = &self.asked;
        let predicted = |forecast: &Option<Forecast>| forecast.as_ref().map(|forecast| whole(forecast.predicted_bytes));
        Json {
            kind: &self.kind,
            runs_used: self.runs.iter().map(Used::of).collect(),
            runs_left_out: &self.left_out,
            features: &self.features,
            model: asked.predictor.name(),
            predicted_bytes: Predicted { floor: predicted(&self.floor), knee: predicted(&self.knee) },
            ask_bytes: whole(asked.ask_bytes),
            confidence: self.confidence.probability(),
            probability: asked.probability,
            interval_bytes: [asked.interval_bytes.0 as u64, whole(asked.interval_bytes.1)],
            extrapolation: self.extrapolation,
            beyond: self.beyond.as_ref(),
            unknown: &self.unknown,
            not_given: &self.not_given,
            retry_bytes: asked.retry_bytes.iter().copied().map(whole).collect(),
            expected_waste_byte_seconds: asked.waste_byte_seconds,
            largest_waste_byte_seconds: asked.largest_waste_byte_seconds,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let (asked, size) = (&self.asked, |bytes: f64| Bytes(whole(bytes)).to_string());
        let retries: Vec<String> = asked.retry_bytes.iter().copied().map(size).collect();
        let percent = (1000.0 * self.confidence.probability()).round() / 10.0;
        let (ask, retries) = (size(asked.ask_bytes), retries.join(", then "));
        let mut text = match &self.unknown[..] {
            [] => format!("{}: ask for {ask}; if killed, {retries}\n", self.kind),
            [unknown, ..] => format!(
                "{}: not known for {} {}; as past runs had it, ask for {ask}; if killed, {retries}\n",
                self.kind,
                feature_name(&unknown.feature),
                number(unknown.value)
            ),
        };
        let mut line = |name: &str, value: String| _ = writeln!(text, "  {name:<12} {value}");
        if let Some(floor) = &self.floor {
            line("must fit", size(floor.predicted_bytes));
        }
        let bounded = self.runs.iter().filter(|run| run.has_only_bounds).count();
        if bounded > 0 {
            let runs = self.runs.len();
            line(
                "bounds",
                format!(
                    "{bounded} of {runs} runs knew only bounds of what must fit; the request is from the upper ones"
                ),
            );
        }
        match &self.knee {
            Some(knee) => line("pays", format!("{}, with page cache", size(knee.predicted_bytes))),
            None => {
                line("page cache", "not in these figures: fewer than three budgets (bursar budget) are known".into())
            }
        }
        for Unknown { feature, value, seen: (least, most) } in &self.unknown {
            let had = match least == most {
                true => format!("{} only", number(*least)),
                false => format!("{} to {}", number(*least), number(*most)),
            };
            let name = feature_name(feature);
            line("unknown", format!("{name} {}: past runs had {had}, its effect is not known", number(*value)));
        }
        for NotGiven { feature, seen: (least, most) } in &self.not_given {
            let option = shell_word(&format!("{feature}=…"));
            let (least, most) = (number(*least), number(*most));
            line("unknown", format!("{feature}: past runs had {least} to {most}; give it: --feature {option}"));
        }
        // However exact they are: one more may be the first of another kind.
        let most = 100.0 * asked.runs as f64 / (asked.runs + 1) as f64;
        let held = match most < percent {
            _ if !self.unknown.is_empty() => "its confidence is not known".into(),
            true => format!("with {most:.0} % confidence, the most that {} runs allow", asked.runs),
            false => format!("with {percent} % confidence"),
        };
        let (least, largest) = asked.interval_bytes;
        let of = if self.knee.as_ref() == Some(asked) { " of what pays" } else { " of what must fit" };
        line("interval", format!("{} to {}{of}, {held}", size(least), size(largest)));
        let enough = match asked.covered {
            Some((covered, past)) => {
                let few = match 100.0 * covered as f64 / ((past + 1) as f64) < percent {
                    true => format!("; too few runs to confirm {percent} %"),
                    false => String::new(),
                };
                format!("in {covered} of {past} past runs, each predicted from those before it{few}")
            }
            None => "not known: no past run is like this one, so the request is from a trend".into(),
        };
        line("enough", enough);
        line("model", asked.predictor.name().into());
        let inputs = asked.seen.first().filter(|_| self.features.contains_key(INPUT_BYTES));
        let range =
            inputs.map(|&(least, most)| format!(", inputs of {} to {}", size(least), size(most))).unwrap_or_default();
        line("evidence", format!("{} runs{range}", asked.runs));
        if let Some(Beyond { feature, ratio }) = &self.beyond {
            let name = feature_name(feature);
            let interval = match asked.covered {
                Some(_) => "predicted as if it were within them",
                None => "the interval is wider for it",
            };
            line("beyond", format!("{name} is {ratio:.2} times the largest of past runs: {interval}"));
        }
        if asked.largest_waste_byte_seconds >= LEAST_WASTE {
            line(
                "waste",
                format!(
                    "{} are asked for and not used, as expected; {} if the largest is asked for at once",
                    byte_hours(asked.waste_byte_seconds),
                    byte_hours(asked.largest_waste_byte_seconds)
                ),
            );
        }
        if !self.unknown.is_empty() {
            text.push_str(
                "\nNo lines to paste: one run as asked for would show what it needs: bursar run -- COMMAND\n",
            );
            return text;
        }
        text.push_str("\nTo paste:\n");
        for (tool, line) in self.paste_lines() {
            let _ = writeln!(text, "  {tool:<12} {line}");
        }
        text
    }

    /// Runs that were left out, and why: how many for the most frequent reasons, in a line, or each of them.
    pub fn left_out(&self, lists_all: bool) -> String {
        let count = self.left_out.len();
        if count == 0 {
            return String::new();
        }
        if lists_all {
            let line = |left_out: &LeftOut| format!("  {}: {}\n", left_out.record, left_out.reason);
            return format!("\nLeft out: {count}\n{}", self.left_out.iter().map(line).collect::<String>());
        }
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for left_out in &self.left_out {
            // Its first clause: what follows differs from record to record.
            let reason = left_out.reason.split([':', ',', ';']).next().unwrap_or_default();
            *reasons.entry(reason).or_default() += 1;
        }
        let mut reasons: Vec<(&str, usize)> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others: usize = reasons.iter().skip(SHOWN_REASONS).map(|(_, count)| count).sum();
        let others = Some(format!("{others} for other reasons")).filter(|_| others > 0);
        let shown = reasons.iter().take(SHOWN_REASONS).map(|(reason, count)| format!("{count}: {reason}"));
        let shown: Vec<String> = shown.chain(others).collect();
        format!("\nLeft out: {count} ({}); -v lists them\n", shown.join("; "))
    }

    /// As (tool, line).
    fn paste_lines(&self) -> Vec<(&'static str, String)> {
        let ladder = ladder([self.asked.ask_bytes].into_iter().chain(self.asked.retry_bytes.iter().copied()));
        let list = |unit: &str| ladder.iter().map(|mib| format!("{mib}{unit}")).collect::<Vec<_>>().join(", ");
        let steps = ladder.len();
        let managers = [
            (
                "Nextflow",
                format!(
                    "memory {{ [{}][Math.min(task.attempt, {steps}) - 1] }}; errorStrategy 'retry'; maxRetries {}",
                    list(".MB"),
                    steps - 1
                ),
            ),
            (
                "Snakemake",
                format!(
                    "resources: mem_mb=lambda wildcards, input, attempt: [{}][min(attempt, {steps}) - 1]",
                    list("")
                ),
            ),
        ];
        limit_lines(Bytes(whole(self.asked.ask_bytes)), false).into_iter().chain(managers).collect()
    }
}

/// The request and its retries in whole MiB. Each is larger than the one before: twice that where rounding made them alike.
fn ladder(steps: impl IntoIterator<Item = f64>) -> Vec<u64> {
    let mut ladder: Vec<u64> = Vec::new();
    for bytes in steps {
        let mib = Bytes(whole(bytes)).mib_ceil();
        ladder.push(match ladder.last() {
            Some(last) if mib <= *last => 2 * last,
            _ => mib,
        });
    }
    ladder
}

fn feature_name(feature: &str) -> String {
    match feature.strip_prefix('#') {
        Some(place) => format!("the number at place {place}"),
        None if feature == INPUT_BYTES => "the input".into(),
        None => feature.into(),
    }
}

/// Large round numbers are sizes, such as the 40M of `sort -S 40M`.
fn number(value: f64) -> String {
    let is_size = value >= Bytes::MIB as f64 && value % 1024.0 == 0.0;
    if is_size { Bytes(whole(value)).to_string() } else { value.to_string() }
}

/// Memory times time, such as `1.25 GiB·h`.
fn byte_hours(byte_seconds: f64) -> String {
    let mib_hours = byte_seconds / MIB_HOUR;
    match mib_hours / 1024.0 {
        gib_hours if gib_hours >= 1.0 => format!("{gib_hours:.2} GiB·h"),
        _ if byte_seconds < LEAST_WASTE => "0 MiB·h".into(),
        _ => format!("{mib_hours:.2} MiB·h"),
    }
}

fn whole(bytes: f64) -> u64 {
    bytes.ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_of_a_ladder_in_mib_is_larger_than_the_one_before() {
        let mib = Bytes::MIB as f64;
        assert_eq!(ladder([1.0, 1.05, 2.1].map(|size| size * mib)), [1, 2, 3]);
        assert_eq!(ladder([0.2, 0.3, 0.9].map(|size| size * mib)), [1, 2, 4]);
        assert_eq!(ladder([3.2, 3.4, 6.8].map(|size| size * mib)), [4, 8, 16]);
        assert_eq!(ladder([100.0, 105.0, 210.0].map(|size| size * mib)), [100, 105, 210]);
    }

    #[test]
    fn waste_is_in_mib_or_gib_hours() {
        let said = [0.0, 291.0 * 3600.0, 0.5 * MIB_HOUR, 1536.0 * MIB_HOUR].map(byte_hours);
        assert_eq!(said, ["0 MiB·h", "0 MiB·h", "0.50 MiB·h", "1.50 GiB·h"]);
    }
}

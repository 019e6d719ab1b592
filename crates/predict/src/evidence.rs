//! Past runs of any kind, as histories tell of them, before those of one kind are learnt.

use std::collections::BTreeMap;

use crate::run::Need;

/// A past run.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// The record, or the file and the line.
    pub source: String,
    /// What it is a run of.
    pub kind: String,
    /// The name of its program, or of its process or rule.
    pub program: String,
    /// Numbers that are known before a run starts, by name.
    pub features: BTreeMap<String, f64>,
    /// What must fit.
    pub floor: Option<Need>,
    /// Only bounds of what must fit were known; `floor` is the upper one.
    pub has_only_bounds: bool,
    /// The least memory at which a budget found it no slower.
    pub knee: Option<Need>,
    /// Its run time.
    pub seconds: f64,
    /// Runs are in this order.
    pub time: f64,
}

/// A run or a file that is no evidence.
#[derive(Clone, Debug, PartialEq, schemars::JsonSchema, serde::Serialize)]
pub struct LeftOut {
    /// The record, or the file and the line.
    pub record: String,
    /// Why, as a clause.
    pub reason: String,
}

/// Past runs, and what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// What can be learnt.
    pub runs: Vec<Past>,
    /// What cannot.
    pub left_out: Vec<LeftOut>,
}

impl Evidence {
    /// Adds a run, or leaves it out with the reason where a number of it can be none: a peak of 0, as a job has that ended before anyone
    /// measured it, negative sizes and times, and what is not finite.
    pub fn add(&mut self, run: Past) {
        let of = |need: Option<Need>| need.map(|(Need::Exactly(bytes) | Need::MoreThan(bytes))| bytes);
        let is_size = |number: f64| number.is_finite() && number >= 0.0;
        let odd = run.features.iter().find(|(_, value)| !is_size(**value));
        if of(run.floor).is_some_and(|bytes| bytes == 0.0) {
            self.leave_out(run.source, "its peak is 0: it was not measured");
        } else if let Some(bytes) = of(run.floor).filter(|bytes| !is_size(*bytes)) {
            self.leave_out(run.source, format!("its peak is no size: {bytes}"));
        } else if let Some((name, value)) = odd {
            let reason = format!("its {name} is no size: {value}");
            self.leave_out(run.source, reason);
        } else if !is_size(run.seconds) {
            self.leave_out(run.source, format!("its run time is none: {}", run.seconds));
        } else if !run.time.is_finite() {
            self.leave_out(run.source, format!("the time of its end is none: {}", run.time));
        } else {
            self.runs.push(run);
        }
    }

    /// Says why something is no evidence.
    pub fn leave_out(&mut self, record: impl ToString, reason: impl Into<String>) {
        self.left_out.push(LeftOut { record: record.to_string(), reason: reason.into() });
    }
}

//! What a person sees on a terminal while runs are made.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use model::{Bytes, Outcome, Trial};

use session::observe::Progress;
use session::say::tell;

/// A status line on a terminal while a run lasts; prints nothing elsewhere.
pub struct Display {
    bar: ProgressBar,
    shown: bool,
    label: String,
    expected: Option<f64>,
    most_left: Option<f64>,
}

impl Display {
    /// `shown`: standard error is a terminal, and not `--quiet`.
    pub fn new(shown: bool) -> Display {
        Display { bar: ProgressBar::hidden(), shown, label: String::new(), expected: None, most_left: None }
    }

    /// Begins a run that takes about `expected` seconds.
    pub fn begin(&mut self, label: &str, expected: Option<f64>) {
        if !self.shown {
            return;
        }
        self.label = label.to_string();
        self.expected = expected;
        self.most_left = None;
        self.bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            self.bar.set_style(style);
        }
        self.bar.set_message(self.label.clone());
        self.bar.enable_steady_tick(Duration::from_millis(250));
    }

    /// The current run and those that follow take at most about this many seconds.
    pub fn ends_within(&mut self, seconds: f64) {
        self.most_left = Some(seconds);
    }

    /// Updates the status line.
    pub fn show(&self, progress: &Progress) {
        let elapsed = progress.elapsed.as_secs_f64();
        let against = self.expected.map_or(String::new(), |expected| format!(" of about {expected:.1} s"));
        let charge = progress.charge_bytes.map_or(String::new(), |charge| format!(", {} now", Bytes(charge)));
        let refaults = progress.refaults.filter(|n| *n > 0).map_or(String::new(), |n| format!(", {n} refaults"));
        let left = self
            .most_left
            .map_or(String::new(), |left| format!("; search: up to {:.0} s left", (left - elapsed).max(0.0).ceil()));
        self.bar.set_message(format!("{}: {elapsed:.1} s{against}{left}{charge}{refaults}", self.label));
    }

    /// Ends the run.
    pub fn end(&mut self) {
        self.bar.finish_and_clear();
    }

    /// Prints the result of the run.
    pub fn done(&self, trial: &Trial) {
        if !self.shown {
            return;
        }
        let ratio = trial
            .runtime_ratio
            .map_or(String::new(), |ratio| format!(", {}{ratio:.2}x", if trial.lower_bound { "> " } else { "" }));
        let outcome = match trial.outcome {
            Outcome::Ok => "ok",
            Outcome::TooSlow => "too slow",
            Outcome::Oom => "killed for lack of memory",
            Outcome::Timeout => "timed out",
            Outcome::Failed => "failed",
        };
        tell!("  {}: {:.1} s{ratio}, {outcome}", self.label, trial.wall_seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_falls_and_is_hidden_if_unknown() {
        let progress = |seconds| Progress {
            elapsed: Duration::from_secs(seconds),
            sampled: Duration::ZERO,
            charge_bytes: None,
            refaults: None,
            io_delay_seconds: None,
            cpu_seconds: None,
        };
        let mut display = Display::new(true);
        display.begin("reference 1", None);
        display.show(&progress(4));
        assert_eq!(display.bar.message(), "reference 1: 4.0 s");
        display.begin("trial 2 of up to 12 at 100 MiB", Some(10.0));
        display.ends_within(45.0);
        display.show(&progress(4));
        let shown = "trial 2 of up to 12 at 100 MiB: 4.0 s of about 10.0 s; search: up to 41 s left";
        assert_eq!(display.bar.message(), shown);
        display.show(&progress(60));
        assert!(display.bar.message().ends_with("; search: up to 0 s left"), "{}", display.bar.message());
        display.end();
    }
}

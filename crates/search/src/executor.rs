//! Who makes the runs of a search.

use std::ffi::OsString;
use std::time::Duration;

use model::{Observation, RunAccount, RunRole};
use record::{Entry, Record};
use session::observe::Progress;

use crate::runtime::Running;

/// A run that is asked for.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its number within the record.
    pub run: u32,
    /// What it is for.
    pub role: RunRole,
    /// `None`: without a limit.
    pub limit_bytes: Option<u64>,
    /// What is set in its environment beside what it inherits.
    pub environment: Vec<(String, OsString)>,
    /// It is ended after this time.
    pub timeout: Option<Duration>,
    /// Whether its processes are searched for a runtime that sizes itself.
    pub find_runtime: bool,
}

/// A run that was made.
#[derive(Debug)]
pub struct Made {
    /// Of all nodes together.
    pub observation: Observation,
    /// Of a job over several nodes: each one's part, this one's first.
    pub parts: Vec<Observation>,
    /// The end of its standard error.
    pub errors: String,
    /// The runtime that was found.
    pub running: Option<Running>,
}

/// Makes runs: [`crate::Machine`] on this machine, a simulation in tests.
pub trait Executor {
    /// Makes a run and appends what it shows to the record. `watch` sees how it goes on each node, and stops it by `true`.
    ///
    /// # Errors
    /// If it could not be started for a reason that is not its limit's, or could not be observed.
    fn run(
        &mut self,
        order: &Order,
        append: &mut dyn FnMut(Entry) -> anyhow::Result<()>,
        watch: &mut dyn FnMut(&[Progress]) -> bool,
    ) -> anyhow::Result<Made>;

    /// The signal that asked bursar to end.
    fn stopped_by(&self) -> Option<i32>;

    /// Learns from the files that the last run had mapped which of them were cached before; `true`: they are evicted from now on, so that
    /// it is not to be compared with the runs that follow.
    fn learn_mapped(&mut self, made: &Made, account: &RunAccount) -> bool;

    /// The same from what it read. `is_first`: no run before it is compared either.
    fn learn_read(&mut self, made: &Made, is_first: bool) -> bool;

    /// How each run finds the page cache, in words.
    fn cache_state(&self) -> String;

    /// Whether its limits are emulated.
    fn emulates_limits(&self) -> bool;

    /// The share of a limit that may be dirty before writers are held up; `None`: not known.
    fn dirty_share(&self) -> Option<f64>;

    /// What concerns the machine and bears on these runs, as sentences.
    fn machine_notes(&self, record: &Record) -> Vec<String>;
}

impl Made {
    /// What each node showed: its part, or, on one machine, all there is.
    pub fn nodes(&self) -> &[Observation] {
        if self.parts.is_empty() { std::slice::from_ref(&self.observation) } else { &self.parts }
    }
}

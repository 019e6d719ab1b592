//! The record of the advice in a run.

use std::ffi::OsString;
use std::path::Path;

use model::{Advice, Exit, Observation, RecordKind, RunRole, Target};
use record::Entry;
use session::bench::{header, unix_ns};
use session::sink::Sink;

/// A record that is being written.
pub struct Kept {
    sink: Sink,
    observation: Observation,
}

impl Kept {
    /// Creates the record before the run.
    ///
    /// # Errors
    /// A sentence if the record cannot be written.
    pub fn begin(path: &Path, command: &[OsString], target: Target) -> anyhow::Result<Kept> {
        let (mut sink, _) = Sink::create(Some(path), &header(RecordKind::Advise, command))?;
        let observation = Observation::begun(0, RunRole::Plain, target, "as found".into(), unix_ns());
        sink.append(Entry::begin(&observation))?;
        Ok(Kept { sink, observation })
    }

    /// Completes the record after the run.
    ///
    /// # Errors
    /// A sentence if the record cannot be written.
    pub fn end(mut self, exit: Exit, wall_seconds: f64, advice: Advice) -> anyhow::Result<()> {
        let observation = Observation { exit, wall_seconds, ..self.observation };
        self.sink.append(Entry::RunEnd(Box::new(observation)))?;
        self.sink.append(Entry::Advice(Box::new(advice)))?;
        self.sink.seal();
        Ok(())
    }
}

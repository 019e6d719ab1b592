//! Replays a record of `bursar watch`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use job::Forwarding;
use model::RecordKind;
use record::Record;

use crate::outputs::{Destinations, Outputs, has_view};
use crate::view::Key;
use crate::watch::POLL_INTERVAL;

/// Writes the intervals of a record as JSON lines, to standard output for `-`.
///
/// # Errors
/// A sentence if they cannot be written.
pub fn write_json(record: Record, path: &Path) -> anyhow::Result<()> {
    let json = Some(path);
    let mut outputs = Outputs::to(&Destinations { json, has_lines: false, has_view: false, has_command: false })?;
    record.pages.into_iter().try_for_each(|round| outputs.report(round))
}

/// Replays a record: at its original pace in a view, otherwise at once.
///
/// # Errors
/// A sentence if it cannot be shown or written.
pub fn replay(record: Record, json: Option<&Path>, quiet: bool) -> anyhow::Result<()> {
    let has_view = has_view(quiet, json);
    // A signal ends the view, which restores the terminal.
    let _signals = has_view.then(Forwarding::start).transpose()?;
    let mut outputs = Outputs::to(&Destinations { json, has_lines: !quiet, has_view, has_command: false })?;
    for note in record.notes {
        outputs.note(&note)?;
    }
    let intervals = record.pages.len();
    for (round, number) in record.pages.into_iter().zip(1..) {
        let due = Instant::now() + Duration::from_secs_f64(round.seconds.clamp(0.0, 3600.0));
        match number == intervals {
            true => outputs.report_last(round)?,
            false => outputs.report(round)?,
        }
        while outputs.view.as_ref().is_some_and(|view| view.is_paused() || Instant::now() < due) {
            match outputs.wait(POLL_INTERVAL)? {
                Some(Key::Quit) => return Ok(()),
                Some(Key::Next) => break,
                None => {}
            }
        }
    }
    while outputs.view.is_some() && outputs.wait(POLL_INTERVAL)? != Some(Key::Quit) {}
    outputs.summary(None)
}

/// Checks that a record is one of watching and has an interval.
///
/// # Errors
/// What is wrong with it, as a sentence.
pub fn checked(mut record: Record, path: &Path) -> anyhow::Result<Record> {
    let name = path.display();
    ensure!(
        record.header.kind == RecordKind::Watch,
        "'{name}' is not a record of `bursar watch --record FILE`; `bursar report '{name}'` shows what it is"
    );
    ensure!(
        !record.pages.is_empty(),
        "'{name}' holds no interval: the program ended before the first was over, or it was not watched so long"
    );
    if !record.complete {
        record.notes.push("the record was cut short: what follows is what had been written by then".into());
    }
    Ok(record)
}

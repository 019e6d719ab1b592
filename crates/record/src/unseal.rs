//! From tables back to frames, to go on with a record.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use linux::secure_file::{Folder, PRIVATE_FILE};
use rusqlite::{Connection, params};

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::frame::{file_header, frame};
use crate::read::Stored;
use crate::seal::open_copy;

/// Rewrites the sealed record `file`, which has this `name` in `folder`, into a framed one of the same name. Samples are streamed.
pub(crate) fn unseal(path: &Path, folder: Folder, name: &OsStr, file: &File) -> Result<()> {
    let (_private, database, bytes) = open_copy(path, file)?;
    write_frames(&database, bytes, path, folder, name)
}

fn write_frames(database: &Connection, bytes: u64, path: &Path, folder: Folder, name: &OsStr) -> Result<()> {
    let io = |cause| Error::Io { path: path.into(), doing: "made ready to go on with it", cause };
    let damaged = |what: String| Error::Damaged { path: path.into(), what };
    let stored = Stored::new(database, path, bytes);
    let mut out = BufWriter::new(folder.replace(name, PRIVATE_FILE).map_err(io)?);
    out.write_all(&file_header()).map_err(io)?;
    let mut put = |entry: Entry| {
        let payload = serde_json::to_vec(&entry).map_err(|error| io(error.into()))?;
        out.write_all(&frame(&payload).map_err(io)?).map_err(io)
    };
    put(Entry::Header(stored.header()?))?;
    let mut sessions = stored.sessions()?.into_iter();
    let mut last_session = None;
    let (mut parts, mut series) = (stored.parts()?, stored.series()?);
    for run in stored.runs()? {
        while last_session < run.session {
            let Some((id, session)) = sessions.next() else { break };
            last_session = Some(id);
            put(Entry::Session(session))?;
        }
        put(Entry::begin(&run.observation))?;
        for (id, series) in series.remove(&run.observation.run).unwrap_or_default() {
            put(Entry::Series {
                id,
                run: run.observation.run,
                process: series.process,
                name: series.name,
                unit: series.unit,
                rung: series.rung,
            })?;
        }
        each_moment(database, run.observation.run, |t_ns, values| put(Entry::Sample { t_ns, values }))
            .map_err(|error| damaged(error.to_string()))??;
        if run.finished {
            put(Entry::RunEnd(Box::new(parts.join(run.observation))))?;
        }
    }
    for (_, session) in sessions {
        put(Entry::Session(session))?;
    }
    for (run, account) in stored.accounts()? {
        put(Entry::Account { run, account: Box::new(account) })?;
    }
    stored.trials()?.into_iter().try_for_each(|trial| put(Entry::Trial(Box::new(trial))))?;
    stored.pages()?.into_iter().try_for_each(|round| put(Entry::Pages(Box::new(round))))?;
    stored.attributions()?.into_iter().try_for_each(|found| put(Entry::Attribution(Box::new(found))))?;
    stored.faults()?.into_iter().try_for_each(|faults| put(Entry::Faults(Box::new(faults))))?;
    stored.advice()?.into_iter().try_for_each(|advice| put(Entry::Advice(Box::new(advice))))?;
    stored.notes()?.into_iter().try_for_each(|note| put(Entry::Note(note)))?;
    stored.budget()?.map_or(Ok(()), |budget| put(Entry::Budget(Box::new(budget))))?;
    let new = out.into_inner().map_err(|error| io(error.into_error()))?;
    new.commit_durably().map_err(io)
}

/// Calls `put` with the samples of each moment of a run, in order of time.
fn each_moment(
    database: &Connection,
    run: u32,
    mut put: impl FnMut(u64, Vec<(u32, f64)>) -> Result<()>,
) -> rusqlite::Result<Result<()>> {
    let mut statement = database.prepare(
        "SELECT t_ns, series, value FROM sample JOIN series ON series.id = series WHERE run = ? ORDER BY t_ns, series",
    )?;
    let mut rows = statement.query(params![run])?;
    let mut moment: Option<(u64, Vec<(u32, f64)>)> = None;
    while let Some(row) = rows.next()? {
        let (t_ns, sample) = (row.get::<_, i64>(0)? as u64, (row.get(1)?, row.get(2)?));
        match &mut moment {
            Some((at, values)) if *at == t_ns => values.push(sample),
            _ => {
                let before = moment.replace((t_ns, vec![sample]));
                if let Some(Err(error)) = before.map(|(at, values)| put(at, values)) {
                    return Ok(Err(error));
                }
            }
        }
    }
    Ok(moment.map_or(Ok(()), |(at, values)| put(at, values)))
}

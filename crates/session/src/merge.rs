//! The records of the ranks or nodes of one job as one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use model::{Observation, Origin, RecordKind, RunAccount, RunRole};
use record::{Entry, Record};
use report::{RunFigures, run_figures};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rank::{JOB, RANK, RANKS};
use crate::sink::Sink;

/// The figures of a merged record: the account of all together, and that of each.
#[derive(JsonSchema, Serialize)]
pub struct Figures<'a> {
    #[serde(flatten)]
    whole: RunFigures<'a>,
    parts: Vec<PartFigures<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct PartFigures<'a> {
    host: &'a str,
    rank: Option<u32>,
    #[serde(flatten)]
    account: &'a RunAccount,
}

/// The figures of a merged record.
///
/// # Errors
/// If it holds no run.
pub fn figures<'a>(record: &'a Record, accounts: &'a [RunAccount]) -> anyhow::Result<Figures<'a>> {
    let parts = record.runs.iter().zip(accounts).filter_map(|(run, account)| {
        let origin = run.origin.as_ref()?;
        Some(PartFigures { host: &origin.host, rank: origin.rank, account })
    });
    let whole = accounts.get(..1).and_then(|whole| run_figures(&record.header, &record.runs, whole));
    Ok(Figures { whole: whole.context("there is nothing to merge")?, parts: parts.collect() })
}

/// One record, and what it says of its place in the job.
struct Part {
    path: PathBuf,
    record: Record,
    job: String,
    rank: Option<u32>,
}

/// One record of the ranks or nodes of one job: the job as a whole, and each part of it. It is kept at `kept`.
///
/// # Errors
/// A sentence if the records are not of one job, or do not say of which.
pub fn merged(records: Vec<(PathBuf, Record)>, kept: Option<&Path>) -> anyhow::Result<(Record, Option<PathBuf>)> {
    let mut parts = records.into_iter().map(part).collect::<anyhow::Result<Vec<_>>>()?;
    parts.sort_by(|a, b| (a.rank, &a.record.header.host).cmp(&(b.rank, &b.record.header.host)));
    belong_together(&parts)?;
    let observations: Vec<Observation> = parts.iter().map(Part::observation).collect();
    let whole = account::together(&observations).context("there is nothing to merge")?;
    let mut header = parts[0].record.header.clone();
    header.started_unix_ns = whole.started_unix_ns;
    header.host = hosts(&parts).join(", ");
    header.options = BTreeMap::from([(JOB.to_string(), parts[0].job.clone())]);
    let mut sink = Sink::at(kept, &header)?;
    let mut record = Record { notes: absent(&parts).into_iter().collect(), ..Record::new(header) };
    for note in &record.notes {
        sink.append(Entry::Note(note.clone()))?;
    }
    for (run, observation) in (0..).zip(std::iter::once(whole).chain(observations)) {
        let observation = Observation { run, ..observation };
        let account = account::account(&observation, &record.header);
        sink.append(Entry::begin(&observation))?;
        // Its time lines are told with it, for they are of its host.
        sink.append(Entry::RunEnd(Box::new(observation.clone())))?;
        sink.append(Entry::Account { run, account: Box::new(account.clone()) })?;
        record.accounts.insert(run, account);
        record.runs.push(observation);
    }
    Ok((record, sink.seal()))
}

/// Whether a record is of several ranks or nodes.
pub fn is_merged(record: &Record) -> bool {
    record.runs.iter().any(|run| run.role == RunRole::Part)
}

fn part((path, record): (PathBuf, Record)) -> anyhow::Result<Part> {
    let name = path.display();
    match record.header.kind {
        RecordKind::Run => {}
        RecordKind::Attribute => bail!(
            "{name}: whose the memory is does not add up from records; `bursar report FOLDER…` brings the ranks' logs together"
        ),
        _ => bail!("{name} is not a record of `bursar run`, and only those of one job are merged"),
    }
    if record.runs.len() != 1 {
        bail!("{name} holds {} runs; what is merged is one run of each", record.runs.len());
    }
    let option = |key: &str| record.header.options.get(key).cloned();
    let Some(job) = option(JOB) else {
        bail!(
            "{name} is not of a rank or node of a job, and only those are merged. To compare two records: bursar diff A B; to see each: bursar report A"
        );
    };
    let rank = option(RANK).and_then(|rank| rank.parse().ok());
    Ok(Part { path, record, job, rank })
}

impl Part {
    fn observation(&self) -> Observation {
        let header = &self.record.header;
        let origin = Origin { host: header.host.clone(), boot_id: header.boot_id.clone(), rank: self.rank };
        Observation { role: RunRole::Part, origin: Some(origin), ..self.record.runs[0].clone() }
    }
}

/// One job, and each rank of it once; without ranks each host.
fn belong_together(parts: &[Part]) -> anyhow::Result<()> {
    for pair in parts.windows(2) {
        let [a, b] = pair else { continue };
        let (one, other) = (a.path.display(), b.path.display());
        if a.job != b.job {
            bail!("{one} is of job {}, and {other} of job {}", a.job, b.job);
        }
        match (a.rank, b.rank) {
            (Some(rank), Some(same)) if rank == same => bail!("{one} and {other} are both of rank {rank}"),
            (None, None) if a.record.header.host == b.record.header.host => {
                bail!("{one} and {other} are both of {}, and do not say of which rank", a.record.header.host)
            }
            _ => {}
        }
    }
    Ok(())
}

fn hosts(parts: &[Part]) -> Vec<String> {
    let mut hosts: Vec<String> = parts.iter().map(|part| part.record.header.host.clone()).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

/// Ranks of which there is no record, as a sentence.
fn absent(parts: &[Part]) -> Option<String> {
    let ranks: usize = parts[0].record.header.options.get(RANKS)?.parse().ok()?;
    let absent = ranks.checked_sub(parts.len()).filter(|absent| *absent > 0)?;
    Some(format!("{absent} of {ranks} ranks have no record here and are in no figure."))
}

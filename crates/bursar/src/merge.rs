//! `bursar merge`: the records of the ranks or nodes of one job as one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use model::{Observation, Origin, RecordKind, RunAccount, RunRole};
use record::{Entry, Record};
use serde::Serialize;

use crate::cli::report::Merge;
use crate::opened;
use crate::rank::{JOB, RANK, RANKS};
use crate::redact::redacted;
use crate::results::{Sink, deliver};
use crate::run;
use crate::status::Status;

/// One record, and what it says of its place in the job.
struct Part {
    path: PathBuf,
    record: Record,
    job: String,
    rank: Option<u32>,
}

/// What `--json` prints: the account of all together, and that of each.
#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    whole: run::Json<'a>,
    parts: Vec<PartJson<'a>>,
}

#[derive(Serialize)]
struct PartJson<'a> {
    host: &'a str,
    rank: Option<u32>,
    #[serde(flatten)]
    account: &'a RunAccount,
}

pub fn merge(options: &Merge) -> anyhow::Result<Status> {
    let mut parts = options.records.iter().map(|path| part(path)).collect::<anyhow::Result<Vec<_>>>()?;
    parts.sort_by(|a, b| (a.rank, &a.record.header.host).cmp(&(b.rank, &b.record.header.host)));
    belong_together(&parts)?;
    let observations: Vec<Observation> = parts.iter().map(Part::observation).collect();
    let whole = account::together(&observations).context("there is nothing to merge")?;
    let mut header = parts[0].record.header.clone();
    header.command = header.command.iter().map(|word| redacted(word)).collect();
    header.started_unix_ns = whole.started_unix_ns;
    header.host = hosts(&parts).join(", ");
    header.options = BTreeMap::from([(JOB.to_string(), parts[0].job.clone())]);
    let (mut sink, no_record) = Sink::create(options.results.record.as_deref(), &header)?;
    let mut record = Record { notes: no_record.into_iter().chain(absent(&parts)).collect(), ..Record::new(header) };
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
    let path = sink.seal();
    let accounts: Vec<RunAccount> = record.accounts.values().cloned().collect();
    let (first, rest) = accounts.split_at(1);
    let told = record.runs[1..].iter().zip(rest).filter_map(|(run, account)| {
        let origin = run.origin.as_ref()?;
        Some(PartJson { host: &origin.host, rank: origin.rank, account })
    });
    let json = Json { whole: run::json(first).context("there is nothing to merge")?, parts: told.collect() };
    deliver(&options.results, &record, path.as_deref(), &json)?;
    Ok(Status::of(0))
}

fn part(path: &Path) -> anyhow::Result<Part> {
    let record = opened::open(path)?;
    let name = path.display();
    match record.header.kind {
        RecordKind::Run => {}
        RecordKind::Attribute => bail!(
            "{name}: whose the memory is does not add up from records; `bursar attribute --from FOLDER…` brings the ranks' logs together"
        ),
        _ => bail!("{name} is not a record of `bursar run`"),
    }
    if record.runs.len() != 1 {
        bail!("{name} holds {} runs; what is merged is one run of each", record.runs.len());
    }
    let option = |key: &str| record.header.options.get(key).cloned();
    let Some(job) = option(JOB) else {
        bail!("{name} does not say of which job it is: it was made outside of Slurm, and not by a rank of mpirun");
    };
    let rank = option(RANK).and_then(|rank| rank.parse().ok());
    Ok(Part { path: path.into(), record, job, rank })
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

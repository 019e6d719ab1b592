//! Past runs, from records and from what others wrote.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use budget::jobs::{most_at_once, node_bytes};
use model::{Bytes, Doubt, Exit, Header, JobEnd, Program, RecordKind, RunRole};
use predict::{Evidence, INPUT_BYTES, Need, Past};
use record::Record;
use report::are_apart;
use slurm::{By, Gathering};

use crate::kind::Kind;
use crate::{input, inputs};

/// Machines whose memory differs by less are alike: the kernel keeps a part of it to itself.
const SAME_MEMORY_RATIO: f64 = 1.1;

/// What a history may be.
const READABLE: &str = "records of bursar run and budget (*.bursar), what sacct --json or sacct -P prints, traces of Nextflow, benchmarks of \
                        Snakemake, and CSV with a column peak_bytes";

/// Why a run whose floor is too small is left out.
const INCOMPLETE: &str = "memory of the job may be missing from its figures: see its doubts";

/// What the run that is asked for runs on. Records of something else are left out.
pub(crate) struct Here<'a> {
    /// `None`: of any machine.
    pub(crate) machine: Option<&'a Header>,
    /// The program by its name, and its build; `None`: of any build.
    pub(crate) build: Option<(String, String)>,
}

impl Here<'_> {
    /// A clause that says why a record is no evidence of a run here.
    fn differs(&self, header: &Header) -> Option<String> {
        let machine = |header: &Header| {
            format!(
                "{} processors, {} of memory and pages of {}",
                header.cpus,
                Bytes(header.memory_bytes),
                Bytes(header.page_bytes)
            )
        };
        let of_machine = self.machine.filter(|here| {
            let memory = header.memory_bytes as f64 / here.memory_bytes.max(1) as f64;
            (header.cpus, header.page_bytes) != (here.cpus, here.page_bytes)
                || !(1.0 / SAME_MEMORY_RATIO..=SAME_MEMORY_RATIO).contains(&memory)
        });
        if let Some(here) = of_machine {
            return Some(format!(
                "a machine with {}, here are {}; see --other-machine",
                machine(header),
                machine(here)
            ));
        }
        let (program, build) = self.build.as_ref()?;
        let is_its = Program::of(&header.command).is_some_and(|past| past.name == *program);
        let past = header.options.get(inputs::BUILD).filter(|past| is_its && *past != build);
        past.map(|_| "another build of the program".into())
    }
}

/// Reads files, and all files in folders. Runs are in order of time.
pub(crate) fn read(paths: &[PathBuf], here: &Here) -> anyhow::Result<Evidence> {
    let mut evidence = Evidence::default();
    for path in paths {
        let found = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        if !found.is_dir() {
            file(path, here, &mut evidence)?;
            continue;
        }
        let mut files: Vec<PathBuf> = fs::read_dir(path)
            .with_context(|| format!("cannot read {}", path.display()))?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        for path in files {
            // In a folder there may be anything.
            if let Err(error) = file(&path, here, &mut evidence) {
                evidence.leave_out(path.display(), format!("{error:#}"));
            }
        }
    }
    evidence.runs.sort_by(|a, b| a.time.total_cmp(&b.time));
    Ok(evidence)
}

fn file(path: &Path, here: &Here, evidence: &mut Evidence) -> anyhow::Result<()> {
    if path.extension().is_some_and(|end| end == "bursar") {
        return self::record(path, here, evidence);
    }
    let text = input::read(path).map_err(|error| anyhow!("{error}. --from takes {READABLE}"))?;
    let is_json = text.trim_start().starts_with(['{', '[']);
    if is_json || text.lines().next().is_some_and(|head| head.contains('|')) {
        return accounting(&text, path, evidence);
    }
    Ok(predict::read_table(&text, &path.display().to_string(), evidence)?)
}

/// What sacct printed. The numbers in a job's name are features: of jobs that differ in them, they may be sizes.
fn accounting(text: &str, path: &Path, evidence: &mut Evidence) -> anyhow::Result<()> {
    let by = By::of(None)?;
    let printed =
        slurm::parse(text.as_bytes(), &by).with_context(|| format!("{} is not what sacct prints", path.display()))?;
    let gathering = Gathering { version: printed.version, ..Gathering::default() };
    for (index, job) in slurm::past_jobs(&printed, &gathering, &by).into_iter().enumerate() {
        let source = format!("{}: job {} ({})", path.display(), index + 1, job.name);
        let is_measured = job.steps.iter().all(|step| node_bytes(step).is_some());
        let bytes = most_at_once(&job.steps, node_bytes).filter(|_| is_measured);
        // A step may have been allowed less than the job.
        let refused = job.steps.iter().filter(|step| step.out_of_memory);
        let refused = refused.filter_map(|step| Some(step.allowed_bytes? / step.nodes.max(1))).max();
        let limit = refused.or(job.reserved_bytes.map(|bytes| bytes / job.nodes.max(1)));
        let floor = match (job.end, bytes, limit) {
            (JobEnd::Completed, Some(bytes), _) => Need::Exactly(bytes as f64),
            (JobEnd::OutOfMemory, _, Some(limit)) => Need::MoreThan(limit as f64),
            (JobEnd::OutOfMemory, Some(bytes), None) => Need::MoreThan(bytes as f64),
            (JobEnd::CutShort, ..) => {
                evidence.leave_out(source, "the job failed, was cancelled or timed out");
                continue;
            }
            _ => {
                evidence.leave_out(source, "the accounting has no figure of its memory, or not of each step");
                continue;
            }
        };
        let numbers = job.numbers.iter().enumerate().map(|(place, number)| (format!("#{}", place + 1), *number));
        evidence.runs.push(Past {
            source,
            program: job.name,
            kind: job.kind,
            features: numbers.collect(),
            floor: Some(floor),
            has_only_bounds: false,
            knee: None,
            seconds: job.elapsed_seconds.unwrap_or(0.0),
            time: index as f64,
        });
    }
    Ok(())
}

fn record(path: &Path, here: &Here, evidence: &mut Evidence) -> anyhow::Result<()> {
    let record = Record::open(path)?;
    let header = &record.header;
    if !matches!(header.kind, RecordKind::Run | RecordKind::Budget) {
        evidence.leave_out(path.display(), "a record of another command than bursar run and bursar budget");
        return Ok(());
    }
    if let Some(reason) = here.differs(header) {
        evidence.leave_out(path.display(), reason);
        return Ok(());
    }
    let Some(kind) = Kind::of(&header.command, Path::new(&header.directory)) else {
        evidence.leave_out(path.display(), "its command is empty");
        return Ok(());
    };
    let mut features = kind.numbers.clone();
    let known =
        [INPUT_BYTES, inputs::FILES].map(|name| (name, header.options.get(name).and_then(|value| value.parse().ok())));
    features.extend(known.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
    features.extend(
        header
            .options
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(inputs::NAMED)?.to_string(), value.parse().ok()?))),
    );
    if !features.contains_key(INPUT_BYTES) {
        // A record of an older version: its files, if they have not changed since.
        features.extend(inputs::sizes(&kind, false).into_iter().map(|(name, value)| (name.to_string(), value as f64)));
    }
    let program = Program::of(&header.command).map(|program| program.name).unwrap_or_default();
    let past = |floor, knee, seconds| Past {
        source: path.display().to_string(),
        kind: kind.name.clone(),
        program: program.clone(),
        features: features.clone(),
        floor,
        has_only_bounds: false,
        knee,
        seconds,
        time: header.started_unix_ns as f64 / 1e9,
    };
    if let Some(budget) = &record.budget {
        if budget.doubts.iter().any(Doubt::may_kill) {
            evidence.leave_out(path.display(), INCOMPLETE);
            return Ok(());
        }
        let exactly = |bytes: u64| Need::Exactly(bytes as f64);
        let (floor, knee) = (budget.floor_bytes.map(exactly), budget.answer.budget_bytes.map(exactly));
        evidence.runs.push(past(floor, knee, budget.reference_seconds.unwrap_or(1.0)));
        return Ok(());
    }
    for run in record.runs.iter().filter(|run| run.role == RunRole::Plain) {
        let account = account::account(run, header);
        let limit = account.limit_bytes.filter(|_| account.oom_kills.is_some_and(|kills| kills > 0));
        if let Some(limit) = run.limit_bytes.filter(|_| limit.is_none()) {
            // It may have had less than it would have liked.
            evidence.leave_out(path.display(), format!("it ran under a limit of {}", Bytes(limit)));
            continue;
        }
        if limit.is_none() && account.doubts.iter().any(Doubt::may_kill) {
            evidence.leave_out(path.display(), INCOMPLETE);
            continue;
        }
        match (run.exit, limit, account.floor_bytes) {
            (_, Some(limit), _) => {
                evidence.runs.push(past(Some(Need::MoreThan(limit as f64)), None, account.wall_seconds))
            }
            (Exit::Status(0), None, Some(floor)) => {
                // The kernel kills by what the processes really held, which may be all of the upper bound.
                let most = account.floor_at_most_bytes.unwrap_or(floor);
                evidence.runs.push(Past {
                    has_only_bounds: are_apart(floor, most),
                    ..past(Some(Need::Exactly(most as f64)), None, account.wall_seconds)
                });
            }
            (Exit::Status(0), None, None) => evidence.leave_out(path.display(), "what must fit is unknown"),
            (Exit::Status(status), ..) => {
                evidence.leave_out(path.display(), format!("the command failed with status {status}"))
            }
            (Exit::Signal(signal), ..) => {
                evidence.leave_out(path.display(), format!("the command was ended by signal {signal}"))
            }
            _ => evidence.leave_out(path.display(), "the command did not come to its end"),
        }
    }
    Ok(())
}

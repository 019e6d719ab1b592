//! What `sacct -P -o …` prints: a line of names, then a line for each job and each of its steps, fields between bars.

use anyhow::{Context, anyhow, ensure};
use model::{Bytes, MemoryPer, PastJob, PastStep};

use super::accounting::{Accounting, Wanted, cache_bytes, unknown};
use crate::cli::slurm::Gatherer;

/// What is read, if it is there; the first five must be. Names and order as sacct has them.
pub const COLUMNS: &str =
    "JobID,JobName,State,ElapsedRaw,MaxRSS,User,ReqMem,AllocTRES,NNodes,AllocCPUS,NTasks,TRESUsageInTot,Start,End";

/// Those without which nothing can be said.
const NEEDED: [&str; 5] = ["JobID", "JobName", "State", "ElapsedRaw", "MaxRSS"];

/// A line by the names of its fields.
struct Line<'a> {
    names: &'a [&'a str],
    fields: Vec<&'a str>,
}

/// The jobs that it tells of.
pub fn parse(told: &str, wanted: &Wanted) -> anyhow::Result<Accounting> {
    let mut lines = told.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next().context("it is empty")?;
    // With --parsable instead of --parsable2 each line ends in a bar.
    let names: Vec<&str> = header.trim_end_matches('|').split('|').collect();
    for needed in NEEDED {
        ensure!(names.contains(&needed), "line 1: no column {needed}; write sacct -P -o {COLUMNS}");
    }
    let mut accounting = Accounting::default();
    let mut jobs: Vec<(Line<'_>, PastJob)> = Vec::new();
    for (at, text) in lines {
        let mut fields: Vec<&str> = text.split('|').collect();
        if fields.len() == names.len() + 1 && fields.last() == Some(&"") {
            fields.pop();
        }
        let number = at + 1;
        ensure!(
            fields.len() == names.len(),
            "line {number}: {} fields, and the first line names {}; a job's name may hold a bar: leave that job out",
            fields.len(),
            names.len()
        );
        let line = Line { names: &names, fields };
        if line.get("JobID").contains('.') {
            let step = step(&line, wanted.gatherer).map_err(|error| anyhow!("line {number}: {error}"))?;
            if let Some((_, job)) = jobs.last_mut() {
                job.steps.push(step);
            }
        } else {
            let job = past_job(&line).map_err(|error| anyhow!("line {number}: {error}"))?;
            jobs.push((line, job));
        }
    }
    for (line, job) in jobs {
        // How old it may be sacct itself has seen to.
        if wanted.has(line.get("User"), None) {
            accounting.add(line.get("State"), job);
        }
    }
    Ok(accounting)
}

impl<'a> Line<'a> {
    /// Empty where the column is not there.
    fn get(&self, name: &str) -> &'a str {
        self.names.iter().position(|known| *known == name).map_or("", |at| self.fields[at].trim())
    }

    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match self.get(name) {
            "" | "UNLIMITED" | "INVALID" => Ok(None),
            text => text.parse().map(Some).map_err(|_| format!("{name} is '{text}', and no number")),
        }
    }

    fn bytes(&self, name: &str) -> Result<Option<u64>, String> {
        size(name, self.get(name))
    }

    /// A part of a list such as `cpu=1,mem=400M,node=1`.
    fn tres(&self, name: &str, kind: &str) -> Result<Option<u64>, String> {
        let parts = self.get(name).split(',').filter_map(|part| part.split_once('='));
        parts.filter(|(part, _)| *part == kind).map(|(_, value)| size(name, value)).next().unwrap_or(Ok(None))
    }

    /// As seconds, of any time zone, since only what lies between is of interest.
    fn time(&self, name: &str) -> u64 {
        let time = humantime::parse_rfc3339_weak(self.get(name)).ok();
        time.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).map_or(0, |since| since.as_secs())
    }
}

fn size(name: &str, text: &str) -> Result<Option<u64>, String> {
    match text {
        "" => Ok(None),
        text => {
            text.parse::<Bytes>().map(|bytes| Some(bytes.0)).map_err(|_| format!("{name} is '{text}', and no size"))
        }
    }
}

fn past_job(line: &Line<'_>) -> Result<PastJob, String> {
    // Up to 20.11 a letter behind it tells whether it is of a node or of a CPU; later it is the job's as it was asked for.
    let asked = line.get("ReqMem");
    let per = if asked.ends_with('c') { MemoryPer::Cpu } else { MemoryPer::Node };
    let (nodes, cpus) = (line.number("NNodes")?.unwrap_or(1).max(1), line.number("AllocCPUS")?.unwrap_or(1).max(1));
    let asked = size("ReqMem", asked.trim_end_matches(['c', 'n']))?;
    let asked = asked.map(|bytes| bytes.saturating_mul(if per == MemoryPer::Cpu { cpus } else { nodes }));
    Ok(PastJob {
        elapsed_seconds: line.number("ElapsedRaw")?.unwrap_or(0) as f64,
        nodes,
        cpus,
        per,
        reserved_bytes: line.tres("AllocTRES", "mem")?.or(asked).filter(|bytes| *bytes > 0),
        ..unknown(line.get("JobName").to_string())
    })
}

fn step(line: &Line<'_>, gatherer: Option<Gatherer>) -> Result<PastStep, String> {
    let memory = line.tres("TRESUsageInTot", "mem")?;
    Ok(PastStep {
        start_seconds: line.time("Start"),
        end_seconds: line.time("End"),
        nodes: line.number("NNodes")?.unwrap_or(1),
        tasks: line.number("NTasks")?.unwrap_or(1),
        largest_task_bytes: line.bytes("MaxRSS")?.filter(|bytes| *bytes > 0),
        tasks_bytes: memory.filter(|bytes| *bytes > 0),
        cache_bytes: cache_bytes(gatherer, memory, line.tres("TRESUsageInTot", "vmem")?),
        allowed_bytes: line.tres("AllocTRES", "mem")?,
        out_of_memory: line.get("State") == "OUT_OF_MEMORY",
    })
}

#[cfg(test)]
mod tests {
    use model::JobEnd;

    use super::*;

    #[test]
    fn jobs_and_their_steps_are_told_line_by_line() {
        let told = "JobID|JobName|State|ElapsedRaw|MaxRSS|ReqMem|AllocTRES|NNodes|AllocCPUS|NTasks|TRESUsageInTot|Start|End\n\
            12_3|a|CANCELLED by 1000|60||400M|billing=1,cpu=2,mem=400M,node=1|1|2|||2026-01-01T00:00:00|2026-01-01T00:01:00\n\
            12_3.batch|batch|CANCELLED|60|10.50M||cpu=2,mem=400M,node=1|1|2|1|cpu=00:00:01,mem=10.50M,vmem=20M|2026-01-01T00:00:00|2026-01-01T00:01:00\n\
            12_3.0|x|COMPLETED|50|2048K||cpu=2,mem=400M|1|2|2|mem=3M,vmem=9M|2026-01-01T00:00:05|2026-01-01T00:00:55\n\
            13|b|RUNNING|5|||||||||\n";
        let found = parse(told, &Wanted { gatherer: Some(Gatherer::Cgroup), ..Wanted::default() }).unwrap();
        assert_eq!((found.jobs.len(), found.unfinished), (1, 1));
        let job = &found.jobs[0];
        assert_eq!(
            (job.name.as_str(), job.end, job.cpus, job.reserved_bytes),
            ("a", JobEnd::CutShort, 2, Some(400 << 20))
        );
        assert_eq!(job.steps[0].largest_task_bytes, Some(21 << 19));
        assert_eq!(
            (job.steps[1].tasks, job.steps[1].tasks_bytes, job.steps[1].cache_bytes),
            (2, Some(3 << 20), Some(6 << 20))
        );
        assert_eq!(job.steps[1].end_seconds - job.steps[1].start_seconds, 50);
    }

    #[test]
    fn old_versions_tell_memory_per_cpu_by_a_letter_and_end_lines_with_a_bar() {
        let told = "JobID|JobName|State|ElapsedRaw|MaxRSS|ReqMem|AllocCPUS|\n7|a|COMPLETED|60||1000Mc|4|\n7.0|a|COMPLETED|60|5K||4|\n";
        let job = &parse(told, &Wanted::default()).unwrap().jobs[0];
        assert_eq!((job.per, job.reserved_bytes, job.steps.len()), (MemoryPer::Cpu, Some(4000 << 20), 1));
    }

    #[test]
    fn what_is_malformed_is_told_by_line_and_column() {
        let header = "JobID|JobName|State|ElapsedRaw|MaxRSS\n";
        let error = |told: &str| parse(told, &Wanted::default()).unwrap_err().to_string();
        assert!(error("").contains("empty"));
        assert!(error("JobID|JobName\n").contains("no column State; write sacct -P -o JobID,"));
        assert!(error(&format!("{header}7|a|COMPLETED|60\n")).contains("line 2: 4 fields, and the first line names 5"));
        assert!(
            error(&format!("{header}7|a|COMPLETED|60|\n\n7.0|a|COMPLETED|60|much\n"))
                .contains("line 4: MaxRSS is 'much', and no size")
        );
        assert!(
            error(&format!("{header}7|a|COMPLETED|soon|\n")).contains("line 2: ElapsedRaw is 'soon', and no number")
        );
    }
}

//! `bursar slurm recommend`: what jobs should ask for, by what the accounting tells of past ones.

mod accounting;
mod decode;
#[cfg(test)]
mod fuzz;
mod json;
mod kind;
mod meaning;
mod text;
mod version;

use std::io::Read;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use budget::jobs::Numbered;
use model::{ByNumber, Bytes, JobMemory, JobsMemory};

use super::Config;
use crate::bench::unix_ns;
use crate::cli::slurm::{Gatherer, Recommend};
use crate::input::{is_dash, name};
use crate::results::{style, write_json};
use crate::say;
use crate::status::Status;
use accounting::{Printed, Wanted};
use kind::By;
use meaning::Gathering;

pub use version::Version;

pub fn recommend(options: &Recommend) -> anyhow::Result<Status> {
    let by = By::of(options.by.as_deref())?;
    let wanted = wanted(options)?;
    let (mut printed, site) = match &options.from {
        Some(path) => {
            let bytes = bytes(path)?;
            ensure!(
                !bytes.trim_ascii().is_empty(),
                "{} is empty. Write what sacct prints to it: sacct --json, or sacct -P -o {}",
                name(path),
                text::COLUMNS
            );
            let printed = parse(&bytes, &by).with_context(|| format!("{} is not what sacct prints", name(path)))?;
            (printed, Gathering::default())
        }
        None => (ask(options, &by)?, site()),
    };
    printed.select(&wanted);
    let gathering = Gathering {
        gatherer: options.gatherer.or(site.gatherer),
        version: options.slurm_version.or(printed.version).or(site.version),
        ..site
    };
    let found = advice(printed, options, &gathering, &by)?;
    if !options.json.as_deref().is_some_and(is_dash) {
        say::page_result(&report::terminal::jobs(&found, style()))?;
    }
    if let Some(path) = &options.json {
        write_json(path, &found)?;
    }
    Ok(Status::of(0))
}

fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if is_dash(path) {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.with_context(|| format!("{} could not be read", name(path)))
}

/// All jobs of a file, unless a user is named; else what sacct would print of this user's last days.
fn wanted(options: &Recommend) -> anyhow::Result<Wanted> {
    if options.from.is_some() {
        return Ok(Wanted { user: options.user.clone(), since_seconds: 0 });
    }
    let is_root = rustix::process::geteuid().is_root();
    let user = match &options.user {
        None if !is_root => Some(own_name()?),
        user => user.clone(),
    };
    let now_seconds = unix_ns() / 1_000_000_000;
    let since_seconds = now_seconds.saturating_sub(u64::from(options.days) * 86_400);
    Ok(Wanted { user, since_seconds })
}

fn own_name() -> anyhow::Result<String> {
    let output = linux::children::output(Command::new("id").arg("-un"))
        .context("id could not be run; --user USER says who you are")?;
    ensure!(output.status.success(), "your user has no name here; --user USER says who you are");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn advice(printed: Printed, options: &Recommend, gathering: &Gathering, by: &By) -> anyhow::Result<JobsMemory> {
    let meaning = gathering.meaning(printed.evidence());
    let mut notes: Vec<String> = printed.left_out.notes().collect();
    let (left_out, unknown_requests, rounded) = (printed.left_out.len(), printed.unknown_requests, printed.rounded);
    if let Some(pattern) = by.finds_nothing(&printed.jobs).filter(|_| !printed.jobs.is_empty()) {
        bail!("--by {pattern} is no column of sacct, and as a regular expression it is found in the name of no job");
    }
    let accounting = printed.past_jobs(&meaning, by);
    let why = |notes: &[String]| {
        if notes.is_empty() { String::new() } else { format!(". Of the input: {}", notes.join("; ")) }
    };
    ensure!(!accounting.jobs.is_empty(), "{}{}", no_job(accounting.unfinished, options), why(&notes));
    let found = budget::jobs::recommend(&accounting.jobs, options.percentile);
    let unknown = found.unmeasured + found.partly_measured;
    ensure!(
        !found.jobs.is_empty(),
        "jobs that have ended: {unknown}; the memory of none is known, for the accounting has no figure (MaxRSS) of a step. Either the steps were \
         shorter than the sampling interval, or the site gathers no figures (JobAcctGatherType), or they are printed in a unit too large for them \
         (use sacct --noconvert){}",
        why(&notes)
    );
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            notes.push(format!("{what}: {count}"));
        }
    };
    say(found.unmeasured as u64, "left out, jobs of which the accounting has no figure");
    say(
        found.partly_measured as u64,
        "left out, jobs with a step that the accounting has no figure of: what they needed is unknown, whatever their other steps had",
    );
    say(accounting.too_short, "steps that were shorter than the sampling interval, whose figures are taken for none");
    say(accounting.impossible, "steps with a figure of 1 PiB or more, which no machine has: it is taken for none");
    say(accounting.unfinished, "left out, jobs that have not ended");
    say(unknown_requests, "jobs whose request could not be read, so it counts as unknown");
    say(
        rounded,
        "figures that were printed in a unit so large that they are taken for the largest number they can stand for (use sacct --noconvert)",
    );
    notes.extend(numbered_note(&found.numbered));
    notes.extend(of_largest_note(&found.numbered));
    if !found.uneven.is_empty() {
        let kinds = listed(&found.uneven);
        notes.push(format!(
            "the largest run used at least 4 times as much as the middle one: {kinds}. If these are different jobs, tell them apart with --by"
        ));
    }
    notes.extend(meaning.note.clone());
    let mut doubts: Vec<String> = meaning.doubt.clone().into_iter().collect();
    doubts.extend(lower_bounds(&found.jobs));
    doubts.extend(growing(&found.numbered));
    if !accounting.nameless.is_empty() {
        doubts.push(
            "not sure: job names that are UUIDs (Snakemake) name no kind of job, and no Comment with a rule is there; these jobs are grouped by their \
             request. Add the column Comment (AccountingStoreFlags=job_comment), or give --by"
                .into(),
        );
    }
    Ok(JobsMemory {
        percentile: options.percentile,
        gatherer: meaning.plugin.map(Into::into),
        slurm_version: gathering.version.map(|version| version.to_string()),
        doubts,
        left_out,
        jobs: found.jobs,
        notes,
    })
}

/// Why there is nothing to go by.
fn no_job(unfinished: u64, options: &Recommend) -> String {
    let source = options.from.as_deref().map_or("sacct's answer".to_string(), name);
    let user = options.user.as_deref().map_or(String::new(), |user| format!(" of user {user}"));
    let what_to_do = match &options.from {
        Some(_) => "Print jobs that have ended, such as those of the last 30 days: sacct -S now-30days".to_string(),
        None => format!(
            "sacct was asked for the last {} days; --days asks for more, --user for another user's",
            options.days
        ),
    };
    match unfinished {
        0 => format!("{source} has no job{user}. {what_to_do}"),
        1 => format!("{source} has one job{user}, and it has not ended. {what_to_do}"),
        more => format!("{source} has {more} jobs{user}, and none has ended. {what_to_do}"),
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{shown} and {} more", names.len() - 5) } else { shown }
}

/// Of which kinds less is known than `--mem` seems to say.
fn lower_bounds(jobs: &[JobMemory]) -> Vec<String> {
    let named = |of: &dyn Fn(&JobMemory) -> bool| -> Vec<String> {
        jobs.iter().filter(|job| of(job)).map(report::jobs::name).collect()
    };
    let unknown = named(&|job| job.mem_bytes.is_none());
    let partly = named(&|job| job.mem_bytes.is_some() && job.is_lower_bound);
    let mut doubts = Vec::new();
    if !unknown.is_empty() {
        doubts.push(format!(
            "lower bound: no run ended well of {}. These jobs used at least what --mem shows behind '>': ask for more than that",
            listed(&unknown)
        ));
    }
    if !partly.is_empty() {
        doubts.push(format!(
            "lower bound: the largest runs were cut short (killed, failed, cancelled or timed out) of {}. These jobs may need more than --mem",
            listed(&partly)
        ));
    }
    doubts
}

/// Which names were put together.
fn numbered_note(kinds: &[Numbered]) -> Option<String> {
    let kinds: Vec<String> = kinds.iter().map(|found| format!("{} ({} names)", found.kind, found.names)).collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "job names that differ only in numbers are one kind: {}. --by JobName keeps each name apart",
            listed(&kinds)
        )
    })
}

/// Kinds of which a larger number than those that ran needs more.
fn growing(kinds: &[Numbered]) -> Option<String> {
    let growing = with_ends(kinds, ByNumber::Grows, |number, kind| format!("{number} in {kind}"));
    (!growing.is_empty()).then(|| {
        format!(
            "not sure: memory grows with {}. --mem is what the largest of these needs, and a larger number may need more; --by JobName keeps each \
             name apart",
            listed(&growing)
        )
    })
}

/// Kinds that differ so much that a share of their runs says nothing.
fn of_largest_note(kinds: &[Numbered]) -> Option<String> {
    let falling = with_ends(kinds, ByNumber::Falls, |number, kind| format!("as {number} grows in {kind}"));
    let differing = with_ends(kinds, ByNumber::Differs, |_, kind| kind.to_string());
    let mut found = Vec::new();
    if !falling.is_empty() {
        found.push(format!("memory falls {}", listed(&falling)));
    }
    if !differing.is_empty() {
        found.push(format!("memory differs between the names of {}", listed(&differing)));
    }
    (!found.is_empty())
        .then(|| format!("{}: --mem is what the largest needs; --by JobName keeps each name apart", found.join("; ")))
}

/// The kinds whose memory goes so with the numbers, each with its least and its most.
fn with_ends(kinds: &[Numbered], wanted: ByNumber, say: impl Fn(&str, &str) -> String) -> Vec<String> {
    let ends = |kind: &Numbered| {
        let [(least, least_bytes), (most, most_bytes)] = [&kind.least, &kind.most];
        let ends = format!("({} at {least}, {} at {most})", Bytes(*least_bytes), Bytes(*most_bytes));
        format!("{} {ends}", say(&which_number(kind), &kind.kind))
    };
    kinds.iter().filter(|kind| kind.by_number == Some(wanted)).map(ends).collect()
}

/// The numbers that memory goes with, by their places among those that differ.
fn which_number(kind: &Numbered) -> String {
    if kind.numbers < 2 {
        return "the number".into();
    }
    let ordinals = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"];
    let ordinal = |at: &usize| ordinals.get(*at).map_or_else(|| format!("{}th", at + 1), |word| (*word).to_string());
    let words: Vec<String> = kind.positions.iter().map(ordinal).collect();
    format!("the {} number", words.join(" and the "))
}

/// By what it begins with.
fn parse(bytes: &[u8], by: &By) -> anyhow::Result<Printed> {
    let text = decode::decode(bytes)?;
    let is_json = text.trim_start().starts_with(['{', '[']);
    if is_json { json::parse(&text, by.column()) } else { text::parse(&text, by.column()) }
}

/// Asks sacct, as text where it is older than its JSON (Slurm 21.08).
fn ask(options: &Recommend, by: &By) -> anyhow::Result<Printed> {
    let columns = match by.column().filter(|by| !["jobname", "comment", "user"].contains(by)) {
        Some(by) => format!("{},{by}", text::COLUMNS),
        None => text::COLUMNS.to_string(),
    };
    let bytes = match sacct(options, &["--json"]) {
        Err(error) if error.to_string().contains("json") => sacct(options, &["--parsable2", "--format", &columns])?,
        bytes => bytes?,
    };
    parse(&bytes, by).context("what sacct prints could not be read")
}

fn sacct(options: &Recommend, form: &[&str]) -> anyhow::Result<Vec<u8>> {
    let mut command = Command::new("sacct");
    command.args(form).arg(format!("--starttime=now-{}days", options.days));
    command.args(options.user.iter().map(|user| format!("--user={user}")));
    let output = linux::children::output(&mut command)
        .context("sacct could not be run; --from FILE reads what it printed elsewhere")?;
    if !output.status.success() {
        bail!("sacct failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// What the site's configuration and its sacct say of who gathers the figures.
fn site() -> Gathering {
    let version = linux::children::output(Command::new("sacct").arg("--version")).ok();
    let version = version.and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse().ok());
    match Config::ask() {
        Ok(config) => Gathering { version, ..of_config(&config) },
        Err(_) => Gathering { version, ..Gathering::default() },
    }
}

fn of_config(config: &Config) -> Gathering {
    let value = |key: &str| config.value(key).unwrap_or_default().to_ascii_lowercase();
    let gatherer = match (value("JobAcctGatherType").as_str(), value("CgroupPlugin").as_str()) {
        ("jobacct_gather/linux", _) => Some(Gatherer::Linux),
        ("jobacct_gather/cgroup", "cgroup/v1") => Some(Gatherer::CgroupV1),
        ("jobacct_gather/cgroup", "cgroup/v2") => Some(Gatherer::CgroupV2),
        ("jobacct_gather/cgroup", _) => Some(Gatherer::Cgroup),
        _ => None,
    };
    let frequency = value("JobAcctGatherFrequency");
    let of_tasks = frequency.split(',').find_map(|part| match part.trim().split_once('=') {
        None => part.split_whitespace().next()?.parse().ok(),
        Some(("task", seconds)) => seconds.parse().ok(),
        Some(_) => None,
    });
    Gathering { gatherer, version: None, params: value("JobAcctGatherParams"), interval_seconds: of_tasks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sites_configuration_says_who_gathers_the_figures() {
        let of = |text: &str| of_config(&Config(text.into()));
        let config = "JobAcctGatherFrequency  = task=20,network=60\nJobAcctGatherType       = jobacct_gather/cgroup\n\
                      JobAcctGatherParams     = no_file_cache\nCgroupPlugin            = cgroup/v2\n";
        assert_eq!(
            of(config),
            Gathering {
                gatherer: Some(Gatherer::CgroupV2),
                version: None,
                params: "no_file_cache".into(),
                interval_seconds: Some(20),
            }
        );
        assert_eq!(of("JobAcctGatherFrequency = 30\n").interval_seconds, Some(30));
        assert_eq!(of(&config.replace("cgroup/v2", "autodetect")).gatherer, Some(Gatherer::Cgroup));
        assert_eq!(of("JobAcctGatherType = jobacct_gather/none\n").gatherer, None);
    }
}

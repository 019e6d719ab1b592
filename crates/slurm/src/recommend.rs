//! What jobs should ask for, with what is to be known of it.

use model::{JobsMemory, PastJob};

use crate::accounting::Printed;
use crate::error::Error;
use crate::kind::By;
use crate::meaning::Gathering;
use crate::notes::{growing, listed, lower_bounds, numbered_note, of_largest_note};

/// The jobs that have ended, with what each of their steps had.
pub fn past_jobs(printed: &Printed, gathering: &Gathering, by: &By) -> Vec<PastJob> {
    printed.past_jobs(&gathering.meaning(printed.evidence()), by).jobs
}

/// What jobs of each kind should ask for, so that a share `percentile` of the runs there were would not be killed.
///
/// # Errors
/// If no job has ended, or the memory of none is known.
pub fn recommend(printed: Printed, percentile: f64, gathering: &Gathering, by: &By) -> Result<JobsMemory, Error> {
    let meaning = gathering.meaning(printed.evidence());
    let mut notes: Vec<String> = printed.left_out.notes().collect();
    let (left_out, unknown_requests, rounded) = (printed.left_out.len(), printed.unknown_requests, printed.rounded);
    if let Some(pattern) = by.finds_nothing(&printed.jobs).filter(|_| !printed.jobs.is_empty()) {
        return Err(Error::KindOfNoJob(pattern.to_string()));
    }
    let accounting = printed.past_jobs(&meaning, by);
    if accounting.jobs.is_empty() {
        return Err(Error::NoJob { unfinished: accounting.unfinished, notes });
    }
    let found = budget::jobs::recommend(&accounting.jobs, percentile);
    if found.jobs.is_empty() {
        return Err(Error::Unmeasured { ended: found.unmeasured + found.partly_measured, notes });
    }
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
            "the largest run used at least 4 times as much as the middle one: {kinds}. If these are different jobs, separate them with --by"
        ));
    }
    notes.extend(meaning.note.clone());
    let mut doubts: Vec<String> = meaning.doubt.clone().into_iter().collect();
    doubts.extend(lower_bounds(&found.jobs));
    doubts.extend(growing(&found.numbered));
    if !accounting.nameless.is_empty() {
        doubts.push(
            "not sure: job names that are UUIDs (Snakemake) or other ids name no kind of job, and no Comment with a rule is there; these jobs are grouped by their \
             request. Add the column Comment (AccountingStoreFlags=job_comment), or give --by"
                .into(),
        );
    }
    Ok(JobsMemory {
        percentile,
        gatherer: meaning.plugin.map(Into::into),
        slurm_version: gathering.version.map(|version| version.to_string()),
        doubts,
        left_out,
        jobs: found.jobs,
        notes,
    })
}

//! Why the accounting gives no answer.

use crate::text::COLUMNS;

/// As a sentence's end: `FILE is not what sacct prints: …`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// With the program that unpacks it.
    #[error("it is compressed; {0} FILE | bursar recommend --from -")]
    Compressed(&'static str),
    /// It begins as JSON, and no job could be read of it.
    #[error("it is no whole JSON: {0}")]
    Json(serde_json::Error),
    /// JSON of something else.
    #[error("it has no list \"jobs\"")]
    NoList,
    /// What sacct says in its JSON of why it failed.
    #[error("sacct says: {error} {description}")]
    Sacct {
        /// In Slurm's words.
        error: String,
        /// The same, at more length.
        description: String,
    },
    /// No line with anything in it.
    #[error("it is empty")]
    Empty,
    /// As sacct prints it without `-P`.
    #[error("its columns are aligned by blanks, in which sacct cuts names and ids off: write sacct -P -o {COLUMNS}")]
    Aligned,
    /// As sacct prints it with `-n`.
    #[error("line 1: no column JobID: the first line must name the columns; write sacct -P -o {COLUMNS} (without -n)")]
    NoNames,
    /// Without which nothing can be said.
    #[error("line 1: no column {0}; write sacct -P -o {COLUMNS}")]
    NoColumn(&'static str),
    /// That of `--by`.
    #[error("line 1: no column {0}, by which jobs are to be grouped")]
    NoColumnOfKinds(String),
    /// `--by` of nothing.
    #[error("--by is empty: give a column of sacct, such as Comment, or a regular expression for job names")]
    NoKind,
    /// Neither a column nor a pattern.
    #[error("--by {0} is neither a column of sacct nor a regular expression")]
    Kind(String, #[source] regex::Error),
    /// A pattern that is found in no name.
    #[error("--by {0} is no column of sacct, and as a regular expression it is found in the name of no job")]
    KindOfNoJob(String),
    /// There is nothing to go by.
    #[error("no job has ended")]
    NoJob {
        /// Jobs that have not ended.
        unfinished: u64,
        /// What was left out of the input.
        notes: Vec<String>,
    },
    /// Jobs have ended, and no step of theirs has a figure.
    #[error(
        "jobs that have ended: {ended}; the memory of none is known, for the accounting has no figure (MaxRSS) of a step. Either the steps were \
         shorter than the sampling interval, or the site gathers no figures (JobAcctGatherType), or they are printed in a unit too large for them \
         (use sacct --noconvert){}",
        of_the_input(.notes)
    )]
    Unmeasured {
        /// How many have.
        ended: usize,
        /// What was left out of the input.
        notes: Vec<String>,
    },
}

/// What was left out of the input, as the end of a sentence.
pub fn of_the_input(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!(". Of the input: {}", notes.join("; ")) }
}

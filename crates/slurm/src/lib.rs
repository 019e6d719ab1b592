//! What a cluster's accounting tells of past jobs, and what jobs of their kinds should ask for. Pure: text in, figures out.
//!
//! ```text
//! parse(bytes, by)  ->  Printed          what sacct printed, as text or JSON
//! Printed::select(wanted)                whose jobs
//! past_jobs(printed, …)  ->  [PastJob]      those that have ended, with what their steps had
//! recommend(printed, …)  ->  JobsMemory  by what its figures hold (Gathering), kind by kind (By)
//! ```

mod accounting;
mod config;
mod decode;
mod error;
#[cfg(test)]
mod fuzz;
mod gatherer;
mod json;
mod kind;
mod meaning;
mod notes;
mod recommend;
mod text;
mod version;

pub use accounting::{Printed, Wanted};
pub use config::Config;
pub use error::{Error, of_the_input};
pub use gatherer::Gatherer;
pub use kind::By;
pub use meaning::Gathering;
pub use recommend::{past_jobs, recommend};
pub use text::COLUMNS;
pub use version::Version;

/// What sacct printed, as text or JSON, by what it begins with.
///
/// # Errors
/// If it is neither, or lacks what nothing can be said without.
pub fn parse(bytes: &[u8], by: &By) -> Result<Printed, Error> {
    let text = decode::decode(bytes)?;
    let is_json = text.trim_start().starts_with(['{', '[']);
    if is_json { json::parse(&text, by.column()) } else { text::parse(&text, by.column()) }
}

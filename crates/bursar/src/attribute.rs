//! `bursar attribute`: who inside the command holds its memory.

use model::Axis;
use session::attribution::{self, Options, Outcome, attributed, figures, notes};
use session::say::{self, tell};
use session::status::Status;

use crate::cli::attribute::{Attribute, By};
use crate::results::{style, write_json, write_page};

pub fn attribute(options: Attribute) -> anyhow::Result<Status> {
    let results = options.results;
    let asked = Options {
        command: options.command,
        components: options.components,
        by: match options.by {
            By::Owner => Axis::Owner,
            By::Touch => Axis::Touch,
        },
        by_library: options.by_library,
        comm_matrix: options.comm_matrix,
        times: options.times,
        interval: options.interval,
        log_limit: options.log_limit,
        scaling: options.scaling,
        timeout: options.timeout,
        record: results.record,
    };
    let (record, path, status) = match attribution::attribute(&asked)? {
        Outcome::Recorded(record, path, status) => (record, path, status),
        Outcome::Nothing(status) => return Ok(status),
    };
    let notes = notes(&record);
    let attributed = attributed(&record, &notes);
    if !results.quiet {
        if results.verbose {
            say::page(&::report::terminal::attribution(&attributed, style()));
            path.iter().for_each(|path| tell!("record: {}", path.display()));
        } else {
            say::page(&::report::terminal::short::attribution(&attributed, path.as_deref(), style()));
        }
    }
    if let Some(path) = &results.json {
        write_json(path, &figures(&record, !asked.scaling.is_empty())?)?;
    }
    if let Some(path) = &results.html {
        write_page(path, &::report::html::attribution(&attributed))?;
    }
    Ok(status)
}

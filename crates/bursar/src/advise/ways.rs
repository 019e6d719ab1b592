//! `bursar advise try`: a command in each way of having huge pages, interleaved, and which of them is the fastest.

use ::ways::{Compared, Options};
use session::say;
use session::status::Status;

use crate::cli::advise::Try;
use crate::results::{check_html, check_json, style, write_json, write_page};

pub fn compare(options: Try) -> anyhow::Result<Status> {
    check_json(options.json.as_deref())?;
    check_html(options.html.as_deref())?;
    let asked = Options {
        command: options.command,
        ways: options.arms,
        rounds: options.rounds,
        time_limit: options.time_limit,
        input: options.input,
        quiet: options.quiet,
    };
    let (report, status) = match ::ways::compare(&asked)? {
        Compared::Report(report, status) => (report, status),
        Compared::Nothing(status) => return Ok(status),
    };
    if !options.quiet {
        say::page(&report::terminal::arms(&report, style()));
    }
    if let Some(path) = &options.json {
        write_json(path, &report)?;
    }
    if let Some(path) = &options.html {
        write_page(path, &report::html::arms(&report))?;
    }
    Ok(status)
}

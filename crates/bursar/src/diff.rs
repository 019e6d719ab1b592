//! `bursar diff`: records side by side.

use history::difference;
use history::input::is_dash;
use session::say;
use session::status::Status;

use crate::cli::diff::Diff;
use crate::results::{style, write_json, write_page};

pub fn diff(options: &Diff) -> anyhow::Result<Status> {
    let difference = difference::diff(&options.records)?;
    let prints = !options.json.as_deref().is_some_and(is_dash);
    if prints || options.html.is_some() {
        let shown = difference.shown()?;
        if let Some(path) = &options.html {
            write_page(path, &::report::html::diff(&shown))?;
        }
        if prints {
            say::page_result(&::report::terminal::diff(&shown, style()))?;
        }
    }
    if let Some(path) = &options.json {
        write_json(path, &difference.figures())?;
    }
    Ok(Status::of(0))
}

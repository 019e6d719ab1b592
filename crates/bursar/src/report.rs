//! `bursar report`: a record, looked at again.

use model::RecordKind;
use record::Record;

use crate::cli;
use crate::results::{accounts, style, view, write_html};
use crate::status::Status;

pub fn report(options: &cli::Report) -> anyhow::Result<Status> {
    let record = Record::open(&options.record)?;
    let accounts = accounts(&record);
    match &options.html {
        Some(path) => write_html(path, &record, &accounts)?,
        None => {
            let view = view(&record, &accounts);
            let text = match record.header.kind {
                RecordKind::Budget => ::report::terminal::budget(&view, style()),
                _ => ::report::terminal::run(&view, style()),
            };
            print!("{text}");
        }
    }
    Ok(Status::of(0))
}

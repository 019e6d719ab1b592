//! `bursar report --phases`: what intermittent tracking would have made of runs that were tracked all the time.

use curve::intermittent::{Settings, Threshold};
use history::replay::replayed;
use live::checked;
use model::PhaseReplay;
use session::say;

use crate::cli::report::Report;
use crate::report::open;
use crate::results::{style, write_json, write_page};

pub fn replay(options: &Report) -> anyhow::Result<()> {
    let (phases, results) = (&options.phases, &options.results);
    let settings = Settings {
        width: phases.width as usize,
        wss_threshold: phases.wss_threshold,
        threshold: Threshold::Adaptive(phases.threshold),
        checkpoint: phases.checkpoint,
        ..Settings::default()
    };
    let (mut records, mut followed) = (Vec::new(), Vec::new());
    for path in &options.records {
        let (record, figure) = replayed(&checked(open(path)?, path)?, path, settings)?;
        records.push(record);
        followed.push(figure);
    }
    let replay = PhaseReplay::of(records);
    if !results.quiet && results.json.is_none() && results.html.is_none() {
        say::page_result(&::report::terminal::phases(&replay, style()))?;
    }
    if let Some(path) = &results.json {
        write_json(path, &replay)?;
    }
    if let Some(path) = &results.html {
        write_page(path, &::report::html::phases(&replay, &followed))?;
    }
    Ok(())
}

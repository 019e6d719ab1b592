//! `bursar budget`: finds the least memory with which a command is fast enough.

use history::inputs;
use record::Resumable;
use report::terminal::short::Aside;
use search::{Answered, Found, Machine, Options, Search, resume};
use session::say::{self, tell};
use session::status::Status;

use crate::cli::budget::Budget;
use crate::results::deliver;

pub fn budget(options: Budget) -> anyhow::Result<Status> {
    let Budget { resume: record, results, .. } = &options;
    let resumed = record.as_deref().map(Resumable::open).transpose()?;
    let old = resumed.as_ref().map(Resumable::record).transpose()?;
    let mut asked = asked(&options);
    if let Some(record) = &old {
        asked = resume::restored(asked, record)?;
        resume::show(&asked);
    }
    let machine = Machine::set_up(&asked, old.as_ref().map(resume::input).as_ref())?;
    let mut header = machine.header();
    header.options = inputs::options(&asked.command, &options.feature);
    header.options.extend(resume::saved(&asked, &machine.input()));
    let notes = machine.notes();
    match Search::begin(&asked, machine, header, notes, resumed.zip(old))?.run()? {
        Found::Failure(failure) => {
            say::beside(format_args!("{}", failure.errors));
            tell!("bursar: {}", failure.sentence());
            Ok(failure.status)
        }
        Found::Answer(found) => {
            let Answered { record, report, notes, foreign, path, status } = *found;
            let aside = Aside { warnings: foreign.as_slice(), notes: &notes, record: path.as_deref() };
            deliver(results, &record, &aside, &report)?;
            if let (Status::Signal(_), Some(path), false) = (status, &path, results.quiet) {
                tell!("go on with: bursar budget --resume {}", path.display());
            }
            Ok(status)
        }
    }
}

fn asked(options: &Budget) -> Options {
    Options {
        command: options.command.clone(),
        slowdown: options.slowdown,
        runs: options.runs,
        max_trials: options.max_trials,
        timeout: options.timeout,
        compare: !options.no_compare,
        full: options.full,
        input: options.input.clone(),
        prepare: options.prepare.clone(),
        drop_caches: options.drop_caches,
        as_found: options.as_found,
        interval: options.interval,
        fast_tier: options.fast_tier,
        record: options.results.record.clone(),
        quiet: options.results.quiet,
    }
}

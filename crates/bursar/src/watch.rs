//! `bursar watch`: what a running program does with its memory, told while it runs.

use job::Forwarding;
use linux::journal;
use live::Options;
use qemu::put_back;
use session::say::tell;
use session::status::Status;

use crate::cli::watch::Watch;

pub fn watch(options: Watch) -> anyhow::Result<Status> {
    let signals = Forwarding::start()?;
    // One that was killed may still have DAMON.
    for repaired in journal::repair(put_back, &mut session::bench::announce_repair) {
        tell!("bursar: left by a killed run: {repaired}");
    }
    let asked = Options {
        target: options.target.as_ref().map(|target| target.find()).transpose()?,
        interval: options.interval,
        overhead: options.overhead,
        always: options.always,
        hot_set: !options.no_hot_set,
        intrusive: options.intrusive,
        record: options.record,
        json: options.json,
        quiet: options.quiet,
        command: options.command,
    };
    live::watch(&asked, &signals)
}

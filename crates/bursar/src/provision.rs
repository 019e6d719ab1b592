//! `bursar provision`: a command on memory that is there when it asks for it; and the pool that it would take.

use std::time::Instant;

use model::Bytes;
use session::inside;
use session::provisioned::{self, Options};
use session::say::tell;
use session::status::Status;

use crate::cli::pool::PoolSize;
use crate::cli::provision::{OnExhaustion, Provision};
use crate::results::{check_json, write_json};

pub fn provision(options: Provision) -> anyhow::Result<Status> {
    let begun = Instant::now();
    check_json(options.stats.as_deref())?;
    let asked = Options {
        command: options.command,
        pool: options.pool,
        size: options.size,
        pin: options.pin,
        fail: options.on_exhaustion == OnExhaustion::Fail,
    };
    let ran = provisioned::provision(&asked, begun)?;
    let rank = ran.rank();
    let lines = if options.quiet { Vec::new() } else { ran.summary() };
    let whose = rank.as_ref().map(|rank| format!("rank {}: ", rank.number)).unwrap_or_default();
    // A failure is no part of the summary.
    for line in lines.iter().chain(&ran.without) {
        tell!("bursar: {whose}{line}");
    }
    if let Some(path) = &options.stats {
        write_json(&inside::of_rank(path, rank.as_ref()), &ran.stats())?;
    }
    Ok(ran.status())
}

/// `bursar pool size`
pub fn pool_size(options: &PoolSize) -> anyhow::Result<Status> {
    check_json(options.json.as_deref())?;
    let sized = provisioned::pool_size(&options.command)?;
    let status = sized.status();
    if let Some(why) = sized.without() {
        tell!("bursar: {why}");
    }
    if !options.quiet {
        for note in sized.notes() {
            tell!("bursar: {note}");
        }
        if status.code() != 0 {
            tell!("bursar: the command ended with status {}: the pool may be too small.", status.code());
        }
        match sized.pool_bytes {
            0 => tell!("It asked for nothing that a pool serves."),
            bytes => tell!(
                "A pool of {} serves all of it: for each process the most it asked for, in whole segments; of processes \
                 that ran together the sum, as if all had their most at the same time.\n\n    bursar pool create {}M\n",
                Bytes(bytes),
                Bytes(bytes).mib_ceil()
            ),
        }
    }
    if let Some(path) = &options.json {
        write_json(path, &sized.figures())?;
    }
    Ok(status)
}

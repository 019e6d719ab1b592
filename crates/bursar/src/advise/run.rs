//! `bursar advise run`: a command whose memory is advised about from within.

use std::time::Instant;

use advise::Profile;
use controller::huge_pages::advised::{self, Options};
use history::input::{name, read};
use session::inside;
use session::say::tell;
use session::status::{OWN_FAILURE, Status};

use super::check::no_profile;
use crate::cli::advise::Run;
use crate::results::{check_json, write_json};

pub fn run(options: Run) -> anyhow::Result<Status> {
    let begun = Instant::now();
    check_json(options.stats.as_deref())?;
    let profile = match &options.profile {
        None => Profile::default(),
        Some(path) => match Profile::parse(&read(path).map_err(no_profile)?) {
            Ok(profile) => profile,
            Err(malformed) => {
                malformed.0.iter().for_each(|wrong| tell!("bursar: {}: {wrong}", name(path)));
                return Ok(Status::of(OWN_FAILURE));
            }
        },
    };
    let asked = Options {
        command: options.command,
        profile,
        pool: options.pool,
        huge_pages: options.huge_pages,
        record: options.record,
    };
    let mut ran = advised::run(&asked, begun)?;
    let lines = if options.quiet { Vec::new() } else { ran.summary() };
    let whose = ran.rank.as_ref().map(|rank| format!("rank {}: ", rank.number)).unwrap_or_default();
    // A failure is no part of the summary.
    for line in lines.iter().chain(&ran.without) {
        tell!("bursar: {whose}{line}");
    }
    ran.keep()?;
    if let Some(path) = &options.stats {
        write_json(&inside::of_rank(path, ran.rank.as_ref()), &ran.stats())?;
    }
    Ok(ran.status())
}

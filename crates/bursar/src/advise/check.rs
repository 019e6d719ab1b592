//! `bursar advise check`: what is wrong with a profile.

use std::path::Path;

use advise::Profile;
use anyhow::anyhow;

use history::input::{name, read};
use session::say::{show, tell};
use session::status::{OWN_FAILURE, Status};

pub fn check(path: &Path) -> anyhow::Result<Status> {
    let name = name(path);
    match Profile::parse(&read(path).map_err(no_profile)?) {
        Ok(profile) => {
            let ranges: usize = profile.programs.iter().map(|program| program.ranges.len()).sum();
            show!("{name}: valid; {} of {}", counted(ranges, "range"), counted(profile.programs.len(), "program"))?;
            Ok(Status::of(0))
        }
        Err(malformed) => {
            malformed.0.iter().for_each(|wrong| tell!("bursar: {name}: {wrong}"));
            Ok(Status::of(OWN_FAILURE))
        }
    }
}

/// Why a file could not be read as a profile, with what one is.
pub fn no_profile(why: anyhow::Error) -> anyhow::Error {
    anyhow!("{why}. A profile is what `bursar advise profile` writes")
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

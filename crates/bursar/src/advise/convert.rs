//! `bursar advise convert`: CBMM's files as profiles.

use std::path::Path;

use advise::{Profile, Program, cbmm, maps};
use anyhow::{Context, ensure};
use history::build_id::build_id;
use history::input::{name, read};
use session::say::{self, tell};
use session::status::Status;

use crate::cli::advise::Convert;

pub fn convert(options: &Convert) -> anyhow::Result<Status> {
    let (rules, wrong) = cbmm::read(&read(&options.csv)?);
    let areas = match &options.maps {
        Some(path) => {
            let executable = options.program.canonicalize().unwrap_or_else(|_| options.program.clone());
            let text = read(path)?;
            let of = |path: &str| build_id(Path::new(path)).ok().flatten();
            maps::read(&text, &executable.to_string_lossy(), of).with_context(|| name(path))?
        }
        None => Vec::new(),
    };
    let (ranges, untold) = cbmm::convert(&rules, &areas, options.ghz);
    let csv = name(&options.csv);
    wrong.iter().chain(&untold).for_each(|wrong| tell!("bursar: {csv}: {wrong}"));
    ensure!(!ranges.is_empty(), "{csv}: a profile can express none of its rules");
    let program = Program {
        name: options.program.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        build_id: build_id(&options.program)?,
        command: None,
        ranges,
    };
    say::result(format_args!("{}", Profile { programs: vec![program] }))?;
    Ok(Status::of(0))
}

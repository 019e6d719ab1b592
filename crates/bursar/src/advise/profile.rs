//! `bursar advise profile`: what huge pages are worth to each part of a command's memory, by which parts it accesses.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use advise::Profile;
use anyhow::Context;
use controller::huge_pages::profiling;
use linux::secure_file;
use session::inside;
use session::launch::Launcher;
use session::rank::Rank;
use session::say::tell;
use session::status::Status;

use crate::cli;

pub fn profile(options: &cli::advise::Profile) -> anyhow::Result<Status> {
    let begun = Instant::now();
    let rank = Rank::find().filter(|_| Launcher::of(&options.command).is_none());
    let path = inside::of_rank(&options.output.clone().unwrap_or_else(|| named(&options.command)), rank.as_ref());
    // Before the run: what it shows must have a place.
    let output = Output::create(&path)?;
    let profiled = profiling::profile(&options.command, begun)?;
    output.write(&profiled.profile)?;
    let lines = if options.quiet { Vec::new() } else { profiled.summary(&path) };
    // A failure is no part of the summary.
    for line in lines.iter().chain(&profiled.without) {
        tell!("bursar: {line}");
    }
    Ok(profiled.status())
}

/// In the working directory, after the command.
fn named(command: &[OsString]) -> PathBuf {
    let name = command.first().and_then(|word| Path::new(word).file_name()).unwrap_or_default();
    let mut name = name.to_owned();
    name.push(".profile");
    name.into()
}

/// Where the profile goes: whole, or not at all; what is no file (a pipe, `/dev/null`) stays what it is.
enum Output<'a> {
    Standard,
    Named(secure_file::Output, &'a Path),
}

impl Output<'_> {
    fn create(path: &Path) -> anyhow::Result<Output<'_>> {
        if path == Path::new("-") {
            return Ok(Output::Standard);
        }
        let out = secure_file::Output::create(path).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(Output::Named(out, path))
    }

    fn write(self, profile: &Profile) -> anyhow::Result<()> {
        match self {
            Output::Standard => {
                let out = linux::standard_output::open();
                out.and_then(|mut out| write!(out, "{profile}")).context("the profile could not be printed")
            }
            Output::Named(mut out, path) => {
                let written = write!(out, "{profile}").and_then(|()| out.commit());
                written.with_context(|| format!("{} could not be written", path.display()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    #[test]
    fn a_pipe_stays_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut pipe = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        Output::create(&path).unwrap().write(&Profile::default()).unwrap();
        assert!(path.metadata().unwrap().file_type().is_fifo());
        let mut told = [0; 16];
        pipe.read_exact(&mut told).unwrap();
        assert_eq!(&told, b"bursar profile 1");
    }
}

//! `bursar doctor`: what works here, every rung of every ladder, and what a killed run has left.

use anyhow::Context;
use history::input::is_dash;
use history::prune::{Keep, Pruned, prune};
use history::state::state_folder;
use linux::{journal, probe};
use model::Bytes;
use qemu::put_back;
use report::terminal::paragraph;
use session::ability;
use session::pools;
use session::say::show;
use session::status::Status;

use crate::cli::doctor::Doctor;
use crate::results::{columns, write_json};

pub fn doctor(options: &Doctor) -> anyhow::Result<Status> {
    let repaired = options.repair.then(repair);
    let pruned = options.prune.then(pruned).transpose()?;
    let findings = probe::all();
    let abilities = ability::all(&findings);
    if let Some(path) = &options.json {
        let repaired = repaired.as_deref();
        write_json(path, &ability::Json { abilities: &abilities, findings: &findings, repaired, pruned })?;
        if is_dash(path) {
            return Ok(Status::of(0));
        }
    }
    let width = columns().unwrap_or(usize::MAX);
    if let Some(repaired) = repaired {
        let nothing = repaired.is_empty().then(|| "nothing to repair".to_string());
        repaired.into_iter().chain(nothing).try_for_each(|line| show!("{}", paragraph(&line, "  ", width)))?;
        show!()?;
    }
    if let Some(pruned) = pruned {
        show!("removed {} records of {}", pruned.records, Bytes(pruned.bytes))?;
        show!()?;
    }
    for ability in &abilities {
        show!("{}", ability.text(width))?;
    }
    show!()?;
    if !options.verbose {
        let more = "every source of each figure, and how to enable it: bursar doctor -v";
        show!("{}", paragraph(more, "  ", width))?;
        return Ok(Status::of(0));
    }
    let mut ladder = "";
    for finding in &findings {
        if finding.ladder != ladder {
            ladder = &finding.ladder;
            show!("{ladder}")?;
        }
        let there = if finding.there { "yes" } else { "no " };
        let line = format!("  {there} {}: {}", finding.rung, finding.why);
        show!("{}", paragraph(&line, "      ", width))?;
        if let Some(enable) = finding.enable.as_ref().filter(|_| !finding.there) {
            // A command that is to be pasted stays in one line.
            show!("      enable it: {enable}")?;
        }
    }
    Ok(Status::of(0))
}

/// Undoes what killed bursars have left, in sentences.
fn repair() -> Vec<String> {
    let mut repaired = journal::repair(put_back, &mut session::bench::announce_repair);
    repaired.extend(pools::repair());
    repaired
}

fn pruned() -> anyhow::Result<Pruned> {
    let folder = state_folder()?;
    prune(&folder, Keep::of_environment()?).with_context(|| format!("{} cannot be pruned", folder.display()))
}

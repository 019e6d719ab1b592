//! `bursar doctor`: what works here, every rung of every ladder, and what a killed run has left.

mod ability;

use anyhow::Context;
use linux::{journal, probe};
use model::Bytes;

use crate::balance::put_back;
use crate::cli::doctor::Doctor;
use crate::prune::{Keep, Pruned, prune};
use crate::results::state_folder;
use crate::say::show;
use crate::status::Status;

pub fn doctor(options: &Doctor) -> anyhow::Result<Status> {
    let repaired = options.repair.then(|| journal::repair(put_back, &mut crate::bench::announce_repair));
    let pruned = options.prune.then(pruned).transpose()?;
    let findings = probe::all();
    let abilities = ability::all(&findings);
    if options.json {
        let pruned = pruned.map(|pruned| serde_json::json!({ "records": pruned.records, "bytes": pruned.bytes }));
        let value =
            serde_json::json!({ "abilities": abilities, "findings": findings, "repaired": repaired, "pruned": pruned });
        show!("{}", serde_json::to_string_pretty(&value)?)?;
        return Ok(Status::of(0));
    }
    if let Some(repaired) = repaired {
        show!("{}", if repaired.is_empty() { "nothing to repair".into() } else { repaired.join("\n") })?;
        show!()?;
    }
    if let Some(pruned) = pruned {
        show!("removed {} records of {}", pruned.records, Bytes(pruned.bytes))?;
        show!()?;
    }
    for ability in &abilities {
        show!("{ability}")?;
    }
    show!()?;
    if !options.verbose {
        show!("every source of each figure, and how to enable it: bursar doctor -v")?;
        return Ok(Status::of(0));
    }
    let mut ladder = "";
    for finding in &findings {
        if finding.ladder != ladder {
            ladder = &finding.ladder;
            show!("{ladder}")?;
        }
        show!("  {} {}: {}", if finding.there { "yes" } else { "no " }, finding.rung, finding.why)?;
        if let Some(enable) = finding.enable.as_ref().filter(|_| !finding.there) {
            show!("      enable it: {enable}")?;
        }
    }
    Ok(Status::of(0))
}

fn pruned() -> anyhow::Result<Pruned> {
    let folder = state_folder()?;
    prune(&folder, Keep::of_environment()?).with_context(|| format!("{} cannot be pruned", folder.display()))
}

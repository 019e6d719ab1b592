//! `bursar doctor`: every rung of every ladder, and what a killed run has left.

use linux::{journal, probe};

use crate::balance::put_back;
use crate::cli::doctor::Doctor;
use crate::say::show;
use crate::status::Status;

pub fn doctor(options: &Doctor) -> anyhow::Result<Status> {
    let repaired = options.repair.then(|| journal::repair(put_back));
    let findings = probe::all();
    if options.json {
        let value = serde_json::json!({ "findings": findings, "repaired": repaired });
        show!("{}", serde_json::to_string_pretty(&value)?)?;
        return Ok(Status::of(0));
    }
    if let Some(repaired) = repaired {
        show!("{}", if repaired.is_empty() { "nothing to repair".into() } else { repaired.join("\n") })?;
        show!()?;
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

//! `bursar advise costs`: what managing memory costs on this machine.

use controller::huge_pages::cost_lines;
use controller::huge_pages::costs::{ON_REQUEST, measured, remembered};
use session::say::{show, tell};
use session::status::Status;

use crate::cli;
use crate::results::write_json;

pub fn print(options: &cli::advise::Costs) -> anyhow::Result<Status> {
    let known = if options.again { None } else { remembered() };
    let calibrated = known.unwrap_or_else(|| measured(ON_REQUEST));
    if let Some(path) = &options.json {
        write_json(path, &calibrated)?;
        return Ok(Status::of(0));
    }
    cost_lines(&calibrated)?.iter().try_for_each(|line| show!("{line}"))?;
    if calibrated.beside_others {
        tell!("bursar: other programs ran while this was measured; it is measured again when the machine is idle");
    }
    Ok(Status::of(0))
}

//! `bursar serve`: the machine's cgroups as metrics over HTTP.

use serve::Settings;

use crate::cli::serve::Serve;
use crate::say::tell;
use crate::status::Status;

pub fn serve(options: &Serve) -> anyhow::Result<Status> {
    let settings = Settings { patterns: options.cgroups.clone(), most: options.max_cgroups };
    ::serve::serve(options.listen, options.interval, settings, &|told| tell!("bursar: {told}"))?;
    Ok(Status::of(0))
}

//! `bursar serve`: the machine's cgroups as metrics over HTTP.

use serve::Settings;
use session::say::tell;
use session::status::Status;

use crate::cli::serve::Serve;

pub fn serve(options: &Serve) -> anyhow::Result<Status> {
    let settings = Settings { patterns: options.cgroups.clone(), most: options.max_cgroups };
    ::serve::serve(options.listen, options.interval, settings, &|told| tell!("bursar: {told}"))?;
    Ok(Status::of(0))
}

//! `bursar pool`: memory set apart, and the broker that lends it.

use std::path::Path;

use ::provision::manage::{self, Placement, Plan, PoolStatus, PoolsJson};
use ::provision::state::{Backend, Directory};
use ::provision::{Error, broker, owner};
use history::input::is_dash;
use job::Forwarding;
use model::Bytes;
use session::pools::{lines, there};
use session::say::{show, tell};
use session::status::{OWN_FAILURE, Status};

use crate::cli;
use crate::cli::pool::{Pool, PoolChange, PoolCreate};
use crate::provision;
use crate::results::write_json;

pub fn pool(options: &Pool) -> anyhow::Result<Status> {
    match options {
        Pool::Create(options) => return create(options),
        Pool::Size(options) => return provision::pool_size(options),
        Pool::Serve(which) => broker::serve(&Directory::of(which.or_default())?, &|told| tell!("bursar: {told}"))?,
        Pool::Status { which, json } => status(which.name(), json.as_deref())?,
        Pool::Grow(options) => {
            let directory = Directory::of(&options.name)?;
            let grown = manage::grow(&directory, options.size.0)?;
            show!("{}", there(&directory, options.size, &grown)?)?;
        }
        Pool::Shrink(options) => shrink(options)?,
        Pool::Destroy { which, force } => destroy(which.or_default(), *force)?,
    }
    Ok(Status::of(0))
}

fn create(options: &PoolCreate) -> anyhow::Result<Status> {
    let directory = Directory::of(&options.name)?;
    let plan = Plan {
        bytes: options.size.0,
        placement: options.node.unwrap_or(Placement::Spread),
        page_bytes: options.page,
        backend: match options.backend {
            cli::pool::Backend::Hugetlb => Backend::Hugetlb,
            cli::pool::Backend::Dax => Backend::Dax,
        },
        owner: owner::owner(&options.owner)?,
        mode: options.mode,
        per_user_bytes: options.per_user.map(|bytes| bytes.0),
    };
    let signals = Forwarding::start()?;
    let grown = match manage::create(&directory, &plan, &|| signals.interrupted()) {
        Err(error @ Error::Cancelled(_)) => {
            tell!("bursar: {error}");
            return Ok(signals.stopped_by().map_or(Status::of(OWN_FAILURE), Status::Signal));
        }
        made => made?,
    };
    show!("{}", there(&directory, options.size, &grown)?)?;
    Ok(Status::of(0))
}

fn shrink(options: &PoolChange) -> anyhow::Result<()> {
    let directory = Directory::of(&options.name)?;
    let given_back = Bytes(manage::shrink(&directory, options.size.0)?);
    let left = Bytes(manage::status(&directory)?.whole.bytes);
    let short =
        if given_back < options.size { format!(" of {}: no more was free", options.size) } else { String::new() };
    show!("pool {}: {given_back}{short} given back, {left} left", options.name)?;
    Ok(())
}

fn destroy(name: &str, force: bool) -> anyhow::Result<()> {
    let held = manage::destroy(&Directory::of(name)?, force)?;
    show!("pool {name}: removed, and its memory given back")?;
    for holder in held {
        show!("  but what process {} ({}) has of it, until it ends", holder.pid, holder.command)?;
    }
    Ok(())
}

fn status(name: Option<&str>, json: Option<&Path>) -> anyhow::Result<()> {
    let directories = match name {
        Some(name) => vec![Directory::of(name)?],
        None => Directory::all(),
    };
    let pools: Result<Vec<PoolStatus>, Error> = directories.iter().map(manage::status).collect();
    let pools = pools?;
    if let Some(path) = json {
        write_json(path, &PoolsJson { pools: &pools })?;
    }
    match json.is_some_and(is_dash) {
        true => Ok(()),
        false if pools.is_empty() => show!("no pools; `bursar pool create SIZE` makes one"),
        false => pools.iter().flat_map(lines).try_for_each(|line| show!("{line}")),
    }
}

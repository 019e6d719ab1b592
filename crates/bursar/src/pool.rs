//! `bursar pool`: memory set apart, and the broker that lends it.

use std::path::Path;

use ::provision::manage::{self, Grown, NodeStatus, Parts, Placement, Plan, PoolStatus};
use ::provision::state::{Backend, Directory};
use ::provision::{Error, broker, control::LeaseStatus, owner};
use job::Forwarding;
use model::Bytes;
use report::seconds;
use session::bench::announce_repair;
use session::input::is_dash;
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
        Err(error @ Error::GivenUp(_)) => {
            tell!("bursar: {error}");
            return Ok(signals.stopped_by().map_or(Status::of(OWN_FAILURE), Status::Signal));
        }
        made => made?,
    };
    show!("{}", there(&directory, options.size, &grown)?)?;
    Ok(Status::of(0))
}

/// What a pool has now that something was added.
fn there(directory: &Directory, asked: Bytes, grown: &Grown) -> Result<String, Error> {
    let status = manage::status(directory)?;
    let rounded = match grown.bytes == asked.0 {
        true => String::new(),
        false => format!(" ({asked} rounded up to whole segments of {})", Bytes(status.segment_bytes)),
    };
    let nodes: Vec<String> = status.nodes.iter().map(on_node).collect();
    Ok(format!(
        "pool {}: {} in pages of {}, {}; {}{rounded} populated in {}",
        status.name,
        Bytes(status.whole.bytes),
        Bytes(status.page_bytes),
        nodes.join(", "),
        Bytes(grown.bytes),
        seconds(grown.seconds),
    ))
}

fn on_node(node: &NodeStatus) -> String {
    let where_it_is = node.node.map_or("interleaved over all nodes".into(), |node| format!("on node {node}"));
    format!("{} {where_it_is}", Bytes(node.parts.bytes))
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
        write_json(path, &serde_json::json!({ "pools": pools }))?;
    }
    match json.is_some_and(is_dash) {
        true => Ok(()),
        false if pools.is_empty() => show!("no pools; `bursar pool create SIZE` makes one"),
        false => pools.iter().try_for_each(print),
    }
}

/// Removes pools whose broker was killed; of each, a sentence. One that was stopped keeps its memory for the next.
pub fn repair() -> Vec<String> {
    let all = Directory::all();
    let left = all.iter().filter(|directory| directory.socket().exists()).filter_map(|directory| {
        let status = manage::status(directory).ok().filter(|status| status.alive == Some(false))?;
        Some((directory, Bytes(status.whole.bytes)))
    });
    left.map(|(directory, bytes)| {
        let name = directory.name();
        announce_repair(&format!("removal of pool {name}, which holds {bytes} and whose broker was killed"));
        match manage::destroy(directory, false) {
            Ok(_) => format!("pool {name}: its broker was killed; it is removed, and its {bytes} given back"),
            Err(error) => format!(
                "pool {name}: its broker was killed, and it keeps {bytes}: {error}. `bursar pool serve {name}` starts a broker again"
            ),
        }
    })
    .collect()
}

fn print(pool: &PoolStatus) -> anyhow::Result<()> {
    let broker = match (pool.alive, pool.broker_pid) {
        (Some(true), Some(pid)) => format!("broker {pid}"),
        (None, _) => "this user may not ask its broker".into(),
        _ => format!("no broker: start it with `bursar pool serve {}`", pool.name),
    };
    let cap = pool.per_user_bytes.map(|bytes| format!(", at most {} for one user", Bytes(bytes))).unwrap_or_default();
    show!(
        "pool {}: {} in pages of {}, lent in segments of {}{cap}; {broker}",
        pool.name,
        Bytes(pool.whole.bytes),
        Bytes(pool.page_bytes),
        Bytes(pool.segment_bytes)
    )?;
    for node in &pool.nodes {
        let name = node.node.map_or("all nodes".into(), |node| format!("node {node}"));
        show!("  {name:<10} {}", parts(&node.parts))?;
    }
    if pool.surplus_bytes > 0 {
        show!(
            "  {} of it is more than vm.nr_hugepages allows, which was lowered after the pool was made: it stays in the pool, \
             and `pool shrink` or `destroy` gives it back to the kernel",
            Bytes(pool.surplus_bytes)
        )?;
    }
    for lease in pool.leases.iter().flatten() {
        show!("  {}", sentence(lease))?;
    }
    Ok(())
}

fn parts(parts: &Parts) -> String {
    match (parts.free_bytes, parts.leased_bytes, parts.zeroing_bytes) {
        (Some(free), Some(leased), Some(zeroing)) => {
            format!("{} free, {} leased, {} being zeroed", Bytes(free), Bytes(leased), Bytes(zeroing))
        }
        _ => format!("{}; only the broker knows what of it is free", Bytes(parts.bytes)),
    }
}

fn sentence(lease: &LeaseStatus) -> String {
    let nodes: Vec<String> = lease.nodes.iter().map(u32::to_string).collect();
    let whose = match lease.pid {
        0 => "a process that is not to be seen from here".to_string(),
        pid => format!("process {pid} ({}) of user {}", lease.command, lease.uid),
    };
    let lingering = if lease.lingering { "; it has ended, and another has the memory still" } else { "" };
    format!("{} on node {}: {whose}{lingering}", Bytes(lease.bytes), nodes.join(", "))
}

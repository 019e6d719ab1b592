//! Pools of memory set apart, for people; and those whose broker was killed.

use model::Bytes;
use provision::Error;
use provision::control::LeaseStatus;
use provision::manage::{self, Grown, NodeStatus, Parts, PoolStatus};
use provision::state::Directory;
use report::seconds;

use crate::bench::announce_repair;

/// What a pool has now that something was added.
///
/// # Errors
/// If its state cannot be read.
pub fn there(directory: &Directory, asked: Bytes, grown: &Grown) -> Result<String, Error> {
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

/// A pool, its nodes and its leases, in lines.
pub fn lines(pool: &PoolStatus) -> Vec<String> {
    let broker = match (pool.alive, pool.broker_pid) {
        (Some(true), Some(pid)) => format!("broker {pid}"),
        (None, _) => "this user may not ask its broker".into(),
        _ => format!("no broker: start it with `bursar pool serve {}`", pool.name),
    };
    let cap = pool.per_user_bytes.map(|bytes| format!(", at most {} for one user", Bytes(bytes))).unwrap_or_default();
    let mut lines = vec![format!(
        "pool {}: {} in pages of {}, leased in segments of {}{cap}; {broker}",
        pool.name,
        Bytes(pool.whole.bytes),
        Bytes(pool.page_bytes),
        Bytes(pool.segment_bytes)
    )];
    for node in &pool.nodes {
        let name = node.node.map_or("all nodes".into(), |node| format!("node {node}"));
        lines.push(format!("  {name:<10} {}", parts(&node.parts)));
    }
    if pool.surplus_bytes > 0 {
        lines.push(format!(
            "  {} of it is more than vm.nr_hugepages allows, which was lowered after the pool was made: it stays in the pool, \
             and `pool shrink` or `destroy` gives it back to the kernel",
            Bytes(pool.surplus_bytes)
        ));
    }
    lines.extend(pool.leases.iter().flatten().map(|lease| format!("  {}", sentence(lease))));
    lines
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

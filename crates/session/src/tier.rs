//! Fast memory beside slower: what the limits of a budget are limits of.

use std::fmt;
use std::str::FromStr;

use anyhow::{bail, ensure};
use linux::cgroup::Swap;
use linux::numa;
use linux::procfs;
use serde::{Deserialize, Serialize};

/// The fast memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FastTier {
    /// All RAM; slower is swap.
    Ram,
    /// That of a NUMA node; slower is that of the others.
    Node(u32),
}

impl FastTier {
    /// Whether there is slower memory for what has no room.
    pub fn check(self) -> anyhow::Result<()> {
        match self {
            FastTier::Ram => ensure!(
                procfs::meminfo()?.swap_total > 0,
                "there is no swap, and so no slower memory beside RAM; zramctl and swapon make some"
            ),
            FastTier::Node(number) => {
                let nodes = numa::nodes()?;
                let Some(fast) = nodes.iter().find(|node| node.number == number) else {
                    bail!("there is no NUMA node {number} that has memory; lsmem and numactl -H show those there are")
                };
                ensure!(nodes.len() > 1, "node {} is the only one: there is no slower memory beside it", fast.number);
            }
        }
        Ok(())
    }

    /// What a job that has a limit may do.
    pub fn swap(self) -> Swap {
        match self {
            FastTier::Ram => Swap::Allowed,
            FastTier::Node(_) => Swap::Forbidden,
        }
    }

    /// As a record's header tells it.
    pub fn describe(self) -> String {
        match self {
            FastTier::Ram => "swap allowed, as the slower memory".into(),
            FastTier::Node(number) => format!("no swap; memory of node {number} first, then that of the others"),
        }
    }

    /// The node whose memory it is.
    pub fn node(self) -> Option<u32> {
        match self {
            FastTier::Ram => None,
            FastTier::Node(number) => Some(number),
        }
    }
}

impl FromStr for FastTier {
    type Err = ();

    fn from_str(text: &str) -> Result<FastTier, ()> {
        match text {
            "ram" => Ok(FastTier::Ram),
            number => number.parse().map(FastTier::Node).map_err(drop),
        }
    }
}

impl fmt::Display for FastTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FastTier::Ram => f.write_str("ram"),
            FastTier::Node(number) => write!(f, "{number}"),
        }
    }
}

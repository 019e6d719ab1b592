//! Requests of `bursar pool` to a broker: JSON packets after a magic word, on the socket that the runtime uses, too.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::{Directory, Segment};
use crate::{Error, socket};

/// The begin of a request; JSON follows.
pub const MAGIC: [u8; 8] = *b"BURCTRL1";

/// How long a broker may take to answer, except to grow.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request. All but the first need root.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Report segments and leases.
    Status,
    /// Add memory, in whole segments.
    Grow {
        /// Bytes.
        bytes: u64,
    },
    /// Remove free memory.
    Shrink {
        /// Bytes.
        bytes: u64,
    },
    /// End, unless something is leased.
    Stop {
        /// End in any case.
        force: bool,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`Ask::Status`].
    Status(Box<BrokerStatus>),
    /// To [`Ask::Grow`]: the memory is populated and zeroed.
    Grown {
        /// Bytes added.
        bytes: u64,
        /// Time taken.
        seconds: f64,
    },
    /// To [`Ask::Shrink`].
    Shrunk {
        /// Bytes removed: at most the free ones.
        bytes: u64,
    },
    /// To [`Ask::Stop`].
    Stopping,
    /// To [`Ask::Stop`]: refused, something is leased.
    InUse,
    /// Refused, with the reason.
    No(String),
}

/// The status of a broker.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BrokerStatus {
    /// Its PID.
    pub broker_pid: u32,
    /// Its segments.
    pub segments: Vec<SegmentStatus>,
    /// Its leases.
    pub leases: Vec<LeaseStatus>,
}

/// A segment and its state.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SegmentStatus {
    /// The segment.
    pub segment: Segment,
    /// Its state.
    pub part: Part,
}

/// The state of a segment, as users see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Zeroed and free.
    Free,
    /// Leased.
    Leased,
    /// Being zeroed, or waiting for it.
    Zeroing,
}

/// A lease.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LeaseStatus {
    /// PID of the process that requested it; 0: a process in another PID namespace.
    pub pid: i32,
    /// UID of that process.
    pub uid: u32,
    /// Command name of that process.
    pub command: String,
    /// Size.
    pub bytes: u64,
    /// Its nodes; interleaved segments are on all nodes of the pool.
    pub nodes: Vec<u32>,
    /// Whether that process has ended while others still hold the memory.
    pub lingering: bool,
}

/// Sends a request to the broker of a pool; waits for the answer.
///
/// # Errors
/// [`Error::NoBroker`], [`Error::Forbidden`], [`Error::Silent`], [`Error::Misunderstood`]; [`Error::Denied`] with the broker's reason.
pub fn ask(directory: &Directory, ask: &Ask) -> Result<Answer, Error> {
    let path = directory.socket();
    let name = || directory.name().to_string();
    let socket = socket::connect(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::PermissionDenied => Error::Forbidden(name()),
        _ => Error::NoBroker(name()),
    })?;
    let exchange = || {
        if !matches!(ask, Ask::Grow { .. }) {
            socket::set_timeout(&socket, PATIENCE)?;
        }
        let mut packet = MAGIC.to_vec();
        serde_json::to_writer(&mut packet, ask)?;
        socket::send(&socket, &packet, &[])?;
        socket::receive(&socket, socket::LONGEST)
    };
    let packet = exchange().ok().flatten().filter(|packet| !packet.is_empty());
    let silent = || Error::Silent { name: name(), log: directory.log() };
    match serde_json::from_slice(&packet.ok_or_else(silent)?) {
        Ok(Answer::No(why)) => Err(Error::Denied(why)),
        Ok(answer) => Ok(answer),
        Err(_) => Err(Error::Misunderstood(name())),
    }
}

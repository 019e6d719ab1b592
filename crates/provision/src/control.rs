//! What `bursar pool` asks a broker: a packet of JSON behind a magic word, on the socket that the runtime uses, too.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::state::{Directory, Segment};
use crate::{Error, socket};

/// Begins a question; what follows is JSON.
pub const MAGIC: [u8; 8] = *b"BURCTRL1";

/// How long a broker may take to say what it has at hand.
const PATIENCE: Duration = Duration::from_secs(10);

/// A question. All but the first are root's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// What there is, and who has it.
    Status,
    /// So much more, in whole segments.
    Grow {
        /// Bytes.
        bytes: u64,
    },
    /// So much less, as far as it is free.
    Shrink {
        /// Bytes.
        bytes: u64,
    },
    /// To end, unless something is lent.
    Stop {
        /// To end anyway.
        force: bool,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`Ask::Status`].
    Status(Box<Standing>),
    /// To [`Ask::Grow`]: it is there, zeroed.
    Grown {
        /// Bytes more.
        bytes: u64,
        /// How long that took.
        seconds: f64,
    },
    /// To [`Ask::Shrink`].
    Shrunk {
        /// Bytes less: as many as were free.
        bytes: u64,
    },
    /// To [`Ask::Stop`].
    Stopping,
    /// To [`Ask::Stop`]: no, something is lent.
    InUse,
    /// No, and why.
    No(String),
}

/// What a broker knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The broker.
    pub broker_pid: u32,
    /// What each segment is used for.
    pub segments: Vec<SegmentStatus>,
    /// Who has what.
    pub leases: Vec<LeaseStatus>,
}

/// A segment and its use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SegmentStatus {
    /// The segment.
    pub segment: Segment,
    /// Its use.
    pub part: Part,
}

/// What a segment is used for, as far as people care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Can be lent.
    Free,
    /// Is lent.
    Leased,
    /// Is being zeroed, or waits for it.
    Zeroing,
}

/// A lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaseStatus {
    /// Who asked for it; 0: a process of another PID namespace.
    pub pid: i32,
    /// Its user.
    pub uid: u32,
    /// Its command name.
    pub command: String,
    /// How much.
    pub bytes: u64,
    /// On which nodes; interleaved segments are on all of the pool's.
    pub nodes: Vec<u32>,
    /// That process has ended, and another has the memory still.
    pub lingering: bool,
}

/// Asks the broker of a pool.
///
/// # Errors
/// [`Error::NoBroker`], [`Error::Forbidden`], [`Error::Silent`], [`Error::Misunderstood`]; [`Error::Denied`] with what the broker
/// says.
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

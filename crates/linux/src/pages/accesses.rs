//! What DAMON has found accessed, told by a BPF program on its tracepoint (`bpf/pages.bpf.c`).

use std::ops::Range;

use libbpf_rs::Link;

use super::ring::Ring;
use super::tables::{Error, Tables};

/// A range of pages that was accessed between two looks of DAMON's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The number that the process has with DAMON's thread.
    pub target: u64,
    /// Its addresses.
    pub range: Range<u64>,
}

/// Listens to DAMON until dropped.
pub struct Accesses {
    ring: Ring<Access>,
    _link: Link,
}

impl Accesses {
    /// Begins to listen. Told is what [`Tables::tell_of`] says.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Bpf`].
    pub fn listen(tables: &Tables) -> Result<Accesses, Error> {
        let ring = Ring::of(&tables.map("accessed")?, read)?;
        Ok(Accesses { ring, _link: tables.attach_to_damon()? })
    }

    /// What was told since the last call.
    pub fn take(&self) -> Vec<Access> {
        self.ring.take()
    }
}

/// `struct accessed` of `bpf/pages.h`.
fn read(bytes: &[u8]) -> Option<Access> {
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some(Access { range: word(0)?..word(8)?, target: word(16)? })
}

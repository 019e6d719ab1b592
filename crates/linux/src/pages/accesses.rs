//! Accesses found by DAMON, reported by a BPF program on its tracepoint (`bpf/pages.bpf.c`).

use std::ops::Range;

use libbpf_rs::Link;

use super::ring::Ring;
use super::tables::{Error, Tables};

/// A range of pages that was accessed between two scans of DAMON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The number of the process in the kdamond.
    pub target: u64,
    /// Its addresses.
    pub range: Range<u64>,
}

/// Receives DAMON's results until dropped.
pub struct Accesses {
    ring: Ring<Access>,
    _link: Link,
}

impl Accesses {
    /// Begins to receive. [`Tables::tell_of`] selects what is reported.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Bpf`].
    pub fn listen(tables: &Tables) -> Result<Accesses, Error> {
        let ring = Ring::of(&tables.map("accessed")?, read)?;
        Ok(Accesses { ring, _link: tables.attach_to_damon()? })
    }

    /// The accesses reported since the last call.
    pub fn take(&self) -> Vec<Access> {
        self.ring.take()
    }
}

/// `struct accessed` of `bpf/pages.h`.
fn read(bytes: &[u8]) -> Option<Access> {
    let word = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    Some(Access { range: word(0)?..word(8)?, target: word(16)? })
}

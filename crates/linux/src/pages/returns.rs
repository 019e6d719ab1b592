//! Swap-ins, reported by BPF programs on the exception tracepoints (`bpf/pages.bpf.c`).

use std::collections::BTreeSet;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};

use super::ring::Ring;
use super::tables::{Error, Tables};

/// A swapped-out page that its process accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// The process.
    pub pid: i32,
    /// The page's address.
    pub address: u64,
}

/// Traces all faults of the machine, at some 50 ns each, and reports swap-ins of processes, until dropped.
pub struct Returns {
    followed: MapHandle,
    ring: Ring<Return>,
    _links: Vec<Link>,
}

impl Returns {
    /// Begins to trace, for no process yet. [`Tables::tell_one_of`] selects the reported pages.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Bpf`].
    pub fn listen(tables: &Tables) -> Result<Returns, Error> {
        let ring = Ring::of(&tables.map("returned")?, read)?;
        let links = tables.attach_to_faults()?;
        Ok(Returns { followed: tables.map("followed")?, ring, _links: links })
    }

    /// Reports only these processes from now on.
    ///
    /// # Errors
    /// [`Error::Refused`]: there are too many.
    pub fn follow(&self, pids: &BTreeSet<i32>) -> Result<(), Error> {
        let keys: Vec<Vec<u8>> = self.followed.keys().collect();
        let key = |pid: &i32| pid.to_ne_bytes().to_vec();
        for gone in keys.iter().filter(|known| !pids.iter().any(|pid| key(pid) == **known)) {
            let _ = self.followed.delete(gone);
        }
        let mut new = pids.iter().map(key).filter(|key| !keys.contains(key));
        new.try_for_each(|key| self.followed.update(&key, &[0], MapFlags::ANY)).map_err(Error::Refused)
    }

    /// The swap-ins reported since the last call, in order.
    pub fn take(&self) -> Vec<Return> {
        self.ring.take()
    }
}

/// `struct returned` of `bpf/pages.h`.
fn read(bytes: &[u8]) -> Option<Return> {
    let address = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
    let pid = i32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
    Some(Return { pid, address })
}

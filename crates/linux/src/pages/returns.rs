//! Pages that come back from swap, told by BPF programs on the exception tracepoints (`bpf/pages.bpf.c`).

use std::collections::BTreeSet;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle};

use super::ring::Ring;
use super::tables::{Error, Tables};

/// A page that was swapped out, and that its process asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// The process.
    pub pid: i32,
    /// Where the page begins.
    pub address: u64,
}

/// Listens to all faults of the machine, some 50 ns each, and tells of pages that processes bring back from swap, until dropped.
pub struct Returns {
    followed: MapHandle,
    ring: Ring<Return>,
    _links: Vec<Link>,
}

impl Returns {
    /// Begins to listen; to no process yet. Told are the pages that [`Tables::tell_one_of`] says.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Bpf`].
    pub fn listen(tables: &Tables) -> Result<Returns, Error> {
        let ring = Ring::of(&tables.map("returned")?, read)?;
        let links = tables.attach_to_faults()?;
        Ok(Returns { followed: tables.map("followed")?, ring, _links: links })
    }

    /// From now on tells of these processes and of no others.
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

    /// What was told since the last call, in its order.
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

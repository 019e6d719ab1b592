//! What pipes and sockets of a job hold in the kernel. Without a cgroup, the descriptors of the job's processes are the only place that
//! shows them.

use std::collections::BTreeSet;
use std::path::Path;

use model::Buffers;

use crate::file;
use crate::open_in_memory::{OpenInMemory, open_in_memory};
use crate::socket_memory::Diagnosis;

/// What a pipe holds unless it was enlarged (pipe(7)), bytes.
pub const PIPE_BYTES: u64 = 64 << 10;

/// The buffers of a job.
#[derive(Debug, Default)]
pub struct OwnBuffers {
    /// Those that bursar has open, too: they are its own, or the job's only to write to.
    ours: Option<OpenInMemory>,
    diagnosis: Option<Diagnosis>,
    /// Sockets of which the kernel told nothing at the look before; one that is closed while they are looked at is no such.
    unknown: BTreeSet<u64>,
    unknown_bytes: u64,
}

impl OwnBuffers {
    /// What these hold: as the kernel tells it, bytes, and at most. `None`: there are no sockets but bursar's. Without any, it costs
    /// nothing.
    pub fn look(&mut self, open: &OpenInMemory) -> (Option<u64>, Buffers) {
        let ours = self.ours.get_or_insert_with(|| open_in_memory(std::iter::once(std::process::id() as i32)));
        let pipes = open.pipes.difference(&ours.pipes).count() as u64;
        let sockets: BTreeSet<u64> = open.sockets.difference(&ours.sockets).copied().collect();
        let at_most = Buffers { pipes, pipe_bytes: pipes * PIPE_BYTES, ..Buffers::default() };
        if sockets.is_empty() {
            return (None, at_most);
        }
        let held = self.diagnosis.get_or_insert_with(Diagnosis::open).of(&sockets);
        let unknown_sockets = held.unknown.intersection(&self.unknown).count() as u64;
        self.unknown = held.unknown;
        if unknown_sockets > 0 && self.unknown_bytes == 0 {
            self.unknown_bytes = file::number(Path::new("/proc/sys/net/core/wmem_default")).unwrap_or(0);
        }
        let socket_bytes = unknown_sockets * self.unknown_bytes;
        (Some(held.bytes), Buffers { unknown_sockets, socket_bytes, ..at_most })
    }
}

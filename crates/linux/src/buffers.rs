//! Memory of a job's pipes and sockets in the kernel. Without a cgroup, only the descriptors of the job's processes show it.

use std::collections::BTreeSet;
use std::path::Path;

use model::Buffers;

use crate::file;
use crate::open_in_memory::{OpenInMemory, open_in_memory};
use crate::socket_memory::Diagnosis;

/// Capacity of a pipe by default (pipe(7)), bytes.
pub const PIPE_BYTES: u64 = 64 << 10;

/// The buffers of a job.
#[derive(Debug, Default)]
pub struct OwnBuffers {
    /// Pipes and sockets that bursar has open, too: they are bursar's, or the job only writes to them.
    ours: Option<OpenInMemory>,
    diagnosis: Option<Diagnosis>,
    /// Sockets without kernel data at the previous sample. A socket that is closed during sampling is not counted as such.
    unknown: BTreeSet<u64>,
    unknown_bytes: u64,
}

impl OwnBuffers {
    /// The memory of these pipes and sockets: the kernel's figure, bytes, and an upper bound. `None`: there are no sockets except bursar's.
    /// Costs nothing without any.
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

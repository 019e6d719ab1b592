//! A process that offers memory for zeroing, and its messages.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use runtime_abi::{PoolToZero, ZERO_MAGIC};
use rustix::fs::{FileType, SealFlags, fcntl_get_seals, fstat};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::mapping::Mapping;
use super::{MESSAGE_BYTES, SHARED_BYTES, UNITS};

pub(super) struct Client {
    pub(super) socket: OwnedFd,
    shared: Option<Arc<Mapping>>,
    segments: Vec<Arc<Segment>>,
}

/// Memory of a client, of which it may offer units.
pub(super) struct Segment {
    /// The mapping that has the states of its units.
    pub(super) shared: Arc<Mapping>,
    pub(super) memory: Mapping,
    pub(super) first: usize,
    pub(super) units: usize,
    pub(super) unit_bytes: usize,
}

impl Client {
    pub(super) fn new(socket: OwnedFd) -> Client {
        Client { socket, shared: None, segments: Vec::new() }
    }

    /// Reads all messages; passes new segments to `new`. False: the other side is gone or malformed.
    pub(super) fn receive(&mut self, new: &mut dyn FnMut(Arc<Segment>)) -> bool {
        loop {
            let mut packet = [0; MESSAGE_BYTES];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            let bytes = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut packet)], &mut control, flags) {
                Ok(received) => received.bytes,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return true,
                Err(_) => return false,
            };
            let mut files = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut files) => files.next(),
                _ => None,
            });
            let file = files.next().filter(|_| bytes == MESSAGE_BYTES && packet[..8] == ZERO_MAGIC);
            if file.and_then(|file| self.map_file(&packet, &file, new)).is_none() {
                return false;
            }
        }
    }

    /// Maps the shared file, or a segment; `None`: it is malformed.
    fn map_file(
        &mut self,
        packet: &[u8; MESSAGE_BYTES],
        file: &OwnedFd,
        new: &mut dyn FnMut(Arc<Segment>),
    ) -> Option<()> {
        let offer = PoolToZero::read(packet)?;
        let (first, units, unit_bytes) = (offer.first_unit as usize, offer.units as usize, offer.unit_bytes as usize);
        if units == 0 {
            // Without this seal the client could shrink the file, and accessing it would raise SIGBUS.
            let stays = fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
            let is_long = fstat(file).is_ok_and(|stat| stat.st_size >= SHARED_BYTES as i64);
            self.shared = Some(Arc::new(Mapping::new(file, SHARED_BYTES).filter(|_| stays && is_long)?));
            return Some(());
        }
        let bytes = units.checked_mul(unit_bytes)?;
        let stat = fstat(file).ok()?;
        // Accessing a file beyond its end would raise SIGBUS; a device has no end.
        let is_short = FileType::from_raw_mode(stat.st_mode).is_file() && (stat.st_size as u64) < bytes as u64;
        if first.checked_add(units)? > UNITS || bytes == 0 || is_short {
            return None;
        }
        let shared = self.shared.clone()?;
        let segment = Arc::new(Segment { shared, memory: Mapping::new(file, bytes)?, first, units, unit_bytes });
        self.segments.push(segment.clone());
        new(segment);
        Some(())
    }
}

impl Drop for Client {
    /// Unmaps its memory, even while some of it is being zeroed.
    fn drop(&mut self) {
        for segment in &self.segments {
            segment.memory.detach();
        }
    }
}

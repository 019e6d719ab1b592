//! Requests of the runtime and their replies, in the layout of `preload/abi.h`.

use runtime_abi::{POOL_MAGIC, PoolReply, PoolRequest, PoolSegment};

pub use runtime_abi::{POOL_SEGMENTS as MOST_SEGMENTS, PoolStatus as Status};

/// Bytes of `struct pool_request`.
pub const REQUEST_BYTES: usize = PoolRequest::BYTES;

/// `struct pool_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The preferred NUMA node.
    pub node: Option<u32>,
    /// Bytes requested.
    pub bytes: u64,
    /// The minimum: with fewer bytes the client wants none.
    pub least: u64,
}

/// `struct pool_segment`. A leased segment is always zeroed, so `dirty` is always 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeasedSegment {
    /// Its size.
    pub bytes: u64,
    /// Its node; `None`: interleaved over several nodes.
    pub node: Option<u32>,
}

/// `struct pool_reply`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Whether segments were granted, else the reason.
    pub status: Status,
    /// The alignment of addresses and offsets.
    pub page_bytes: u64,
    /// Free bytes of the pool, including those being zeroed.
    pub free_bytes: u64,
    /// At most [`MOST_SEGMENTS`].
    pub segments: Vec<LeasedSegment>,
}

impl Request {
    /// Decodes a packet; `None` if it is not a request.
    pub fn decode(packet: &[u8]) -> Option<Request> {
        let request = PoolRequest::read(packet).filter(|_| packet.len() == REQUEST_BYTES)?;
        if request.magic != POOL_MAGIC || request.flags != 0 || request.node < -1 {
            return None;
        }
        Some(Request { node: u32::try_from(request.node).ok(), bytes: request.bytes, least: request.least })
    }
}

impl Reply {
    /// Encodes the reply.
    pub fn encode(&self) -> Vec<u8> {
        let segment = |lent: &LeasedSegment| PoolSegment {
            bytes: lent.bytes,
            node: lent.node.map_or(-1, |node| node as i32),
            dirty: 0,
        };
        let reply = PoolReply {
            status: self.status as u32,
            segments: self.segments.len() as u32,
            page_bytes: self.page_bytes,
            free_bytes: self.free_bytes,
            segment: self.segments.iter().map(segment).collect(),
        };
        reply.to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(node: i32, flags: u32, bytes: u64, least: u64) -> Vec<u8> {
        let mut packet = POOL_MAGIC.to_vec();
        packet.extend(node.to_le_bytes());
        packet.extend(flags.to_le_bytes());
        packet.extend(bytes.to_le_bytes());
        packet.extend(least.to_le_bytes());
        packet
    }

    #[test]
    fn fuzz_pool() {
        fuzz::run("pool", &fuzz::corpus("pool"), |bytes| {
            assert!(Request::decode(bytes).is_none_or(|_| bytes.len() == REQUEST_BYTES))
        });
    }

    #[test]
    fn requests_have_the_layout_of_the_runtime() {
        assert_eq!(
            Request::decode(&packet(-1, 0, 1 << 30, 2 << 20)),
            Some(Request { node: None, bytes: 1 << 30, least: 2 << 20 })
        );
        assert_eq!(Request::decode(&packet(1, 0, 0, 0)), Some(Request { node: Some(1), bytes: 0, least: 0 }));
    }

    #[test]
    fn malformed_requests_are_refused() {
        let good = packet(0, 0, 1, 1);
        assert!(Request::decode(&good).is_some());
        for bad in [&good[..31], &[], &[good.clone(), vec![0]].concat(), &packet(-2, 0, 1, 1), &packet(0, 1, 1, 1)] {
            assert_eq!(Request::decode(bad), None, "{bad:?}");
        }
        let mut other = good;
        other[7] = b'2';
        assert_eq!(Request::decode(&other), None);
    }

    #[test]
    fn a_reply_has_the_offsets_of_the_header() {
        let segments =
            vec![LeasedSegment { bytes: 64 << 20, node: Some(1) }, LeasedSegment { bytes: 1 << 30, node: None }];
        let reply = Reply { status: Status::OverCgroup, page_bytes: 2 << 20, free_bytes: 5, segments };
        let packet = reply.encode();
        assert_eq!(packet.len(), PoolReply::BYTES);
        // status, segments; page_bytes; free_bytes
        assert_eq!(packet[..8], [3, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(packet[8..24], [0, 0, 0x20, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
        // segment[0].bytes, node, dirty
        assert_eq!(packet[24..40], [0, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(packet[40..56], [0, 0, 0, 0x40, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
        assert!(packet[56..].iter().all(|byte| *byte == 0));
    }
}

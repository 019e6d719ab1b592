//! Parses messages of netlink sockets (netlink(7)).

/// Size of a message's header in bytes.
pub(crate) const MESSAGE_HEADER: usize = 16;
/// Lowest message type of a protocol; smaller types are control messages, such as errors.
const LEAST_KIND: u16 = 0x10;

/// The type of the first message.
pub(crate) fn kind(bytes: &[u8]) -> Option<u16> {
    u16_at(bytes, 4)
}

/// The messages in one datagram, with headers.
pub(crate) fn all_messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let whole = bytes.get(..length).filter(|_| length >= MESSAGE_HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(whole)
    })
}

/// Their bodies, without control messages.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    all_messages(bytes)
        .filter(|message| kind(message).is_some_and(|kind| kind >= LEAST_KIND))
        .map(|message| &message[MESSAGE_HEADER..])
}

/// Attribute types and values.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u16_at(bytes, 0)? as usize;
        let kind = u16_at(bytes, 2)?;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbled_messages_are_skipped() {
        assert_eq!(messages(&[9, 0, 0, 0, 16, 0]).count(), 0);
        assert_eq!(messages(&[0; 64]).count(), 0);
        assert_eq!(attributes(&[200, 0, 4, 0, 1, 2, 3]).count(), 0);
    }
}

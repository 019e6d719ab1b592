//! Files of frames of which one payload is changed while the checksums stay right.

use fuzz::{Random, changed};
use record::{Frames, HEADER_BYTES};

/// One of `files`, with one of its payloads changed.
pub fn reframed(random: &mut Random, files: &[Vec<u8>]) -> Vec<u8> {
    let file = &files[random.below(files.len())];
    let (head, rest) = file.split_at(HEADER_BYTES as usize);
    let mut frames = Frames::new(rest);
    let mut payloads = Vec::new();
    while let Ok(Some(payload)) = frames.next() {
        payloads.push(payload.to_vec());
    }
    let at = random.below(payloads.len());
    payloads[at] = changed(random, &[payloads[at].clone()]);
    let frame = |payload: &Vec<u8>| {
        let (length, checksum) = (payload.len() as u32, crc32fast::hash(payload));
        [&length.to_le_bytes()[..], &checksum.to_le_bytes(), payload].concat()
    };
    [head.to_vec(), payloads.iter().flat_map(frame).collect()].concat()
}

//! Formats that the runtime inside a process (`preload/`) shares with the programs outside it.
//!
//! `preload/abi.h` describes them. [`generated`](self) items are made from it: `UPDATE_ABI=1 cargo test -p runtime-abi`
//! writes `src/generated.rs` and `preload/tests/abi.py`; the same test without `UPDATE_ABI` fails where they differ from
//! what the C compiler says about the header.
//!
//! Structs have their little-endian offsets as constants (`NAME_AT`), their size (`BYTES`), `read` and `to_bytes`.

#[rustfmt::skip]
mod generated;

pub use generated::*;

/// `N` bytes at an offset of a slice that is long enough.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

/// Puts bytes at an offset; what does not fit into `most` bytes is left out.
fn put(into: &mut [u8], at: usize, most: usize, bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(most)];
    into[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The text before the first zero byte of a field.
pub fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

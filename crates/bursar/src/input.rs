//! What a person names to be read: a file, or standard input for `-`.

use std::io;
use std::path::Path;

use anyhow::anyhow;

/// A text file.
pub fn read(path: &Path) -> anyhow::Result<String> {
    let read = if is_dash(path) { io::read_to_string(io::stdin()) } else { std::fs::read_to_string(path) };
    read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => anyhow!("{} is no text file: it holds bytes that are no UTF-8", name(path)),
        _ => anyhow!("{} could not be read: {error}", name(path)),
    })
}

/// How it is called in messages.
pub fn name(path: &Path) -> String {
    if is_dash(path) { "standard input".into() } else { path.display().to_string() }
}

/// Whether it is standard input, or standard output where something is written.
pub fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

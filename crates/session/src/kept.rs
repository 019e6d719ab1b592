//! What a command prints, kept until it can be shown.

use std::fs::File;
use std::io;

use anyhow::Context;
use linux::secure_file::temporary_base;
use rustix::fs::{MemfdFlags, memfd_create};

/// A file without a name. Where no folder can be written, as in a container, it is in memory, which counts for whoever writes.
pub fn file() -> anyhow::Result<File> {
    let in_memory = |_| io::Result::Ok(File::from(memfd_create("bursar-kept", MemfdFlags::CLOEXEC)?));
    let kept = temporary_base().and_then(tempfile::tempfile_in).or_else(in_memory);
    kept.context("what the command prints can be kept neither in a file nor in memory")
}

//! Accessed bits of a whole process: cleared by `/proc/PID/clear_refs`, read by mapping from `/proc/PID/smaps`.

use std::path::{Path, PathBuf};

use super::Mapping;
use super::mappings::mapping;
use crate::{Error, file, procfs};

/// A mapping, with its present and its accessed memory since the bits were cleared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referenced {
    /// The mapping.
    pub mapping: Mapping,
    /// Present bytes.
    pub resident: u64,
    /// Accessed bytes; a huge page counts as a whole.
    pub referenced: u64,
    /// Bytes in anonymous huge pages.
    pub huge: u64,
}

/// Clears the Accessed and Referenced bits of all pages of a process, including shared ones. Takes 50 to 160 ns per page. TLBs are not
/// flushed, so the next access to a constantly used page may be missed.
///
/// # Errors
/// [`Error::Gone`] if it ended, [`Error::Write`] if it belongs to another user.
pub fn clear_referenced(pid: i32) -> Result<(), Error> {
    clear(pid, "1")
}

/// Like [`clear_referenced`], for pages of mapped files only. Blocks the process's mmap and munmap meanwhile.
///
/// # Errors
/// [`Error::Gone`] if it ended, [`Error::Write`] if it belongs to another user.
pub fn clear_referenced_files(pid: i32) -> Result<(), Error> {
    clear(pid, "3")
}

fn clear(pid: i32, which: &str) -> Result<(), Error> {
    let path = PathBuf::from(format!("/proc/{pid}/clear_refs"));
    file::write(&path, which).map_err(|error| match error.raw_os_error() {
        Some(libc::ESRCH | libc::ENOENT) => Error::Gone(pid),
        _ => error,
    })
}

/// The accessed memory since then. Takes some 50 ms per GiB, during which mmap and munmap of the process are blocked.
///
/// # Errors
/// [`Error::Gone`] if it ended, [`Error::Read`] if it belongs to another user.
pub fn referenced(pid: i32) -> Result<Vec<Referenced>, Error> {
    let text = procfs::read(pid, Path::new(&format!("/proc/{pid}/smaps")))?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn parse(text: &str) -> Vec<Referenced> {
    let mut found: Vec<Referenced> = Vec::new();
    for line in text.lines() {
        let figure = line.split_once(':').and_then(|(key, value)| {
            let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
            Some((key, kib << 10))
        });
        match (figure, found.last_mut()) {
            (Some(("Rss", bytes)), Some(last)) => last.resident = bytes,
            (Some(("Referenced", bytes)), Some(last)) => last.referenced = bytes,
            (Some(("AnonHugePages", bytes)), Some(last)) => last.huge = bytes,
            (Some(_), _) => {}
            (None, _) => {
                found.extend(mapping(line).map(|mapping| Referenced { mapping, resident: 0, referenced: 0, huge: 0 }));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_belong_to_the_mapping_above_them() {
        let text = "1000-9000 rw-p 00000000 00:00 0 [heap]\nSize:  32 kB\nRss:   16 kB\nReferenced:  8 kB\nAnonHugePages:  4 kB\nVmFlags: rd wr\n\
                    a000-b000 r--p 00000000 08:01 7 /lib/x\nRss:   4 kB\nReferenced:  0 kB\n";
        let found = parse(text);
        let brief: Vec<_> =
            found.iter().map(|of| (of.mapping.name.as_str(), of.resident, of.referenced, of.huge)).collect();
        assert_eq!(brief, [("[heap]", 16 << 10, 8 << 10, 4 << 10), ("/lib/x", 4 << 10, 0, 0)]);
    }
}

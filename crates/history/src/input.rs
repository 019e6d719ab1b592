//! What a person names to be read: a file, or standard input for `-`.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{anyhow, bail};

/// No history, profile or table of people is longer. What never ends, such as /dev/zero, is not read for ever.
const MOST_BYTES: u64 = 1 << 30;

/// A text file.
pub fn read(path: &Path) -> anyhow::Result<String> {
    String::from_utf8(bytes(path)?)
        .map_err(|_| anyhow!("{} is no text file: it holds bytes that are no UTF-8", name(path)))
}

/// A file.
pub fn bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    bytes_at_most(path, MOST_BYTES)
}

fn bytes_at_most(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    refuse_named_pipe(path)?;
    let mut bytes = Vec::new();
    let read = match is_dash(path) {
        true => io::stdin().lock().take(most + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| anyhow!("{} could not be read: {error}", name(path)))?;
    if bytes.len() as u64 > most {
        bail!("{} is longer than {}, which no such file is", name(path), model::Bytes(most));
    }
    Ok(bytes)
}

/// Opening a pipe that nobody writes to waits for ever. The pipe of a shell's `<(COMMAND)` has a writer, and no name in a file system.
pub fn refuse_named_pipe(path: &Path) -> anyhow::Result<()> {
    let is_pipe = path.metadata().is_ok_and(|found| found.file_type().is_fifo());
    if is_pipe && path.canonicalize().is_ok() {
        bail!("{0} is a pipe, which may never be written to. Give a file, or standard input: - <{0}", name(path));
    }
    Ok(())
}

/// How it is called in messages.
pub fn name(path: &Path) -> String {
    if is_dash(path) { "standard input".into() } else { path.display().to_string() }
}

/// Whether it is standard input, or standard output where something is written.
pub fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused() {
        let told = bytes_at_most(Path::new("/dev/zero"), 1 << 20).unwrap_err().to_string();
        assert_eq!(told, "/dev/zero is longer than 1.00 MiB, which no such file is");
        assert!(read(Path::new("/proc/self/status")).unwrap().contains("VmRSS"));
    }

    #[test]
    fn a_named_pipe_is_refused_and_one_without_a_name_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&named).status().unwrap().success());
        assert!(bytes(&named).unwrap_err().to_string().contains("is a pipe, which may never be written to"));
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"text").unwrap();
        drop(writer);
        let of_shell = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(read(Path::new(&of_shell)).unwrap(), "text");
    }
}

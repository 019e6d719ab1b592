//! Files that hold a whole result or stay as they were.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a file anew. What was there before stays until all of it is written, and where `write` fails.
/// What is no regular file (a pipe, `/dev/stdout`) cannot be replaced and is written to as it is. A file that may be written in a
/// folder that may not is written over once the whole result is in memory.
///
/// # Errors
/// What `write` says, or what the file system says of the new file beside the old one.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), E>,
) -> Result<(), E> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let mut out = BufWriter::new(File::create(path)?);
        write(&mut out)?;
        return Ok(out.flush()?);
    }
    // A link is followed, as by any other program that writes.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The umask is taken off this, as for a file that is simply created.
    let mode = fs::metadata(&path).map_or(0o666, |there| there.permissions().mode() & 0o777);
    let new = tempfile::Builder::new().permissions(Permissions::from_mode(mode)).tempfile_in(folder);
    // Of any other failure, such as a full disk, the old file would not survive either.
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    if new.as_ref().is_err_and(is_refused) && path.exists() {
        let mut result = Vec::new();
        write(&mut result)?;
        return Ok(fs::write(&path, result)?);
    }
    let mut new = new?;
    let mut out = BufWriter::new(new.as_file_mut());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    new.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_old_file_when_writing_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        fs::write(&path, "old").unwrap();
        let failing = |out: &mut (dyn Write + Send)| out.write_all(b"half").and(Err(io::Error::other("no")));
        assert!(replace(&path, failing).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        replace(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn keeps_the_mode_of_the_file_and_writes_through_links_and_devices() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("result"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        replace(Path::new("/dev/null"), |out| out.write_all(b"new")).unwrap();
        assert!(replace(Path::new("/dev/full"), |out| out.write_all(b"new")).is_err());
    }
}

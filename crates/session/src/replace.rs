//! Files that hold a whole result or stay as they were.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use linux::secure_file::Output;

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
    let mut out = BufWriter::new(Output::create(path)?);
    write(&mut out)?;
    let out = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(out.commit()?)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

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

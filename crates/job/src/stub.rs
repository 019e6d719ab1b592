//! Where the stub is executed from.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};

const IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/stub"));

/// The stub's image in a place from which it can be executed. It goes when this is dropped.
pub enum Stub {
    /// An anonymous file: needs no writable file system, as in a container on a read-only image.
    Memory(OwnedFd),
    /// A file in `TMPDIR` (see [`linux::secure_file::temporary_base`]), where `vm.memfd_noexec` forbids the first.
    Disk(tempfile::TempPath),
}

impl Stub {
    pub fn in_memory() -> io::Result<Stub> {
        let descriptor = memfd_create("bursar-stub", MemfdFlags::CLOEXEC)?;
        let mut file = File::from(descriptor);
        file.write_all(IMAGE)?;
        Ok(Stub::Memory(file.into()))
    }

    pub fn on_disk() -> io::Result<Stub> {
        // It is executed by its name, which no other user may be able to give to another file.
        let base = linux::secure_file::temporary_base()?;
        let mut file = tempfile::Builder::new().prefix("bursar-stub-").tempfile_in(base)?;
        file.write_all(IMAGE)?;
        file.as_file().set_permissions(Permissions::from_mode(0o700))?;
        Ok(Stub::Disk(file.into_temp_path()))
    }

    pub fn path(&self) -> PathBuf {
        match self {
            // Resolved in the child, whose descriptor table is a copy of ours until the exec.
            Stub::Memory(descriptor) => format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into(),
            Stub::Disk(path) => path.to_path_buf(),
        }
    }
}

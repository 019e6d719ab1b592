//! Folders that are removed when no longer needed, even after a bursar was killed.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::journal::{Guard, Journal};
use crate::secure_file::PrivateFolder;

/// A private folder that is journaled: repair removes it if bursar is killed. Without a writable journal, the folder is created all the
/// same.
#[derive(Debug)]
pub struct TemporaryFolder {
    // Dropped in this order: if its removal fails, the journal tries again.
    folder: PrivateFolder,
    noted: Option<Guard>,
}

impl TemporaryFolder {
    /// Creates one in this folder, or in one for temporary files if other users could move its content.
    ///
    /// # Errors
    /// Those of [`PrivateFolder::create_near`].
    pub fn create_near(folder: &Path) -> io::Result<TemporaryFolder> {
        TemporaryFolder::noted(|note| PrivateFolder::create_near(folder, note))
    }

    /// Creates one for temporary files. `prefix`, with which its name begins, must begin with `bursar-`.
    ///
    /// # Errors
    /// Those of [`PrivateFolder::create_temporary`].
    pub fn create(prefix: &str) -> io::Result<TemporaryFolder> {
        TemporaryFolder::noted(|note| PrivateFolder::create_temporary(prefix, note))
    }

    fn noted(make: impl FnOnce(&mut dyn FnMut(&Path)) -> io::Result<PrivateFolder>) -> io::Result<TemporaryFolder> {
        let journal = Journal::open().ok();
        let mut noted: Option<Guard> = None;
        let made = make(&mut |path| {
            let next = journal.as_ref().and_then(|journal| journal.folder(path).ok());
            // The name was taken.
            if let Some(taken) = std::mem::replace(&mut noted, next) {
                taken.keep();
            }
        });
        match made {
            Ok(folder) => Ok(TemporaryFolder { folder, noted }),
            Err(error) => {
                if let Some(not_made) = noted {
                    not_made.keep();
                }
                Err(error)
            }
        }
    }

    /// Keeps the folder; returns its path.
    pub fn keep(self) -> PathBuf {
        let path = self.path().to_path_buf();
        if let Some(noted) = self.noted {
            noted.keep();
        }
        self.folder.keep();
        path
    }
}

impl Deref for TemporaryFolder {
    type Target = PrivateFolder;

    fn deref(&self) -> &PrivateFolder {
        &self.folder
    }
}

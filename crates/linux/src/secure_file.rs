//! The only way by which bursar creates, replaces or opens its own files for writing.
//!
//! bursar runs as root in directories of other users, who can move and replace every name in them at any moment. So nothing is done by
//! path: a directory is opened once ([`Folder`]), and every file in it is accessed through that descriptor, never through a symbolic link.
//! A new file gets a random name and is created exclusively; when complete, it is renamed to the requested name ([`NewFile`]). On the way
//! to a directory, only links of root and of the caller are followed.
//!
//! Under sudo, a file or folder created in a directory of the calling user belongs to that user.
//!
//! Files without a name (`tempfile::tempfile`) need none of this, because no other process can name them.

mod caller;
mod folder;
mod new_file;
mod output;
mod private;
mod walk;

pub use caller::{Caller, is_trusted};
pub use folder::Folder;
pub use new_file::NewFile;
pub use output::Output;
pub use private::{PrivateFolder, is_safe_from_others, temporary_base};

/// Mode of files that may contain secrets: records, journals, caches.
pub const PRIVATE_FILE: u32 = 0o600;
/// Mode of the folders for them.
pub const PRIVATE_FOLDER: u32 = 0o700;
/// Mode of files that the user named; the umask applies.
pub const ORDINARY_FILE: u32 = 0o666;

#[cfg(test)]
mod tests;

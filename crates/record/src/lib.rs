//! The record that every run leaves: written while it goes on, sealed into one SQLite file, read by everything that
//! comes after. `docs/record.md` is its description for users.
//!
//! ```no_run
//! # fn main() -> Result<(), record::Error> {
//! # let header: model::Header = unimplemented!();
//! # let observation: model::Observation = unimplemented!();
//! let path = std::path::Path::new("job.bursar");
//! let mut writer = record::Writer::create(path, &header)?;
//! for entry in record::Entry::of_run(&observation) {
//!     writer.append(&entry)?;
//! }
//! writer.seal()?;
//! let record = record::Record::open(path)?;
//! # Ok(())
//! # }
//! ```

mod entry;
mod error;
mod form;
mod frame;
mod guard;
mod read;
mod resumable;
mod rows;
mod schema;
mod seal;
mod session;
mod unseal;
mod writer;

pub use entry::Entry;
pub use error::{Error, Result};
pub use frame::{Frames, HEADER_BYTES, VERSION};
pub use read::Record;
pub use resumable::Resumable;
pub use session::Session;
pub use writer::Writer;

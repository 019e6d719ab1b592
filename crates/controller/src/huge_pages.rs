//! Huge pages of running programs: what they cost here, what memory is called, which regions become huge pages and which none any more.

mod agent;
mod choose;
pub mod costs;
mod names;
mod trial;
mod walks;

pub use agent::{Agent, LOOKING, Settings, Stats};
pub use names::{Named, Names};
pub use trial::{Trials, Tried};
pub use walks::walks;

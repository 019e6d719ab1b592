//! One self-contained page: everything it needs is inside, it asks no network for anything.

mod arms;
mod attribution;
mod diff;
mod downsample;
mod faults;
mod markup;
mod methods;
mod page;
mod phases;
mod plots;
#[cfg(test)]
mod tests;
mod timelines;
mod trace;
mod watch;

pub use arms::arms;
pub use attribution::attribution;
pub use diff::diff;
pub use faults::faults;
pub use page::page;
pub use phases::{Followed, phases};
pub use trace::{Drawn, trace};
pub use watch::watch;

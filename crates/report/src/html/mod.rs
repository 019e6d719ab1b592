//! One self-contained page: everything it needs is inside, it asks no network for anything.

mod downsample;
mod markup;
mod methods;
mod page;
mod plots;
#[cfg(test)]
mod tests;
mod timelines;
mod trace;

pub use page::page;
pub use trace::{Drawn, trace};

//! One self-contained page: everything it needs is inside, it asks no network for anything.

mod downsample;
mod markup;
mod methods;
mod page;
mod plots;
#[cfg(test)]
mod tests;
mod timelines;

pub use page::page;

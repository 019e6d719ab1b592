//! Dividing memory between programs. Pure: what each would lose with how much in, limits out.
//!
//! - [`Demand`] says how much a program is slowed down with each size of memory, from its curve of misses.
//! - [`History`] adds up what a program's intervals have told: one alone is uncertain.
//! - [`Guess`] is what is taken for the part of a curve that was not seen.
//! - [`divide`] gives each its share so that the weighted sum of what all lose is least.
//! - [`decide`] leads from the limits there are to those: gradually, or at once where a program waits for memory; in a steady state, not
//!   at all.
//! - [`Unrest`] is what has gone round: the more of it, the more a move must be worth.
//! - [`Active`] says of one program what is idle while other memory of it, of another kind, is read again and again.
//!
//! ```
//! use balance::{Demand, Want, divide};
//! use model::MissPoint;
//!
//! let point = |mib: u64, misses_per_second| MissPoint { bytes: mib << 20, misses_per_second };
//! // One gains from each byte up to 600 MiB, the other only from all of 900.
//! let gains = Demand::of(&[point(0, 9000.0), point(300, 4000.0), point(600, 0.0)], 1e-4, 0.0);
//! let streams = Demand::of(&[point(0, 9000.0), point(900, 0.0)], 1e-4, 0.0);
//! let want = |demand| Want { weight: 1.0, least: 32 << 20, most: u64::MAX, demand };
//! let shares = divide(800 << 20, 1 << 20, &[want(&gains), want(&streams)]).unwrap();
//! assert!(shares[0] >= 600 << 20 && shares[1] >= 32 << 20);
//! ```

mod blind;
mod control;
mod demand;
mod divide;
mod history;
mod kinds;
mod unrest;

pub use blind::Guess;
pub use control::{Move, Seen, Stage, decide, fills};
pub use demand::Demand;
pub use divide::{Want, divide};
pub use history::{History, Lived};
pub use kinds::Active;
pub use unrest::Unrest;

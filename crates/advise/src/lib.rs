//! Huge pages and eager memory where their benefit exceeds their cost. Pure: figures in, decisions out.
//!
//! - [`estimate()`] computes cost and benefit of an [`Action`] on a [`Range`], from the machine's [`Costs`] and
//!   [`State`]; [`decide()`] picks the best action, and leaves ranges alone for which none is worth its cost.
//! - A [`Profile`] has what is known of a program's ranges from earlier runs; [`cbmm`] converts CBMM's own files to
//!   one.
//! - [`paired`] compares ways to run a program by rounds in which each ran once.
//! - A [`Plan`] has the resulting instructions for the runtime within the program.
//!
//! All costs and benefits are nanoseconds of the program's time, relative to 4 KiB pages allocated at first touch.
//!
//! ```
//! use advise::{Action, Costs, Range, State, decide};
//!
//! let dense = Range { touched_pages: Some(512), ..Range::of_bytes(2 << 20) };
//! let sparse = Range { touched_pages: Some(50), ..dense.clone() };
//! let state = State { free_huge: 1000, ..State::default() };
//! assert_eq!(decide(&dense, &state, &Costs::reference()).action, Action::HugeAtTouch);
//! assert_eq!(decide(&sparse, &state, &Costs::reference()).action, Action::Leave);
//! ```

pub mod cbmm;
mod decide;
mod demand;
mod estimate;
mod growth;
mod history;
pub mod maps;
mod observed;
pub mod paired;
mod plan;
pub mod profile;
mod range;
mod state;
pub mod stats;
pub mod touched;
mod trial;
mod walks;
mod wrong;

pub use decide::{Decision, decide};
pub use estimate::{Action, Estimate, estimate};
pub use growth::Growth;
pub use history::History;
pub use model::Costs;
pub use observed::{Observed, RegionSample};
pub use plan::{Plan, PlannedProgram, Rule, RuleAction};
pub use profile::{Mapping, Object, Profile, ProfiledRange, Program, Section};
pub use range::{HUGE_BYTES, PAGE_BYTES, PAGES_PER_HUGE, Range};
pub use state::State;
pub use trial::Trial;
pub use walks::Walks;
pub use wrong::{Malformed, Wrong};

//! `bursar budget`'s search: it makes the runs that the planner (crate `budget`) asks for, tells it what they showed, and keeps all of it
//! in the record, from which it can go on. Who makes the runs is an [`Executor`].

mod answer;
mod doubts;
mod executor;
mod failure;
mod figures;
mod learn;
mod machine;
mod options;
pub mod resume;
mod runtime;
mod search;

pub use executor::{Executor, Made, Order};
pub use failure::Failure;
pub use machine::Machine;
pub use options::Options;
pub use runtime::Running;
pub use search::{Answered, Found, Search};

//! Earlier runs: the folder that bursar keeps its records in, which commands are of one kind, records side by side, and what the next
//! run of a kind needs.

pub mod build_id;
pub mod comparable;
pub mod difference;
pub mod input;
pub mod inputs;
pub mod kind;
pub mod measured;
pub mod prediction;
pub mod prune;
pub mod replay;
pub mod state;
pub mod tasks;
mod words;

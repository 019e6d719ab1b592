//! One observed command from its start to its record: where it is put and how it is started, what observes it, what its launchers start
//! on other nodes, how it is ended, and what is kept of it.

pub mod attach;
pub mod bench;
pub mod build_id;
pub mod cache;
pub mod comparable;
mod gathered;
pub mod given;
pub mod input;
pub mod inputs;
pub mod inside;
pub mod kept;
pub mod kind;
pub mod launch;
pub mod measured;
pub mod nodes;
pub mod observe;
pub mod opened;
mod orphans;
pub mod phases;
pub mod prepare;
mod processes;
pub mod prune;
pub mod rank;
pub mod redact;
mod references;
pub mod say;
pub mod sink;
pub mod slurm;
pub mod spool;
pub mod state;
pub mod status;
pub mod stop;
pub mod target;
pub mod tier;
pub mod unseen;
mod words;

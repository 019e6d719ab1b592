//! Slurm: trials as job steps, and the account of a step.

pub mod accounting;
mod allocation;
mod config;
mod step;

pub use allocation::Allocation;
pub(crate) use allocation::BY_SRUN;
pub use config::config;
pub use step::step;

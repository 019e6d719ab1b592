//! Decides whether runs need more than earlier runs did, or more than a limit. Pure: no clock, no files, no random numbers.
//!
//! Runs of one program differ, so a larger value alone shows nothing. [`Check`] is a group-sequential test: after some of the runs it
//! looks at all of them, and says pass, fail, or make more runs. All looks at all figures together report growth that is not there in
//! at most [`FALSE_ALARMS`] of checks:
//! - each look may use its part of that, later looks more than early ones (Lan and DeMets, "Discrete sequential boundaries for clinical
//!   trials", Biometrika 1983; the parts are added, which is conservative);
//! - at each look, figures are tested by Hochberg's procedure ("A sharper Bonferroni procedure for multiple tests of significance",
//!   Biometrika 1988), which holds for figures that grow together, as heap and peak do;
//! - each figure is tested by Student's t, with the larger of the pooled and the separate standard error.
//!
//! [`differ`] tests figures of two sets of runs for any difference. [`below_limit`] compares runs with a limit.
//!
//! ```
//! use compare::{Check, Figure, Verdict};
//!
//! let figure = Figure { baseline: vec![100.0, 101.0, 99.5, 100.2], runs: vec![110.1, 109.7], tolerance: 0.0, least: 0.5 };
//! let look = Check::of_all(2).look(2, &[figure]);
//! assert_eq!(look.findings[0].verdict, Some(Verdict::Failed));
//! ```

mod check;
mod difference;
mod hochberg;
mod limit;
pub mod runs;
mod sample;
mod student;

pub use check::{Check, FALSE_ALARMS, Figure, Finding, Look, RESOLUTION, SENSITIVITY, Verdict};
pub use difference::{Difference, differ};
pub use limit::below_limit;
pub use student::exceeded_with;

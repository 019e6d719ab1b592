//! Predicts the memory that the next run of a kind of command needs, from past runs of that kind. Pure and deterministic: no clock, no
//! files, no random numbers.
//!
//! - [`Evidence`] is past runs of any kind; [`read_table`] reads them from what workflow managers write.
//! - [`Run`] is one past run: its features (numbers known before it started), the memory it needed, and its run time.
//! - [`History`] learns runs one at a time. Before it learns a run it predicts it, so that each predictor has a record of errors that it
//!   made on runs that it did not know ("predict, then learn").
//! - [`Predictor`] lists the predictors. Each gets an offset, chosen from its past errors, that wastes least; a task that is killed and
//!   repeated wastes all that it was given. Predictors that wasted less in recent runs have more weight in the answer.
//! - [`Forecast`] is the answer: what to ask for, what to ask for next if that is too little, and the interval that holds the need.
//!
//! The method follows Witt et al., "Feedback-based resource allocation for batch scheduling of scientific workflows" (HPCS 2019): offsets
//! chosen by cost; and Tovar et al., "A job sizing strategy for high-throughput scientific workflows" (TPDS 2018): the cost of a failure.
//! Intervals are of the kind of Barber et al., "Predictive inference with the jackknife+" (Annals of Statistics 2021).
//!
//! ```
//! use predict::{Confidence, History, Need, Run};
//!
//! let mut history = History::new(Confidence::default());
//! for gib in 1..=20 {
//!     let size = gib as f64 * 1e9;
//!     history.learn(Run { features: vec![size], need: Need::Exactly(3.0 * size), seconds: 60.0 });
//! }
//! let forecast = history.ask(&[12.5e9], None).unwrap();
//! assert!(forecast.ask_bytes >= 37.5e9 && forecast.ask_bytes < 40e9);
//! ```

mod confidence;
mod evidence;
mod extrapolation;
mod features;
mod forecast;
mod history;
mod interval;
mod least_squares;
mod plan;
mod predictor;
mod residuals;
mod run;
mod tables;

pub use confidence::Confidence;
pub use evidence::{Evidence, LeftOut, Past};
pub use features::{Beyond, NotGiven, Unknown, features, not_given, unknown};
pub use forecast::Forecast;
pub use history::{AskError, History, LEAST_ASK_BYTES, MIN_RUNS};
pub use model::INPUT_BYTES;
pub use plan::Plan;
pub use predictor::Predictor;
pub use run::{Need, Run};
pub use tables::{NoHistory, read as read_table};

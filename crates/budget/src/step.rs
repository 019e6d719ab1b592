//! A step of a search.

use model::{Answer, Method};

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run without a limit.
    Reference {
        /// For the comparison: it becomes a trial without a limit, made for [`Method::Unlimited`], and does not change the search's result.
        compared: bool,
        /// The reason, as a sentence.
        why: String,
    },
    /// Run under a limit, to find the budget.
    Trial {
        /// The limit, whole MiB.
        limit_bytes: u64,
        /// When it is surely too slow, in seconds; [`crate::watch`] often knows earlier. `None`: never.
        give_up_after_seconds: Option<f64>,
        /// Predicted run time over the reference's.
        predicted_ratio: Option<f64>,
        /// The reason, as a sentence.
        why: String,
    },
    /// Run under the limit that a method names, including [`Method::Bursar`]'s own answer.
    Method {
        /// The method.
        method: Method,
        /// The limit, whole MiB.
        limit_bytes: u64,
        /// When it has shown enough, in seconds. `None`: never.
        give_up_after_seconds: Option<f64>,
        /// Predicted run time over the reference's.
        predicted_ratio: Option<f64>,
        /// The reason, as a sentence.
        why: String,
    },
    /// No further run: this is the answer.
    Done(Answer),
}

//! A step of a search.

use model::{Answer, Method};

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run without a limit.
    Reference {
        /// For the comparison: it becomes a trial without a limit, made for [`Method::Unlimited`]. What the search has found
        /// stands, and does not count it.
        compared: bool,
        /// Why, as a sentence.
        why: String,
    },
    /// Run under a limit, to find the budget.
    Trial {
        /// The limit, whole MiB.
        limit_bytes: u64,
        /// When it is too slow for sure; [`crate::watch`] often knows earlier. `None`: never.
        give_up_after_seconds: Option<f64>,
        /// Predicted run time over the reference's.
        predicted_ratio: Option<f64>,
        /// Why, as a sentence.
        why: String,
    },
    /// Run under the limit that a method names, [`Method::Bursar`]'s own answer included.
    Method {
        /// Which.
        method: Method,
        /// The limit, whole MiB.
        limit_bytes: u64,
        /// When it has shown enough. `None`: never.
        give_up_after_seconds: Option<f64>,
        /// Predicted run time over the reference's.
        predicted_ratio: Option<f64>,
        /// Why, as a sentence.
        why: String,
    },
    /// Nothing; this is the answer.
    Done(Answer),
}

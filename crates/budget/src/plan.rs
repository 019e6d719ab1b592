//! The next step.

use model::{Answer, Bytes, Method};

use crate::answer::answer;
use crate::judge::give_up_after;
use crate::methods::{LIMITED, limit_to_measure};
use crate::noise::{wants_reference, wants_to_tell};
use crate::predict::predict;
use crate::search::{Wish, wish};
use crate::{Seen, Settings};

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run without a limit.
    Reference {
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
    /// Run under the limit that a method names.
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

/// The next step: references and the search, then the methods.
pub fn next(settings: &Settings, seen: &Seen) -> Step {
    if let Some(why) = wants_reference(settings, seen) {
        return Step::Reference { why };
    }
    let cut_short = match wish(settings, seen) {
        Wish::Try { limit, why } => {
            return Step::Trial {
                limit_bytes: limit,
                give_up_after_seconds: give_up_after(settings, seen, None),
                predicted_ratio: predict(settings, seen, limit),
                why,
            };
        }
        Wish::Stop(cut_short) => cut_short,
    };
    if let Some(why) = wants_to_tell(settings, seen) {
        return Step::Reference { why };
    }
    let answer = answer(settings, seen, cut_short);
    let unmeasured = LIMITED
        .into_iter()
        .filter(|_| settings.compare)
        .find_map(|method| limit_to_measure(settings, seen, method).map(|limit| (method, limit)));
    match unmeasured {
        Some((method, limit_bytes)) => Step::Method {
            method,
            limit_bytes,
            give_up_after_seconds: give_up_after(settings, seen, Some(method)),
            predicted_ratio: predict(settings, seen, limit_bytes),
            why: format!("what it costs to give it {}, as {}", Bytes(limit_bytes), said_by(method)),
        },
        None => Step::Done(answer),
    }
}

fn said_by(method: Method) -> &'static str {
    match method {
        Method::AppMaxRss => "the peak RSS of the process tree says",
        Method::AppMaxRssLargest => "GNU time and seff say (RSS of the largest process)",
        Method::SysMaxRss => "the kernel's page lists say",
        Method::Unlimited => "the growth of the machine's memory in use says",
        Method::Bursar => "bursar says",
    }
}

//! The next step.

use model::{Answer, Bytes, Method};

use crate::answer::answer;
use crate::judge::give_up_after;
use crate::methods::{Lacking, lacking};
use crate::noise::{wants_reference, wants_to_tell};
use crate::predict::predict;
use crate::search::{Wish, wish};
use crate::{Seen, Settings};

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

/// The next step: references and the search, then the methods.
pub fn next(settings: &Settings, seen: &Seen) -> Step {
    if let Some(why) = wants_reference(settings, seen) {
        return Step::Reference { compared: false, why };
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
        return Step::Reference { compared: false, why };
    }
    let answer = answer(settings, seen, cut_short);
    let Some(Lacking { method, limit, has }) = lacking(settings, seen, &answer).filter(|_| settings.compare) else {
        return Step::Done(answer);
    };
    let why = |what: String| if has == 0 { what } else { format!("once more, to see how much that varies: {what}") };
    match limit {
        Some(limit_bytes) => Step::Method {
            method,
            limit_bytes,
            give_up_after_seconds: give_up_after(settings, seen, Some(method)),
            predicted_ratio: predict(settings, seen, limit_bytes),
            why: why(format!("what it costs to give it {}, as {}", Bytes(limit_bytes), said_by(method))),
        },
        None => Step::Reference { compared: true, why: why("how long it takes without a limit".into()) },
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

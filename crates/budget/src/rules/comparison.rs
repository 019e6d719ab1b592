//! Requests the runs that the comparison of methods lacks.

use model::{Bytes, Method};

use crate::analysis::Analysis;
use crate::judge::give_up_after;
use crate::methods::{Lacking, lacking};
use crate::predict::predict;
use crate::step::Step;

/// Only if the comparison is enabled.
pub fn step(a: &Analysis) -> Option<Step> {
    let Lacking { method, limit, has } = lacking(a, a.bracket.pass).filter(|_| a.settings.compare)?;
    let why = |what: String| if has == 0 { what } else { format!("once more, to see how much that varies: {what}") };
    Some(match limit {
        Some(limit_bytes) => Step::Method {
            method,
            limit_bytes,
            give_up_after_seconds: give_up_after(a, Some(method)),
            predicted_ratio: predict(a, limit_bytes),
            why: why(format!("what it costs to give it {}, as {}", Bytes(limit_bytes), said_by(method))),
        },
        None => Step::Reference { compared: true, why: why("how long it takes without a limit".into()) },
    })
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

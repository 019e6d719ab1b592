//! Tries the answer's limit if no run was made under it.

use model::Bytes;

use super::trial::trial;
use crate::analysis::Analysis;
use crate::bracket::is_close;
use crate::step::Step;

/// The peak without a limit should be enough, but a user wants it to be tried.
pub fn step(a: &Analysis) -> Option<Step> {
    let is_untried = |pass: &u64| a.evidence.search_trials().all(|t| t.limit_bytes != Some(*pass));
    let limit = a.bracket.pass.filter(|_| is_close(&a.bracket)).filter(is_untried)?;
    let why = format!("without a limit it never used more than {}: is that enough under one?", Bytes(limit));
    Some(trial(a, limit, why))
}

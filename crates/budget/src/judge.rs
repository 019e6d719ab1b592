//! Judging runs, while they are in progress and after their end.

use model::{Method, Outcome, Spread};

use crate::facts::TELLING_BYTES;
use crate::impact::SEEN_STALL;
use crate::noise::Noise;
use crate::outcome::{asks_for_enough, is_too_slow};
use crate::{Evidence, Settings};

/// A method's run is stopped at this multiple of the reference: this shows that it is far too slow (the paper's worst is 2.05), and keeps
/// the comparison cheap.
const METHOD_STOP: f64 = 2.1;

/// A trial is stopped when it has taken longer than allowed by this share of the reference's run time. One that is only a little slower may
/// end, because its CPU time then shows whether memory was the reason.
const SURELY_SLOW: f64 = 0.1;

/// This many standard deviations exclude chance.
const SURE: f64 = 3.0;

/// The progress of a run under a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Seconds since its start.
    pub elapsed_seconds: f64,
    /// Stall so far; pressure may show more at the end ([`crate::Reference::stall_seconds`]).
    pub stall_seconds: Option<f64>,
    /// Its progress in the terms of [`crate::Reference::pace`]: CPU seconds at the last sample, and the time of that sample.
    pub pace: Option<(f64, f64)>,
    /// File pages refaulted so far.
    pub refaults: Option<u64>,
}

/// Measurements of a run under a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The method whose figure was the limit; `None`: a trial of the search.
    pub method: Option<Method>,
    /// Its run time in seconds.
    pub wall_seconds: f64,
    /// Why it was stopped, as returned by [`watch`].
    pub stopped: Option<Outcome>,
    /// Its exit status, 128 + signal.
    pub exit_status: Option<i32>,
    /// Processes killed for lack of memory, even if the command hides it.
    pub oom_kills: u64,
}

/// Whether to stop a running trial, and its outcome then. A trial of the search is stopped when it has exceeded the allowed time, or
/// earlier, when it cannot meet it any more: it is too far behind the references' pace, or, if the pace is unknown, its stall exceeds a
/// reference's total by too much.
pub fn watch(settings: &Settings, evidence: &Evidence, method: Option<Method>, progress: &Progress) -> Option<Outcome> {
    let a = &Noise::of(settings, evidence);
    if a.settings.timeout_seconds.is_some_and(|timeout| progress.elapsed_seconds >= timeout) {
        return Some(Outcome::Timeout);
    }
    let too_long = give_up_after(a, method).is_some_and(|limit| progress.elapsed_seconds > limit);
    let is_proven = || {
        // Stall is no loss if other tasks continue meanwhile, as in a pipeline; the pace accounts for that. But without refaults so far,
        // the lag may have another reason, and the run may catch up.
        if !knows_pace(a.evidence, progress) {
            has_stalled_too_long(a, progress)
        } else if has_read_again(a, progress) == Some(false) && !a.has_hidden_cost {
            None
        } else {
            has_fallen_behind(a, progress)
        }
    };
    (too_long || method.is_none() && is_proven() == Some(true)).then_some(Outcome::TooSlow)
}

/// When a run under a limit is stopped at the latest, in seconds; `None`: never.
pub fn give_up_after(a: &Noise, method: Option<Method>) -> Option<f64> {
    let reference = a.reference.map(|r| r.median);
    let too_slow = match method {
        Some(_) if a.settings.full => None,
        Some(_) => reference.map(|r| r * METHOD_STOP.max(1.0 + 2.0 * a.settings.slowdown)),
        None => {
            let beyond = SURELY_SLOW.max(SURE * a.ratio_noise);
            reference.map(|r| r * (1.0 + a.settings.slowdown + beyond))
        }
    };
    match (too_slow, a.settings.timeout_seconds) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The outcome of a run.
pub fn judge(settings: &Settings, evidence: &Evidence, measured: &Measured) -> Outcome {
    let too_slow = || evidence.reference().is_some_and(|r| is_too_slow(settings, measured.wall_seconds, r.median));
    match measured.stopped {
        _ if measured.oom_kills > 0 => Outcome::Oom,
        Some(outcome) => outcome,
        None if measured.exit_status != Some(0) => Outcome::Failed,
        None if asks_for_enough(measured.method) && too_slow() => Outcome::TooSlow,
        None => Outcome::Ok,
    }
}

/// A lower bound of the ratio of a stopped run: the time taken, or the reference's run time plus its lag, or, if the lag is unknown, plus
/// its excess stall.
pub fn ratio_at_least(evidence: &Evidence, progress: &Progress) -> Option<f64> {
    let reference = evidence.reference()?.median;
    let by_time = progress.elapsed_seconds / reference;
    let by_stall = progress
        .stall_seconds
        .zip(reference_stall(evidence))
        .filter(|_| !knows_pace(evidence, progress))
        .map(|(stall, usual)| 1.0 + (stall - usual.median) / reference);
    let by_pace = behind(evidence, progress).map(|lost| 1.0 + lost / reference);
    Some([by_stall, by_pace].into_iter().flatten().fold(by_time, f64::max))
}

fn has_stalled_too_long(a: &Noise, progress: &Progress) -> Option<bool> {
    let reference = a.reference?;
    let usual = reference_stall(a.evidence)?;
    let allowed = a.settings.slowdown * reference.median;
    // Stall may replace other waiting, so half as much again is required.
    let doubt = (0.5 * allowed).max(2.0 * (a.ratio_noise * reference.median).max(usual.stddev));
    Some(progress.stall_seconds? > usual.max + allowed + doubt)
}

fn has_read_again(a: &Noise, progress: &Progress) -> Option<bool> {
    let usual = a.evidence.references.iter().filter_map(|r| r.refaults).max()?;
    Some(progress.refaults?.saturating_sub(usual) * a.settings.page_bytes >= TELLING_BYTES)
}

fn knows_pace(evidence: &Evidence, progress: &Progress) -> bool {
    progress.pace.is_some() && evidence.timed().iter().any(|r| !r.pace.is_empty())
}

/// The lag behind the references at equal CPU time, in seconds. CPU time that memory costs counts as progress, so the lag is never
/// overestimated.
fn behind(evidence: &Evidence, progress: &Progress) -> Option<f64> {
    let (cpu, at_seconds) = progress.pace?;
    // The slowest reference at this point.
    let usual = evidence.timed().iter().filter_map(|r| time_at(&r.pace, cpu)).reduce(f64::max)?;
    Some(at_seconds - usual)
}

/// Whether it has already lost more than it may lose in total.
fn has_fallen_behind(a: &Noise, progress: &Progress) -> Option<bool> {
    let reference = a.reference?;
    let allowed = a.settings.slowdown * reference.median;
    let doubt = (0.25 * allowed).max(SURE * a.ratio_noise * reference.median);
    let lag = behind(a.evidence, progress)?;
    Some(lag > allowed + doubt && is_explained(a, progress, lag))
}

/// Whether memory can have caused this lag: the run waited for storage. Otherwise other programs did. (CPU time for refaults is no lag,
/// because it counts as progress.) Assumed true where it is unknown or can hide.
fn is_explained(a: &Noise, progress: &Progress, lag: f64) -> bool {
    a.has_hidden_cost || progress.stall_seconds.is_none_or(|stall| stall / SEEN_STALL > lag)
}

/// When a run had used this much CPU time; `None` if it never did, or before its first sample.
fn time_at(pace: &[(f64, f64)], cpu: f64) -> Option<f64> {
    let after = pace.partition_point(|(used, _)| *used < cpu);
    let (right, left) = (pace.get(after)?, pace.get(after.checked_sub(1)?)?);
    let share = if right.0 > left.0 { (cpu - left.0) / (right.0 - left.0) } else { 1.0 };
    Some(left.1 + share * (right.1 - left.1))
}

fn reference_stall(evidence: &Evidence) -> Option<Spread> {
    let stalls: Vec<f64> = evidence.references.iter().filter_map(|r| r.stall_seconds).collect();
    Spread::of(&stalls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reference;

    fn evidence() -> Evidence {
        let reference = |wall_seconds| Reference { wall_seconds, stall_seconds: Some(1.0), ..Reference::default() };
        Evidence { references: vec![reference(99.5), reference(100.5)], ..Evidence::default() }
    }

    fn at(elapsed_seconds: f64, stall_seconds: f64) -> Progress {
        Progress { elapsed_seconds, stall_seconds: Some(stall_seconds), pace: None, refaults: None }
    }

    #[test]
    fn a_trial_is_stopped_after_its_time_or_by_its_stall() {
        let (settings, evidence) = (Settings::default(), evidence());
        assert_eq!(watch(&settings, &evidence, None, &at(104.0, 1.0)), None);
        assert_eq!(watch(&settings, &evidence, None, &at(114.0, 1.0)), None, "let end: it may be chance");
        assert_eq!(watch(&settings, &evidence, None, &at(116.0, 1.0)), Some(Outcome::TooSlow));
        assert_eq!(
            watch(&settings, &evidence, None, &at(12.0, 7.0)),
            None,
            "within the allowed time, and its tolerance"
        );
        assert_eq!(watch(&settings, &evidence, None, &at(12.0, 9.0)), Some(Outcome::TooSlow));
        assert_eq!(ratio_at_least(&evidence, &at(12.0, 9.0)), Some(1.08));
    }

    #[test]
    fn a_methods_run_continues_until_it_is_far_too_slow() {
        let (settings, evidence) = (Settings::default(), evidence());
        let sys = Some(Method::SysMaxRss);
        assert_eq!(watch(&settings, &evidence, sys, &at(200.0, 90.0)), None);
        assert_eq!(watch(&settings, &evidence, sys, &at(211.0, 90.0)), Some(Outcome::TooSlow));
        let full = Settings { full: true, timeout_seconds: Some(900.0), ..settings };
        assert_eq!(watch(&full, &evidence, sys, &at(899.0, 90.0)), None);
        assert_eq!(watch(&full, &evidence, sys, &at(900.0, 90.0)), Some(Outcome::Timeout));
    }

    #[test]
    fn a_killed_child_makes_a_run_that_ended_well_an_oom() {
        let (settings, evidence) = (Settings::default(), evidence());
        let ended = Measured { method: None, wall_seconds: 101.0, stopped: None, exit_status: Some(0), oom_kills: 0 };
        assert_eq!(judge(&settings, &evidence, &ended), Outcome::Ok);
        assert_eq!(judge(&settings, &evidence, &Measured { oom_kills: 1, ..ended }), Outcome::Oom);
        assert_eq!(judge(&settings, &evidence, &Measured { exit_status: Some(3), ..ended }), Outcome::Failed);
        assert_eq!(judge(&settings, &evidence, &Measured { wall_seconds: 105.1, ..ended }), Outcome::TooSlow);
        let method = Measured { method: Some(Method::AppMaxRss), wall_seconds: 190.0, ..ended };
        assert_eq!(judge(&settings, &evidence, &method), Outcome::Ok, "a method's run is ok if it ends");
    }

    #[test]
    fn a_run_far_behind_the_references_pace_is_stopped() {
        // The references read for 20 s, using almost no CPU time, and then compute for 80 s.
        let pace = vec![(0.0, 0.0), (1.0, 20.0), (81.0, 100.0)];
        let reference =
            |wall_seconds| Reference { wall_seconds, refaults: Some(10), pace: pace.clone(), ..Reference::default() };
        let evidence = Evidence { references: vec![reference(99.9), reference(100.1)], ..Evidence::default() };
        let at = |elapsed_seconds, cpu_seconds| Progress {
            elapsed_seconds,
            stall_seconds: None,
            pace: Some((cpu_seconds, elapsed_seconds)),
            refaults: Some(10_000),
        };
        let settings = Settings::default();
        assert_eq!(watch(&settings, &evidence, None, &at(20.0, 1.0)), None, "as slow as the others are there");
        assert_eq!(watch(&settings, &evidence, None, &at(45.0, 21.0)), None, "5 s behind are allowed");
        let far = at(50.0, 21.0);
        assert_eq!(watch(&settings, &evidence, None, &far), Some(Outcome::TooSlow));
        assert_eq!(ratio_at_least(&evidence, &far), Some(1.1));
        assert_eq!(
            watch(&settings, &evidence, Some(Method::AppMaxRss), &far),
            None,
            "a method is to show how slow it is"
        );
        let looked_at_before = Progress { pace: Some((21.0, 45.0)), ..far };
        assert_eq!(watch(&settings, &evidence, None, &looked_at_before), None, "progress since the sample is unknown");
        let unread = Progress { refaults: Some(20), ..far };
        assert_eq!(watch(&settings, &evidence, None, &unread), None, "memory has not been in its way");
        let swaps = Settings { has_slower_memory: true, ..settings.clone() };
        assert_eq!(watch(&swaps, &evidence, None, &unread), Some(Outcome::TooSlow), "or it does not show");
        let elsewhere = Progress { stall_seconds: Some(0.5), refaults: Some(1_000_000), ..far };
        assert_eq!(watch(&settings, &evidence, None, &elsewhere), None, "it waited, but not for storage: others ran");
        let pipeline = Progress { stall_seconds: Some(30.0), ..at(45.0, 21.0) };
        assert_eq!(watch(&settings, &evidence, None, &pipeline), None, "one waits, another computes");
    }
}

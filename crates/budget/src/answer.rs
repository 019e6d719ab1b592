//! The answer, and how sure it is.

use model::{Answer, Breakdown, Bytes, Outcome, Spread, Trial};

use crate::analysis::Analysis;
use crate::bracket::{Bracket, CLOSE, is_close};
use crate::cause::is_conclusive;
use crate::tried::{Tried, is_enough};
use crate::{Evidence, MIB, Reference, round_up};

/// The answer is at most this many times the knee.
const MAX_TIMES_KNEE: f64 = 1.15;

/// The margin above the smallest passing limit is at least this share.
const MIN_MARGIN: f64 = 0.01;

/// If a limit passes below this share of what a reference held, the job does not hold that much every time.
const HOLDS_LESS_SHARE: f64 = 0.95;

/// If the run times of references differ by this ratio, a slow-down of a few per cent cannot be detected.
const ERRATIC_RATIO: f64 = 2.0;

/// Only another load of the machine makes a run under a limit faster than this ratio to a run without one.
const OTHER_LOAD_RATIO: f64 = 0.8;

/// References whose unreclaimable memory differs by more than this share do not do the same work.
const SAME_WORK_SHARE: f64 = 0.05;

/// The answer of the search so far; `cut_short` is why it stopped before it was complete.
pub fn answer(a: &Analysis, cut_short: Option<String>) -> Answer {
    let (tried, bracket) = (&a.tried, a.bracket);
    let Some(pass) = bracket.pass else {
        let why = cut_short.unwrap_or_else(|| "the job's charge is not known".into());
        return Answer {
            budget_bytes: None,
            smallest_passing_bytes: None,
            largest_failing_bytes: bracket.failed,
            margin_bytes: 0,
            confident: false,
            reason: format!("No limit was found under which the job keeps within the slow-down: {why}."),
        };
    };
    let budget = budget(a, &bracket, pass);
    let doubts = doubts(a, tried, &bracket, cut_short);
    let found = found(a, tried, &bracket, pass, budget - pass);
    Answer {
        budget_bytes: Some(budget),
        smallest_passing_bytes: Some(pass),
        largest_failing_bytes: bracket.failed,
        margin_bytes: budget - pass,
        confident: doubts.is_empty(),
        reason: if doubts.is_empty() { found } else { format!("{found} But {}.", doubts.join("; and ")) },
    }
}

/// The smallest passing limit plus a margin: twice the standard deviation of the unreclaimable memory, at least 1 %, as long as the sum
/// stays within 15 % of the knee.
fn budget(a: &Analysis, bracket: &Bracket, pass: u64) -> u64 {
    // A program that sizes itself by its limit fills any margin.
    let spread = peaks(a.evidence).filter(|_| !a.settings.sizes_itself).map_or(0.0, |(spread, _)| 2.0 * spread.stddev);
    let wanted = pass as f64 + spread.max(MIN_MARGIN * pass as f64);
    let most = bracket
        .fail
        .filter(|_| is_close(bracket))
        .map_or(pass as f64 * MAX_TIMES_KNEE, |fail| fail as f64 * MAX_TIMES_KNEE);
    let least_mib = round_up(wanted.min(most.max(pass as f64)) as u64);
    // Where whole mebibytes are fine enough, rounding up must stay within both bounds.
    if least_mib as f64 > most && least_mib > pass { (least_mib - MIB).max(pass) } else { least_mib }
}

fn found(a: &Analysis, tried: &[Tried], bracket: &Bracket, pass: u64, margin: u64) -> String {
    let slow = left_out(a, pass);
    let left_out = slow.iter().copied().reduce(f64::min).map_or(String::new(), |ratio| {
        let (trials, took) = match slow.len() {
            1 => ("one trial".to_string(), format!("it took {ratio:.2} times as long")),
            trials => (format!("{trials} trials"), format!("they took at least {ratio:.2} times as long")),
        };
        format!(
            " (bursar leaves out {trials} under that limit: {took}, but read nothing again, so something else slowed the machine down)"
        )
    });
    let pass = match bracket.passed {
        Some(passed) if passed == pass && is_slow(tried, pass) => {
            format!(
                "At {} it was slower than allowed, but the bytes read again, its CPU time and its I/O delay do not show that memory was the reason",
                Bytes(pass)
            )
        }
        Some(passed) if passed == pass && pass > 0 => format!("At {} it kept within the slow-down", Bytes(pass)),
        _ if pass == 0 => "Its memory without a limit is too small to be measured".into(),
        _ => format!("Without a limit it never used more than {}", Bytes(pass)),
    };
    let failed = tried.iter().find(|t| Some(t.limit) == bracket.failed && bracket.failed == bracket.fail);
    let fail = match (failed, bracket.fail) {
        (Some(t), _) => format!("; at {} it {}", Bytes(t.limit), happened(t.worst)),
        (None, Some(fail)) => format!("; below {} the memory that cannot be reclaimed does not fit", Bytes(fail)),
        (None, None) => String::new(),
    };
    let spread = peaks(a.evidence).filter(|_| !a.settings.sizes_itself).map_or(String::new(), |(spread, runs)| {
        let stddev = Bytes(spread.stddev as u64);
        format!(" (the memory that cannot be reclaimed has a standard deviation of {stddev} over {runs} runs)")
    });
    let by_memory = match a.memory_is_conclusive && !a.resolves_slow_down {
        true => " Run times vary too much, so CPU time, I/O delay and refaults decide.",
        false => "",
    };
    let added = match margin {
        0 => String::new(),
        _ => format!(" A margin of {} is added{spread}.", Bytes(margin)),
    };
    format!("{pass}{left_out}{fail}.{added}{by_memory}")
}

/// Run times, as ratios to the reference, of the trials under a limit that were too slow and are not conclusive.
fn left_out(a: &Analysis, limit: u64) -> Vec<f64> {
    let is_left_out = |t: &&model::Trial| t.limit_bytes == Some(limit) && !is_conclusive(a, t);
    let ratios = a.evidence.search_trials().filter(is_left_out).filter_map(|t| t.runtime_ratio);
    ratios.filter(|ratio| *ratio > 1.0 + a.settings.slowdown).collect()
}

/// Runs that --runs accepts, at most.
const MAX_RUNS: u64 = 50;

fn is_slow(tried: &[Tried], limit: u64) -> bool {
    tried.iter().any(|t| t.limit == limit && t.slow)
}

fn happened(worst: Outcome) -> &'static str {
    match worst {
        Outcome::Ok | Outcome::TooSlow => "was too slow",
        Outcome::Oom => "was killed for lack of memory",
        Outcome::Timeout => "did not end before the time-out",
        Outcome::Failed => "failed",
    }
}

/// Every reason not to be sure, as clauses.
fn doubts(a: &Analysis, tried: &[Tried], bracket: &Bracket, cut_short: Option<String>) -> Vec<String> {
    let contradiction = fast_with_less(a, bracket).map(|(limit, ratio)| {
        let busy = if ratio <= OTHER_LOAD_RATIO { ": the machine was busy during those" } else { "" };
        format!(
            "run times contradict each other, as a run under {} took {ratio:.2} times as long as the runs without a limit{busy}",
            Bytes(limit)
        )
    });
    let mut doubts: Vec<String> = contradiction.into_iter().chain(cut_short).collect();
    if !is_close(bracket) {
        doubts.push("less may be enough: no slightly smaller limit is known to be too small".into());
    }
    let is_decided = a.memory_is_conclusive || a.margin_is_conclusive;
    if !a.resolves_slow_down && !is_decided {
        let noise =
            format!("so few runs cannot distinguish a slow-down of {:.0} % from noise", a.settings.slowdown * 100.0);
        doubts.push(match a.references_needed() {
            Some(runs) if runs <= MAX_RUNS => format!("{noise}: use --runs {runs}, or a quieter machine"),
            Some(_) => format!("{noise}: use a quieter machine"),
            None => "one run does not show how much the run time varies (use --runs 2)".into(),
        });
    }
    if let Some((least, most)) = erratic_references(a).filter(|_| a.resolves_slow_down || is_decided) {
        doubts.push(format!("its run time without a limit was from {least:.2} s to {most:.2} s"));
    }
    let is_slow_once_more =
        |pass: u64| left_out(a, pass).len() > 1 && !tried.iter().any(|t| t.limit == pass && t.passed && !t.slow);
    if bracket.pass.is_some_and(|pass| is_slow(tried, pass) || is_slow_once_more(pass)) {
        doubts.push("no run under this limit kept within the slow-down".into());
    } else if tried.iter().any(|t| Some(t.limit) == bracket.passed && t.near) {
        doubts.push("run times vary so much that another run under that limit may be slower than allowed".into());
    }
    doubts.extend(a.chance.filter(|chance| chance.doubtful).map(|chance| chance.doubt()));
    if tried.iter().any(|t| Some(t.limit) == bracket.fail && t.hardly_failed) {
        doubts.push("less may be enough: the run under the next smaller limit was barely too slow".into());
    }
    if tried.iter().any(|t| t.worst == Outcome::Timeout && Some(t.limit) >= bracket.fail) {
        doubts.push("a trial was ended by the time-out, so it may only have been slow (--timeout)".into());
    }
    if let Some((limit, peak)) = killed_though_less_was_enough(a) {
        doubts.push(format!(
            "it was killed at {}, and never had more than {} in another run: it does not do the same every time",
            Bytes(limit),
            Bytes(peak)
        ));
    } else if tried.iter().any(|t| t.passed && Some(t.limit) < bracket.failed) {
        doubts.push(
            "a smaller limit passed once where a larger one failed: the job does not do the same every time".into(),
        );
    }
    if let Some(lost) = a.evidence.demand.as_ref().map(|d| d.lost_events).filter(|lost| *lost > 0) {
        doubts.push(format!("{lost} references to the page cache were lost, so the prediction was too low"));
    }
    // A sampled peak can be too low, and a peak that the kernel's figures prove depends on how much was cached. A job that needs more has
    // more of both.
    let differs = |spread: &Spread| spread.max > spread.min * (1.0 + SAME_WORK_SHARE);
    let is_sampled_the_same = spread_of(a.evidence, |r| r.held_bytes).is_some_and(|held| !differs(&held));
    if let Some(spread) =
        unreclaimable(a.evidence).filter(|spread| differs(spread) && !is_sampled_the_same && !a.settings.sizes_itself)
    {
        let (min, max) = (Bytes(spread.min as u64), Bytes(spread.max as u64));
        doubts.push(format!("the reference runs needed from {min} to {max}: the next run may need more"));
    }
    if let Some(held) =
        surely_held(a).filter(|held| bracket.pass.is_some_and(|pass| (pass as f64) < HOLDS_LESS_SHARE * *held as f64))
    {
        doubts.push(format!(
            "the reference runs held up to {} that could not be reclaimed: the next run may need more",
            Bytes(held)
        ));
    }
    doubts
}

/// The fastest run under much less than the passing limit that was no slower than without a limit and that memory cost nothing: its limit
/// and its ratio to the reference. Only below the limit that failed: above it, it is unknown anyway whether less is enough.
fn fast_with_less(a: &Analysis, bracket: &Bracket) -> Option<(u64, f64)> {
    let pass = bracket.pass?;
    let is_much_less = |limit: u64| limit as f64 * CLOSE < pass as f64 && bracket.fail.is_none_or(|fail| limit <= fail);
    let runs_at = |limit: u64| a.evidence.trials.iter().filter(|t| t.limit_bytes == Some(limit)).collect::<Vec<_>>();
    let has_ended = |t: &&Trial| matches!(t.outcome, Outcome::Ok | Outcome::TooSlow) && !t.lower_bound;
    let fast = |t: &Trial| Some((t.limit_bytes?, t.runtime_ratio.filter(|ratio| *ratio <= 1.0)?));
    let with_less =
        a.evidence.trials.iter().filter(has_ended).filter_map(fast).filter(|(limit, _)| is_much_less(*limit));
    with_less.filter(|(limit, _)| is_enough(a, *limit, &runs_at(*limit))).min_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// A limit under which the run was killed, and the peak of a run that had less, without a limit or under a limit that is no smaller.
fn killed_though_less_was_enough(a: &Analysis) -> Option<(u64, u64)> {
    let ended = |t: &&model::Trial| matches!(t.outcome, Outcome::Ok | Outcome::TooSlow) && !t.lower_bound;
    let peaks_under = |limit: u64| {
        let of_trials =
            a.evidence.trials.iter().filter(ended).filter(move |t| t.limit_bytes.is_none_or(|l| l >= limit));
        let of_references = a.evidence.references.iter().filter_map(|r| r.peak_charge_bytes);
        of_trials.filter_map(|t| t.peak_charge_bytes).chain(of_references)
    };
    let killed = a.evidence.trials.iter().filter(|t| t.outcome == Outcome::Oom).filter_map(|t| t.limit_bytes);
    let least = |limit: u64| Some((limit, peaks_under(limit).min()?));
    let differs = |(limit, peak): &(u64, u64)| (*peak as f64) < HOLDS_LESS_SHARE * *limit as f64;
    killed.filter_map(least).find(differs).filter(|_| !a.settings.sizes_itself && !a.settings.has_slower_memory)
}

/// The shortest and the longest run time of the references, if the longest is several times the shortest.
fn erratic_references(a: &Analysis) -> Option<(f64, f64)> {
    let walls: Vec<f64> = a.evidence.timed().iter().map(|r| r.wall_seconds).collect();
    let spread = Spread::of(&walls)?;
    (spread.max >= ERRATIC_RATIO * spread.min).then_some((spread.min, spread.max))
}

/// The most that a reference held, without kernel memory, of which a part is freed under a limit. `None` with swap, and for programs that
/// size themselves by the limit.
fn surely_held(a: &Analysis) -> Option<u64> {
    let of = |r: &Reference| Some(r.floor_bytes?.saturating_sub(r.breakdown.kernel.unwrap_or(0)));
    let most = a.evidence.references.iter().filter_map(of).max();
    most.filter(|_| !a.settings.has_slower_memory && !a.settings.sizes_itself)
}

/// The unreclaimable memory over several runs, and their number. With several references, theirs; with a single one, heap and shared memory
/// of it and of completed trials, because other kernel memory differs under a limit.
fn peaks(evidence: &Evidence) -> Option<(Spread, usize)> {
    if let [reference] = evidence.references.as_slice() {
        let passed = evidence.search_trials().filter(|t| t.outcome == Outcome::Ok).map(|t| &t.breakdown);
        let held = |b: &Breakdown| Some((b.heap? + b.shared?) as f64);
        let values: Vec<f64> = std::iter::once(&reference.breakdown).chain(passed).filter_map(held).collect();
        return Some((Spread::of(&values).filter(|_| values.len() > 1)?, values.len()));
    }
    Some((unreclaimable(evidence)?, evidence.references.len()))
}

/// The unreclaimable memory of each reference; where that is unknown, the peak charge.
fn unreclaimable(evidence: &Evidence) -> Option<Spread> {
    spread_of(evidence, |r| r.floor_bytes).or_else(|| spread_of(evidence, |r| r.peak_charge_bytes))
}

fn spread_of(evidence: &Evidence, of: fn(&Reference) -> Option<u64>) -> Option<Spread> {
    let values: Option<Vec<f64>> = evidence.references.iter().map(|r| of(r).map(|v| v as f64)).collect();
    values.and_then(|values| Spread::of(&values))
}

#[cfg(test)]
mod tests {
    use model::{Method, Trial};

    use super::*;
    use crate::Settings;
    use crate::tests::trial;

    /// Like a program that holds 60 MiB in an unlinked file: memory cost the trials nothing, but both were slow.
    fn two_slow_trials() -> Evidence {
        let reference = |run, wall_seconds, peak| Reference {
            run,
            wall_seconds,
            stall_seconds: Some(0.0),
            peak_charge_bytes: Some(peak * MIB),
            floor_bytes: Some(69 * MIB),
            held_bytes: Some(69 * MIB),
            refaults: Some(0),
            cpu_seconds: Some(4.0),
            system_seconds: Some(2.3),
            ..Reference::default()
        };
        let slow = |run, wall_seconds, limit| Trial {
            run,
            cpu_seconds: Some(3.8),
            system_seconds: Some(2.2),
            stall_seconds: Some(0.03),
            refaults: Some(0),
            peak_charge_bytes: Some(limit * MIB),
            ..trial(limit, wall_seconds)
        };
        let killed = Trial { run: 5, outcome: Outcome::Oom, runtime_ratio: None, ..trial(69, 13.0) };
        Evidence {
            references: vec![reference(1, 10.0, 80), reference(4, 10.1, 82)],
            trials: vec![slow(2, 11.3, 75), slow(3, 10.7, 75), killed],
            ..Evidence::default()
        }
    }

    #[test]
    fn a_limit_with_only_slow_runs_is_not_a_sure_answer() {
        let found = answer(&Analysis::of(&Settings::default(), &two_slow_trials()), None);
        assert_eq!((found.smallest_passing_bytes, found.confident), (Some(75 * MIB), false), "{}", found.reason);
        assert!(found.reason.starts_with("At 75.0 MiB it was slower than allowed, but"), "{}", found.reason);
        assert!(found.reason.contains("But no run under this limit kept within the slow-down"), "{}", found.reason);
    }

    #[test]
    fn one_run_within_the_slow_down_shows_that_it_is_possible() {
        let mut evidence = two_slow_trials();
        let fast =
            Trial { wall_seconds: 10.1, runtime_ratio: Some(1.01), outcome: Outcome::Ok, ..evidence.trials[0].clone() };
        evidence.trials.push(fast);
        let found = answer(&Analysis::of(&Settings::default(), &evidence), None);
        assert!(found.reason.starts_with("At 75.0 MiB it kept within the slow-down"), "{}", found.reason);
        assert!(!found.reason.contains("no run under it"), "{}", found.reason);
    }

    /// A search of a program that holds 50 MiB, and 150 MiB in one of four runs.
    fn once_killed() -> Evidence {
        let reference = |run| Reference {
            run,
            wall_seconds: 10.0,
            peak_charge_bytes: Some(51 * MIB),
            floor_bytes: Some(50 * MIB),
            held_bytes: Some(50 * MIB),
            ..Reference::default()
        };
        let ended = |limit| Trial { outcome: Outcome::Ok, peak_charge_bytes: Some(51 * MIB), ..trial(limit, 10.0) };
        let killed = Trial { outcome: Outcome::Oom, runtime_ratio: None, ..trial(55, 3.0) };
        let trials = vec![ended(55), killed, ended(58), Trial { outcome: Outcome::Oom, ..trial(49, 1.0) }];
        Evidence { references: vec![reference(1), reference(2), reference(3)], trials, ..Evidence::default() }
    }

    #[test]
    fn a_run_killed_with_more_than_others_needed_is_reported() {
        let doubt = "killed at 55.0 MiB, and never had more than 51.0 MiB in another run";
        let mut evidence = once_killed();
        let found = answer(&Analysis::of(&Settings::default(), &evidence), None);
        assert!(!found.confident && found.reason.contains(doubt), "{}", found.reason);
        evidence.trials.remove(1);
        let found = answer(&Analysis::of(&Settings::default(), &evidence), None);
        assert!(!found.reason.contains("never had more than"), "{}", found.reason);
    }

    #[test]
    fn references_too_erratic_for_a_slow_down_are_reported() {
        let is_reported = |fastest: f64| {
            let mut evidence = two_slow_trials();
            let reads =
                Trial { cpu_seconds: Some(5.0), refaults: Some(200_000), stall_seconds: Some(9.0), ..trial(69, 20.0) };
            evidence.trials = vec![Trial { outcome: Outcome::Ok, ..evidence.trials[0].clone() }, reads];
            evidence.references[1].wall_seconds = fastest;
            let found = answer(&Analysis::of(&Settings::default(), &evidence), None);
            (found.reason.contains("its run time without a limit was from"), found.reason)
        };
        let (reported, reason) = is_reported(4.0);
        assert!(reported, "{reason}");
        let (reported, reason) = is_reported(9.9);
        assert!(!reported, "{reason}");
    }

    /// A reference on a busy machine, and later a run of a method under a tenth of the answer.
    #[test]
    fn a_fast_run_with_less_memory_contradicts_the_answer() {
        let answer_after = |seconds: f64| {
            let mut evidence = two_slow_trials();
            let under =
                |limit| Trial { method: Some(Method::AppMaxRss), outcome: Outcome::Ok, ..trial(limit, seconds) };
            evidence.trials.truncate(2);
            evidence.trials.push(Trial {
                cpu_seconds: Some(3.9),
                refaults: Some(0),
                stall_seconds: Some(0.0),
                ..under(7)
            });
            answer(&Analysis::of(&Settings::default(), &evidence), Some("it was cut short".into()))
        };
        let found = answer_after(2.7);
        let first = "But run times contradict each other, as a run under 7.00 MiB took 0.27 times as long as the runs without a limit: \
                     the machine was busy during those; and it was cut short";
        assert!(found.reason.contains(first) && !found.confident, "{}", found.reason);
        assert!(!answer_after(12.0).reason.contains("contradict"), "{}", answer_after(12.0).reason);
    }

    #[test]
    fn inconclusive_trials_are_counted_in_the_answer() {
        let mut evidence = two_slow_trials();
        for trial in &mut evidence.trials[..2] {
            trial.limit_bytes = Some(82 * MIB);
        }
        let found = answer(&Analysis::of(&Settings::default(), &evidence), None);
        assert!(
            found.reason.contains("(bursar leaves out 2 trials under that limit: they took at least 1.07 times"),
            "{}",
            found.reason
        );
        for trial in &mut evidence.trials[..2] {
            trial.runtime_ratio = Some(1.02);
        }
        let found = answer(&Analysis::of(&Settings::default(), &evidence), None);
        assert!(!found.reason.contains("leaves out"), "they were not slow: {}", found.reason);
    }
}

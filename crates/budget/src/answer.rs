//! The answer, with what it rests on.

use model::{Answer, Breakdown, Bytes, Outcome, Spread};

use crate::noise::{can_tell, references_needed};
use crate::search::{Bracket, Tried, bracket, is_close, is_telling, is_told_by_margin, is_told_by_memory, tried};
use crate::{MIB, Reference, Seen, Settings, round_up};

/// The answer stays within this of the knee.
const WITHIN: f64 = 1.15;

/// Added to the smallest passing limit at least.
const LEAST_MARGIN: f64 = 0.01;

/// A limit that passes below this share of what a reference held shows that the job does not hold it every time.
const LESS: f64 = 0.95;

/// References whose unreclaimable memory differs by more than this do not do the same thing.
const SAME: f64 = 0.05;

/// What the search has come to; `cut_short` is why it had to stop before it was done.
pub fn answer(settings: &Settings, seen: &Seen, cut_short: Option<String>) -> Answer {
    let tried = tried(settings, seen);
    let bracket = bracket(settings, seen, &tried);
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
    let budget = budget(settings, seen, &bracket, pass);
    let doubts = doubts(settings, seen, &tried, &bracket, cut_short);
    let found = found(settings, seen, &tried, &bracket, pass, budget - pass);
    Answer {
        budget_bytes: Some(budget),
        smallest_passing_bytes: Some(pass),
        largest_failing_bytes: bracket.failed,
        margin_bytes: budget - pass,
        confident: doubts.is_empty(),
        reason: if doubts.is_empty() { found } else { format!("{found} But {}.", doubts.join("; and ")) },
    }
}

/// The smallest passing limit and a margin: twice the standard deviation of what could not be reclaimed, at least 1 %, as
/// long as the whole stays within 15 % of the knee.
fn budget(settings: &Settings, seen: &Seen, bracket: &Bracket, pass: u64) -> u64 {
    // What sizes itself holds what it was given.
    let spread = peaks(seen).filter(|_| !settings.sizes_itself).map_or(0.0, |(spread, _)| 2.0 * spread.stddev);
    let wanted = pass as f64 + spread.max(LEAST_MARGIN * pass as f64);
    let most = bracket.fail.filter(|_| is_close(bracket)).map_or(pass as f64 * WITHIN, |fail| fail as f64 * WITHIN);
    let least_mib = round_up(wanted.min(most.max(pass as f64)) as u64);
    // Rounding up must not go beyond either, where mebibytes are fine enough to tell.
    if least_mib as f64 > most && least_mib > pass { (least_mib - MIB).max(pass) } else { least_mib }
}

fn found(settings: &Settings, seen: &Seen, tried: &[Tried], bracket: &Bracket, pass: u64, margin: u64) -> String {
    let is_left_out = |t: &&model::Trial| t.limit_bytes == Some(pass) && !is_telling(settings, seen, t);
    let left_out = seen.search_trials().find(is_left_out).and_then(|t| t.runtime_ratio).map_or(String::new(), |ratio| {
        format!(
            " (one trial under that limit took {ratio:.2} times as long, but it read nothing again, so something else slowed the machine down; that \
             trial does not count)"
        )
    });
    let pass = match bracket.passed {
        Some(passed) if passed == pass => format!("At {} it kept within the slow-down", Bytes(pass)),
        _ => format!("Without a limit it never used more than {}", Bytes(pass)),
    };
    let failed = tried.iter().find(|t| Some(t.limit) == bracket.failed && bracket.failed == bracket.fail);
    let fail = match (failed, bracket.fail) {
        (Some(t), _) => format!("; at {} it {}", Bytes(t.limit), happened(t.worst)),
        (None, Some(fail)) => format!("; below {} what it cannot give back would not fit", Bytes(fail)),
        (None, None) => String::new(),
    };
    let spread = peaks(seen).filter(|_| !settings.sizes_itself).map_or(String::new(), |(spread, runs)| {
        let stddev = Bytes(spread.stddev as u64);
        format!(" (what it cannot give back has a standard deviation of {stddev} over {runs} runs)")
    });
    let by_memory = match is_told_by_memory(settings, seen) && !can_tell(settings, seen) {
        true => " Run times vary too much to decide; CPU time, I/O delay and refaults do.",
        false => "",
    };
    format!("{pass}{left_out}{fail}. A margin of {} is added{spread}.{by_memory}", Bytes(margin))
}

fn happened(worst: Outcome) -> &'static str {
    match worst {
        Outcome::Ok | Outcome::TooSlow => "was too slow",
        Outcome::Oom => "was killed for want of memory",
        Outcome::Timeout => "did not end before the time-out",
        Outcome::Failed => "failed",
    }
}

/// Every reason not to be sure, as clauses.
fn doubts(
    settings: &Settings,
    seen: &Seen,
    tried: &[Tried],
    bracket: &Bracket,
    cut_short: Option<String>,
) -> Vec<String> {
    let mut doubts: Vec<String> = cut_short.into_iter().collect();
    if !is_close(bracket) {
        doubts.push("less may be enough: no limit close below is known to be too little".into());
    }
    let is_told = is_told_by_memory(settings, seen) || is_told_by_margin(settings, seen);
    if !can_tell(settings, seen) && !is_told {
        doubts.push(match references_needed(settings, seen) {
            Some(runs) => format!(
                "a slow-down of {:.0} % cannot be told from noise by so few runs; it would take about {runs} (--runs {runs}) \
                 or a quieter machine",
                settings.slowdown * 100.0,
            ),
            None => "one run does not tell how much its run time varies (--runs 2)".into(),
        });
    }
    if tried.iter().any(|t| Some(t.limit) == bracket.passed && t.near) {
        doubts.push("its run time there is so close to what is allowed that another run may be slower".into());
    }
    if tried.iter().any(|t| Some(t.limit) == bracket.fail && t.hardly_failed) {
        doubts.push("less may be enough: the run under the limit below was hardly too slow".into());
    }
    if tried.iter().any(|t| t.worst == Outcome::Timeout && Some(t.limit) >= bracket.fail) {
        doubts.push("a trial was ended by the time-out, so it may only have been slow (--timeout)".into());
    }
    if tried.iter().any(|t| t.passed && Some(t.limit) < bracket.failed) {
        doubts.push(
            "a smaller limit passed once where a larger one failed: the job does not do the same every time".into(),
        );
    }
    if let Some(lost) = seen.demand.as_ref().map(|d| d.lost_events).filter(|lost| *lost > 0) {
        doubts.push(format!("{lost} references to the page cache were lost, so the prediction was too low"));
    }
    // A sampled peak may be missed, and one that the kernel's peaks prove depends on how much was cached: a job that needs more has
    // more of both.
    let differs = |spread: &Spread| spread.max > spread.min * (1.0 + SAME);
    let is_sampled_the_same = spread_of(seen, |r| r.held_bytes).is_some_and(|held| !differs(&held));
    if let Some(spread) =
        unreclaimable(seen).filter(|spread| differs(spread) && !is_sampled_the_same && !settings.sizes_itself)
    {
        let (min, max) = (Bytes(spread.min as u64), Bytes(spread.max as u64));
        doubts.push(format!("the reference runs needed from {min} to {max}: the next may need more"));
    }
    if let Some(held) =
        surely_held(settings, seen).filter(|held| bracket.pass.is_some_and(|pass| (pass as f64) < LESS * *held as f64))
    {
        doubts.push(format!(
            "the reference runs held up to {} that could not be reclaimed: the next may need more",
            Bytes(held)
        ));
    }
    doubts
}

/// The most that a reference held, without what the kernel held for it, of which some gives way under a limit. Nothing is known where it
/// may swap, or takes what it gets.
fn surely_held(settings: &Settings, seen: &Seen) -> Option<u64> {
    let of = |r: &Reference| Some(r.floor_bytes?.saturating_sub(r.breakdown.kernel.unwrap_or(0)));
    let most = seen.references.iter().filter_map(of).max();
    most.filter(|_| !settings.has_slower_memory && !settings.sizes_itself)
}

/// What could not be reclaimed, over more than one run, and over how many: of the references; of a single one and the trials that
/// ended well heap and shared memory, since what the kernel holds besides differs under a limit.
fn peaks(seen: &Seen) -> Option<(Spread, usize)> {
    if let [reference] = seen.references.as_slice() {
        let passed = seen.search_trials().filter(|t| t.outcome == Outcome::Ok).map(|t| &t.breakdown);
        let held = |b: &Breakdown| Some((b.heap? + b.shared?) as f64);
        let values: Vec<f64> = std::iter::once(&reference.breakdown).chain(passed).filter_map(held).collect();
        return Some((Spread::of(&values).filter(|_| values.len() > 1)?, values.len()));
    }
    Some((unreclaimable(seen)?, seen.references.len()))
}

/// What could not be reclaimed in each reference; the peak charge where that is not known.
fn unreclaimable(seen: &Seen) -> Option<Spread> {
    spread_of(seen, |r| r.floor_bytes).or_else(|| spread_of(seen, |r| r.peak_charge_bytes))
}

fn spread_of(seen: &Seen, of: fn(&Reference) -> Option<u64>) -> Option<Spread> {
    let values: Option<Vec<f64>> = seen.references.iter().map(|r| of(r).map(|v| v as f64)).collect();
    values.and_then(|values| Spread::of(&values))
}

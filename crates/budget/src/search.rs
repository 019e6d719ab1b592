//! Which limit to try next.

use model::{Bytes, Outcome, Spread, Trial};

use crate::judge::give_up_after;
use crate::noise::ratio_noise;
use crate::predict::{TELLING_BYTES, knee, too_little, writers_knee};
use crate::{MIB, Seen, Settings, round_up};

/// The search ends when the smallest passing limit is at most this far above the largest failing one.
pub const CLOSE: f64 = 1.12;

/// A step that leaves a bracket of just under [`CLOSE`], rounding to mebibytes included.
const STEP: f64 = 1.09;

/// Above the predicted knee, for what reclaim needs to work: it starts before a limit is quite full.
const KNEE_SLACK: f64 = 1.03;

/// What a search may cost in run times, references included.
const MOST_RUN_TIMES: f64 = 8.0;

/// Above the threshold by more than this, no run is slow by chance, unless it is known that it read nothing again.
const CHANCE: f64 = 0.2;

/// Stall below this share of the time lost, or allowed to be, does not explain it.
const EXPLAINED: f64 = 0.25;

/// A limit that was in the way shows: the charge came to it.
const TOUCHED: f64 = 0.98;

/// What is known of one limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    pub limit: u64,
    pub passed: bool,
    pub runs: usize,
    /// So close to the threshold, or so slow without a reason in memory, that one run does not decide.
    pub doubtful: bool,
    /// The worst that happened there.
    pub worst: Outcome,
}

/// Where the knee is known to lie: above `fail`, at most `pass`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bracket {
    /// The largest limit that failed.
    pub failed: Option<u64>,
    /// The smallest limit that passed with none that failed above it.
    pub passed: Option<u64>,
    /// The larger of `failed` and what the floor rules out.
    pub fail: Option<u64>,
    /// The smaller of `passed` and the peak charge without a limit.
    pub pass: Option<u64>,
}

/// What the search wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Try this limit.
    Try { limit: u64, why: String },
    /// Nothing more; `Some`: it had to stop before it was done, for this reason.
    Stop(Option<String>),
}

/// What to try next.
pub fn wish(settings: &Settings, seen: &Seen) -> Wish {
    let tried = tried(settings, seen);
    let bracket = bracket(settings, seen, &tried);
    let is_edge = |t: &Tried| Some(t.limit) == bracket.passed || Some(t.limit) == bracket.failed;
    let again = tried.iter().find(|t| t.doubtful && t.runs < 2 && is_edge(t));
    let next = match again {
        Some(t) => Some((t.limit, "one run so close to the threshold does not decide: once more".to_string())),
        None if is_close(&bracket) => unmade(&bracket),
        None => choose(settings, seen, &tried, &bracket),
    };
    let Some((limit, why)) = next else { return Wish::Stop(None) };
    let trials = seen.search_trials().count();
    // What is close already loses nothing when it may cost no more.
    let unless_close = |why: String| Wish::Stop(Some(why).filter(|_| !is_close(&bracket)));
    if trials >= settings.max_trials as usize {
        return unless_close(format!("the search ended after {trials} trials, as many as allowed"));
    }
    let used = seen.run_times_used().unwrap_or(0.0);
    let most = MOST_RUN_TIMES.max(seen.references.len() as f64 + 4.0);
    let longest = give_up_after(settings, seen, None).zip(seen.reference()).map_or(1.0, |(end, r)| end / r.median);
    if used + longest > most {
        return unless_close(format!("the search ended after {used:.1} run times, as many as it may cost"));
    }
    Wish::Try { limit, why }
}

/// The answer's limit, if no run was made under it: what the job never used more of without a limit should be enough, but
/// whoever is told so wants it tried.
fn unmade(bracket: &Bracket) -> Option<(u64, String)> {
    let limit = bracket.pass.filter(|_| bracket.passed != bracket.pass)?;
    Some((limit, format!("without a limit it never used more than {}: is that enough under one?", Bytes(limit))))
}

/// All limits tried, rising, with what several runs at the same limit say together. The methods' runs are for the comparison: a
/// single one, made once the search is over, shall not overthrow its answer. Runs that their limit cannot have slowed down say
/// nothing of it.
pub fn tried(settings: &Settings, seen: &Seen) -> Vec<Tried> {
    let trials: Vec<&Trial> = seen.search_trials().filter(|t| !is_untouched(settings, seen, t)).collect();
    let mut limits: Vec<u64> = trials.iter().filter_map(|t| t.limit_bytes).collect();
    limits.sort_unstable();
    limits.dedup();
    let at = |limit| trials.iter().copied().filter(|t| t.limit_bytes == Some(limit)).collect::<Vec<_>>();
    limits.into_iter().map(|limit| together(settings, seen, limit, &at(limit))).collect()
}

/// Too slow, though its charge never came to its limit, or read nothing again at a limit that the references' charge never came
/// to: the machine has become slower since.
pub fn is_untouched(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    let Some(limit) = trial.limit_bytes else { return false };
    let stayed_below = trial.peak_charge_bytes.is_some_and(|peak| (peak as f64) < TOUCHED * limit as f64);
    let is_ample =
        seen.peak_charge_bytes().is_some_and(|peak| limit >= peak) && read_again(settings, trial) != Some(true);
    trial.outcome == Outcome::TooSlow && writers_knee(settings, seen).is_none() && (stayed_below || is_ample)
}

fn together(settings: &Settings, seen: &Seen, limit: u64, trials: &[&Trial]) -> Tried {
    let broke = trials.iter().any(|t| matches!(t.outcome, Outcome::Oom | Outcome::Failed | Outcome::Timeout));
    let threshold = 1.0 + settings.slowdown;
    // A run that was stopped would have taken longer than it did, and longer than allowed.
    let least = threshold + 2.0 * ratio_noise(seen);
    let ratio_of = |t: &&Trial| t.runtime_ratio.map(|r| if t.lower_bound { r.max(least) } else { r });
    let ratios: Vec<f64> = trials.iter().filter_map(ratio_of).collect();
    // What slows a run down without a reason in memory only ever adds time: then the fastest run tells.
    let unexplained = trials.iter().any(|t| is_unexplained(settings, seen, t));
    let ratio = Spread::of(&ratios).map(|spread| if unexplained { spread.min } else { spread.median });
    let near = ratio.is_some_and(|r| (r - threshold).abs() <= ratio_noise(seen) / (trials.len() as f64).sqrt())
        && !trials.iter().all(|t| lost_nothing(settings, seen, t));
    let stopped = trials.iter().any(|t| t.lower_bound);
    Tried {
        limit,
        passed: !broke && ratio.is_some_and(|r| r <= threshold),
        runs: trials.len(),
        doubtful: !broke && (near && !stopped || unexplained),
        worst: trials.iter().map(|t| t.outcome).max_by_key(severity).unwrap_or(Outcome::Ok),
    }
}

/// How bad an outcome is, for the worst of several.
pub fn severity(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Ok => 0,
        Outcome::TooSlow => 1,
        Outcome::Timeout => 2,
        Outcome::Failed => 3,
        Outcome::Oom => 4,
    }
}

/// Stall is less noisy than time: where there is next to none beyond the reference's, memory did not cost the run
/// anything, however long it took.
fn lost_nothing(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    let allowed = seen.reference().map(|r| settings.slowdown * r.median);
    trial.stall_seconds.zip(allowed).is_some_and(|(stall, allowed)| stall < EXPLAINED * allowed)
}

/// Too slow, though neither stall nor refaults tell why: something else may have slowed the machine down.
fn is_unexplained(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    let Some((reference, ratio)) = seen.reference().zip(trial.runtime_ratio) else { return false };
    let lost = (ratio - 1.0) * reference.median;
    let is_near = ratio < 1.0 + settings.slowdown + CHANCE.max(4.0 * ratio_noise(seen));
    trial.outcome == Outcome::TooSlow
        && read_again(settings, trial).map_or(is_near, |telling| !telling)
        && trial.stall_seconds.is_some_and(|stall| stall < EXPLAINED * lost)
}

/// Whether it had to read so much again that this tells of memory; `None` if that is not known.
fn read_again(settings: &Settings, trial: &Trial) -> Option<bool> {
    Some(trial.refaults? * settings.page_bytes >= TELLING_BYTES)
}

/// Where the knee is known to lie.
pub fn bracket(settings: &Settings, seen: &Seen, tried: &[Tried]) -> Bracket {
    let failed = tried.iter().filter(|t| !t.passed).map(|t| t.limit).max();
    let passed = tried.iter().filter(|t| t.passed && Some(t.limit) > failed).map(|t| t.limit).min();
    let is_enough = |peak: &u64| Some(*peak) > failed && writers_knee(settings, seen).is_none();
    let unreclaimed = seen.peak_charge_bytes().map(round_up).filter(is_enough);
    let pass = match (passed, unreclaimed) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    // A limit that passed below the floor has shown that the floor was not one.
    let ruled_out = too_little(settings, seen).filter(|floor| pass.is_none_or(|pass| *floor < pass));
    Bracket { failed, passed, fail: failed.max(ruled_out), pass }
}

/// Whether the knee is known well enough.
pub fn is_close(bracket: &Bracket) -> bool {
    match (bracket.fail, bracket.pass) {
        (Some(fail), Some(pass)) => pass as f64 <= fail as f64 * CLOSE || pass - fail <= MIB,
        (None, Some(pass)) => pass <= MIB,
        _ => false,
    }
}

fn choose(settings: &Settings, seen: &Seen, tried: &[Tried], bracket: &Bracket) -> Option<(u64, String)> {
    let inside = |limit: &u64| bracket.fail.is_none_or(|fail| *limit > fail) && bracket.pass.is_none_or(|p| *limit < p);
    let (limit, why) = guided(settings, seen, tried, bracket)
        .filter(|(limit, _)| inside(limit))
        .or_else(|| groping(seen, tried, bracket))?;
    if inside(&limit) {
        return Some((limit, why));
    }
    // Rounding took it to an edge; the bracket is wider than a mebibyte, so there is a limit between.
    let beside_edge = round_up(bracket.fail.unwrap_or(0) + 1);
    inside(&beside_edge).then_some((beside_edge, why))
}

/// Just above the knee as it is predicted now, unless that is known already or only creeps up on what failed.
fn guided(settings: &Settings, seen: &Seen, tried: &[Tried], bracket: &Bracket) -> Option<(u64, String)> {
    let knee = knee(settings, seen)?;
    let limit = round_up((knee as f64 * KNEE_SLACK) as u64 + MIB);
    let far = |a: u64, b: u64| a as f64 > b as f64 * (STEP + 1.0) / 2.0;
    let is_new = bracket.failed.is_none_or(|fail| far(limit, fail)) && bracket.pass.is_none_or(|pass| far(pass, limit));
    let what = if writers_knee(settings, seen).is_some() {
        "what it writes fits into the share of memory that may wait to be written"
    } else if seen.demand.is_some() {
        "what cannot be reclaimed and the file pages used again fit just so"
    } else {
        "what cannot be reclaimed and the mapped files fit just so"
    };
    let why = if tried.is_empty() {
        format!("just above {}, where {what}: expected to pass", Bytes(knee))
    } else {
        format!("the trials so far put the knee at {}", Bytes(knee))
    };
    is_new.then_some((limit, why))
}

/// Between the edges: near the one that a curve foretold, in case it was only a little off; else halfway.
fn groping(seen: &Seen, tried: &[Tried], bracket: &Bracket) -> Option<(u64, String)> {
    let passes = tried.iter().filter(|t| t.passed).count();
    let fails = tried.len() - passes;
    // The steps grow, up to fourfold; without a curve to be nearly right, the first miss says nothing about how far it is.
    let stride = |times: usize| STEP.powi(1 << (2 * times.saturating_sub(1)).min(4));
    let down = |pass: u64| (pass as f64 / stride(passes)) as u64 / MIB * MIB;
    let up = |fail: u64| round_up((fail as f64 * stride(fails)) as u64);
    let middle = |fail: u64, pass: u64| round_up((fail as f64 * pass as f64).sqrt() as u64);
    let trusts_curve = seen.demand.is_some();
    let limit = match (bracket.failed, bracket.passed, bracket.fail, bracket.pass) {
        (Some(fail), Some(passed), _, pass) => middle(fail, pass.unwrap_or(passed)),
        (Some(fail), None, _, Some(peak)) if trusts_curve => up(fail).min(middle(fail, peak)),
        (Some(fail), None, _, Some(peak)) => middle(fail, peak),
        (Some(fail), None, _, None) => up(fail),
        (None, _, floor, Some(pass)) => floor.map_or(down(pass), |floor| down(pass).max(middle(floor, pass))),
        (None, _, Some(floor), None) => up(floor),
        (None, _, None, None) => return None,
    };
    let why = match (bracket.fail, bracket.pass) {
        (Some(fail), Some(pass)) if bracket.failed.is_some() => {
            format!("between {}, which failed, and {}, which is enough", Bytes(fail), Bytes(pass))
        }
        (_, Some(pass)) => format!("{} is enough: is less?", Bytes(pass)),
        _ => "the last limit was too little: is more enough?".to_string(),
    };
    Some((limit.max(MIB), why))
}

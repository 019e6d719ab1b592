//! Which limit to try next.

use model::{Bytes, Method, Outcome, Spread, Trial};

use crate::chance::chance;
use crate::clock::{additional_cpu, additional_of_all, computes_more, cost, is_surely_more, most_read, noise, ratio};
use crate::drift::nearest;
use crate::judge::give_up_after;
use crate::noise::{can_tell, ratio_noise};
use crate::predict::{TELLING_BYTES, knee, may_cost_unseen, too_little, writers_knee};
use crate::{MIB, Seen, Settings, round_down, round_up};

/// The search ends when the smallest passing limit is at most this far above the largest failing one.
pub const CLOSE: f64 = 1.12;

/// The ratio of two neighbouring limits that the search tries: at most [`CLOSE`].
const GRID: f64 = 1.08;

/// Above a limit that failed by so little that chance may have done it. A run there tells more than another at the same.
const LITTLE_MORE: f64 = 1.06;

/// Above what cannot be reclaimed, for what reclaim needs to work: it starts before a limit is quite full.
const FLOOR_SLACK: f64 = 1.03;

/// So many standard deviations from the threshold are no chance.
const SURE: f64 = 2.0;

/// The runs of a trial last for at least so many seconds together; shorter jobs start and end by chance a little earlier or later.
const LEAST_SECONDS: f64 = 1.0;

/// But there are no more than this.
const MOST_REPEATS: usize = 4;

/// What a search may cost in run times, references included. More by as many times as a trial has runs.
const MOST_RUN_TIMES: f64 = 8.0;

/// Above the threshold by more than this, no run is slow by chance, unless it is known how much it read again.
const CHANCE: f64 = 0.2;

/// Memory explains a loss of time if it may have cost this share of it.
const EXPLAINED: f64 = 0.5;

/// The share of a stall that is sure to be seen.
const SEEN_STALL: f64 = 0.5;

/// A limit that was in the way shows: the charge came to it.
const TOUCHED: f64 = 0.98;

/// Standard deviation of a ratio that is never taken to be less where nothing but the ratio tells.
const LEAST_CHANCE: f64 = 0.05;

/// What is known of one limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    pub limit: u64,
    pub passed: bool,
    pub runs: usize,
    /// So close to the threshold that one run does not decide.
    pub near: bool,
    /// So slow without a reason in memory that one run does not decide.
    pub unexplained: bool,
    /// It passed, and memory cost it a third of what is allowed or more.
    pub costs: bool,
    /// Too slow by so little that another run may not be.
    pub hardly_failed: bool,
    /// So far from the threshold that chance is out of the question.
    pub clear: bool,
    /// One was stopped before its end.
    pub stopped: bool,
    /// None of the runs kept within the slow-down by its run time: where it passed, all that says so is what memory cost.
    pub slow: bool,
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

impl Bracket {
    fn has_edge(&self, limit: u64) -> bool {
        self.passed == Some(limit) || self.failed == Some(limit)
    }
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
    let once = || tried.iter().filter(|t| t.runs < 2 || is_short(seen, t));
    // More memory cannot be slower: one of the two was judged by chance.
    let is_contradicted = |t: &&Tried| {
        t.worst == Outcome::TooSlow && bracket.failed == Some(t.limit) && has_passed_below(&tried, t.limit)
    };
    let is_undecided = |t: &&Tried| {
        t.unexplained && bracket.has_edge(t.limit)
            || t.near && bracket.passed == Some(t.limit)
            || is_contradicted(t)
            || is_close(&bracket) && t.hardly_failed && bracket.failed == Some(t.limit)
            || is_short(seen, t) && bracket.has_edge(t.limit)
    };
    let again = once().find(is_undecided);
    let just_failed = once().find(|t| t.near && bracket.failed == Some(t.limit));
    let little_more = just_failed.map(|t| round_up((t.limit as f64 * LITTLE_MORE) as u64));
    let next = match (again, little_more) {
        (Some(t), _) if is_short(seen, t) => Some((t.limit, "its runs are short: once more".to_string())),
        (Some(t), _) => Some((t.limit, "one run so close to the threshold does not decide: once more".to_string())),
        (None, Some(limit)) if Some(limit) < bracket.pass => {
            Some((limit, "the smaller limit was hardly too slow: is a little more enough?".to_string()))
        }
        _ if is_close(&bracket) => unmade(seen, &bracket).or_else(|| once_more(settings, seen, &bracket)),
        _ => choose(settings, seen, &tried, &bracket),
    };
    let Some((limit, why)) = next else { return Wish::Stop(None) };
    let trials = seen.search_trials().count();
    // What is close already loses nothing when it may cost no more.
    let unless_close = |why: String| Wish::Stop(Some(why).filter(|_| !is_close(&bracket)));
    if trials >= settings.max_trials as usize {
        return unless_close(format!("the search ended after {trials} trials, as many as allowed"));
    }
    let longest = give_up_after(settings, seen, None).zip(seen.reference()).map_or(1.0, |(end, r)| end / r.median);
    if !affords(seen, longest) {
        let used = seen.run_times_used().unwrap_or(0.0);
        return unless_close(format!("the search ended after {used:.1} run times, as many as it may cost"));
    }
    Wish::Try { limit, why }
}

fn has_passed_below(tried: &[Tried], limit: u64) -> bool {
    tried.iter().any(|t| t.passed && t.limit < limit)
}

/// Whether the runs at a limit together are too short to be judged by.
fn is_short(seen: &Seen, tried: &Tried) -> bool {
    tried.runs < runs_of_a_trial(seen) && matches!(tried.worst, Outcome::Ok | Outcome::TooSlow) && !tried.stopped
}

/// How many runs make up a trial: a short job is repeated until its runs last for [`LEAST_SECONDS`] together.
pub fn runs_of_a_trial(seen: &Seen) -> usize {
    let runs = seen.reference().map_or(1.0, |reference| (LEAST_SECONDS / reference.median).ceil());
    (runs as usize).clamp(1, MOST_REPEATS)
}

/// Whether a search may cost so many run times more.
pub fn affords(seen: &Seen, run_times: f64) -> bool {
    let most = MOST_RUN_TIMES.max(seen.references.len() as f64 + 4.0) * runs_of_a_trial(seen) as f64;
    seen.run_times_used().is_none_or(|used| used + run_times <= most)
}

/// Whether the answer hangs on a run time so close to the threshold that the references' spread must be known better.
pub fn is_told_by_time_alone(settings: &Settings, seen: &Seen) -> bool {
    if can_tell(settings, seen) {
        return false;
    }
    let tried = tried(settings, seen);
    let bracket = bracket(settings, seen, &tried);
    tried.iter().any(|t| (t.near || t.hardly_failed) && bracket.has_edge(t.limit))
}

/// Whether what was seen of memory alone says that the limits next to the answer are enough, and too little.
pub fn is_told_by_memory(settings: &Settings, seen: &Seen) -> bool {
    if may_cost_unseen(settings, seen) {
        return false;
    }
    let bracket = bracket(settings, seen, &tried(settings, seen));
    let is_told = |limit: u64, passed: bool| {
        seen.search_trials().filter(|t| t.limit_bytes == Some(limit)).any(|t| match t.outcome {
            Outcome::Ok => passed && cost_nothing(settings, seen, t),
            Outcome::TooSlow if passed => is_untouched(settings, seen, t) || cost_nothing(settings, seen, t),
            Outcome::TooSlow => is_surely_slow(settings, seen, t),
            Outcome::Oom | Outcome::Failed | Outcome::Timeout => !passed,
        })
    };
    bracket.pass.is_some_and(|limit| is_told(limit, true)) && bracket.failed.is_none_or(|limit| is_told(limit, false))
}

/// Whether the limits next to the answer were so clearly enough, and too little, that chance is out of the question, though run times
/// vary by more than the slow-down. One reference alone may have been slow for another reason.
pub fn is_told_by_margin(settings: &Settings, seen: &Seen) -> bool {
    let tried = tried(settings, seen);
    let bracket = bracket(settings, seen, &tried);
    let is_clear = |limit: Option<u64>| tried.iter().any(|t| Some(t.limit) == limit && t.clear);
    seen.timed().len() > 1 && is_clear(bracket.passed) && (bracket.failed.is_none() || is_clear(bracket.failed))
}

/// Whether a run was too slow for reasons that are memory's: by its CPU time and stall, or stopped far above the slow-down with much read
/// again.
fn is_surely_slow(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    match cost(settings, seen, trial) {
        Some(cost) => is_surely_more(settings, seen, cost),
        None => read_again(settings, trial) == Some(true) && !is_unexplained(settings, seen, trial),
    }
}

/// The answer's limit, if no run was made under it: what the job never used more of without a limit should be enough, but
/// whoever is told so wants it tried.
fn unmade(seen: &Seen, bracket: &Bracket) -> Option<(u64, String)> {
    let limit = bracket.pass.filter(|pass| seen.search_trials().all(|t| t.limit_bytes != Some(*pass)))?;
    Some((limit, format!("without a limit it never used more than {}: is that enough under one?", Bytes(limit))))
}

/// The answer's limit, where it may have passed by chance.
fn once_more(settings: &Settings, seen: &Seen, bracket: &Bracket) -> Option<(u64, String)> {
    let chance = chance(settings, seen, bracket).filter(|chance| chance.wants_run)?;
    let why = format!("it read much again, and at {} that was too slow: once more", Bytes(chance.failed));
    Some((chance.limit, why))
}

/// All limits tried, rising, with what several runs at the same limit say together. The methods' runs are for the comparison. Runs
/// that their limit cannot have slowed down say nothing of it.
pub fn tried(settings: &Settings, seen: &Seen) -> Vec<Tried> {
    let counts = |t: &&Trial| t.method.is_none() || is_overthrowing(seen, t);
    let trials: Vec<&Trial> = seen.trials.iter().filter(counts).filter(|t| is_telling(settings, seen, t)).collect();
    let mut limits: Vec<u64> = trials.iter().filter_map(|t| t.limit_bytes).collect();
    limits.sort_unstable();
    limits.dedup();
    let at = |limit| trials.iter().copied().filter(|t| t.limit_bytes == Some(limit)).collect::<Vec<_>>();
    limits.into_iter().map(|limit| together(settings, seen, limit, &at(limit))).collect()
}

/// Whether a run that repeats the answer's own counts against it: a single slow one shall not overthrow what the search found, but
/// one that was killed does, and so may two.
fn is_overthrowing(seen: &Seen, trial: &Trial) -> bool {
    let repeats = || seen.trials.iter().filter(|t| t.method == trial.method && t.limit_bytes == trial.limit_bytes);
    trial.method == Some(Method::Bursar) && (breaks(trial) || repeats().count() > 1)
}

/// Whether it did not come to its end, for another reason than that it was too slow.
pub fn breaks(trial: &Trial) -> bool {
    matches!(trial.outcome, Outcome::Oom | Outcome::Failed | Outcome::Timeout)
}

/// Whether a run says something of its limit.
pub fn is_telling(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    // Stopped by the pace of references that tell of the machine as it was before.
    let is_outdated = || {
        let first = nearest(&seen.references, trial.run).first();
        trial.lower_bound && first.is_some_and(|r| r.run > trial.run) && read_again(settings, trial) != Some(true)
    };
    // Stopped, but not slow beside the references that were made since.
    let is_refuted = trial.lower_bound && trial.runtime_ratio.is_some_and(|ratio| ratio <= 1.0 + settings.slowdown);
    trial.outcome != Outcome::TooSlow || !is_untouched(settings, seen, trial) && !is_outdated() && !is_refuted
}

/// Its charge never came to its limit, or it read nothing again at a limit that the references' charge never came to: how long it
/// took tells of the machine.
pub fn is_untouched(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    let Some(limit) = trial.limit_bytes.filter(|_| !settings.sizes_itself) else { return false };
    let stayed_below = trial.peak_charge_bytes.is_some_and(|peak| (peak as f64) < TOUCHED * limit as f64);
    let is_ample =
        seen.peak_charge_bytes().is_some_and(|peak| limit >= peak) && read_again(settings, trial) != Some(true);
    writers_knee(settings, seen).is_none() && (stayed_below && !computes_more(settings, seen, trial) || is_ample)
}

fn together(settings: &Settings, seen: &Seen, limit: u64, trials: &[&Trial]) -> Tried {
    let broke = trials.iter().any(|t| breaks(t));
    let threshold = 1.0 + settings.slowdown;
    // A run that was stopped would have taken longer than it did, and longer than allowed.
    let least = threshold + 2.0 * ratio_noise(settings, seen);
    let ratio_of = |t: &&Trial| ratio(settings, seen, t).map(|r| if t.lower_bound { r.max(least) } else { r });
    let ratios: Vec<f64> = trials.iter().filter_map(ratio_of).collect();
    // What slows a run down without a reason in memory only ever adds time: then the fastest run tells.
    let unexplained = trials.iter().any(|t| is_unexplained(settings, seen, t));
    let ratio = Spread::of(&ratios).map(|spread| if unexplained { spread.min } else { spread.median });
    let chance = trials.iter().map(|t| noise(settings, seen, t)).fold(0.0, f64::max);
    let near = ratio.is_some_and(|r| (r - threshold).abs() <= chance / (trials.len() as f64).sqrt())
        && !trials.iter().all(|t| cost_nothing(settings, seen, t));
    let stopped = trials.iter().any(|t| t.lower_bound);
    Tried {
        limit,
        passed: !broke && ratio.is_some_and(|r| r <= threshold),
        runs: trials.len(),
        near: !broke && near && !stopped,
        stopped,
        slow: trials.iter().all(|t| t.outcome == Outcome::TooSlow),
        costs: trials.iter().any(|t| cost(settings, seen, t).is_some_and(|c| c.likely > 1.0 + settings.slowdown / 3.0)),
        hardly_failed: !broke
            && !stopped
            && ratio.is_some_and(|r| r > threshold && r - threshold <= SURE * chance / (trials.len() as f64).sqrt())
            && !trials.iter().all(|t| cost(settings, seen, t).is_some_and(|cost| is_surely_more(settings, seen, cost))),
        clear: broke
            || ratio.is_some_and(|r| {
                (r - threshold).abs() > SURE * chance.max(LEAST_CHANCE) / (trials.len() as f64).sqrt()
            }),
        unexplained: !broke && unexplained,
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

/// The most that memory can have cost a run, in seconds: what it stalled, of which some may be hidden, or what reclaim and reading
/// again took the processor: `cpu`, if the run came to its end, else what reading takes at the most. `None` if that is not known: how long the storage takes shows as stall only.
fn most_lost_to_memory(settings: &Settings, trial: &Trial, cpu: Option<f64>) -> Option<f64> {
    if settings.has_slower_memory {
        return None;
    }
    let reading = cpu.or(most_read(settings, trial));
    match trial.stall_seconds {
        Some(stall) => Some(reading.unwrap_or(0.0).max(stall / SEEN_STALL)),
        None => reading.filter(|_| read_again(settings, trial) == Some(false)),
    }
}

/// Stall and refaults are less noisy than time: where there are next to none beyond the references', memory did not cost the run
/// anything, however long it took.
fn lost_nothing(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    let allowed = seen.reference_of(trial).map(|reference| settings.slowdown * reference);
    let cpu = additional_cpu(settings, seen, trial);
    most_lost_to_memory(settings, trial, cpu).zip(allowed).is_some_and(|(lost, allowed)| lost < EXPLAINED * allowed)
}

/// Memory did not slow it down: its limit was not in its way, or it lost nothing to it.
pub fn cost_nothing(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    is_untouched(settings, seen, trial) || lost_nothing(settings, seen, trial)
}

/// Too slow, though neither stall nor refaults tell why: something else may have slowed the machine down.
pub fn is_unexplained(settings: &Settings, seen: &Seen, trial: &Trial) -> bool {
    let Some((reference, ratio)) = seen.reference_of(trial).zip(trial.runtime_ratio) else { return false };
    let lost = (ratio - 1.0) * reference;
    // Without refaults, not all is known of what memory did.
    let is_near = ratio < 1.0 + settings.slowdown + CHANCE.max(4.0 * ratio_noise(settings, seen));
    trial.outcome == Outcome::TooSlow
        && !(settings.sizes_itself && computes_more(settings, seen, trial))
        && (trial.refaults.is_some() || is_near)
        && most_lost_to_memory(settings, trial, additional_of_all(settings, seen, trial))
            .is_some_and(|by_memory| by_memory < EXPLAINED * lost)
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
        .or_else(|| groping(settings, seen, tried, bracket))?;
    let on_grid = on_grid(limit);
    if inside(&on_grid) {
        return Some((on_grid, why));
    }
    if inside(&limit) {
        return Some((limit, why));
    }
    // Rounding took it to an edge; the bracket is wider than a mebibyte, so there is a limit between.
    let beside_edge = round_up(bracket.fail.unwrap_or(0) + 1);
    inside(&beside_edge).then_some((beside_edge, why))
}

/// The nearest limit of the grid. The grid's steps are a fixed ratio from a mebibyte on, so that two searches of one
/// program, whatever their references happened to be, end at the same limit or at its neighbour.
fn on_grid(limit: u64) -> u64 {
    let steps = (limit as f64 / MIB as f64).max(1.0).ln() / GRID.ln();
    round_up((MIB as f64 * GRID.powf(steps.round())) as u64)
}

/// The limit below one that passed, and the one above one that failed, that leave the bracket just [`CLOSE`].
fn below(pass: u64) -> u64 {
    round_up((pass as f64 / CLOSE) as u64).min(pass.saturating_sub(MIB))
}

fn above(fail: u64) -> u64 {
    round_down((fail as f64 * CLOSE) as u64).max(round_up(fail + 1))
}

/// The knee as it is predicted now, unless what is known lies so close to it that the step from there is as good.
fn guided(settings: &Settings, seen: &Seen, tried: &[Tried], bracket: &Bracket) -> Option<(u64, String)> {
    let knee = knee(settings, seen)?;
    // Below these a job cannot do at all, so it must be a little above; a curve may be off to either side.
    let is_bound = writers_knee(settings, seen).is_some()
        || seen.floor_bytes().is_some_and(|floor| (knee as f64) < floor as f64 * FLOOR_SLACK);
    let limit = if is_bound { round_up((knee as f64 * FLOOR_SLACK) as u64 + MIB) } else { round_up(knee) };
    // The next of the grid above: just below the knee, all is lost.
    let limit =
        [limit, (limit as f64 * GRID.sqrt()) as u64].map(on_grid).into_iter().find(|l| *l >= limit).unwrap_or(limit);
    // One step below the passing edge covers a knee just below that step, too.
    let limit = bracket.pass.map(below).filter(|below| limit < *below && *below <= above(limit)).unwrap_or(limit);
    let is_new =
        bracket.failed.is_none_or(|fail| limit >= above(fail)) && bracket.pass.is_none_or(|pass| limit <= below(pass));
    let what = if writers_knee(settings, seen).is_some() {
        "what it writes fits into the share of memory that may wait to be written"
    } else if seen.demand.is_some() {
        "what cannot be reclaimed and the file pages used again fit just so"
    } else {
        "what cannot be reclaimed and the mapped files fit just so"
    };
    let why = if tried.is_empty() {
        format!("near {}, where {what}", Bytes(knee))
    } else {
        format!("the trials so far put the knee at {}", Bytes(knee))
    };
    is_new.then_some((limit, why))
}

/// Between the edges: near the one that a curve foretold, in case it was only a little off; else halfway.
fn groping(settings: &Settings, seen: &Seen, tried: &[Tried], bracket: &Bracket) -> Option<(u64, String)> {
    let passes = tried.iter().filter(|t| t.passed).count();
    let fails = tried.len() - passes;
    // The steps grow, up to fourfold; without a curve to be nearly right, the first miss says nothing about how far it is.
    // Where there is slower memory, nothing has foretold either edge.
    let ahead = usize::from(settings.has_slower_memory) + 3 * usize::from(settings.sizes_itself);
    let stride = |times: usize| CLOSE.powi([1, 3, 12][(times + ahead).clamp(1, 3) - 1]);
    let down = |pass: u64| below(pass).min(round_up((pass as f64 / stride(passes)) as u64));
    let up = |fail: u64| above(fail).max(round_down((fail as f64 * stride(fails)) as u64));
    let middle = |fail: u64, pass: u64| round_up((fail as f64 * pass as f64).sqrt() as u64);
    let trusts_curve = seen.demand.is_some();
    // It costs something there already: the knee is near.
    let is_slope = |pass: u64| tried.iter().any(|t| t.limit == pass && t.costs);
    let limit = match (bracket.failed, bracket.passed, bracket.fail, bracket.pass) {
        (Some(fail), Some(passed), _, pass) => {
            let pass = pass.unwrap_or(passed);
            if is_slope(pass) {
                middle(fail, pass).max((pass as f64 / GRID.powi(2)) as u64)
            } else {
                middle(fail, pass)
            }
        }
        (Some(fail), None, _, Some(peak)) if trusts_curve => up(fail).min(middle(fail, peak)),
        (Some(fail), None, _, Some(peak)) => middle(fail, peak),
        (Some(fail), None, _, None) => up(fail),
        (None, _, _, Some(pass)) if is_slope(pass) => below(pass),
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

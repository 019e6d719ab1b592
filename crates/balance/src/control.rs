//! From the limits there are to the next.

use model::Bytes;

use crate::{Demand, Want, divide};

/// Parts of the total that are told apart when it is divided.
const UNITS: u64 = 512;
/// All are left alone unless the weighted mean of what they lose can be made less by this: 2 % of the geometric mean of their speeds. What is
/// seen of a steady program varies about as much.
const WORTH_A_MOVE: f64 = 0.02;
/// Where as much has gone round of late as there is in all, what is foretold is in doubt by this.
const UNREST: f64 = 0.25;
/// Memory that nobody has is given away from this part of the total on.
const SPARE: u64 = 16;
/// Who waits for memory this share of the time is under pressure, and is not let wait longer.
const PRESSED: f64 = 0.1;
/// Who loses less than this, as a logarithm, does not miss what it gives.
const HARDLY: f64 = 0.005;
/// Who uses this share of what it may have is about to need more.
const FILLED: f64 = 0.75;

/// Whether one that uses so much of its limit is about to need more.
pub fn fills(usage: u64, limit: u64) -> bool {
    usage as f64 >= FILLED * limit as f64
}

/// How long something has run in a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing does: what it has is for the others.
    Empty,
    /// Where nothing ran something has begun, and has not had its share yet.
    Begun,
    /// All the time, or it has had that.
    Running,
}

/// One program, as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Whether anything runs in it.
    pub stage: Stage,
    /// How much what it loses counts.
    pub weight: f64,
    /// What it is to have at least.
    pub least: u64,
    /// And at most, unless that is below the least.
    pub most: u64,
    /// What cannot be reclaimed, and a margin: with less it would be killed.
    pub floor: u64,
    /// The limit that was set last; `None`: none yet.
    pub limit: Option<u64>,
    /// What it has.
    pub usage: u64,
    /// What it loses with how much; `None`: not known yet.
    pub demand: Option<&'a Demand>,
    /// By how much that may be wrong.
    pub doubt: f64,
    /// Of what it has, so much has gone round of late; see [`crate::Unrest`].
    pub unrest: f64,
    /// Share of its time that it waited for memory.
    pub stalled: f64,
}

/// What is to become of a limit, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The limit to set.
    pub to: u64,
    /// In words.
    pub why: String,
}

/// The next limits. Their sum is within the total, unless the floors alone are not; those that become less are to be set first.
pub fn decide(total: u64, seen: &[Seen<'_>]) -> Vec<Move> {
    let unit = (total / UNITS).max(1);
    let now: Vec<u64> = seen.iter().map(Seen::now).collect();
    let spare = total.saturating_sub(now.iter().sum());
    let pins = pins(total, seen, spare);
    let wants: Vec<Want<'_>> = seen.iter().filter_map(Seen::want).collect();
    let left = total.saturating_sub(pins.iter().flatten().sum());
    let Some(shares) = divide(left, unit, &wants).filter(|_| seen.iter().map(Seen::at_least).sum::<u64>() <= total)
    else {
        return seen.iter().map(Seen::only_the_least).collect();
    };
    let mut shares = shares.into_iter();
    let plan: Vec<u64> = pins.iter().map(|pin| pin.or_else(|| shares.next()).unwrap_or(0)).collect();
    let lost = |sizes: &[u64]| -> f64 {
        seen.iter()
            .zip(sizes)
            .map(|(one, size)| one.demand.map_or(0.0, |demand| one.weight * demand.lost_with(*size)))
            .sum()
    };
    let weights = seen.iter().map(|one| one.weight).sum::<f64>().max(f64::MIN_POSITIVE);
    let unrest = seen.iter().map(|one| one.unrest).sum::<f64>() / total.max(1) as f64;
    let doubt = seen.iter().map(|one| one.doubt).fold(0.0, f64::max) + UNREST * unrest.min(1.0);
    let worth = WORTH_A_MOVE + doubt;
    let stands = now.iter().sum::<u64>() <= total && seen.iter().all(Seen::is_within);
    let fits = plan.iter().zip(&now).map(|(plan, now)| plan.saturating_sub(*now)).sum::<u64>() <= spare;
    let is_no_better = |kept: &Vec<u64>| (lost(kept) - lost(&plan)) / weights < worth;
    let begins = seen.iter().zip(&plan).any(|(one, plan)| one.begins() && *plan > one.now());
    let is_pressed = |(one, plan): (&Seen<'_>, &u64)| one.stalled >= PRESSED && *plan > one.now();
    let is_spared = |(one, plan): (&Seen<'_>, &u64)| *plan >= one.now() || one.spares(*plan);
    let is_free = seen.iter().zip(&plan).any(is_pressed) && seen.iter().zip(&plan).all(is_spared);
    let kept = mended(total, unit, seen, &now)
        .filter(|kept| is_no_better(kept) && (spare < total / SPARE || !fits) && !begins && !is_free);
    let plan = kept.unwrap_or(plan);
    let at_once = !stands || begins || seen.iter().zip(&plan).any(is_pressed);
    let steps = |least| -> Vec<Move> {
        seen.iter().zip(&plan).map(|(one, plan)| one.step(*plan, least, at_once, worth)).collect()
    };
    let moves = steps(2 * unit);
    // What is not worth a step of its own is missing where others take all that is left.
    if moves.iter().map(|one| one.to).sum::<u64>() > total { steps(0) } else { moves }
}

/// What there is, with as little of it changed as must be: each within its bounds, and all within the total; who loses least gives what is
/// missing. `None`: that is more than chance makes, or nobody can give it. A limit is above what was decided for a moment where
/// who waited was woken by it, and below a floor that has risen.
fn mended(total: u64, unit: u64, seen: &[Seen<'_>], now: &[u64]) -> Option<Vec<u64>> {
    let mut sizes: Vec<u64> =
        seen.iter().zip(now).map(|(one, now)| (*now).clamp(one.at_least(), one.at_most())).collect();
    let mut missing = sizes.iter().sum::<u64>().saturating_sub(total);
    if missing > total / SPARE || seen.iter().any(|one| one.limit.is_none()) {
        return None;
    }
    while missing > 0 {
        let part = missing.min(unit);
        let lost = |at: usize| {
            let of = |demand: &Demand| demand.lost_with(sizes[at] - part) - demand.lost_with(sizes[at]);
            match seen[at].stage {
                Stage::Empty => 0.0,
                _ => seen[at].demand.map_or(f64::INFINITY, |demand| seen[at].weight * of(demand)),
            }
        };
        let can = (0..seen.len()).filter(|at| sizes[*at] >= seen[*at].at_least().saturating_add(part));
        let at = can.min_by(|one, other| lost(*one).total_cmp(&lost(*other)))?;
        sizes[at] -= part;
        missing -= part;
    }
    Some(sizes)
}

/// What those get whose demand is not known: what they have, with what is free if they wait for memory; who begins, at least its share by
/// weight; where nothing runs, nothing. If not all of it is there, they share what is.
fn pins(total: u64, seen: &[Seen<'_>], spare: u64) -> Vec<Option<u64>> {
    let weights: f64 = seen.iter().filter(|one| one.stage != Stage::Empty).map(|one| one.weight).sum();
    let wanted = |one: &Seen<'_>| match one.stage {
        Stage::Empty => 0,
        _ if one.begins() => one.now().saturating_add(spare).max((total as f64 * one.weight / weights) as u64),
        _ if one.stalled >= PRESSED => one.now().saturating_add(spare),
        _ => one.now(),
    };
    let unknown = || seen.iter().filter(|one| one.demand.is_none());
    let above = |one: &Seen<'_>| wanted(one).clamp(one.at_least(), one.at_most()) - one.at_least();
    let all: u64 = unknown().map(above).fold(0, u64::saturating_add);
    let room = total.saturating_sub(seen.iter().map(Seen::at_least).fold(0, u64::saturating_add));
    let share = if all > room { room as f64 / all as f64 } else { 1.0 };
    let pin = |one: &Seen<'_>| one.at_least() + (above(one) as f64 * share) as u64;
    seen.iter().map(|one| one.demand.is_none().then(|| pin(one))).collect()
}

impl Seen<'_> {
    /// What it may have now; without a limit that is what it has.
    fn now(&self) -> u64 {
        self.limit.unwrap_or(self.usage)
    }

    /// Whether something has begun in it that needs more than was left there, nobody knows how much.
    pub fn begins(&self) -> bool {
        let is_short = self.stalled >= PRESSED || fills(self.usage, self.now());
        self.stage == Stage::Begun && self.demand.is_none() && is_short
    }

    /// Whether it does not wait, and hardly would with so much: who does wait may gain more than is known.
    fn spares(&self, size: u64) -> bool {
        let missed = |demand: &Demand| demand.lost_with(size) - demand.lost_with(self.now());
        let hardly = self.stalled < PRESSED && self.demand.is_some_and(|demand| missed(demand) < HARDLY);
        hardly || self.stage == Stage::Empty
    }

    fn want(&self) -> Option<Want<'_>> {
        let demand = self.demand?;
        Some(Want { weight: self.weight, least: self.at_least(), most: self.at_most(), demand })
    }

    fn at_least(&self) -> u64 {
        self.least.max(self.floor)
    }

    fn at_most(&self) -> u64 {
        self.most.max(self.at_least())
    }

    fn is_within(&self) -> bool {
        self.limit.is_some_and(|limit| (self.at_least()..=self.at_most()).contains(&limit))
    }

    fn only_the_least(&self) -> Move {
        let what = if self.least > self.floor { "its minimum" } else { "what cannot be reclaimed of it" };
        Move { to: self.at_least(), why: format!("gets {what} and no more: the total is less than the least of all") }
    }

    /// Where others are not better by so much, as a logarithm.
    fn stays(&self, worth: f64) -> String {
        match self.demand {
            None if self.stage == Stage::Empty => "stays: nothing runs in it, and nobody gains from what it has".into(),
            None => "stays: what it needs is not known yet".into(),
            Some(_) if self.stalled >= PRESSED => {
                format!(
                    "stays, though it waits {:.0} % of its time: no other division is known to be better",
                    self.stalled * 100.0
                )
            }
            Some(_) => format!("stays: no other division is known to be better by {:.0} %", worth.exp_m1() * 100.0),
        }
    }

    /// Towards the plan: all of the way or half of it; not for less than `least`.
    fn step(&self, plan: u64, least: u64, at_once: bool, worth: f64) -> Move {
        let now = self.now();
        let to = if at_once || self.limit.is_none() { plan } else { now.midpoint(plan) };
        let to = to.clamp(self.at_least(), self.at_most());
        if (to == now || to.abs_diff(now) < least) && self.is_within() {
            return Move { to: now, why: self.stays(worth) };
        }
        let part = if at_once { "" } else { ", half of the way now" };
        let slower = |size| self.demand.map_or(1.0, |demand| demand.slow_down_with(size));
        let why = match to > now {
            true if self.begins() => "grows to its share: what has begun in it is not known yet".into(),
            true if self.floor > now => "grows: what cannot be reclaimed of it has grown".into(),
            true if self.demand.is_none() => "grows: it waits for memory, and some is free".into(),
            true if slower(now) - slower(to) < 0.005 => {
                format!("grows to {}: nobody gains more from it{part}", Bytes(plan))
            }
            true => {
                let (with, without) = (slower(plan), slower(now));
                let waits = match self.stalled >= PRESSED {
                    true => format!(" and waits {:.0} % of its time", self.stalled * 100.0),
                    false => String::new(),
                };
                format!("grows: it is slowed {without:.2}x{waits}, would be {with:.2}x with {}{part}", Bytes(plan))
            }
            false if to > plan && to == self.at_least() => "shrinks to the least that it may have".into(),
            false if self.stage == Stage::Empty => format!("shrinks: nothing runs in it{part}"),
            false if self.demand.is_none() => format!("shrinks to its share: what it needs is not known yet{part}"),
            false if now > self.at_most() => format!("shrinks to its maximum{part}"),
            false => {
                let (with, without) = (slower(plan), slower(now));
                format!(
                    "shrinks: slowed {without:.2}x as it is, {with:.2}x with {}; others gain more{part}",
                    Bytes(plan)
                )
            }
        };
        Move { to, why }
    }
}

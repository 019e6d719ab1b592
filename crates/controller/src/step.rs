//! Decides for all targets, and carries out the decision.

use std::time::Duration;

use balance::{Move, Seen, decide};
use job::Forwarding;
use linux::procfs;
use model::Bytes;
use report::balance::Row;
use report::seconds;

use crate::device::Device;
use crate::target::Target;

/// Settings for all targets.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Total memory to divide.
    pub total_bytes: u64,
    /// Time between decisions.
    pub interval: Duration,
    /// Decide, and do nothing.
    pub dry_run: bool,
}

/// Devices that memory comes back from. Virtual machines have their own disks, which may differ in speed from the
/// host's swap.
#[derive(Debug, Default)]
pub struct Devices {
    host: Device,
    machines: Device,
}

impl Devices {
    /// Takes in an interval.
    fn learn(&mut self, targets: &[Target]) {
        let of = |is_machine| {
            let some = targets.iter().filter(move |target| target.is_machine() == is_machine);
            some.filter_map(|target| target.last_interval.as_ref()).map(|stats| (stats.refaults, stats.waited_seconds))
        };
        self.host.learn(of(false));
        self.machines.learn(of(true));
    }

    /// The device that this target waits for.
    fn of(&self, target: &Target) -> &Device {
        if target.is_machine() { &self.machines } else { &self.host }
    }
}

/// Reads what each target has done since the last call, and updates what it would lose with less memory.
pub fn observe(targets: &mut [Target], devices: &mut Devices) {
    targets.iter_mut().for_each(Target::observe);
    devices.learn(targets);
    // If one target needs more than before, it may need memory that another has. Then the knowledge about all targets
    // is outdated.
    let notices = |target: &mut Target| target.notices_change(devices.of(target));
    let is_anew = targets.iter_mut().map(notices).fold(false, |any, one| any | one);
    targets.iter_mut().for_each(|target| target.update_demand(devices.of(target), is_anew));
}

/// Free swap for each of them.
pub fn swap_of_each(targets: &[Target]) -> u64 {
    procfs::meminfo().map_or(0, |memory| memory.swap_free) / targets.len().max(1) as u64
}

/// Makes one decision and carries it out.
pub fn step(settings: &Settings, targets: &mut [Target], signals: &Forwarding) -> Vec<Row> {
    let swap = swap_of_each(targets);
    let evidence: Vec<Seen<'_>> = targets.iter().map(|target| target.evidence(swap)).collect();
    let now: Vec<u64> = evidence.iter().map(|one| one.limit.unwrap_or(one.usage)).collect();
    let mut moves = decide(settings.total_bytes, &evidence);
    let begins = (0..evidence.len()).filter(|at| evidence[*at].begins());
    let begun: Vec<(usize, u64)> = begins.map(|at| (at, moves[at].to)).collect();
    if !settings.dry_run {
        carry_out(settings, targets, &now, &mut moves, swap, signals);
    }
    balance_kinds(settings, targets, &mut moves);
    for (at, share) in begun {
        // What the others could not give yet comes with the next decision.
        if !(now[at] + 1..share).contains(&moves[at].to) {
            targets[at].has_begun();
        }
    }
    targets.iter_mut().zip(&moves).zip(now).map(|((target, to), now)| target.row(to, now)).collect()
}

/// Shrinks targets first, so that there is memory for those that grow.
fn carry_out(
    settings: &Settings,
    targets: &mut [Target],
    now: &[u64],
    moves: &mut [Move],
    swap: u64,
    signals: &Forwarding,
) {
    let (mut shrink, mut grow): (Vec<usize>, Vec<usize>) = (0..targets.len()).partition(|at| moves[*at].to < now[*at]);
    let patience = settings.interval / shrink.len().max(1) as u32;
    shrink.sort_by_key(|at| std::cmp::Reverse(now[*at] - moves[*at].to));
    let mut held = now.to_vec();
    for at in shrink {
        held[at] = apply(&mut targets[at], now[at], &mut moves[at], patience);
    }
    grow.sort_by_key(|at| moves[*at].to - now[*at]);
    for at in grow.into_iter().filter(|_| !signals.interrupted()) {
        let others: u64 = held.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, held)| *held).sum();
        let room = settings.total_bytes.saturating_sub(others).max(now[at]).max(targets[at].floor(swap));
        if moves[at].to > room {
            moves[at] = Move { to: room, why: format!("{}; as far as the others have given", moves[at].why) };
        }
        held[at] = apply(&mut targets[at], now[at], &mut moves[at], patience);
    }
}

fn balance_kinds(settings: &Settings, targets: &[Target], moves: &mut [Move]) {
    let patience = settings.interval / targets.len() as u32;
    for (target, to) in targets.iter().zip(moves) {
        let Some(spare) = target.spare() else { continue };
        let bytes = if settings.dry_run { spare.bytes } else { spare.page_out(patience) };
        to.why += &format!("; {} of heap idle for {} made room for files", Bytes(bytes), seconds(spare.seconds));
    }
}

/// Returns what the target then has. If a move fails, the reason goes to the row, and the others go on.
fn apply(target: &mut Target, now: u64, to: &mut Move, patience: Duration) -> u64 {
    match target.set(to.to, patience) {
        Ok(reached) => {
            if reached > to.to {
                to.why += "; as far as it was given back";
            }
            to.to = reached;
        }
        Err(error) => *to = Move { to: now, why: format!("stays: its limit cannot be changed: {error}") },
    }
    to.to
}

//! A decision for all targets, carried out.

use std::time::Duration;

use balance::{Move, Seen, decide};
use job::Forwarding;
use linux::procfs;
use model::Bytes;
use report::balance::Row;
use report::seconds;

use crate::device::Device;
use crate::target::Target;

/// What holds for all targets.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What they may have together.
    pub total_bytes: u64,
    /// From decision to decision.
    pub interval: Duration,
    /// Decide, and do nothing.
    pub dry_run: bool,
}

/// Where memory comes back from: virtual machines have disks of their own, which need not be as fast as what this machine swaps to.
#[derive(Debug, Default)]
pub struct Devices {
    host: Device,
    machines: Device,
}

impl Devices {
    /// Takes an interval in.
    fn learn(&mut self, targets: &[Target]) {
        let of = |is_machine| {
            let some = targets.iter().filter(move |target| target.is_machine() == is_machine);
            some.filter_map(|target| target.seen.as_ref()).map(|looked| (looked.refaults, looked.waited_seconds))
        };
        self.host.learn(of(false));
        self.machines.learn(of(true));
    }

    /// What this target waits for.
    fn of(&self, target: &Target) -> &Device {
        if target.is_machine() { &self.machines } else { &self.host }
    }
}

/// What each has done since the last call, and what it would lose with less.
pub fn look(targets: &mut [Target], devices: &mut Devices) {
    targets.iter_mut().for_each(Target::look);
    devices.learn(targets);
    // One that needs more than before may have what another needed: what is known of all is too old then.
    let notices = |target: &mut Target| target.notices_change(devices.of(target));
    let is_anew = targets.iter_mut().map(notices).fold(false, |any, one| any | one);
    targets.iter_mut().for_each(|target| target.judge(devices.of(target), is_anew));
}

/// Swap that is free for one of them.
pub fn swap_of_each(targets: &[Target]) -> u64 {
    procfs::meminfo().map_or(0, |memory| memory.swap_free) / targets.len().max(1) as u64
}

/// One decision.
pub fn step(settings: &Settings, targets: &mut [Target], signals: &Forwarding) -> Vec<Row> {
    let swap = swap_of_each(targets);
    let seen: Vec<Seen<'_>> = targets.iter().map(|target| target.as_seen(swap)).collect();
    let now: Vec<u64> = seen.iter().map(|one| one.limit.unwrap_or(one.usage)).collect();
    let mut moves = decide(settings.total_bytes, &seen);
    let begins = (0..seen.len()).filter(|at| seen[*at].begins());
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

/// What becomes less first, so that there is what becomes more.
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

/// What it then has: of what cannot be done, the reason is told, and the others go on.
fn apply(target: &mut Target, now: u64, to: &mut Move, patience: Duration) -> u64 {
    match target.set(to.to, patience) {
        Ok(reached) => {
            if reached > to.to {
                to.why += "; as far as it was given back";
            }
            to.to = reached;
        }
        Err(error) => *to = Move { to: now, why: format!("stays, for it could not be moved: {error}") },
    }
    to.to
}

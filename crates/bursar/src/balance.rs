//! `bursar balance`: memory to whoever gains most from it.

mod device;
mod hold;
mod kinds;
mod reclaim;
mod target;
mod told;

use std::time::{Duration, Instant};

use anyhow::ensure;
use balance::{Move, Seen, decide};
use job::Forwarding;
use linux::journal::{self, Journal};
use linux::procfs;
use model::Bytes;
use qemu::put_back;
use report::balance::{Interval, Row};
use report::seconds;
use session::say::tell;
use session::status::Status;

use crate::cli::balance::Balance;
use device::Devices;
use target::Target;
use told::Told;

/// Longest time until Ctrl-C is noticed.
const PATIENCE: Duration = Duration::from_millis(50);
/// What looking may cost, as a share of one processor, all targets together.
const OVERHEAD: f64 = 0.01;

pub fn balance(options: &Balance) -> anyhow::Result<Status> {
    for repaired in journal::repair(put_back, &mut session::bench::announce_repair) {
        tell!("bursar: left by a killed run: {repaired}");
    }
    let signals = Forwarding::start()?;
    let journal = Journal::open()?;
    if let Some(warning) = journal.warning() {
        tell!("bursar: {warning}");
    }
    let machine = procfs::meminfo()?;
    ensure!(
        !options.balance_kinds || machine.swap_free > 0,
        "--balance-kinds pages heap out, and there is no swap: make some (swapon), or leave it out"
    );
    ensure!(machine.total >= options.total.0, "the machine has less memory than --total {}", options.total);
    let least = options.targets.iter().map(|asked| asked.least).fold(0, u64::saturating_add);
    ensure!(
        least <= options.total.0,
        "the least of all targets (min=) is {} together, more than --total {}: give more, or name less",
        Bytes(least),
        options.total
    );
    let overhead = OVERHEAD / options.targets.len() as f64;
    let journal = (!options.dry_run).then_some(&journal);
    let mut targets: Vec<Target> = options
        .targets
        .iter()
        .map(|asked| Target::open(asked, options.total.0, overhead, options.balance_kinds, journal))
        .collect::<anyhow::Result<_>>()?;
    for (at, target) in targets.iter().enumerate() {
        if let Some(other) = targets[..at].iter().find(|other| target.shares_memory_with(other)) {
            anyhow::bail!("{} and {} have memory in common; name each program once", other.name, target.name);
        }
    }
    let ended = follow(options, &mut targets, &signals);
    for target in targets {
        release(target);
    }
    ended.map(|()| Status::of(0))
}

fn release(target: Target) {
    let name = target.name.clone();
    if let Err(error) = target.release() {
        tell!("bursar: the limit of {name} is not what it was before: {error:#}; `bursar doctor --repair` tries again");
    }
}

fn follow(options: &Balance, targets: &mut Vec<Target>, signals: &Forwarding) -> anyhow::Result<()> {
    let mut told = Told::to(options)?;
    let mut devices = Devices::new();
    let begin = Instant::now();
    let mut due = begin;
    while options.duration.is_none_or(|duration| begin.elapsed() < duration) {
        due = (due + options.interval).max(Instant::now());
        while Instant::now() < due && !targets.iter().any(Target::begins) {
            if signals.interrupted() {
                return Ok(());
            }
            let swap = swap_of_each(targets);
            targets.iter_mut().for_each(|target| target.wake(swap));
            std::thread::sleep(PATIENCE.min(due.saturating_duration_since(Instant::now())));
        }
        let patience = options.interval / (4 * targets.len().max(1) as u32);
        targets.iter_mut().for_each(|target| target.set_again(patience));
        look(targets, &mut devices);
        let (gone, left): (Vec<_>, Vec<_>) =
            std::mem::take(targets).into_iter().partition(|target| target.end().is_some());
        *targets = left;
        for gone in gone {
            tell!("bursar: {} {}", gone.name, gone.end().unwrap_or_default());
            release(gone);
        }
        if targets.is_empty() {
            return Ok(());
        }
        let rows = step(options, targets, signals);
        if signals.interrupted() {
            // Not all that was decided has been done.
            return Ok(());
        }
        told.tell(&Interval { seconds: begin.elapsed().as_secs_f64(), total_bytes: options.total.0, targets: rows })?;
    }
    Ok(())
}

fn look(targets: &mut [Target], devices: &mut Devices) {
    targets.iter_mut().for_each(Target::look);
    devices.learn(targets);
    // One that needs more than before may have what another needed: what is known of all is too old then.
    let notices = |target: &mut Target| target.notices_change(devices.of(target));
    let is_anew = targets.iter_mut().map(notices).fold(false, |any, one| any | one);
    targets.iter_mut().for_each(|target| target.judge(devices.of(target), is_anew));
}

/// Swap that is free for one of them.
fn swap_of_each(targets: &[Target]) -> u64 {
    procfs::meminfo().map_or(0, |memory| memory.swap_free) / targets.len().max(1) as u64
}

/// One decision.
fn step(options: &Balance, targets: &mut [Target], signals: &Forwarding) -> Vec<Row> {
    let swap = swap_of_each(targets);
    let seen: Vec<Seen<'_>> = targets.iter().map(|target| target.as_seen(swap)).collect();
    let now: Vec<u64> = seen.iter().map(|one| one.limit.unwrap_or(one.usage)).collect();
    let mut moves = decide(options.total.0, &seen);
    let begins = (0..seen.len()).filter(|at| seen[*at].begins());
    let begun: Vec<(usize, u64)> = begins.map(|at| (at, moves[at].to)).collect();
    if !options.dry_run {
        carry_out(options, targets, &now, &mut moves, swap, signals);
    }
    balance_kinds(options, targets, &mut moves);
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
    options: &Balance,
    targets: &mut [Target],
    now: &[u64],
    moves: &mut [Move],
    swap: u64,
    signals: &Forwarding,
) {
    let (mut shrink, mut grow): (Vec<usize>, Vec<usize>) = (0..targets.len()).partition(|at| moves[*at].to < now[*at]);
    let patience = options.interval / shrink.len().max(1) as u32;
    shrink.sort_by_key(|at| std::cmp::Reverse(now[*at] - moves[*at].to));
    let mut held = now.to_vec();
    for at in shrink {
        held[at] = apply(&mut targets[at], now[at], &mut moves[at], patience);
    }
    grow.sort_by_key(|at| moves[*at].to - now[*at]);
    for at in grow.into_iter().filter(|_| !signals.interrupted()) {
        let others: u64 = held.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, held)| *held).sum();
        let room = options.total.0.saturating_sub(others).max(now[at]).max(targets[at].floor(swap));
        if moves[at].to > room {
            moves[at] = Move { to: room, why: format!("{}; as far as the others have given", moves[at].why) };
        }
        held[at] = apply(&mut targets[at], now[at], &mut moves[at], patience);
    }
}

fn balance_kinds(options: &Balance, targets: &[Target], moves: &mut [Move]) {
    let patience = options.interval / targets.len() as u32;
    for (target, to) in targets.iter().zip(moves) {
        let Some(spare) = target.spare() else { continue };
        let bytes = if options.dry_run { spare.bytes } else { spare.page_out(patience) };
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

//! `bursar balance`: memory to whoever gains most from it.

mod told;

use std::time::{Duration, Instant};

use anyhow::ensure;
use controller::{Devices, Settings, Target, observe, step, swap_of_each};
use job::Forwarding;
use linux::journal::{self, Journal};
use linux::procfs;
use model::Bytes;
use qemu::put_back;
use report::balance::Interval;
use session::say::tell;
use session::status::Status;

use crate::cli::balance::Balance;
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
    let settings = Settings { total_bytes: options.total.0, interval: options.interval, dry_run: options.dry_run };
    let mut devices = Devices::default();
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
        observe(targets, &mut devices);
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
        let rows = step(&settings, targets, signals);
        if signals.interrupted() {
            // Not all that was decided has been done.
            return Ok(());
        }
        told.tell(&Interval { seconds: begin.elapsed().as_secs_f64(), total_bytes: options.total.0, targets: rows })?;
    }
    Ok(())
}

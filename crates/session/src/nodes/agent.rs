//! `bursar node`: what a launcher starts on another node, limited and looked at there.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use linux::bpf::Rung;
use linux::procfs;

use super::line::{Hello, Line, Meeting, OWN, Order, Told};
use crate::bench::{Bench, References};
use crate::observe::{Plan, observe};
use crate::status::{Status, ended};

/// How often it tells how the run goes.
const TICK: Duration = Duration::from_millis(200);

/// Comes to the meeting, starts the command as it is ordered there, and tells how it goes.
///
/// # Errors
/// A sentence if the meeting cannot be reached, or the order not be followed here.
pub fn node(meeting: &Meeting, command: &[OsString]) -> anyhow::Result<Status> {
    let hello =
        Hello { key: meeting.key.clone(), version: OWN.into(), host: procfs::hostname(), boot_id: procfs::boot_id()? };
    let mut line = Line::come(meeting, &hello)
        .with_context(|| format!("{}: the node of bursar budget cannot be reached from here", hello.host))?;
    let Some(order) = line.hear::<Order>() else { bail!("{}: bursar budget wants no more of this run", hello.host) };
    let done = part(command, &order, &mut line);
    if let Err(error) = &done {
        // Nobody is there to hear it: then it is told to whoever reads our standard error.
        let _ = line.say(&Told::Refused(format!("{error:#}")));
    }
    done
}

fn part(command: &[OsString], order: &Order, line: &mut Line) -> anyhow::Result<Status> {
    let bench = Bench::set_up(Some(Rung::Filemap), References::Traced)?;
    if !bench.place.can_limit() {
        bail!("no limit can be set here: {}", bench.place.missing().join("; "));
    }
    if let Some(tier) = order.fast_tier {
        tier.check()?;
    }
    order.cache.prepare()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (over, other_end) = (Arc::clone(&is_over), line.another()?);
    let wait = move || {
        other_end.wait_for_end();
        over.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().spawn(wait).context("no thread to wait for the end of the search can be had")?;
    let plan = Plan {
        run: 0,
        role: order.role,
        command,
        environment: Vec::new(),
        inherit: true,
        input: None,
        limit_bytes: order.limit_bytes,
        fast_tier: order.fast_tier,
        cache_state: order.cache.describe(),
        timeout: None,
        interval: order.interval,
        over_nodes: false,
        clean_up: true,
    };
    let mut told = Instant::now();
    let observed = observe(&bench, &plan, &mut |_| Ok(()), &mut |progress| {
        if told.elapsed() >= TICK {
            told = Instant::now();
            // An end of the connection is noticed by whoever reads.
            let _ = line.say(&Told::Progress(progress));
        }
        is_over.load(Ordering::Relaxed)
    })?;
    if let Some(error) = observed.not_started {
        return Err(error.into());
    }
    let status = ended(&observed.observation);
    let _ = line.say(&Told::Ended(Box::new(observed.observation)));
    Ok(status)
}

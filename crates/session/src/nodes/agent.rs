//! `bursar node`: limits and observes the processes that a launcher starts on another node.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use linux::bpf::Rung;
use linux::procfs;

use super::line::{Hello, Line, Meeting, NodeMessage, OWN, Order};
use crate::bench::{Bench, References};
use crate::observe::{Plan, observe};
use crate::status::{Status, ended};

/// Interval between progress messages.
const TICK: Duration = Duration::from_millis(200);

/// Connects to the bursar that drives the search, runs the command with the settings it sends, and reports progress.
///
/// # Errors
/// A sentence if the connection fails, or if this host cannot apply the settings.
pub fn node(meeting: &Meeting, command: &[OsString]) -> anyhow::Result<Status> {
    let hello =
        Hello { key: meeting.key.clone(), version: OWN.into(), host: procfs::hostname(), boot_id: procfs::boot_id()? };
    let mut line = Line::come(meeting, &hello)
        .with_context(|| format!("{}: the node of bursar budget cannot be reached from here", hello.host))?;
    let Some(order) = line.hear::<Order>() else {
        bail!("{}: bursar budget closed the connection before the run began", hello.host)
    };
    let done = part(command, &order, &mut line);
    if let Err(error) = &done {
        // If the connection is closed, the caller still prints the error on standard error.
        let _ = line.say(&NodeMessage::Refused(format!("{error:#}")));
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
    let mut last_sent = Instant::now();
    let observed = observe(&bench, &plan, &mut |_| Ok(()), &mut |progress| {
        if last_sent.elapsed() >= TICK {
            last_sent = Instant::now();
            // The thread that reads the connection notices when it closes.
            let _ = line.say(&NodeMessage::Progress(progress));
        }
        is_over.load(Ordering::Relaxed)
    })?;
    if let Some(error) = observed.not_started {
        return Err(error.into());
    }
    let status = ended(&observed.observation);
    let _ = line.say(&NodeMessage::Ended(Box::new(observed.observation)));
    Ok(status)
}

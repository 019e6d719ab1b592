//! The thread that zeroes memory when processors are otherwise idle.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::client::Segment;
use super::{BEING_ZEROED, TO_ZERO, ZEROED};

/// After this time without work the thread sleeps. Shorter would cost the program more wake-ups.
pub(super) const AWAKE_TIME: Duration = Duration::from_millis(2);
/// How often the thread polls for work while awake.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Runs until the bell rings after the last sender of segments is gone.
pub(super) fn run(new: &Receiver<Arc<Segment>>, mut bell: &File) {
    // SAFETY: for this thread, with a structure that lives through the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &libc::sched_param { sched_priority: 0 }) };
    let mut segments: Vec<Arc<Segment>> = Vec::new();
    let mut worked = Instant::now();
    loop {
        let is_busy = zero_one(&segments);
        if is_busy {
            worked = Instant::now();
        }
        let is_patient = worked.elapsed() < AWAKE_TIME;
        if !is_patient {
            set_asleep(&segments, true);
            if zero_one(&segments) {
                set_asleep(&segments, false);
                worked = Instant::now();
                continue;
            }
        }
        let patience = if is_busy { Some(Duration::ZERO) } else { is_patient.then_some(POLL_INTERVAL) };
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        match poll(&mut [PollFd::new(&bell, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => worked = Instant::now(),
            Err(_) => return,
        }
        // This is the only reader.
        let _ = bell.read(&mut [0; 4096]);
        segments.retain(|segment| !segment.memory.is_detached());
        loop {
            match new.try_recv() {
                Ok(segment) => segments.push(segment),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }
}

/// Zeroes one offered unit, if there is one; last units first, because the program takes the first ones.
fn zero_one(segments: &[Arc<Segment>]) -> bool {
    segments.iter().any(|segment| {
        let states = &segment.shared.states()[segment.first..][..segment.units];
        let offered = |unit: &usize| {
            let state = &states[*unit];
            state.load(Ordering::Relaxed) == TO_ZERO
                && state.compare_exchange(TO_ZERO, BEING_ZEROED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        let Some(unit) = (0..segment.units).rev().find(offered) else { return false };
        if segment.memory.zero(unit * segment.unit_bytes, segment.unit_bytes) {
            states[unit].store(ZEROED, Ordering::Release);
        }
        true
    })
}

fn set_asleep(segments: &[Arc<Segment>], asleep: bool) {
    for segment in segments {
        segment.shared.asleep().store(u32::from(asleep), Ordering::SeqCst);
    }
}

//! The processor of the thread that clears bits.

use std::path::Path;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::procfs;

/// Moves this thread to the processor on which a single-threaded process last ran; for others, to any. Clearing a bit flushes the TLB of
/// every processor that runs the process; on the same processor this costs a tenth of a remote flush. Returns whether the thread has moved.
pub fn run_beside(pid: i32) -> bool {
    let one = procfs::tasks(pid).is_ok_and(|threads| threads.len() == 1);
    let mut wanted = CpuSet::new();
    let processor = last_processor(pid).filter(|processor| one && *processor < CpuSet::MAX_CPU);
    match processor {
        Some(processor) => wanted.set(processor),
        None => (0..CpuSet::MAX_CPU).for_each(|processor| wanted.set(processor)),
    }
    // If it may not run there, it stays: this costs more, and the cost is measured.
    sched_setaffinity(None, &wanted).is_ok() && processor.is_some()
}

/// Field 39 of `stat`.
fn last_processor(pid: i32) -> Option<usize> {
    let text = procfs::read(pid, Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

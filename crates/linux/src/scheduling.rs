//! A scheduling policy that forks do not inherit (`SCHED_RESET_ON_FORK`, sched(7)). It was meant for the command, which is a fork of
//! bursar.

use std::mem::size_of;

use rustix::process::getpid;

const RESET_ON_FORK: u64 = 1;

/// `struct sched_attr` of `linux/sched/types.h`, its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// The policy that the stub restores for the command: `POLICY:NICE:PRIORITY:RUNTIME:DEADLINE:PERIOD`; empty if forks inherit it.
pub fn to_put_back() -> String {
    let mut own = Attributes::default();
    // SAFETY: sched_getattr(2) of this process's main thread, into a struct of the given size.
    let got = unsafe {
        let size = size_of::<Attributes>();
        libc::syscall(libc::SYS_sched_getattr, getpid().as_raw_nonzero().get(), &raw mut own, size, 0)
    };
    if got != 0 || own.flags & RESET_ON_FORK == 0 {
        return String::new();
    }
    let Attributes { policy, nice, priority, runtime_ns, deadline_ns, period_ns, .. } = own;
    format!("{policy}:{nice}:{priority}:{runtime_ns}:{deadline_ns}:{period_ns}")
}

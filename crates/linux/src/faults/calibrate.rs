//! Measures the cost of tracing faults: a child touches memory, with tracing and without.
//!
//! The reported latency of a fault is what the program sees. The interval between the two time stamps misses the processor's entry to the
//! kernel and exit from it, and includes the programs in between. Both are constant except for the number of programs in between. Two kinds
//! of faults that differ in that number show the correction: the added cost of tracing, minus the part of a traced touch that is outside of
//! the stamps.

use std::io;
use std::ptr;
use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore, MapFlags, Object};
use model::{FaultKind, MemoryCall, TracerCost};
use rustix::mm::{MapFlags as Mapping, ProtFlags, mmap_anonymous, munmap};

use super::{Error, KINDS, MOMENTS, Raw, attach, follow, map, set};
use crate::{bpf, procfs};

/// Number of first touches timed at once, few enough for their pages to stay in the cache; and number of rounds.
const TOUCHES: usize = 128;
const ROUNDS: usize = 64;

/// The quantile used: neither the luckiest touches nor the disturbed ones.
const QUARTILE: f64 = 0.25;

/// First quartiles of first touches, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Touches {
    base: f64,
    zero: f64,
}

/// Attaches the programs, after measuring their cost and configuring them to subtract it.
pub fn calibrate(object: &Object) -> Result<(Vec<Link>, TracerCost), Error> {
    set(object, 0, 0)?;
    // The machine may be busy: use the less disturbed of two.
    let alone = [touch(object, false)?, touch(object, false)?];
    let links = attach(object)?;
    let first = touch(object, true)?;
    reset(object)?;
    let traced = touch(object, true)?;
    let (base, zero) = (Raw::read(object, FaultKind::Base as u32)?, Raw::read(object, FaultKind::Zero as u32)?);
    let too_few = || Error::Calibration(io::Error::other("too few of the calibration's faults were recorded"));
    let made = (TOUCHES * ROUNDS) as u64;
    let stamped = |raw: &Raw| raw.histograms[0].quantile(QUARTILE).filter(|_| raw.count >= made).ok_or_else(too_few);
    let inner = |raw: &Raw| raw.inner as f64 / raw.count as f64;
    let least = |both: [f64; 2]| both[0].min(both[1]);
    let alone = [least(alone.map(|seen| seen.base)), least(alone.map(|seen| seen.zero))];
    let followed = [least([first.base, traced.base]), least([first.zero, traced.zero])];
    let added = [followed[0] - alone[0], followed[1] - alone[1]];
    let outside = [traced.base - stamped(&base)?, traced.zero - stamped(&zero)?];
    let surplus = [added[0] - outside[0], added[1] - outside[1]];
    let more_inner = (inner(&base) - inner(&zero)).max(0.5);
    let per_inner = ((surplus[0] - surplus[1]) / more_inner).max(0.0);
    let fixed = surplus[1] - per_inner * inner(&zero);
    reset(object)?;
    set(object, fixed.round() as i64, per_inner.round() as u64)?;
    let us = |ns: f64| ns.round() / 1e3;
    let cost = TracerCost {
        base_us: us(alone[0]),
        traced_base_us: us(followed[0]),
        zero_us: us(alone[1]),
        traced_zero_us: us(followed[1]),
        per_tracepoint_us: us(((added[0] - added[1]) / more_inner).max(0.0)),
        taken_out_us: us(fixed),
        taken_out_per_tracepoint_us: us(per_inner),
    };
    Ok((links, cost))
}

/// The cost of tracing a fault with so many inner tracepoints, microseconds.
pub fn cost_us(cost: &TracerCost, inner: f64) -> f64 {
    let cost = (cost.traced_zero_us - cost.zero_us).max(0.0) + cost.per_tracepoint_us * inner;
    (cost * 1e3).round() / 1e3
}

/// Resets the programs' figures.
fn reset(object: &Object) -> Result<(), Error> {
    let processors = libbpf_rs::num_possible_cpus().map_err(bpf::Error::Read)?;
    let entries = [
        ("figures", KINDS),
        ("histograms", KINDS * 3),
        ("calls", MemoryCall::ALL.len()),
        ("moments", MOMENTS as usize),
        ("slowest", 1),
        ("missed", 3),
    ];
    for (name, entries) in entries {
        let map = map(object, name)?;
        let fresh = vec![vec![0; map.value_size() as usize]; processors];
        for key in 0..entries as u32 {
            map.update_percpu(&key.to_ne_bytes(), &fresh, MapFlags::ANY).map_err(bpf::Error::Read)?;
        }
    }
    Ok(())
}

/// Times first touches in a child, whose faults are known exactly.
fn touch(object: &Object, is_followed: bool) -> Result<Touches, Error> {
    let failed = |errno: rustix::io::Errno| Error::Calibration(errno.into());
    let page = procfs::page_bytes() as usize;
    let bytes = TOUCHES * page;
    let both = |flags| {
        // SAFETY: new mappings at addresses that the kernel chooses.
        unsafe { mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }
    };
    // The child's results, and the word that lets it begin.
    let shared = both(Mapping::SHARED).map_err(failed)?.cast::<Touches>();
    let (results, may_begin) = (shared, shared.wrapping_add(1).cast::<u64>());
    let _hold = crate::children::hold();
    // SAFETY: ours, writable and large enough. The child of this possibly multi-threaded process calls only async-signal-safe functions,
    // and ends without unwinding.
    let child = unsafe {
        match libc::fork() {
            0 => {
                while may_begin.read_volatile() == 0 {
                    libc::usleep(200);
                }
                results.write(time_touches(page));
                libc::_exit(0)
            }
            child => child,
        }
    };
    if child < 0 {
        return Err(Error::Calibration(io::Error::last_os_error()));
    }
    let followed = if is_followed { follow(object, child) } else { Ok(()) };
    // SAFETY: as above; the child is waited for before the unmapping.
    let seen = unsafe {
        may_begin.write_volatile(1);
        let ended = crate::wait::wait4(child, true).map_err(Error::Calibration);
        let seen = results.read_volatile();
        let _ = munmap(shared.cast(), bytes);
        ended?;
        seen
    };
    followed?;
    if seen.base == 0.0 {
        return Err(Error::Calibration(io::Error::other("the child that was to touch memory could not")));
    }
    Ok(seen)
}

/// Times first touches by writing and by reading; 0 if memory is short. Allocates only by mapping.
fn time_touches(page: usize) -> Touches {
    let bytes = TOUCHES * page;
    let map = || {
        // SAFETY: a new mapping at an address that the kernel chooses; the advice concerns only it.
        unsafe {
            let at = libc::mmap(ptr::null_mut(), bytes, 3, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE);
            at
        }
    };
    let mut seen = Touches::default();
    let (memory, times) = (map(), map());
    if memory == libc::MAP_FAILED || times == libc::MAP_FAILED {
        return seen;
    }
    const _: () = assert!(TOUCHES * ROUNDS * size_of::<u32>() <= TOUCHES * 4096);
    // SAFETY: zeroes are valid numbers, and the mapping is large enough and ours.
    let times = unsafe { std::slice::from_raw_parts_mut(times.cast::<u32>(), TOUCHES * ROUNDS) };
    times.fill(1);
    let nanoseconds =
        |since: Instant| u32::try_from(since.elapsed().min(Duration::from_secs(4)).as_nanos()).unwrap_or(0);
    for time in times.iter_mut() {
        *time = nanoseconds(Instant::now());
    }
    times.sort_unstable();
    let clock = f64::from(times[times.len() / 2]);
    for (touch, writes) in [(&mut seen.base, true), (&mut seen.zero, false)] {
        for round in times.chunks_exact_mut(TOUCHES) {
            for (at, time) in round.iter_mut().enumerate() {
                // SAFETY: within the mapping, which may be read and written.
                unsafe {
                    let byte = memory.cast::<u8>().add(at * page);
                    let begin = Instant::now();
                    if writes {
                        byte.write_volatile(1);
                    } else {
                        byte.read_volatile();
                    }
                    *time = nanoseconds(begin);
                }
            }
            // SAFETY: our own mapping, no longer needed.
            unsafe { libc::madvise(memory, bytes, libc::MADV_DONTNEED) };
        }
        times.sort_unstable();
        *touch = (f64::from(times[times.len() / 4]) - clock).max(1.0);
    }
    seen
}

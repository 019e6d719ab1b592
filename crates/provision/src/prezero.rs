//! Zeroing what a program has given back, beside the program, so that it is zero when it is needed next.
//!
//! A thread of the lowest class (`SCHED_IDLE`, sched(7)) has the memory mapped as the program has it, and takes what the
//! program offers, unit by unit; the layout of what both share is `preload/pool.h`'s. It is a process of its own, because
//! each `munmap` interrupts the processors on which threads of the process run. The memory is the lease's: when the program
//! ends, its connection does, and with it what is mapped here.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, SealFlags, fcntl_get_seals, fstat};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::time::{ClockId, clock_gettime};

use crate::socket;

/// Bytes of `struct pool_to_zero`.
const MESSAGE_BYTES: usize = 24;
const MAGIC: &[u8; 8] = b"BURZERO1";
/// `POOL_ZEROING_UNITS`, and what is before them in `struct pool_zeroing`.
const UNITS: usize = SHARED_BYTES - STATES_AT;
const STATES_AT: usize = 64;
const SHARED_BYTES: usize = 64 << 10;
/// `enum pool_zeroing_state`.
const TO_ZERO: u8 = 1;
const BEING_ZEROED: u8 = 2;
const ZEROED: u8 = 3;
/// Without anything to do, it falls asleep after so long: to be woken takes the program's time.
const PATIENCE: Duration = Duration::from_millis(2);
const GLANCE: Duration = Duration::from_micros(50);

/// The thread; it ends when this is dropped.
pub struct Prezero {
    /// Closed, it tells the thread to end.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<Duration>>,
}

impl Prezero {
    /// Waits for programs at the socket `zero` of a folder. `None`: there is no second processor on which it could be done
    /// beside them.
    ///
    /// # Errors
    /// Of the kernel, if it gives no socket or no thread.
    pub fn start(folder: &Path) -> io::Result<Option<Prezero>> {
        if thread::available_parallelism()?.get() < 2 {
            return Ok(None);
        }
        let is_root = rustix::process::geteuid().is_root();
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        // A program may go on as another user; the folder is found by nobody else.
        let listener = socket::listen(&folder.join("zero"), user, group, if is_root { 0o666 } else { 0o600 })?;
        let (end, ends) = UnixStream::pair()?;
        let thread = thread::Builder::new().name("prezero".into()).spawn(move || {
            // SAFETY: of this thread alone, with a structure that lives through the call.
            unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &libc::sched_param { sched_priority: 0 }) };
            serve(&listener, &ends);
            let taken = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(taken.tv_sec as u64, taken.tv_nsec as u32)
        })?;
        Ok(Some(Prezero { end: Some(end), thread: Some(thread) }))
    }
}

impl Prezero {
    /// Ends it; the processor time it has taken.
    pub fn end(mut self) -> Duration {
        self.stop()
    }

    fn stop(&mut self) -> Duration {
        self.end = None;
        // What it panicked with it has said.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Prezero {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(listener: &OwnedFd, ends: &UnixStream) {
    let mut clients: Vec<Client> = Vec::new();
    let mut worked = Instant::now();
    loop {
        let mut is_busy = false;
        for client in &mut clients {
            is_busy |= client.zero_one();
        }
        if is_busy {
            worked = Instant::now();
        }
        let is_patient = worked.elapsed() < PATIENCE;
        if !is_patient {
            clients.iter().for_each(|client| client.set_asleep(true));
            if clients.iter_mut().any(|client| client.zero_one()) {
                clients.iter().for_each(|client| client.set_asleep(false));
                worked = Instant::now();
                continue;
            }
        }
        let patience = if is_busy { Some(Duration::ZERO) } else { is_patient.then_some(GLANCE) };
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let mut waited = vec![PollFd::new(ends, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        waited.extend(clients.iter().map(|client| PollFd::new(&client.socket, PollFlags::IN)));
        let polled = poll(&mut waited, timeout.as_ref());
        let ready: Vec<bool> = waited.iter().map(|one| !one.revents().is_empty()).collect();
        match polled {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) if !ready[0] => worked = Instant::now(),
            _ => return,
        }
        let mut ready = ready.into_iter().skip(2);
        clients.retain_mut(|client| !ready.next().unwrap_or(false) || client.hear());
        while let Ok(Some(socket)) = socket::accept(listener) {
            clients.push(Client { socket, shared: None, segments: Vec::new() });
        }
    }
}

/// A process that offers memory.
struct Client {
    socket: OwnedFd,
    shared: Option<Mapping>,
    segments: Vec<Segment>,
}

struct Segment {
    memory: Mapping,
    first: usize,
    units: usize,
    unit_bytes: usize,
}

impl Client {
    /// One unit, if one is offered. The last ones first: the program takes the first.
    fn zero_one(&mut self) -> bool {
        let Some(shared) = &self.shared else { return false };
        for segment in &mut self.segments {
            let states = &shared.states()[segment.first..][..segment.units];
            let offered = |unit: &usize| {
                let state = &states[*unit];
                state.load(Ordering::Relaxed) == TO_ZERO
                    && state.compare_exchange(TO_ZERO, BEING_ZEROED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
            };
            let Some(unit) = (0..segment.units).rev().find(offered) else { continue };
            segment.memory.zero(unit * segment.unit_bytes, segment.unit_bytes);
            states[unit].store(ZEROED, Ordering::Release);
            return true;
        }
        false
    }

    fn set_asleep(&self, asleep: bool) {
        if let Some(shared) = &self.shared {
            shared.asleep().store(u32::from(asleep), Ordering::SeqCst);
        }
    }

    /// What came; false: the other side is gone, or makes no sense.
    fn hear(&mut self) -> bool {
        loop {
            let mut packet = [0; MESSAGE_BYTES];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            let bytes = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut packet)], &mut control, flags) {
                Ok(received) => received.bytes,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return true,
                Err(_) => return false,
            };
            let mut files = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut files) => files.next(),
                _ => None,
            });
            match (bytes, files.next()) {
                (0, _) => return false,
                (MESSAGE_BYTES, Some(file)) if packet[..8] == *MAGIC && self.take_in(&packet, &file).is_some() => {}
                (MESSAGE_BYTES, _) => return false,
                _ => {}
            }
        }
    }

    /// The file that is shared, or a segment; `None`: it is not what it should be.
    fn take_in(&mut self, packet: &[u8; MESSAGE_BYTES], file: &OwnedFd) -> Option<()> {
        let word =
            |at: usize| u32::from_le_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]) as usize;
        let (first, units, unit_bytes) = (word(8), word(12), word(16) | word(20) << 32);
        if units == 0 {
            // Were it made shorter, to look at it would be a signal.
            let stays = fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
            let is_long = fstat(file).is_ok_and(|stat| stat.st_size >= SHARED_BYTES as i64);
            self.shared = Some(Mapping::new(file, SHARED_BYTES).filter(|_| stays && is_long)?);
            return Some(());
        }
        let bytes = units.checked_mul(unit_bytes)?;
        let stat = fstat(file).ok()?;
        // To go beyond its end would be a signal; a device has none.
        let is_short = FileType::from_raw_mode(stat.st_mode).is_file() && (stat.st_size as u64) < bytes as u64;
        if first.checked_add(units)? > UNITS || bytes == 0 || is_short {
            return None;
        }
        let memory = Mapping::new(file, bytes)?;
        self.segments.push(Segment { memory, first, units, unit_bytes });
        Some(())
    }
}

/// A file, mapped to be written.
struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory, of no thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(file: &OwnedFd, bytes: usize) -> Option<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping of its own, at a place of the kernel's choice.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_fd().as_raw_fd(), 0)
        };
        let at = NonNull::new(at.cast()).filter(|_| at != libc::MAP_FAILED)?;
        Some(Mapping { at, bytes })
    }

    fn zero(&self, at: usize, bytes: usize) {
        assert!(at + bytes <= self.bytes);
        // SAFETY: within the mapping. Who offers it does not touch it until it is told that it is zero, and is a process that
        // could write what it likes there in any case.
        unsafe { self.at.add(at).write_bytes(0, bytes) };
    }

    fn asleep(&self) -> &AtomicU32 {
        // SAFETY: aligned to a page, at least `SHARED_BYTES` long, and of atomics alone on both sides.
        unsafe { self.at.cast().as_ref() }
    }

    fn states(&self) -> &[AtomicU8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(self.at.add(STATES_AT).cast().as_ptr(), UNITS) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::BorrowedFd;
    use std::os::unix::fs::FileExt;

    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};

    use super::*;

    const UNIT: usize = 64 << 10;

    fn file(bytes: usize, seals: SealFlags) -> File {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
        file.set_len(bytes as u64).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }

    fn message(first: u32, units: u32, unit_bytes: u64) -> Vec<u8> {
        [&MAGIC[..], &first.to_le_bytes(), &units.to_le_bytes(), &unit_bytes.to_le_bytes()].concat()
    }

    /// As the runtime of a process.
    struct Process {
        line: OwnedFd,
        shared: File,
    }

    impl Process {
        fn connect(folder: &Path) -> Process {
            let line = socket::connect(&folder.join("zero")).unwrap();
            let process = Process { line, shared: file(SHARED_BYTES, SealFlags::SHRINK) };
            process.send(&message(0, 0, 0), &[process.shared.as_fd()]);
            process
        }

        fn send(&self, packet: &[u8], files: &[BorrowedFd]) {
            socket::send(&self.line, packet, files).unwrap();
        }

        fn offer(&self, unit: u64) {
            self.shared.write_at(&[TO_ZERO], STATES_AT as u64 + unit).unwrap();
            self.send(b".", &[]);
        }

        fn state(&self, unit: u64) -> u8 {
            let mut state = [0];
            self.shared.read_at(&mut state, STATES_AT as u64 + unit).unwrap();
            state[0]
        }

        fn is_left(&self) -> bool {
            socket::set_timeout(&self.line, Duration::from_secs(10)).unwrap();
            // At its end nothing comes, or it was reset.
            !matches!(socket::receive(&self.line, 1), Ok(None))
        }
    }

    fn started() -> Option<(tempfile::TempDir, Prezero)> {
        let folder = tempfile::tempdir().unwrap();
        let prezero = Prezero::start(folder.path()).unwrap()?;
        Some((folder, prezero))
    }

    fn wait_until(happens: impl Fn() -> bool) {
        let begin = Instant::now();
        while !happens() {
            assert!(begin.elapsed() < Duration::from_secs(20), "it does not happen");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_is_offered_is_zeroed_and_nothing_else() {
        let Some((folder, _prezero)) = started() else { return };
        let process = Process::connect(folder.path());
        let segment = file(4 * UNIT, SealFlags::empty());
        segment.write_all_at(&[7; 4 * UNIT], 0).unwrap();
        process.send(&message(10, 4, UNIT as u64), &[segment.as_fd()]);
        for round in 0..3 {
            process.offer(11);
            process.offer(13);
            wait_until(|| process.state(11) == ZEROED && process.state(13) == ZEROED);
            let mut bytes = vec![0; 4 * UNIT];
            segment.read_exact_at(&mut bytes, 0).unwrap();
            let values: Vec<u8> =
                bytes.chunks(UNIT).map(|unit| unit.iter().fold(unit[0], |any, byte| any | byte)).collect();
            assert_eq!(values, [7, 0, 7, 0], "round {round}");
            assert_eq!([process.state(10), process.state(12)], [0, 0]);
            segment.write_all_at(&[7; UNIT], UNIT as u64).unwrap();
            // It falls asleep in between.
            thread::sleep(2 * PATIENCE);
        }
    }

    #[test]
    fn who_makes_no_sense_is_left_and_the_others_are_not() {
        let Some((folder, _prezero)) = started() else { return };
        let good = Process::connect(folder.path());
        let segment = file(UNIT, SealFlags::empty());
        good.send(&message(0, 1, UNIT as u64), &[segment.as_fd()]);
        let short = file(4096, SealFlags::SHRINK);
        let unsealed = file(SHARED_BYTES, SealFlags::empty());
        let mut other = message(0, 0, 0);
        other[7] = b'2';
        for (packet, files) in [
            (message(0, 0, 0), vec![short.as_fd()]),
            (message(0, 0, 0), vec![unsealed.as_fd()]),
            (message(0, 0, 0), vec![]),
            (other, vec![segment.as_fd()]),
            (message(0, u32::MAX, UNIT as u64), vec![segment.as_fd()]),
            (message(u32::MAX, 1, UNIT as u64), vec![segment.as_fd()]),
            (message(0, 2, u64::MAX), vec![segment.as_fd()]),
            (message(0, 2, UNIT as u64), vec![segment.as_fd()]),
            (message(0, 1, 0), vec![segment.as_fd()]),
        ] {
            let bad = Process::connect(folder.path());
            bad.send(&packet, &files);
            assert!(bad.is_left(), "{packet:?}");
        }
        segment.write_all_at(&[7; UNIT], 0).unwrap();
        good.offer(0);
        wait_until(|| good.state(0) == ZEROED);
    }

    #[test]
    fn the_memory_of_a_process_that_has_ended_is_let_go() {
        let Some((folder, prezero)) = started() else { return };
        let process = Process::connect(folder.path());
        let path = folder.path().join("segment");
        std::fs::write(&path, vec![7; UNIT]).unwrap();
        let segment = File::options().read(true).write(true).open(&path).unwrap();
        process.send(&message(0, 1, UNIT as u64), &[segment.as_fd()]);
        process.offer(0);
        wait_until(|| process.state(0) == ZEROED);
        drop(segment);
        assert!(crate::backing::is_held(&path).unwrap());
        drop(process);
        wait_until(|| !crate::backing::is_held(&path).unwrap());
        drop(prezero);
    }

    #[test]
    fn the_layout_is_that_of_the_header() {
        let assertions = format!(
            "_Static_assert(sizeof(struct pool_to_zero) == {MESSAGE_BYTES}, \"\");\n\
             _Static_assert(offsetof(struct pool_to_zero, first_unit) == 8 && offsetof(struct pool_to_zero, units) == 12, \"\");\n\
             _Static_assert(offsetof(struct pool_to_zero, unit_bytes) == 16, \"\");\n\
             _Static_assert(sizeof(struct pool_zeroing) == {SHARED_BYTES} && POOL_ZEROING_UNITS == {UNITS}, \"\");\n\
             _Static_assert(offsetof(struct pool_zeroing, asleep) == 0, \"\");\n\
             _Static_assert(offsetof(struct pool_zeroing, state) == {STATES_AT}, \"\");\n\
             _Static_assert(POOL_TO_ZERO == {TO_ZERO} && POOL_BEING_ZEROED == {BEING_ZEROED}, \"\");\n\
             _Static_assert(POOL_ZEROED == {ZEROED}, \"\");\n"
        );
        assert!(crate::header::agrees(&assertions));
    }
}

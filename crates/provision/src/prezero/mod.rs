//! Zeroes memory that a program has freed while the program runs, so that it is zero when it is needed next.
//!
//! A thread of the lowest class (`SCHED_IDLE`, sched(7)) maps the program's memory, and zeroes the units that the program offers (`zero`).
//! `preload/abi.h` has the layout of the shared state. This runs in a process of its own, because each `munmap` interrupts the processors
//! on which threads of the process run. When the program ends, its connection closes, and another thread unmaps its memory (`clients`),
//! which belongs to the lease.

mod client;
mod clients;
mod mapping;
mod zero;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use runtime_abi::{POOL_ZEROING_UNITS, PoolToZero, PoolZeroing, PoolZeroingState};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

use crate::socket;

const MESSAGE_BYTES: usize = PoolToZero::BYTES;
const UNITS: usize = POOL_ZEROING_UNITS;
const STATES_AT: usize = PoolZeroing::STATE_AT;
const SHARED_BYTES: usize = PoolZeroing::BYTES;
const TO_ZERO: u8 = PoolZeroingState::ToZero as u8;
const BEING_ZEROED: u8 = PoolZeroingState::BeingZeroed as u8;
const ZEROED: u8 = PoolZeroingState::Zeroed as u8;

/// The two threads; they end when this is dropped.
pub struct Prezero {
    /// Closing it ends the threads.
    end: Option<UnixStream>,
    threads: Vec<JoinHandle<Duration>>,
}

impl Prezero {
    /// Waits for programs at the socket `zero` in a folder. `None`: there is no second processor that could zero while programs run.
    ///
    /// # Errors
    /// If the kernel refuses a socket or a thread.
    pub fn start(folder: &Path) -> io::Result<Option<Prezero>> {
        if thread::available_parallelism()?.get() < 2 {
            return Ok(None);
        }
        let is_root = rustix::process::geteuid().is_root();
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        // A program may continue as another user; only this program knows the folder.
        let listener = socket::listen(&folder.join("zero"), user, group, if is_root { 0o666 } else { 0o600 })?;
        let bell = bell(&folder.join("bell"), if is_root { 0o666 } else { 0o600 })?;
        let rings = bell.try_clone()?;
        let (end, ends) = UnixStream::pair()?;
        let (send, new) = mpsc::channel();
        let mut prezero = Prezero { end: Some(end), threads: Vec::new() };
        prezero.add("prezero", move || zero::run(&new, &bell))?;
        prezero.add("prezero-hears", move || {
            clients::serve(&listener, &ends, &send, &rings);
            drop(send);
            let _ = (&rings).write(&[0]);
        })?;
        Ok(Some(prezero))
    }

    fn add(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = thread::Builder::new().name(name.into()).spawn(move || {
            work();
            let taken = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(taken.tv_sec as u64, taken.tv_nsec as u32)
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Ends the threads; returns their processor time.
    pub fn end(mut self) -> Duration {
        self.stop()
    }

    fn stop(&mut self) -> Duration {
        self.end = None;
        // A panicked thread has printed its message.
        self.threads.drain(..).filter_map(|thread| thread.join().ok()).sum()
    }
}

impl Drop for Prezero {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A FIFO that always has a writer. It is removed with its folder.
fn bell(path: &Path, mode: u32) -> io::Result<File> {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::empty(), 0)?;
    rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::os::unix::fs::FileExt;
    use std::time::Instant;

    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

    use super::zero::AWAKE_TIME;
    use super::*;

    pub(super) const UNIT: usize = 64 << 10;

    fn file(bytes: usize, seals: SealFlags) -> File {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
        file.set_len(bytes as u64).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        file
    }

    pub(super) fn message(first: u32, units: u32, unit_bytes: u64) -> Vec<u8> {
        [&runtime_abi::ZERO_MAGIC[..], &first.to_le_bytes(), &units.to_le_bytes(), &unit_bytes.to_le_bytes()].concat()
    }

    /// A process with the runtime.
    pub(super) struct Process {
        line: OwnedFd,
        bell: File,
        shared: File,
    }

    impl Process {
        pub(super) fn connect(folder: &Path) -> Process {
            let line = socket::connect(&folder.join("zero")).unwrap();
            let bell = File::options().read(true).write(true).open(folder.join("bell")).unwrap();
            let process = Process { line, bell, shared: file(SHARED_BYTES, SealFlags::SHRINK) };
            process.send(&message(0, 0, 0), &[process.shared.as_fd()]);
            process
        }

        pub(super) fn send(&self, packet: &[u8], files: &[BorrowedFd]) {
            socket::send(&self.line, packet, files).unwrap();
        }

        fn offer(&self, unit: u64) {
            self.shared.write_at(&[TO_ZERO], STATES_AT as u64 + unit).unwrap();
            (&self.bell).write_all(b".").unwrap();
        }

        fn state(&self, unit: u64) -> u8 {
            let mut state = [0];
            self.shared.read_at(&mut state, STATES_AT as u64 + unit).unwrap();
            state[0]
        }

        fn is_disconnected(&self) -> bool {
            socket::set_timeout(&self.line, Duration::from_secs(10)).unwrap();
            // A closed connection returns an empty packet or an error.
            !matches!(socket::receive(&self.line, 1), Ok(None))
        }
    }

    fn started() -> Option<(tempfile::TempDir, Prezero)> {
        let folder = tempfile::tempdir().unwrap();
        let prezero = Prezero::start(folder.path()).unwrap()?;
        Some((folder, prezero))
    }

    pub(super) fn wait_until(happens: impl Fn() -> bool) {
        let begin = Instant::now();
        while !happens() {
            assert!(begin.elapsed() < Duration::from_secs(240), "it did not happen in time");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn only_offered_memory_is_zeroed() {
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
            // The thread falls asleep in between.
            thread::sleep(2 * AWAKE_TIME);
        }
    }

    #[test]
    fn malformed_clients_are_disconnected_and_others_are_not() {
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
            assert!(bad.is_disconnected(), "{packet:?}");
        }
        segment.write_all_at(&[7; UNIT], 0).unwrap();
        good.offer(0);
        wait_until(|| good.state(0) == ZEROED);
    }

    #[test]
    fn memory_of_an_ended_process_is_unmapped() {
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
}

//! References to files as the library inside a command notes them, where the tracepoints may not be had.

use std::ffi::OsString;
use std::sync::mpsc::Receiver;

use job::preload::{self, Library};
use linux::holders::FileId;
use linux::open_in_memory::OpenFile;
use model::{Bytes, BytesMoved, LATER_THROUGH_MAPPINGS};
use track::{Follower, InsideTracker, SeenInside, Tracked};

use crate::launch::{Launch, Launcher, launch};
use crate::unseen::{self, Purpose};

/// Of the bytes that a command reads, the library need not see one part in this, nor fewer than so many.
const UNSEEN_PART: u64 = 20;
const UNSEEN_BYTES: u64 = 1 << 20;

/// Programs and their libraries are smaller than this.
pub const MUCH_MAPPED_BYTES: u64 = 48 << 20;
/// What the library noted.
pub struct Noted {
    pub tracked: Tracked,
    /// Of the most that a process had resident, what was bursar's.
    pub own_bytes: u64,
    /// By how much the command enlarged pipes.
    pub pipe_bytes: u64,
}

/// A command with the library in it.
pub struct Inside<'a> {
    command: &'a [OsString],
    launcher: Option<Launcher>,
    tracker: InsideTracker,
}

impl<'a> Inside<'a> {
    /// How the command is to be started, with these variables set; `follower` is told what it references. `Err`: why it has to run
    /// without the library, as a sentence.
    pub fn start(
        command: &'a [OsString],
        mut variables: Vec<(String, OsString)>,
        origin_ns: u64,
        follower: Option<Box<dyn Follower>>,
    ) -> Result<(Inside<'a>, Launch), String> {
        let launcher = Launcher::of(command);
        if let Some(why) = unseen::sanitizer(command, launcher, Purpose::References) {
            return Err(why);
        }
        let without = |why: String| format!("The page cache's references are not seen: {why}.");
        let library = preload::unpack(Library::References).map_err(|error| without(error.to_string()))?;
        let tracker = InsideTracker::start(origin_ns, follower).map_err(|error| without(error.to_string()))?;
        let (name, path) = tracker.variable();
        variables.push((name, path.into()));
        let launch = launch(command, launcher, &library, variables);
        Ok((Inside { command, launcher, tracker }, launch))
    }

    /// Where files in memory come from that the command's processes open, each once.
    pub fn files_in_memory(&mut self) -> Option<Receiver<(FileId, OpenFile)>> {
        self.tracker.files_in_memory()
    }

    /// When the command has ended: what was seen, where anything was, or why not, as a sentence. `moved`: what it read by the kernel's
    /// account; `resident_bytes`: the most that a process of it had resident.
    pub fn finish(self, moved: Option<BytesMoved>, resident_bytes: u64) -> Result<Noted, String> {
        let mut seen = self.tracker.finish().map_err(|error| error.to_string())?;
        if seen.programs == 0 {
            return Err(unseen::obstacle(self.command, self.launcher, Purpose::References).unwrap_or_else(|| {
                "The page cache's references are not seen: the library was not loaded into the command, as when a script clears \
                 LD_PRELOAD."
                    .into()
            }));
        }
        let left_out = seen.leave_out_mappings_beyond(resident_bytes);
        if left_out > 0 {
            let name = format!("which pages it touched of {} of mapped files", Bytes(left_out));
            seen.tracked.not_visible.push((name, Some(resident_bytes.min(left_out))));
        }
        if seen.not_ended > 0 {
            let name = match seen.not_ended {
                1 => "programs and libraries of 1 process that was killed or still runs".into(),
                n => format!("programs and libraries of {n} processes that were killed or still run"),
            };
            seen.tracked.not_visible.push((name, None));
        }
        if seen.with_io_uring > 0 {
            seen.tracked.not_visible.push(("what is read by io_uring: liburing is loaded".into(), None));
        }
        let mapped = seen.mapped_bytes();
        if mapped >= MUCH_MAPPED_BYTES {
            seen.tracked.not_visible.push((LATER_THROUGH_MAPPINGS.into(), Some(mapped)));
        }
        let own_bytes = seen.own_bytes_in(resident_bytes);
        let pipe_bytes = seen.pipe_bytes;
        Ok(Noted { tracked: with_unseen(seen, moved), own_bytes, pipe_bytes })
    }
}

/// What was read by calls that the library did not see is not visible.
fn with_unseen(seen: SeenInside, moved: Option<BytesMoved>) -> Tracked {
    let SeenInside { mut tracked, read_bytes, .. } = seen;
    let read = moved.map_or(0, |moved| moved.read);
    let unseen = read.saturating_sub(read_bytes);
    if unseen > (read / UNSEEN_PART).max(UNSEEN_BYTES) {
        let name = format!("{} of the {} that it read by calls", Bytes(unseen), Bytes(read));
        tracked.not_visible.push((name, None));
    }
    tracked
}

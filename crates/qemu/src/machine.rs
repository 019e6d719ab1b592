//! A virtual machine: its balloon takes memory from its guest, and gives it back.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use linux::journal::{Balloon, Journal, Note};
use linux::procfs;
use model::{MissPoint, PagesRound};
use serde_json::{Value, json};

use crate::guest::{Guest, Paging, Short, misses, remembered};
use crate::qmp::{Qmp, number};

/// Taken at once: what a guest is asked for and does not have is no more than this when bursar is killed.
const STEP: u64 = 16 << 20;
/// Nearer to what was asked for than this is there: pages of guests are of several sizes.
const NEAR: u64 = 1 << 20;
/// What a guest's kernel has besides what it needs for each byte.
const LEAST: u64 = 64 << 20;
/// And for each so many bytes, another.
const PART: u64 = 16;
/// A guest that runs full has no time to swap.
const MARGIN: u64 = 16 << 20;
/// How often a guest is asked how it does, if nobody else asks.
const POLLING: &str = "guest-stats-polling-interval";
const POLLING_SECONDS: u64 = 1;
/// What an interval adds to what is known of paging; guests tell once a second, whatever the interval.
const SHARE: f64 = 0.5;
/// What a guest's kernel works for a fault where its processor is emulated: as long as the disk and longer. Else it is nothing beside that.
const EMULATED_SECONDS: f64 = 300e-6;
/// What was too little so long ago may be enough.
const REMEMBERED: Duration = Duration::from_secs(120);
/// How often its size is looked at while it moves.
const LOOK: Duration = Duration::from_millis(10);

/// A virtual machine.
#[derive(Debug)]
pub struct Machine {
    qmp: Qmp,
    before: Balloon,
    /// None if nothing is to be done.
    note: Option<Note>,
    /// Where its balloon is in QEMU.
    device: Option<String>,
    /// With an empty balloon.
    pub full: u64,
    /// What its guest has.
    pub size: u64,
    /// Whether its guest's processor is emulated.
    pub is_emulated: bool,
    /// Whether its guest's accesses are seen; with KVM, who looks has to say.
    pub is_seen: bool,
    guest: Option<Guest>,
    /// When that was told, by the guest's clock and ours.
    told: (u64, Instant),
    /// Of late; none until it has told twice.
    paging: Option<Paging>,
    /// When it was looked at last, and how often it had waited for a page until then.
    looked: Instant,
    faults: f64,
    /// Time that its disks took to read, and its kernel to bring back what was read, where that is emulated.
    waited_seconds: Option<f64>,
    /// The most that was too little, and when.
    short: Option<(Short, Instant)>,
    /// Whether it was moved since it was looked at last.
    moved: bool,
}

impl Machine {
    /// Takes hold of the machine that is told by this socket. Without a journal nothing will be done.
    ///
    /// # Errors
    /// Why it cannot be balanced.
    pub fn open(socket: &Path, journal: Option<&Journal>) -> anyhow::Result<Machine> {
        let socket = std::path::absolute(socket)?;
        let name = socket.display();
        let mut qmp = Qmp::connect(&socket)?;
        let size = actual(&mut qmp).with_context(|| {
            format!("the machine of {name} has no balloon; start it with -device virtio-balloon-pci, and the driver in its guest")
        })?;
        let memory = qmp.ask("query-memory-size-summary", json!({}))?;
        let full = number(&memory["base-memory"]).unwrap_or(size) + number(&memory["plugged-memory"]).unwrap_or(0);
        let is_emulated = qmp.ask("query-kvm", json!({})).is_ok_and(|kvm| kvm["enabled"] == false);
        let stat = procfs::stat(qmp.pid).with_context(|| format!("QEMU of {name} is in another PID namespace"))?;
        let device = device(&mut qmp)?;
        let polling = device.as_ref().and_then(|path| number(&get(&mut qmp, path, POLLING).ok()?));
        let before = Balloon {
            socket,
            pid: qmp.pid,
            start_ticks: stat.starttime,
            bytes: size,
            polling_seconds: polling.unwrap_or(0),
        };
        let note = journal.map(|journal| journal.balloon(before.clone())).transpose()?;
        let now = Instant::now();
        let mut machine = Machine {
            qmp,
            before,
            note,
            device,
            full,
            size,
            is_emulated,
            is_seen: is_emulated,
            guest: None,
            told: (0, now),
            paging: None,
            looked: now,
            faults: 0.0,
            waited_seconds: None,
            short: None,
            moved: false,
        };
        if let (Some(_), Some(path), Some(0)) = (&machine.note, &machine.device, polling) {
            set(&mut machine.qmp, path, POLLING_SECONDS)?;
        }
        Ok(machine)
    }

    /// QEMU's process.
    pub fn pid(&self) -> i32 {
        self.before.pid
    }

    /// How it came to its end, if it did.
    pub fn end(&self) -> Option<String> {
        if !self.is_running() {
            return Some("has ended; its memory is for the others".into());
        }
        self.qmp
            .lost()
            .map(|why| format!("is out of reach, for its socket does not serve any more ({why}); the others go on"))
    }

    /// What it has done since the last call; whether it has begun a new phase, by having another size or having been filled again. What is not
    /// told stays as it was.
    pub fn look(&mut self) -> bool {
        let filled = self.fills();
        let moved = std::mem::take(&mut self.moved);
        let had = self.guest.as_ref().map_or(self.size, |guest| guest.size);
        if let Ok(size) = actual(&mut self.qmp) {
            self.size = size;
        }
        if let Some(Ok(told)) = self.device.as_ref().map(|path| get(&mut self.qmp, path, "guest-stats")) {
            let at = number(&told["last-update"]).unwrap_or(0);
            if let Some(mut guest) = Guest::of(&told["stats"], self.size).filter(|_| at > self.told.0) {
                if let Some(before) = &self.guest {
                    // It is always the same; while the balloon moves it is told late.
                    guest.kept = guest.kept.min(before.kept);
                    let seconds = self.told.1.elapsed().as_secs_f64();
                    let now = guest.paging_since(before, seconds);
                    self.paging = Some(self.paging.map_or(now, |known| Paging {
                        faults: known.faults + SHARE * (now.faults - known.faults),
                        pages: known.pages + SHARE * (now.pages - known.pages),
                    }));
                }
                self.told = (at, Instant::now());
                self.guest = Some(guest);
            }
        }
        self.faults += self.paging.map_or(0.0, |paging| paging.faults) * self.looked.elapsed().as_secs_f64();
        self.looked = Instant::now();
        self.waited_seconds = self.qmp.ask("query-blockstats", json!({})).ok().and_then(|disks| {
            let reads = disks.as_array()?.iter().map(|disk| number(&disk["stats"]["rd_total_time_ns"]));
            let own = if self.is_emulated { self.faults * EMULATED_SECONDS } else { 0.0 };
            reads.sum::<Option<u64>>().map(|ns| ns as f64 / 1e9 + own)
        });
        self.remember(had);
        moved || filled && !self.fills()
    }

    /// How often its guest has waited for a page since it was opened, and the time that its disks took.
    pub fn waits(&self) -> (u64, Option<f64>) {
        (self.faults as u64, self.waited_seconds)
    }

    /// Whether its guest lacks memory.
    pub fn is_short(&self) -> bool {
        self.paging.is_some_and(Paging::is_short)
    }

    /// What its guest cannot give. One that has swapped has swap; of another that is not known, so what is in use stays. One that tells nothing
    /// keeps what it has.
    pub fn floor(&self) -> u64 {
        let floor = match &self.guest {
            None => self.size,
            Some(guest) if guest.swaps() && self.is_seen => guest.kept + LEAST.max(self.full / PART),
            Some(guest) => guest.used + MARGIN,
        };
        floor.min(self.full)
    }

    /// Its curve by what its guest has, of what frames have missed since it was moved last, if that is to be known now.
    pub fn misses(&self, round: &PagesRound, frames_missed: &[MissPoint]) -> Option<Vec<MissPoint>> {
        let mut points = misses(round, frames_missed, self.size, self.guest.as_ref()?, self.paging?)?;
        if let Some((short, _)) = self.short {
            remembered(&mut points, short);
        }
        Some(points)
    }

    /// Moves its balloon, as far as that is done within the time; what its guest then has.
    ///
    /// # Errors
    /// If it gives nothing.
    pub fn set(&mut self, bytes: u64, patience: Duration) -> anyhow::Result<u64> {
        if self.note.is_none() {
            return Ok(bytes);
        }
        let began = Instant::now();
        let had = self.size;
        while self.size.abs_diff(bytes) >= NEAR && began.elapsed() < patience {
            let to = bytes.max(self.size.saturating_sub(STEP));
            fill(&mut self.qmp, to)?;
            while self.size.abs_diff(to) >= NEAR && began.elapsed() < patience {
                std::thread::sleep(LOOK);
                self.size = actual(&mut self.qmp)?;
            }
        }
        self.moved |= self.size.abs_diff(had) >= NEAR;
        if self.size >= bytes + NEAR {
            // What it does not have it is not pressed for.
            fill(&mut self.qmp, self.size)?;
        }
        if self.size == had && had.abs_diff(bytes) >= NEAR {
            let status = self.qmp.ask("query-status", json!({}))?;
            match status["status"].as_str() {
                Some("running") | None => bail!("its guest does not answer the balloon within {patience:.1?}"),
                Some(other) => bail!("the machine does not run, it is {other}"),
            }
        }
        Ok(self.size)
    }

    /// Puts back what there was before.
    ///
    /// # Errors
    /// Why it could not be; it then stays in the journal.
    pub fn release(mut self) -> anyhow::Result<()> {
        self.undo()
    }

    fn undo(&mut self) -> anyhow::Result<()> {
        let Some(note) = self.note.take() else { return Ok(()) };
        let told = match self.qmp.lost() {
            None => tell(&mut self.qmp, &self.before),
            Some(_) => put_back(&self.before).map_err(anyhow::Error::msg),
        };
        // With its process a machine is gone.
        if told.is_err() && self.is_running() {
            return told;
        }
        note.undone();
        Ok(())
    }

    /// What it had when it told of itself last but one: what it tells may be of before a move.
    fn remember(&mut self, had: u64) {
        let (size, Some(paging)) = (self.size.min(had), self.paging) else { return };
        if paging.is_short() && !self.fills() {
            if self.short.is_none_or(|(short, _)| short.size <= size) {
                self.short = Some((Short { size, faults: paging.faults }, Instant::now()));
            }
        } else if !paging.is_short() {
            // It does with it now.
            self.short = self.short.filter(|(short, at)| short.size < size && at.elapsed() < REMEMBERED);
        }
    }

    fn fills(&self) -> bool {
        self.guest.as_ref().zip(self.paging).is_some_and(|(guest, paging)| guest.fills(paging))
    }

    fn is_running(&self) -> bool {
        procfs::stat(self.before.pid).is_ok_and(|stat| stat.starttime == self.before.start_ticks)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // What cannot be put back stays in the journal.
        let _ = self.undo();
    }
}

/// Puts a balloon back, by a connection of its own. Its guest follows by itself. With its process a machine is gone.
///
/// # Errors
/// Why it could not be, in a sentence.
pub fn put_back(before: &Balloon) -> Result<(), String> {
    if !procfs::stat(before.pid).is_ok_and(|stat| stat.starttime == before.start_ticks) {
        return Ok(());
    }
    let put = || -> anyhow::Result<()> {
        let mut qmp = Qmp::connect(&before.socket)?;
        ensure!(qmp.pid == before.pid, "{} serves another machine now", before.socket.display());
        tell(&mut qmp, before)
    };
    put().map_err(|error| format!("{error:#}"))
}

/// It is to be as it was.
fn tell(qmp: &mut Qmp, before: &Balloon) -> anyhow::Result<()> {
    fill(qmp, before.bytes)?;
    match device(qmp)? {
        Some(path) => set(qmp, &path, before.polling_seconds),
        None => Ok(()),
    }
}

/// What its guest has.
fn actual(qmp: &mut Qmp) -> anyhow::Result<u64> {
    number(&qmp.ask("query-balloon", json!({}))?["actual"]).context("QEMU does not report the size of the balloon")
}

/// Its guest is to have so much.
fn fill(qmp: &mut Qmp, bytes: u64) -> anyhow::Result<()> {
    qmp.ask("balloon", json!({ "value": bytes })).map(drop)
}

/// The path of its balloon among QEMU's objects.
fn device(qmp: &mut Qmp) -> anyhow::Result<Option<String>> {
    for folder in ["/machine/peripheral", "/machine/peripheral-anon"] {
        let all = qmp.ask("qom-list", json!({ "path": folder }))?;
        let is_balloon =
            |one: &&Value| one["type"].as_str().is_some_and(|kind| kind.starts_with("child<virtio-balloon"));
        if let Some(name) = all.as_array().and_then(|all| all.iter().find(is_balloon)?["name"].as_str()) {
            return Ok(Some(format!("{folder}/{name}")));
        }
    }
    Ok(None)
}

fn get(qmp: &mut Qmp, path: &str, property: &str) -> anyhow::Result<Value> {
    qmp.ask("qom-get", json!({ "path": path, "property": property }))
}

fn set(qmp: &mut Qmp, path: &str, seconds: u64) -> anyhow::Result<()> {
    qmp.ask("qom-set", json!({ "path": path, "property": POLLING, "value": seconds })).map(drop)
}

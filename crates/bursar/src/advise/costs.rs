//! `bursar advise costs`: what managing memory costs on this machine, measured once and remembered.

use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use advise::State;
use anyhow::Context;
use linux::secure_file::{Folder, PRIVATE_FILE};
use linux::{buddyinfo, calibrate, idle, numa, procfs};
use model::{Bytes, Costs};
use serde::{Deserialize, Serialize};
use session::say::{show, tell};
use session::status::Status;

use crate::cli;
use crate::results::write_json;

/// What each is, by its name in [`Costs`].
const NAMES: [(&str, &str); 20] = [
    ("base_fault_ns", "a fault that gives 4 KiB"),
    ("huge_fault_ns", "a fault that gives a huge page"),
    ("zero_ns", "zeroing a huge page"),
    ("collapse_base_ns", "collapsing a region to a huge page"),
    ("collapse_page_ns", "and for each page present"),
    ("collapse_stall_ns", "waiting of a thread that touches it meanwhile"),
    ("split_ns", "splitting a huge page"),
    ("populate_huge_ns", "populating a huge page ahead"),
    ("cow_ns", "copying 4 KiB on write"),
    (
        "walk_dependent_ns",
        "saved by a huge page where the page table is in the last cache, per access that waits for the one before",
    ),
    ("walk_independent_ns", "saved there per access that does not"),
    ("walk_near_dependent_ns", "saved where the page table is in the core's cache, per access that waits"),
    ("walk_near_independent_ns", "saved there per access that does not"),
    ("walk_memory_dependent_ns", "saved where it is in no cache, per access that waits"),
    ("walk_memory_independent_ns", "saved there per access that does not"),
    ("access_dependent_ns", "an access in pages of 4 KiB that waits for the one before"),
    ("access_independent_ns", "an access that does not"),
    ("pool_page_ns", "a fault on a huge page zeroed before"),
    ("page_out_ns", "swapping 4 KiB out"),
    ("page_in_ns", "and in again"),
];

/// What is remembered, and printed as JSON.
#[derive(Serialize, Deserialize)]
struct Calibrated {
    /// Of this start of the machine.
    boot_id: String,
    kernel: String,
    costs: Costs,
    /// Others ran meanwhile, which makes memory slower than it is: they hold until the machine is idle.
    #[serde(default)]
    beside_others: bool,
    /// Names of those that could not be measured, and why.
    assumed: Vec<(String, String)>,
}

impl Calibrated {
    fn holds(&self, boot_id: &str, kernel: &str, is_idle: impl FnOnce() -> bool) -> bool {
        self.boot_id == boot_id && self.kernel == kernel && !(self.beside_others && is_idle())
    }
}

/// Who asks for the costs waits for them; a program that is to start does not.
pub const ASKED: Duration = Duration::from_secs(10);
pub const ON_THE_WAY: Duration = Duration::from_millis(400);

/// Others that use so much of all processors disturb.
const OTHERS: f64 = 0.125;

pub fn print(options: &cli::advise::Costs) -> anyhow::Result<Status> {
    let known = if options.again { None } else { remembered() };
    let calibrated = known.unwrap_or_else(|| measured(ASKED));
    if let Some(path) = &options.json {
        write_json(path, &calibrated)?;
        return Ok(Status::of(0));
    }
    let costs = serde_json::to_value(&calibrated.costs).context("the costs could not be printed")?;
    let why = |name| {
        let assumed = calibrated.assumed.iter().find(|(assumed, _)| assumed == name);
        assumed.map(|(_, why)| format!("  (assumed: {why})")).unwrap_or_default()
    };
    for (name, what) in NAMES {
        show!("{:>11} ns  {what}{}", format!("{:.0}", costs[name].as_f64().unwrap_or_default()), why(name))?;
    }
    let kept = Bytes(calibrated.costs.last_cache_bytes as u64);
    show!("{kept:>11}     that the last cache keeps of what a program accesses{}", why("last_cache_bytes"))?;
    if calibrated.beside_others {
        tell!("bursar: other programs ran while this was measured; it is measured again when the machine is idle");
    }
    Ok(Status::of(0))
}

/// The costs of this machine: as measured since it was started, else measured now, as far as it can be in so long.
pub fn calibrated(longest: Duration) -> Costs {
    remembered().unwrap_or_else(|| measured(longest)).costs
}

/// This machine at this moment.
pub fn state() -> State {
    State {
        free_huge: buddyinfo::free_huge().unwrap_or(0),
        free_bytes: numa::nodes().map_or(u64::MAX, |nodes| nodes.iter().map(|node| node.available).sum()),
        idle_cores: idle::processors(),
        ..State::default()
    }
}

fn measured(longest: Duration) -> Calibrated {
    let was_idle = is_idle();
    let calibrate::Calibration { costs, assumed, complete } = calibrate::measure(longest);
    let beside_others = !(was_idle && is_idle());
    let assumed = assumed.into_iter().map(|(name, why)| (name.into(), why.into())).collect();
    let boot_id = procfs::boot_id().unwrap_or_default();
    let calibrated = Calibrated { boot_id, kernel: procfs::kernel_release(), costs, beside_others, assumed };
    let kept = if complete { remember(&calibrated) } else { Ok(()) };
    if let Err(error) = kept {
        tell!("bursar: the costs of this machine are not remembered: {error:#}");
    }
    calibrated
}

fn remembered() -> Option<Calibrated> {
    let text = std::fs::read(file().ok()?).ok()?;
    let calibrated: Calibrated = serde_json::from_slice(&text).ok()?;
    calibrated.holds(&procfs::boot_id().ok()?, &procfs::kernel_release(), is_idle).then_some(calibrated)
}

/// Nobody else runs, or few on a large machine.
fn is_idle() -> bool {
    let all = thread::available_parallelism().map_or(1, usize::from) as f64;
    all - 1.0 - idle::processors() <= OTHERS * all
}

/// Whole or not at all: another bursar may read it meanwhile.
fn remember(calibrated: &Calibrated) -> anyhow::Result<()> {
    let path = file()?;
    let (folder, name) = Folder::of(&path)?;
    let mut file = folder.replace(&name, PRIVATE_FILE)?;
    file.write_all(&serde_json::to_vec_pretty(calibrated)?)?;
    file.commit()?;
    Ok(())
}

/// In the folder that the library within programs is unpacked to.
fn file() -> anyhow::Result<PathBuf> {
    Ok(job::preload::cache_folder()?.join("costs.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_beside_others_holds_until_the_machine_is_idle() {
        let measured = |beside_others| Calibrated {
            boot_id: "this".into(),
            kernel: "6.18".into(),
            costs: Costs::reference(),
            beside_others,
            assumed: Vec::new(),
        };
        assert!(measured(true).holds("this", "6.18", || false) && !measured(true).holds("this", "6.18", || true));
        assert!(measured(false).holds("this", "6.18", || panic!("nobody need look")));
        assert!(
            !measured(false).holds("another", "6.18", || false) && !measured(false).holds("this", "6.12", || false)
        );
    }
}

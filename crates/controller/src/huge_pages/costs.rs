//! What managing memory costs on this machine, measured once and remembered.

use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use advise::State;
use linux::secure_file::{Folder, PRIVATE_FILE};
use linux::{buddyinfo, calibrate, idle, numa, procfs};
use model::Costs;
use serde::{Deserialize, Serialize};
use session::say::tell;

/// What is remembered, and printed as JSON.
#[derive(Serialize, Deserialize)]
pub struct Calibrated {
    /// Of this start of the machine.
    boot_id: String,
    kernel: String,
    /// What each costs.
    pub costs: Costs,
    /// Others ran meanwhile, which makes memory slower than it is: they hold until the machine is idle.
    #[serde(default)]
    pub beside_others: bool,
    /// Names of those that could not be measured, and why.
    pub assumed: Vec<(String, String)>,
}

impl Calibrated {
    fn holds(&self, boot_id: &str, kernel: &str, is_idle: impl FnOnce() -> bool) -> bool {
        self.boot_id == boot_id && self.kernel == kernel && !(self.beside_others && is_idle())
    }
}

/// Who asks for the costs waits for them.
pub const ASKED: Duration = Duration::from_secs(10);
/// A program that is to start does not.
pub const ON_THE_WAY: Duration = Duration::from_millis(400);

/// Others that use so much of all processors disturb.
const OTHERS: f64 = 0.125;

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

/// Measured now, and remembered if all of it could be.
pub fn measured(longest: Duration) -> Calibrated {
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

/// As measured since this machine was started.
pub fn remembered() -> Option<Calibrated> {
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

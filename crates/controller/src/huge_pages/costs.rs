//! Costs of memory management on this machine, measured once and remembered.

use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use advise::State;
use linux::secure_file::{Folder, PRIVATE_FILE};
use linux::{buddyinfo, calibrate, idle, numa, procfs};
use model::Costs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use session::say::tell;

/// The remembered costs; also printed as JSON.
#[derive(JsonSchema, Serialize, Deserialize)]
pub struct Calibrated {
    /// Identifies the boot in which they were measured.
    boot_id: String,
    kernel: String,
    /// The costs.
    pub costs: Costs,
    /// Other programs ran during the measurement and made memory slower. Such costs are valid until the machine is
    /// idle.
    #[serde(default)]
    pub beside_others: bool,
    /// Costs that could not be measured, with the reason.
    pub assumed: Vec<(String, String)>,
}

impl Calibrated {
    fn is_valid(&self, boot_id: &str, kernel: &str, is_idle: impl FnOnce() -> bool) -> bool {
        self.boot_id == boot_id && self.kernel == kernel && !(self.beside_others && is_idle())
    }
}

/// Time limit when the user asked for the costs.
pub const ON_REQUEST: Duration = Duration::from_secs(10);
/// Time limit before a program starts.
pub const BEFORE_A_RUN: Duration = Duration::from_millis(400);

/// Other programs disturb the measurement if they use this share of all processors.
const OTHERS_SHARE: f64 = 0.125;

/// The costs of this machine: as remembered since its boot, or else measured now within `longest`.
pub fn calibrated(longest: Duration) -> Costs {
    remembered().unwrap_or_else(|| measured(longest)).costs
}

/// State of this machine at this moment.
pub fn state() -> State {
    State {
        free_huge: buddyinfo::free_huge().unwrap_or(0),
        free_bytes: numa::nodes().map_or(u64::MAX, |nodes| nodes.iter().map(|node| node.available).sum()),
        idle_cores: idle::processors(),
        ..State::default()
    }
}

/// Measures now, and remembers the costs if the measurement is complete.
pub fn measured(longest: Duration) -> Calibrated {
    let was_idle = is_idle();
    let calibrate::Calibration { costs, assumed, complete } = calibrate::measure(longest);
    let beside_others = !(was_idle && is_idle() && is_plausible(&costs));
    let assumed = assumed.into_iter().map(|(name, why)| (name.into(), why.into())).collect();
    let boot_id = procfs::boot_id().unwrap_or_default();
    let calibrated = Calibrated { boot_id, kernel: procfs::kernel_release(), costs, beside_others, assumed };
    let kept = if complete { remember(&calibrated) } else { Ok(()) };
    if let Err(error) = kept {
        tell!("bursar: the costs of this machine are not remembered: {error:#}");
    }
    calibrated
}

/// The costs as measured since this machine was booted.
pub fn remembered() -> Option<Calibrated> {
    let text = std::fs::read(file().ok()?).ok()?;
    let calibrated: Calibrated = serde_json::from_slice(&text).ok()?;
    calibrated.is_valid(&procfs::boot_id().ok()?, &procfs::kernel_release(), is_idle).then_some(calibrated)
}

/// Whether nothing outside of this machine disturbed a measurement, such as other guests of its host, which no load here
/// shows: independent accesses overlap, so they take no longer than those that wait for each other.
fn is_plausible(costs: &Costs) -> bool {
    costs.access_independent_ns <= costs.access_dependent_ns
}

/// Whether other programs use little of the processors.
fn is_idle() -> bool {
    let all = thread::available_parallelism().map_or(1, usize::from) as f64;
    all - 1.0 - idle::processors() <= OTHERS_SHARE * all
}

/// Replaces the file atomically: another bursar may read it meanwhile.
fn remember(calibrated: &Calibrated) -> anyhow::Result<()> {
    let path = file()?;
    let failed = || format!("{} cannot be written", path.display());
    let (folder, name) = Folder::of(&path).with_context(failed)?;
    let mut file = folder.replace(&name, PRIVATE_FILE).with_context(failed)?;
    file.write_all(&serde_json::to_vec_pretty(calibrated)?)?;
    file.commit()?;
    Ok(())
}

/// In the folder to which the library for programs is unpacked.
fn file() -> anyhow::Result<PathBuf> {
    Ok(job::preload::cache_folder()?.join("costs.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_accesses_that_are_slower_show_a_disturbance() {
        let costs = |access_dependent_ns, access_independent_ns| Costs {
            access_dependent_ns,
            access_independent_ns,
            ..Costs::reference()
        };
        assert!(is_plausible(&costs(70.0, 14.0)));
        assert!(!is_plausible(&costs(68.9, 101.4)), "from a machine whose host was busy");
    }

    #[test]
    fn costs_measured_beside_others_hold_until_idle() {
        let measured = |beside_others| Calibrated {
            boot_id: "this".into(),
            kernel: "6.18".into(),
            costs: Costs::reference(),
            beside_others,
            assumed: Vec::new(),
        };
        assert!(measured(true).is_valid("this", "6.18", || false) && !measured(true).is_valid("this", "6.18", || true));
        assert!(measured(false).is_valid("this", "6.18", || panic!("idleness need not be checked")));
        assert!(
            !measured(false).is_valid("another", "6.18", || false)
                && !measured(false).is_valid("this", "6.12", || false)
        );
    }
}

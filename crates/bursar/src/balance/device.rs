//! How long a miss takes: what the targets waited for memory, over what they had to bring back.

use linux::psi;

use super::target::Looked;

/// Of an SSD; until pressure has told.
const FIRST_SECONDS: f64 = 100e-6;
/// To zram and back: 7 us out, 5 us in, and the fault. Pressure leaves out most of what is work, not waiting.
const LEAST_SECONDS: f64 = 15e-6;
const MOST_SECONDS: f64 = 10e-3;
/// Fewer misses in an interval tell nothing.
const ENOUGH: f64 = 200.0;
/// What an interval adds to what is known.
const SHARE: f64 = 0.3;

/// Where memory comes back from.
#[derive(Debug)]
pub struct Device {
    miss_seconds: Option<f64>,
    /// What the whole machine has waited so far.
    waited: Option<f64>,
}

impl Device {
    /// Nothing is known yet.
    pub fn new() -> Device {
        Device { miss_seconds: None, waited: machine() }
    }

    /// Takes an interval in. Where cgroups have no pressure of their own the machine's serves, which counts those that wait at once
    /// once: the figure is then too small, by as much for all.
    pub fn learn<'a>(&mut self, seen: impl Iterator<Item = &'a Looked>) {
        let machine = machine();
        let before = std::mem::replace(&mut self.waited, machine);
        let machine = machine.zip(before).map(|(now, before)| now - before);
        let (mut own, mut refaults, mut have_own) = (0.0, 0.0, true);
        for looked in seen {
            refaults += looked.refaults;
            have_own &= looked.waited_seconds.is_some();
            own += looked.waited_seconds.unwrap_or(0.0);
        }
        let waited = if have_own { Some(own) } else { machine };
        if let Some(waited) = waited.filter(|_| refaults >= ENOUGH) {
            let seconds = (waited / refaults).clamp(LEAST_SECONDS, MOST_SECONDS);
            self.miss_seconds = Some(self.miss_seconds.map_or(seconds, |known| known + SHARE * (seconds - known)));
        }
    }

    /// A miss takes so long.
    pub fn miss_seconds(&self) -> f64 {
        self.miss_seconds.unwrap_or(FIRST_SECONDS)
    }
}

fn machine() -> Option<f64> {
    psi::system().and_then(|psi| psi.memory_some_seconds)
}

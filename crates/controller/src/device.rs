//! How long a miss takes: what the targets waited for memory, over what they had to bring back.

use linux::psi;

/// Of an SSD; until pressure has told.
const FIRST_SECONDS: f64 = 100e-6;
/// To zram and back: 7 us out, 5 us in, and the fault. Pressure leaves out most of what is work, not waiting.
const LEAST_SECONDS: f64 = 15e-6;
const MOST_SECONDS: f64 = 10e-3;
/// Fewer misses tell nothing; a slow disk needs several intervals for so many.
const ENOUGH: f64 = 200.0;
/// What they add to what is known.
const SHARE: f64 = 0.3;

/// What memory comes back from.
#[derive(Debug)]
pub struct Device {
    miss_seconds: Option<f64>,
    /// What the whole machine has waited so far.
    waited: Option<f64>,
    /// Waited and brought back since something was learnt last.
    since: (f64, f64),
}

impl Default for Device {
    /// Nothing is known yet.
    fn default() -> Device {
        Device { miss_seconds: None, waited: machine(), since: (0.0, 0.0) }
    }
}

impl Device {
    /// Takes in what each has brought back in an interval, and the time that it waited for it, if that is told. Where cgroups have no
    /// pressure of their own the machine's serves, which counts those that wait at once once: the figure is then too small, by as much for all.
    pub fn learn(&mut self, seen: impl Iterator<Item = (f64, Option<f64>)>) {
        let machine = machine();
        let before = std::mem::replace(&mut self.waited, machine);
        let machine = machine.zip(before).map(|(now, before)| now - before);
        let (mut own, mut refaults, mut have_own) = (0.0, 0.0, true);
        for (brought_back, waited) in seen {
            refaults += brought_back;
            have_own &= waited.is_some();
            own += waited.unwrap_or(0.0);
        }
        let Some(waited) = (if have_own { Some(own) } else { machine }) else { return };
        let (waited, refaults) = (self.since.0 + waited, self.since.1 + refaults);
        self.since = (waited, refaults);
        if refaults >= ENOUGH {
            let seconds = (waited / refaults).clamp(LEAST_SECONDS, MOST_SECONDS);
            self.miss_seconds = Some(self.miss_seconds.map_or(seconds, |known| known + SHARE * (seconds - known)));
            self.since = (0.0, 0.0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_disk_is_known_after_some_intervals() {
        let mut device = Device::default();
        for _ in 0..3 {
            device.learn([(60.0, Some(0.3))].into_iter());
            assert_eq!(device.miss_seconds(), FIRST_SECONDS);
        }
        device.learn([(60.0, Some(0.3))].into_iter());
        assert!((device.miss_seconds() - 5e-3).abs() < 1e-9, "{}", device.miss_seconds());
    }

    #[test]
    fn what_several_wait_for_counts_by_what_they_bring_back() {
        let mut device = Device::default();
        device.learn([(900.0, Some(0.09)), (100.0, Some(0.11))].into_iter());
        assert!((device.miss_seconds() - 200e-6).abs() < 1e-9, "{}", device.miss_seconds());
    }
}

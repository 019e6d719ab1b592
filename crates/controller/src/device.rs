//! How long a miss takes: the time that the targets waited for memory, divided by the pages that they brought back.

use linux::psi;

/// Assumed until pressure has been measured: an SSD.
const FIRST_SECONDS: f64 = 100e-6;
/// zram, the fastest: 7 us out, 5 us in, and the fault. Pressure omits most of what is work rather than waiting.
const MIN_SECONDS: f64 = 15e-6;
const MAX_SECONDS: f64 = 10e-3;
/// Misses needed for an estimate; a slow disk takes several intervals for that many.
const MIN_MISSES: f64 = 200.0;
/// Weight of a new estimate against the old one.
const NEW_WEIGHT: f64 = 0.3;

/// The device that memory comes back from.
#[derive(Debug)]
pub struct Device {
    miss_seconds: Option<f64>,
    /// Seconds that the whole machine has waited so far.
    waited: Option<f64>,
    /// (Seconds waited, pages brought back) since the last estimate.
    since: (f64, f64),
}

impl Default for Device {
    /// Nothing is known yet.
    fn default() -> Device {
        Device { miss_seconds: None, waited: machine(), since: (0.0, 0.0) }
    }
}

impl Device {
    /// Takes in an interval: for each target, the pages it brought back and the seconds it waited for them, if known.
    /// If cgroups have no pressure of their own, the machine's pressure is used. It counts targets that wait at the
    /// same time once, so the figure is too small, by the same factor for all.
    pub fn learn(&mut self, targets: impl Iterator<Item = (f64, Option<f64>)>) {
        let machine = machine();
        let before = std::mem::replace(&mut self.waited, machine);
        let machine = machine.zip(before).map(|(now, before)| now - before);
        let (mut own, mut refaults, mut have_own) = (0.0, 0.0, true);
        for (brought_back, waited) in targets {
            refaults += brought_back;
            have_own &= waited.is_some();
            own += waited.unwrap_or(0.0);
        }
        let Some(waited) = (if have_own { Some(own) } else { machine }) else { return };
        let (waited, refaults) = (self.since.0 + waited, self.since.1 + refaults);
        self.since = (waited, refaults);
        if refaults >= MIN_MISSES {
            let seconds = (waited / refaults).clamp(MIN_SECONDS, MAX_SECONDS);
            self.miss_seconds = Some(self.miss_seconds.map_or(seconds, |known| known + NEW_WEIGHT * (seconds - known)));
            self.since = (0.0, 0.0);
        }
    }

    /// Seconds that a miss takes.
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
    fn a_slow_disk_is_measured_after_some_intervals() {
        let mut device = Device::default();
        for _ in 0..3 {
            device.learn([(60.0, Some(0.3))].into_iter());
            assert_eq!(device.miss_seconds(), FIRST_SECONDS);
        }
        device.learn([(60.0, Some(0.3))].into_iter());
        assert!((device.miss_seconds() - 5e-3).abs() < 1e-9, "{}", device.miss_seconds());
    }

    #[test]
    fn targets_weigh_by_the_pages_they_bring_back() {
        let mut device = Device::default();
        device.learn([(900.0, Some(0.09)), (100.0, Some(0.11))].into_iter());
        assert!((device.miss_seconds() - 200e-6).abs() < 1e-9, "{}", device.miss_seconds());
    }
}

//! Costs of scans since the controller's last decision, for bursar and for the program.

use std::time::{Duration, Instant};

use super::control::Spent;
use super::own_cpu;

/// Cost of one cleared bit to the program's processor: a TLB miss, and setting the bit.
pub const TOUCH_SECONDS: f64 = 0.4e-6;
/// Clearing a bit on the program's own processor flushes its TLB. The entries of a second-level TLB, and the time of a
/// page walk for one entry: the time in a virtual machine, where it is longest.
pub const TLB_ENTRIES: u64 = 1536;
const WALK_SECONDS: f64 = 50e-9;

/// Times are in seconds unless their type says otherwise.
pub struct Window {
    pub began: Instant,
    /// CPU time of this thread when it was last read.
    pub cpu: Duration,
    /// Time of clears that is not in the sums yet.
    pub arming: Duration,
    pub arms: u64,
    /// TLB entries that the program has to fill again.
    pub refills: u64,
    own: f64,
    clearing: f64,
    pub target: f64,
    pub scans: u64,
    pub touched: u64,
    /// Cost of events of pages that return from swap, for bursar and the program.
    pub returned: f64,
}

impl Window {
    /// Starts at this CPU time of the thread.
    pub fn new(cpu: Duration) -> Window {
        Window {
            began: Instant::now(),
            cpu,
            arming: Duration::ZERO,
            arms: 0,
            refills: 0,
            own: 0.0,
            clearing: 0.0,
            target: 0.0,
            scans: 0,
            touched: 0,
            returned: 0.0,
        }
    }

    /// Adds up the cost since the last call. Returns that of bursar and that of the program.
    pub fn add_up(&mut self, is_beside: bool) -> (f64, f64) {
        let cpu = own_cpu();
        let own = (cpu - self.cpu).as_secs_f64();
        // Other processors that run the program are interrupted about as long as the call waits for them.
        let arming = self.arming.as_secs_f64().min(own);
        let interrupted = if is_beside { 0.0 } else { arming };
        let target = interrupted + self.arms as f64 * TOUCH_SECONDS + self.refills as f64 * WALK_SECONDS;
        (self.cpu, self.arming, self.arms, self.refills) = (cpu, Duration::ZERO, 0, 0);
        self.own += own;
        self.clearing += arming;
        self.target += target;
        (own, target)
    }

    /// The costs in the form that the controller needs, given the pages that are not hot and the units scanned.
    pub fn spent(&self, pages: u64, units: usize) -> Spent {
        let seconds = self.began.elapsed().as_secs_f64();
        Spent {
            scanning: (self.own - self.clearing) / seconds,
            clearing: (self.clearing + self.target) / seconds,
            returned: self.returned / seconds,
            touched: self.touched as f64 / self.scans.max(1) as f64 / pages.max(1) as f64,
            units,
        }
    }
}

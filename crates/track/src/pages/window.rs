//! What looking has cost since the controller's last decision: bursar, and the program.

use std::time::{Duration, Instant};

use super::control::Spent;
use super::own_cpu;

/// The processor's own work for one cleared bit: a TLB miss, and setting the bit.
pub const TOUCH_SECONDS: f64 = 0.4e-6;
/// Clearing a bit beside the program empties the processor's TLB of it. What a second-level TLB holds, and a walk of page tables
/// for an entry of it: in a virtual machine, where it takes longest.
pub const TLB_ENTRIES: u64 = 1536;
const WALK_SECONDS: f64 = 50e-9;

/// Times in seconds, if nothing else is said.
pub struct Window {
    pub began: Instant,
    /// CPU time of this thread when it was last asked for.
    pub cpu: Duration,
    /// Clearing that is not in the sums yet.
    pub arming: Duration,
    pub arms: u64,
    /// Entries of TLBs that the program has to fill again.
    pub refills: u64,
    own: f64,
    clearing: f64,
    pub target: f64,
    pub looks: u64,
    pub touched: u64,
    /// What it took to be told of what comes back: bursar and the program.
    pub returned: f64,
}

impl Window {
    /// From this CPU time of the thread on.
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
            looks: 0,
            touched: 0,
            returned: 0.0,
        }
    }

    /// Adds up what was spent since it was last called: by bursar, and by the program.
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

    /// As the controller wants it, with so many pages that are not hot, and so many units looked at.
    pub fn spent(&self, pages: u64, units: usize) -> Spent {
        let seconds = self.began.elapsed().as_secs_f64();
        Spent {
            looking: (self.own - self.clearing) / seconds,
            clearing: (self.clearing + self.target) / seconds,
            returned: self.returned / seconds,
            touched: self.touched as f64 / self.looks.max(1) as f64 / pages.max(1) as f64,
            units,
        }
    }
}

//! Swap in compressed memory (zram) for the duration of a test.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::need::need;

const CONTROL: &str = "/sys/class/zram-control";

/// A zram device that the machine swaps to; removed when dropped.
pub struct Zram {
    number: String,
}

impl Zram {
    /// `None` where none can be created, and tests may be skipped.
    pub fn of(mib: u64) -> Option<Zram> {
        let zram = Zram::add(mib);
        if need("zram", zram.is_some()) { zram } else { None }
    }

    fn add(mib: u64) -> Option<Zram> {
        let number = fs::read_to_string(format!("{CONTROL}/hot_add")).ok()?.trim().to_string();
        let zram = Zram { number };
        fs::write(format!("/sys/block/zram{}/disksize", zram.number), format!("{mib}M")).ok()?;
        let is_done =
            |command: &str| Command::new(command).arg(zram.device()).output().is_ok_and(|done| done.status.success());
        (is_done("mkswap") && is_done("swapon")).then_some(zram)
    }

    fn device(&self) -> PathBuf {
        format!("/dev/zram{}", self.number).into()
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(self.device()).output();
        let _ = fs::write(format!("/sys/block/zram{}/reset", self.number), "1");
        let _ = fs::write(format!("{CONTROL}/hot_remove"), &self.number);
    }
}

//! The working set from the growth of accessed memory after Accessed bits were cleared.
//!
//! Pages accessed within a time T of the clear are the working set W(T) (Denning 1968). A program that has memory for
//! W(T) pages misses the pages by which W grows afterwards. So the working set is the smallest W(T) after which W
//! hardly grows. If a program accesses its memory in bursts, W does not grow between them, so readings must span more
//! than the time between two bursts.

use model::MissPoint;

/// Readings after each clear span at least this time. Bursts further apart are missed.
pub const MIN_SPAN_SECONDS: f64 = 6.0;
/// While accessed memory still grows, readings go on for at most this long.
const MAX_SPAN_SECONDS: f64 = 25.0;
/// The fewest readings that show whether it still grows.
const MIN_READINGS: usize = 3;

/// New memory matters only above both this size and this part (1/10) of the accessed memory.
const MIN_NEW_BYTES: u64 = 1 << 20;
const NEW_PART: u64 = 10;

/// One reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Seconds since the clear.
    pub seconds: f64,
    /// Bytes accessed by then.
    pub accessed: u64,
    /// Bytes resident then.
    pub resident: u64,
}

/// The readings after one clear, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Growth(Vec<Reading>);

impl Growth {
    /// Adds a reading, later than all before.
    pub fn add(&mut self, reading: Reading) {
        let accessed = self.accessed().max(reading.accessed);
        self.0.push(Reading { accessed, ..reading });
    }

    /// All readings.
    pub fn readings(&self) -> &[Reading] {
        &self.0
    }

    /// Bytes accessed by the last reading.
    pub fn accessed(&self) -> u64 {
        self.0.last().map_or(0, |last| last.accessed)
    }

    /// Seconds that the readings span.
    pub fn seconds(&self) -> f64 {
        self.0.last().map_or(0.0, |last| last.seconds)
    }

    /// New resident bytes between the readings. These readings do not show whether the program accesses them again,
    /// because their Accessed bits were set at the first touch.
    pub fn came(&self) -> u64 {
        self.0.windows(2).map(|two| two[1].resident.saturating_sub(two[0].resident)).sum()
    }

    /// Whether the working set may be larger than these readings show: much memory was new, and much more than during
    /// the previous readings (`came_before`), whose new memory these readings do show.
    pub fn is_lower_bound(&self, came_before: u64) -> bool {
        let came = self.came().min(self.accessed());
        came > MIN_NEW_BYTES.max(self.accessed() / NEW_PART) && came > came_before.saturating_mul(2)
    }

    /// Whether further readings are of no use: growth has ended, or it goes on for too long.
    pub fn is_complete(&self, tolerated: f64, page_bytes: u64) -> bool {
        let (long, many) = (self.seconds() >= MIN_SPAN_SECONDS, self.0.len() >= MIN_READINGS);
        long && many && (self.seconds() >= MAX_SPAN_SECONDS || self.working_set(tolerated, page_bytes).is_some())
    }

    /// Misses per second by memory size, sizes rising. Each size has the highest rate of any later reading, because a
    /// program that pauses between bursts needs what the next burst accesses. Below the size of the first reading
    /// nothing is known.
    pub fn misses(&self, page_bytes: u64) -> Vec<MissPoint> {
        let rates = self.0.windows(2).map(|two| {
            // No memory size would have avoided the first touch of new pages.
            let came = two[1].resident.saturating_sub(two[0].resident);
            let grown = (two[1].accessed - two[0].accessed).saturating_sub(came);
            grown as f64 / page_bytes as f64 / (two[1].seconds - two[0].seconds).max(1e-9)
        });
        let mut points: Vec<MissPoint> = self
            .0
            .iter()
            .zip(rates)
            .map(|(reading, misses_per_second)| MissPoint { bytes: reading.accessed, misses_per_second })
            .collect();
        let mut most = 0.0_f64;
        for point in points.iter_mut().rev() {
            most = most.max(point.misses_per_second);
            point.misses_per_second = most;
        }
        let Some(first) = self.0.first() else { return points };
        let at_once = first.accessed as f64 / page_bytes as f64 / first.seconds.max(1e-9);
        points.insert(0, MissPoint { bytes: 0, misses_per_second: at_once.max(most) });
        points.push(MissPoint { bytes: self.accessed(), misses_per_second: 0.0 });
        points
    }

    /// The smallest size above which no more than `tolerated` pages per second are missed. `None`: growth has not
    /// ended, or there are too few readings.
    pub fn working_set(&self, tolerated: f64, page_bytes: u64) -> Option<u64> {
        let misses = self.misses(page_bytes);
        // The last point has no misses by definition.
        let known = misses.len().checked_sub(1)?;
        misses[1.min(known)..known]
            .iter()
            .find(|point| point.misses_per_second <= tolerated)
            .map(|point| point.bytes)
            .filter(|_| self.0.len() >= MIN_READINGS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const TIMES: [f64; 10] = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6];

    /// Reads until growth is complete.
    fn read(accessed: impl Fn(f64) -> u64, resident: impl Fn(f64) -> u64) -> Growth {
        let mut growth = Growth::default();
        for seconds in TIMES {
            growth.add(Reading { seconds, accessed: accessed(seconds), resident: resident(seconds) });
            if growth.is_complete(100.0, 4096) {
                return growth;
            }
        }
        panic!("{growth:?}");
    }

    #[test]
    fn bursts_are_the_working_set_wherever_the_clearing_falls() {
        for (mib, period) in [(64, 0.2), (100, 1.0), (200, 3.0), (200, 5.0)] {
            for phase in (0..20).map(|part| period * f64::from(part) / 20.0) {
                let growth = read(|seconds| if seconds > phase { mib * MIB } else { 0 }, |_| 300 * MIB);
                assert_eq!(
                    growth.working_set(100.0, 4096),
                    Some(mib * MIB),
                    "every {period} s, cleared {phase} s before"
                );
            }
        }
    }

    #[test]
    fn a_loop_is_its_size_with_a_curve_that_falls_there() {
        let around = |seconds: f64| ((48 * MIB) as f64 * (seconds / 0.3).min(1.0)) as u64;
        let growth = read(around, |_| 64 * MIB);
        assert_eq!(growth.working_set(100.0, 4096), Some(48 * MIB));
        let misses = growth.misses(4096);
        assert!(
            misses[0].misses_per_second > 10_000.0 && misses.last().unwrap().misses_per_second == 0.0,
            "{misses:?}"
        );
        assert!(misses.is_sorted_by_key(|point| point.bytes), "{misses:?}");
    }

    #[test]
    fn working_set_is_unknown_while_growth_goes_on() {
        let growth = read(|seconds| (seconds * 4.0) as u64 * MIB, |_| 300 * MIB);
        assert_eq!(growth.working_set(100.0, 4096), None);
        assert!(growth.seconds() > 25.0);
    }

    #[test]
    fn new_memory_is_not_missed() {
        let growth =
            read(|seconds| 8 * MIB + (seconds * 4.0) as u64 * MIB, |seconds| 50 * MIB + (seconds * 4.0) as u64 * MIB);
        assert_eq!(growth.working_set(100.0, 4096), Some(8 * MIB));
    }

    #[test]
    fn memory_first_touched_between_readings_makes_a_lower_bound() {
        // 200 MiB that a busy machine lets a program touch for the first time in one second, and every 3 s from then
        // on.
        let slow = |seconds: f64| 11 * MIB + ((200 * MIB) as f64 * seconds.min(1.0)) as u64;
        let first = read(slow, slow);
        assert!(first.is_lower_bound(0) && first.came() >= 180 * MIB, "{first:?}");
        let next = read(|seconds| if seconds > 2.0 { 211 * MIB } else { 11 * MIB }, |_| 211 * MIB);
        assert!(!next.is_lower_bound(first.came()));
        assert_eq!(next.working_set(100.0, 4096), Some(211 * MIB));
    }

    #[test]
    fn steady_growth_is_known_from_the_second_clear_on() {
        let grows = |seconds: f64| 8 * MIB + (seconds * 4.0) as u64 * MIB;
        let growth = read(grows, |seconds| 50 * MIB + grows(seconds));
        assert!(growth.is_lower_bound(0) && !growth.is_lower_bound(growth.came()));
        let hardly = read(|_| 48 * MIB, |seconds| 64 * MIB + (seconds * 1e5) as u64);
        assert!(!hardly.is_lower_bound(0));
    }

    #[test]
    fn no_reading_shows_nothing() {
        assert_eq!((Growth::default().working_set(100.0, 4096), Growth::default().misses(4096)), (None, vec![]));
    }
}

//! What was seen of a program's mapped memory in one round of looking.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One round: what was accessed between two questions.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PagesRound {
    /// When the round ended, nanoseconds since tracking began.
    pub t_ns: u64,
    /// How long it was, seconds.
    pub seconds: f64,
    /// Whether memory was tracked. If not, nothing was seen but what looking cost and the signals of phases; see
    /// [`PagesRound::standing`].
    pub tracking: bool,
    /// The working set was found to be another than before: a new phase has begun.
    pub new_phase: bool,
    /// What tells of phases while memory is not tracked.
    pub signals: Vec<Signal>,
    /// Mapped and resident, as estimated from the sample.
    pub tracked_bytes: u64,
    /// Of these, accessed in this round.
    pub touched_bytes: u64,
    /// Pages of files that were read or written since tracking began, as much as the machine could hold; estimated from a
    /// sample. They are in the curve, the working set and the ages with the rest. `None`: not seen.
    pub file_bytes: Option<u64>,
    /// Of these, read or written in this round.
    pub file_touched_bytes: Option<u64>,
    /// Reads and writes that were seen and lost in this round; with any, what is said of files is a lower bound.
    pub lost_events: u64,
    /// The least size at which misses are within the tolerance: in this round as the tracker tells it, in the last ones together as
    /// it is told further on. `None` if they are at no size that can be judged.
    pub wss_bytes: Option<u64>,
    /// Where `wss_bytes` is not known yet: memory that was accessed in the time that was watched, and so is needed at least, unless it
    /// is never accessed again. As the tracker reports it: so much was accessed again, and what it needs for that is unknown, since it was
    /// accessed before tracking began or while it was off. Of a round without tracking the bits of a few pages show it.
    #[serde(default)]
    pub accessed_at_least: Option<u64>,
    /// Of `touched_bytes`, in huge pages. One access makes all of a huge page count as accessed.
    #[serde(default)]
    pub huge_touched_bytes: u64,
    /// Misses per second by memory size, sizes rising. References are not counted, so there is no miss ratio.
    pub misses: Vec<MissPoint>,
    /// Pages per second that were there, or whose accesses could be seen, for the first time: misses at any size.
    pub first_touches_per_second: f64,
    /// Below this size the curve is not known: so much is accessed between two looks.
    pub blind_below: u64,
    /// Resident, but its accesses cannot be seen (pools of huge pages, a few shared or locked pages).
    pub blind_bytes: u64,
    /// In files in memory (tmpfs, memfds) that the program had open of late and has not mapped, bytes at most: reads and writes of them
    /// are not seen.
    #[serde(default)]
    pub files_in_memory_bytes: u64,
    /// The largest of them.
    #[serde(default)]
    pub largest_file_in_memory: Option<String>,
    /// By how many seconds a scan of the last eight intervals came later than it was due, or was held up, at most. Of what is accessed
    /// meanwhile a part may not be seen.
    #[serde(default)]
    pub scans_late_seconds: f64,
    /// What was touched where, by process and address.
    pub heat: Vec<MappingHeat>,
    /// Bytes by the time since they were last accessed, rising; each entry holds those below its bound and not below the
    /// bound before it.
    pub ages: Vec<AgeBytes>,
    /// What looking has cost.
    pub overhead: Overhead,
    /// Of how many pages one is looked at.
    pub one_in: u64,
    /// Seconds from look to look.
    pub interval: f64,
    /// The rung of the ladder that this came from.
    pub rung: String,
}

/// A figure that is cheap to have and changes when the working set does.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Signal {
    /// What it is.
    pub name: String,
    /// In the interval.
    pub value: f64,
    /// Less than so much off its mean is chance.
    #[serde(default)]
    pub unit: f64,
}

/// A working set has at most so many misses per second. A page read back from an SSD takes some 100 us: 100 of them are 1 % of
/// the time.
pub const TOLERATED_MISSES: f64 = 100.0;

/// Scans are some 10 ms to half a second apart. One that is so late says that others have the processors: what the program then takes
/// longer for goes on when tracking is switched off, and may be missed.
const LATE_SECONDS: f64 = 0.1;

/// Less memory in files whose reads and writes are not seen does not matter.
const LEAST_UNSEEN_BYTES: u64 = 1 << 20;

/// The misses per second, as found in a sample of which each page stands for `each` misses per second, that are a standard
/// deviation above those a working set may have: m with m - sqrt(m * each) = most. Fewer may be chance.
pub fn told_apart(most: f64, each: f64) -> f64 {
    (each.sqrt() + (each + 4.0 * most).sqrt()).powi(2) / 4.0
}

/// A point of a miss-rate curve.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MissPoint {
    /// Memory size.
    pub bytes: u64,
    /// Pages per second that would be read again with this much memory and LRU replacement.
    pub misses_per_second: f64,
}

/// How much of a mapping was accessed.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MappingHeat {
    /// The component of the function.
    pub pid: i32,
    /// First address.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Its file, `[heap]`, `[stack]` or `[anon]`.
    pub name: String,
    /// Resident bytes, estimated.
    pub resident: u64,
    /// Accessed in the round, estimated.
    pub touched: u64,
    /// Resident memory whose accesses bursar cannot see.
    pub blind: u64,
    /// Accessed share of what is resident in equal parts of the mapping; `None` where nothing resident was looked at.
    pub parts: Vec<Option<f32>>,
}

/// Bytes of one age.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct AgeBytes {
    /// Younger than this, seconds; `None`: older than all before, or never seen accessed.
    pub below: Option<f64>,
    /// How much.
    pub bytes: u64,
}

/// The cost of scanning, as shares of one processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Overhead {
    /// CPU time of bursar's own thread, measured.
    pub own: f64,
    /// Time added to the program: interruptions as long as the calls that caused them, and the processor's work to set
    /// cleared bits. Estimated.
    pub target: f64,
}

impl Overhead {
    /// Both.
    pub fn share(&self) -> f64 {
        self.own + self.target
    }
}

impl PagesRound {
    /// What stands after this round: itself, or, where nothing was tracked, what was seen last before it. If more was accessed than
    /// was reported to be needed, the working set is unknown from then on.
    pub fn standing(self, before: Option<&PagesRound>) -> PagesRound {
        match before {
            Some(before) if !self.tracking => PagesRound {
                wss_bytes: before.wss_bytes.filter(|_| self.accessed_at_least.is_none()),
                accessed_at_least: self.accessed_at_least.or(before.accessed_at_least),
                t_ns: self.t_ns,
                seconds: self.seconds,
                tracking: false,
                new_phase: self.new_phase,
                signals: self.signals,
                lost_events: self.lost_events,
                overhead: self.overhead,
                files_in_memory_bytes: self.files_in_memory_bytes,
                largest_file_in_memory: self.largest_file_in_memory,
                ..before.clone()
            },
            _ => self,
        }
    }

    /// All memory whose accesses are seen: what is mapped, and pages of files.
    pub fn seen_bytes(&self) -> u64 {
        self.tracked_bytes + self.file_bytes.unwrap_or(0)
    }

    /// Memory in files in memory that makes the working set a lower bound, and the name of the largest such file.
    pub fn unseen_in_files(&self) -> Option<(u64, &str)> {
        let bytes = self.files_in_memory_bytes;
        self.matters(bytes).then(|| (bytes, self.largest_file_in_memory.as_deref().unwrap_or_default()))
    }

    /// By how much scans came so late that the working set is a lower bound, in seconds.
    pub fn late_scans(&self) -> Option<f64> {
        Some(self.scans_late_seconds).filter(|seconds| *seconds >= LATE_SECONDS)
    }

    /// Whether the working set is a lower bound: files in memory, or mapped memory whose accesses are not seen, or scans that came late.
    pub fn is_lower_bound(&self) -> bool {
        self.unseen_in_files().is_some() || self.matters(self.blind_bytes) || self.late_scans().is_some()
    }

    /// Whether so much memory whose accesses are not seen makes the working set a lower bound: at least 1 MiB, and a tenth of it.
    fn matters(&self, unseen_bytes: u64) -> bool {
        unseen_bytes >= LEAST_UNSEEN_BYTES.max(self.wss_bytes.unwrap_or(0) / 10)
    }

    /// Misses per second with so much memory.
    pub fn misses_at(&self, bytes: u64) -> f64 {
        let after = self.misses.partition_point(|point| point.bytes <= bytes);
        after.checked_sub(1).map_or(0.0, |at| self.misses[at].misses_per_second)
    }

    /// The least size at which there are at most so many misses per second; `None` if the curve does not say.
    pub fn size_at(&self, misses_per_second: f64) -> Option<u64> {
        let point = self.misses.iter().find(|point| point.misses_per_second <= misses_per_second)?;
        Some(point.bytes.max(self.blind_below))
    }
}

/// One interval of `bursar watch`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WatchInterval {
    /// Seconds since tracking began.
    pub time: f64,
    /// The working set; `None`: not known.
    pub wss_bytes: Option<u64>,
    /// The largest so far.
    pub peak_wss_bytes: Option<u64>,
    /// If `wss_bytes` is not known: bytes accessed since tracking began.
    #[serde(default)]
    pub accessed_at_least_bytes: Option<u64>,
    /// Whether memory was tracked. If not, all figures but the cost are those of the last interval in which it was.
    pub tracking: bool,
    /// Whether the working set changed.
    pub new_phase: bool,
    /// The curve.
    pub misses_per_second: Vec<MissPoint>,
    /// First touches, pages per second.
    pub first_touches_per_second: f64,
    /// Mapped and resident.
    pub tracked_bytes: u64,
    /// Of these, accessed in the interval.
    pub touched_bytes: u64,
    /// Of these, bytes in huge pages; a huge page counts as a whole.
    #[serde(default)]
    pub huge_touched_bytes: u64,
    /// Bytes of files that were read or written; `None`: bursar cannot see them.
    pub file_bytes: Option<u64>,
    /// Of these, in the interval.
    pub file_touched_bytes: Option<u64>,
    /// Lost reads and writes; if there are any, figures of files are lower bounds.
    pub lost_events: u64,
    /// Resident memory whose accesses bursar cannot see.
    pub blind_bytes: u64,
    /// Upper bound of the memory in files in memory that the program had open recently and has not mapped: bursar does not see reads and writes of them.
    #[serde(default)]
    pub files_in_memory_bytes: u64,
    /// Name of the largest such file; `None`: there is none.
    #[serde(default)]
    pub largest_file_in_memory: Option<String>,
    /// Whether the working set is a lower bound, because of files in memory or of late scans.
    #[serde(default)]
    pub wss_is_lower_bound: bool,
    /// By how many seconds a scan of the last eight intervals came later than it was due, or was held up, at most.
    #[serde(default)]
    pub scans_late_seconds: f64,
    /// Below this size the curve is not known.
    pub blind_below_bytes: u64,
    /// The cost of scanning, as a share of one processor.
    pub overhead_share: f64,
    /// The rung it came from.
    pub source: String,
}

impl WatchInterval {
    /// Of a round, and the largest working set so far.
    pub fn of(round: &PagesRound, peak_wss_bytes: Option<u64>) -> WatchInterval {
        WatchInterval {
            time: round.t_ns as f64 / 1e9,
            wss_bytes: round.wss_bytes,
            peak_wss_bytes,
            accessed_at_least_bytes: round.accessed_at_least,
            tracking: round.tracking,
            new_phase: round.new_phase,
            misses_per_second: round.misses.clone(),
            first_touches_per_second: round.first_touches_per_second,
            tracked_bytes: round.tracked_bytes,
            touched_bytes: round.touched_bytes,
            huge_touched_bytes: round.huge_touched_bytes,
            file_bytes: round.file_bytes,
            file_touched_bytes: round.file_touched_bytes,
            lost_events: round.lost_events,
            blind_bytes: round.blind_bytes,
            files_in_memory_bytes: round.files_in_memory_bytes,
            largest_file_in_memory: round.largest_file_in_memory.clone(),
            wss_is_lower_bound: round.is_lower_bound(),
            scans_late_seconds: round.scans_late_seconds,
            blind_below_bytes: round.blind_below,
            overhead_share: round.overhead.share(),
            source: round.rung.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_pages_of_the_sample_do_not_move_the_working_set() {
        let of_sample = |each: f64| (told_apart(TOLERATED_MISSES, each) / each).floor();
        // Of 100 misses per second 50 pages of such a sample tell: some 7 more, or fewer, by chance.
        assert_eq!(of_sample(2.0), 57.0);
        assert_eq!(of_sample(32.0), 5.0);
        assert_eq!(of_sample(512.0), 1.0);
        assert_eq!(of_sample(1e6), 1.0);
    }

    #[test]
    fn without_tracking_what_was_seen_last_stands() {
        let seen = PagesRound { t_ns: 1, tracking: true, wss_bytes: Some(7), ..PagesRound::default() };
        let overhead = Overhead { own: 0.001, target: 0.0 };
        let off = PagesRound { t_ns: 2, overhead, ..PagesRound::default() };
        let standing = off.clone().standing(Some(&seen));
        assert_eq!((standing.t_ns, standing.wss_bytes, standing.overhead), (2, Some(7), overhead));
        assert!(!standing.tracking);
        let refuted = PagesRound { accessed_at_least: Some(9), ..off.clone() }.standing(Some(&seen));
        assert_eq!((refuted.wss_bytes, refuted.accessed_at_least), (None, Some(9)));
        assert_eq!(off.clone().standing(None), off);
        assert_eq!(seen.clone().standing(Some(&off)), seen);
    }
}

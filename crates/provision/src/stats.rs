//! Statistics that the runtime in a process writes about the memory it served (`struct provision_told` of `preload/abi.h`), and their sums
//! over a job.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Why the kernel served memory instead of the pool.
pub use runtime_abi::Passed as Reason;
/// Why a process was not provisioned although the runtime was loaded.
pub use runtime_abi::ProvisionLeftAlone as LeftAlone;
use runtime_abi::{PROVISION_MAGIC, ProvisionTold};

/// A reason as text, to follow "went to Linux:".
pub fn describe(reason: Reason) -> &'static str {
    match reason {
        Reason::Small => "smaller than 64 KiB",
        Reason::Reserved => "reserved addresses",
        Reason::Stack => "thread stacks",
        Reason::Fixed => "at addresses the program chose",
        Reason::Code => "code",
        Reason::Kind => "of a kind the program asked for",
        Reason::Edge => "ends of the heap and of .bss",
        Reason::Exhausted => "the pool had no more",
        Reason::Cap => "over a cap of the pool",
        Reason::NoPool => "no pool",
        Reason::TakenBack => "changed in a way that huge pages do not allow",
        Reason::Forked => "made shareable before a fork, or copied by a child",
        Reason::Advised => "not worth it by the profile",
    }
}

/// Number and size of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Amount {
    /// Calls.
    pub calls: u64,
    /// Bytes requested.
    pub bytes: u64,
}

/// Figures of one process, or their sum over all.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize)]
pub struct Figures {
    /// Peak of the memory mapped from the pool; of several processes the sum of their peaks.
    pub pool_bytes_peak: u64,
    /// Time spent populating served memory, seconds.
    pub populate_seconds: f64,
    /// Memory that had been used before and was zeroed during the request, bytes.
    pub zeroed_bytes: u64,
    /// Memory that was zeroed before it was requested, while the program ran, bytes.
    pub zeroed_beside_bytes: u64,
    /// Memory served from the pool, sum over all calls, bytes.
    pub served_bytes: u64,
    /// Calls passed to the kernel, by reason; every reason has an entry.
    pub passed_to_linux: BTreeMap<Reason, Amount>,
    /// Calls that a larger pool would have served.
    pub fallbacks: u64,
    /// Calls that failed because the pool was too small.
    pub failed: u64,
    /// Forks whose child got a copy.
    pub forks: u64,
    /// Leased from the pool at the last report, bytes.
    pub leased_bytes: u64,
    /// Memory of the pool that was copied for children of processes with several threads, bytes.
    pub copied_bytes: u64,
    /// Memory taken from the pool that was still all zeroes when the pool was exhausted or the program ended; an estimate, bytes.
    pub unwritten_bytes: u64,
    /// Peak of the memory that an unlimited pool would have served; of several processes the sum of their peaks.
    pub demand_bytes_peak: u64,
    /// The runtime's work before the program's main, seconds.
    pub start_seconds: f64,
    /// Time spent waiting for the broker, seconds.
    pub lease_seconds: f64,
}

/// Statistics of one process.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ProcessStats {
    /// Path of its program.
    pub executable: String,
    /// PID.
    pub pid: u64,
    /// PID of its parent.
    pub parent: u64,
    /// Start time, in clock ticks since boot, as in `/proc/PID/stat`.
    #[serde(skip)]
    pub ticks: u64,
    /// The PID namespace that `pid` belongs to; 0: unknown.
    #[serde(skip)]
    pub namespace: u64,
    /// Rank in an MPI job.
    pub rank: Option<u64>,
    /// The NUMA node that its memory should come from.
    pub node: Option<u64>,
    /// Why the process was not provisioned.
    pub left_alone: Option<LeftAlone>,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Why a statistics file cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// All zeroes: the runtime has not written it yet.
    #[error("the process ended before the runtime wrote statistics")]
    NothingYet,
    /// Cut short, or another kind of file.
    #[error("it is not a statistics file of bursar provision")]
    Malformed,
    /// Written by another version.
    #[error("it was written by another version of bursar")]
    OtherVersion,
}

impl ProcessStats {
    /// Reads the bytes of one file.
    ///
    /// # Errors
    /// If the bytes are malformed or of another version.
    pub fn read(bytes: &[u8]) -> Result<ProcessStats, Error> {
        let nothing = || if bytes.iter().all(|byte| *byte == 0) { Error::NothingYet } else { Error::Malformed };
        let rest = bytes.strip_prefix(&PROVISION_MAGIC).ok_or_else(nothing)?;
        match rest.first_chunk().map_or(0, |length| u64::from_le_bytes(*length)) {
            0 => return Err(Error::Malformed),
            length if length == ProvisionTold::BYTES as u64 => {}
            _ => return Err(Error::OtherVersion),
        }
        let stats = ProvisionTold::read(bytes).ok_or(Error::Malformed)?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let amounts = stats.passed.iter().map(|passed| Amount { calls: passed.calls, bytes: passed.bytes });
        Ok(ProcessStats {
            executable: runtime_abi::text(&stats.executable),
            pid: stats.pid,
            parent: stats.parent,
            ticks: stats.ticks,
            namespace: stats.namespace,
            rank: stats.rank_plus_1.checked_sub(1),
            node: stats.node_plus_1.checked_sub(1),
            left_alone: match stats.left_alone {
                0 => None,
                number => Some(LeftAlone::from_number(number).unwrap_or(LeftAlone::Libc)),
            },
            figures: Figures {
                pool_bytes_peak: stats.pool_bytes_peak,
                populate_seconds: seconds(stats.populate_ns),
                zeroed_bytes: stats.zeroed_bytes,
                zeroed_beside_bytes: stats.zeroed_beside_bytes,
                served_bytes: stats.served_bytes,
                passed_to_linux: Reason::ALL.into_iter().zip(amounts).collect(),
                fallbacks: stats.fallbacks,
                failed: stats.failed,
                forks: stats.forks,
                leased_bytes: stats.leased_bytes,
                copied_bytes: stats.copied_bytes,
                unwritten_bytes: stats.unwritten_bytes,
                demand_bytes_peak: stats.demand_bytes_peak,
                start_seconds: seconds(stats.start_ns),
                lease_seconds: seconds(stats.lease_ns),
            },
        })
    }
}

impl Figures {
    /// Sums over all processes; the peaks need not have been at the same time. Sums saturate, because a broken process may report any
    /// number.
    pub fn sum(processes: &[ProcessStats]) -> Figures {
        let all = || processes.iter().map(|process| &process.figures);
        let sum = |of: fn(&Figures) -> u64| all().map(of).fold(0, u64::saturating_add);
        // Not `sum`, which is -0 for an empty iterator.
        let seconds = |of: fn(&Figures) -> f64| all().map(of).fold(0.0, |sum, more| sum + more);
        let passed = |reason: Reason| {
            let amounts = all().filter_map(|figures| figures.passed_to_linux.get(&reason));
            amounts.fold(Amount::default(), |sum, more| Amount {
                calls: sum.calls.saturating_add(more.calls),
                bytes: sum.bytes.saturating_add(more.bytes),
            })
        };
        Figures {
            pool_bytes_peak: sum(|of| of.pool_bytes_peak),
            populate_seconds: seconds(|of| of.populate_seconds),
            zeroed_bytes: sum(|of| of.zeroed_bytes),
            zeroed_beside_bytes: sum(|of| of.zeroed_beside_bytes),
            served_bytes: sum(|of| of.served_bytes),
            passed_to_linux: Reason::ALL.map(|reason| (reason, passed(reason))).into(),
            fallbacks: sum(|of| of.fallbacks),
            failed: sum(|of| of.failed),
            forks: sum(|of| of.forks),
            leased_bytes: sum(|of| of.leased_bytes),
            copied_bytes: sum(|of| of.copied_bytes),
            unwritten_bytes: sum(|of| of.unwritten_bytes),
            demand_bytes_peak: sum(|of| of.demand_bytes_peak),
            start_seconds: seconds(|of| of.start_seconds),
            lease_seconds: seconds(|of| of.lease_seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: usize = 26 + 2 * Reason::ALL.len();

    /// A file as the runtime writes it: the numbers 1, 2, 3 … in the order of `preload/abi.h`, except the given ones.
    fn recorded(left_alone: u64) -> Vec<u8> {
        let mut numbers: Vec<u64> = (1..=NUMBERS as u64).collect();
        (numbers[0], numbers[22]) = (ProvisionTold::BYTES as u64, left_alone);
        let mut bytes = PROVISION_MAGIC.to_vec();
        bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(b"/opt/solve");
        bytes.resize(ProvisionTold::BYTES, 0);
        bytes
    }

    #[test]
    fn numbers_are_read_at_the_headers_offsets() {
        let stats = ProcessStats::read(&recorded(1)).unwrap();
        assert_eq!((stats.pid, stats.parent, stats.ticks, stats.rank, stats.node), (2, 3, 4, Some(4), Some(5)));
        assert_eq!((stats.executable.as_str(), stats.left_alone), ("/opt/solve", Some(LeftAlone::Sanitizer)));
        let figures = &stats.figures;
        assert_eq!((figures.leased_bytes, figures.pool_bytes_peak, figures.demand_bytes_peak), (7, 9, 11));
        assert_eq!((figures.copied_bytes, figures.unwritten_bytes, stats.namespace), (24, 25, 26));
        assert_eq!((figures.zeroed_bytes, figures.zeroed_beside_bytes), (17, 18));
        assert_eq!((figures.served_bytes, figures.fallbacks, figures.failed, figures.forks), (13, 21, 22, 19));
        assert_eq!((figures.start_seconds, figures.lease_seconds, figures.populate_seconds), (14e-9, 15e-9, 16e-9));
        assert_eq!(figures.passed_to_linux[&Reason::Small], Amount { calls: 27, bytes: 28 });
        assert_eq!(figures.passed_to_linux[&Reason::Forked], Amount { calls: 49, bytes: 50 });
    }

    #[test]
    fn cut_files_and_other_versions_are_refused() {
        let whole = recorded(0);
        assert_eq!(ProcessStats::read(&[0; 4096]), Err(Error::NothingYet));
        for cut in 1..whole.len() {
            assert_eq!(ProcessStats::read(&whole[..cut]), Err(Error::Malformed), "{cut}");
        }
        let mut longer = whole.clone();
        longer[8..16].copy_from_slice(&(1u64 << 20).to_le_bytes());
        assert_eq!(ProcessStats::read(&longer), Err(Error::OtherVersion));
        assert_eq!(ProcessStats::read(&[b'x'; 4096]), Err(Error::Malformed));
    }

    #[test]
    fn figures_of_all_are_the_sum_of_each() {
        let stats = ProcessStats::read(&recorded(0)).unwrap();
        let sum = Figures::sum(&[stats.clone(), stats]);
        assert_eq!((sum.pool_bytes_peak, sum.populate_seconds), (18, 32e-9));
        assert_eq!(sum.passed_to_linux[&Reason::Small], Amount { calls: 54, bytes: 56 });
        assert_eq!(Figures::sum(&[]).passed_to_linux.len(), Reason::ALL.len(), "every reason has an entry");
    }

    #[test]
    fn reasons_have_the_names_of_the_header() {
        let names = serde_json::to_value(Reason::ALL).unwrap();
        assert_eq!(names[0], "small");
        assert_eq!(names[10], "taken_back");
    }
}

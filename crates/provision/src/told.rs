//! What the runtime within a process tells about what it gave (`struct provision_told` of `preload/abi.h`), and what that
//! is of a whole job.

use std::collections::BTreeMap;

use serde::Serialize;

/// Why memory was the kernel's.
pub use runtime_abi::Passed as Reason;
/// Why a process was not provisioned though the runtime was in it.
pub use runtime_abi::ProvisionLeftAlone as LeftAlone;
use runtime_abi::{PROVISION_MAGIC, ProvisionTold};

/// A reason for people, after "went to Linux:".
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

/// How often, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// Calls.
    pub calls: u64,
    /// Bytes asked for.
    pub bytes: u64,
}

/// What was given and what was not: of one process, or of all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// The most that was mapped from the pool; of several processes the sum of each one's most.
    pub pool_bytes_peak: u64,
    /// Making what was served present, seconds.
    pub populate_seconds: f64,
    /// What had been used before and was zeroed in the request, bytes.
    pub zeroed_bytes: u64,
    /// What was zeroed before it was asked for, beside the program.
    pub zeroed_beside_bytes: u64,
    /// What the pool served, all calls together.
    pub served_bytes: u64,
    /// What it did not, and why; every reason is there.
    pub passed_to_linux: BTreeMap<Reason, Amount>,
    /// Calls that a larger pool would have served.
    pub fallbacks: u64,
    /// Calls that failed because it was not larger.
    pub failed: u64,
    /// Forks whose child was given a copy.
    pub forks: u64,
    /// Held from the pool when it was last told.
    pub leased_bytes: u64,
    /// Of the pool's memory, copied for the children of processes with several threads.
    pub copied_bytes: u64,
    /// Taken from the pool and nothing but zeroes when the pool had no more, or at the end of the program; an estimate.
    pub unwritten_bytes: u64,
    /// What a pool without end would have given at most; of several processes the sum.
    pub demand_bytes_peak: u64,
    /// The runtime's work before the program began, seconds.
    pub start_seconds: f64,
    /// Waiting for the broker, seconds.
    pub lease_seconds: f64,
}

/// What one process told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// Path of its program.
    pub executable: String,
    /// Process.
    pub pid: u64,
    /// Its parent.
    pub parent: u64,
    /// When it began, in clock ticks since the boot, as in `/proc/PID/stat`.
    #[serde(skip)]
    pub ticks: u64,
    /// The PID namespace in which `pid` is its number; 0: not known.
    #[serde(skip)]
    pub namespace: u64,
    /// Rank in an MPI job.
    pub rank: Option<u64>,
    /// The NUMA node its memory was to be from.
    pub node: Option<u64>,
    /// Why nothing was done.
    pub left_alone: Option<LeftAlone>,
    /// What was given.
    #[serde(flatten)]
    pub figures: Figures,
}

/// A file that is not what a process told.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing but zeroes, as before its first word.
    #[error("the process ended before it told anything")]
    NothingYet,
    /// Cut short, or something else.
    #[error("it is not what a process under bursar provision leaves")]
    NotTold,
    /// Of another version.
    #[error("it was written by another version of bursar")]
    OtherVersion,
}

impl Told {
    /// From the bytes of one file.
    ///
    /// # Errors
    /// If they are none, or another version's.
    pub fn read(bytes: &[u8]) -> Result<Told, Error> {
        let nothing = || if bytes.iter().all(|byte| *byte == 0) { Error::NothingYet } else { Error::NotTold };
        let rest = bytes.strip_prefix(&PROVISION_MAGIC).ok_or_else(nothing)?;
        match rest.first_chunk().map_or(0, |length| u64::from_le_bytes(*length)) {
            0 => return Err(Error::NotTold),
            length if length == ProvisionTold::BYTES as u64 => {}
            _ => return Err(Error::OtherVersion),
        }
        let told = ProvisionTold::read(bytes).ok_or(Error::NotTold)?;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let amounts = told.passed.iter().map(|passed| Amount { calls: passed.calls, bytes: passed.bytes });
        Ok(Told {
            executable: runtime_abi::text(&told.executable),
            pid: told.pid,
            parent: told.parent,
            ticks: told.ticks,
            namespace: told.namespace,
            rank: told.rank_plus_1.checked_sub(1),
            node: told.node_plus_1.checked_sub(1),
            left_alone: match told.left_alone {
                0 => None,
                number => Some(LeftAlone::from_number(number).unwrap_or(LeftAlone::Libc)),
            },
            figures: Figures {
                pool_bytes_peak: told.pool_bytes_peak,
                populate_seconds: seconds(told.populate_ns),
                zeroed_bytes: told.zeroed_bytes,
                zeroed_beside_bytes: told.zeroed_beside_bytes,
                served_bytes: told.served_bytes,
                passed_to_linux: Reason::ALL.into_iter().zip(amounts).collect(),
                fallbacks: told.fallbacks,
                failed: told.failed,
                forks: told.forks,
                leased_bytes: told.leased_bytes,
                copied_bytes: told.copied_bytes,
                unwritten_bytes: told.unwritten_bytes,
                demand_bytes_peak: told.demand_bytes_peak,
                start_seconds: seconds(told.start_ns),
                lease_seconds: seconds(told.lease_ns),
            },
        })
    }
}

impl Figures {
    /// Of all processes together: every figure is the sum. They need not have had their most at the same time. What a process
    /// that goes wrong tells may be any number: the sum ends at the largest.
    pub fn sum(told: &[Told]) -> Figures {
        let all = || told.iter().map(|told| &told.figures);
        let sum = |of: fn(&Figures) -> u64| all().map(of).fold(0, u64::saturating_add);
        // Of none it is 0: what `sum` begins with is -0.
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

    /// As the runtime writes it: the numbers 1, 2, 3 … in the order of `preload/abi.h`, where they are not told.
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
    fn each_number_is_where_the_header_puts_it() {
        let told = Told::read(&recorded(1)).unwrap();
        assert_eq!((told.pid, told.parent, told.ticks, told.rank, told.node), (2, 3, 4, Some(4), Some(5)));
        assert_eq!((told.executable.as_str(), told.left_alone), ("/opt/solve", Some(LeftAlone::Sanitizer)));
        let figures = &told.figures;
        assert_eq!((figures.leased_bytes, figures.pool_bytes_peak, figures.demand_bytes_peak), (7, 9, 11));
        assert_eq!((figures.copied_bytes, figures.unwritten_bytes, told.namespace), (24, 25, 26));
        assert_eq!((figures.zeroed_bytes, figures.zeroed_beside_bytes), (17, 18));
        assert_eq!((figures.served_bytes, figures.fallbacks, figures.failed, figures.forks), (13, 21, 22, 19));
        assert_eq!((figures.start_seconds, figures.lease_seconds, figures.populate_seconds), (14e-9, 15e-9, 16e-9));
        assert_eq!(figures.passed_to_linux[&Reason::Small], Amount { calls: 27, bytes: 28 });
        assert_eq!(figures.passed_to_linux[&Reason::Forked], Amount { calls: 49, bytes: 50 });
    }

    #[test]
    fn what_is_cut_short_or_of_another_version_is_refused() {
        let whole = recorded(0);
        assert_eq!(Told::read(&[0; 4096]), Err(Error::NothingYet));
        for cut in 1..whole.len() {
            assert_eq!(Told::read(&whole[..cut]), Err(Error::NotTold), "{cut}");
        }
        let mut longer = whole.clone();
        longer[8..16].copy_from_slice(&(1u64 << 20).to_le_bytes());
        assert_eq!(Told::read(&longer), Err(Error::OtherVersion));
        assert_eq!(Told::read(&[b'x'; 4096]), Err(Error::NotTold));
    }

    #[test]
    fn all_together_is_the_sum_of_each() {
        let told = Told::read(&recorded(0)).unwrap();
        let sum = Figures::sum(&[told.clone(), told]);
        assert_eq!((sum.pool_bytes_peak, sum.populate_seconds), (18, 32e-9));
        assert_eq!(sum.passed_to_linux[&Reason::Small], Amount { calls: 54, bytes: 56 });
        assert_eq!(Figures::sum(&[]).passed_to_linux.len(), Reason::ALL.len(), "every reason is told");
    }

    #[test]
    fn reasons_have_the_names_of_the_header() {
        let names = serde_json::to_value(Reason::ALL).unwrap();
        assert_eq!(names[0], "small");
        assert_eq!(names[10], "taken_back");
    }
}

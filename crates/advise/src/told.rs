//! What the runtime within a process tells about the advice it gave (`struct advice_told` of `preload/abi.h`).

use model::Explained;
use runtime_abi::{ADVICE_MAGIC, AdviceAction, AdviceDecision, AdviceKind, AdviceTold, AdviceWhy};
use serde::Serialize;

/// Why a process was not advised though the runtime was in it.
pub use runtime_abi::AdviceLeftAlone as LeftAlone;

fn describe(why: AdviceWhy) -> &'static str {
    match why {
        AdviceWhy::ByRule => "by the profile",
        AdviceWhy::InOrder => "filled in order",
        AdviceWhy::LikeSuch => "such ranges were filled in order",
        AdviceWhy::Sparse => "what was populated ahead was not filled",
        AdviceWhy::NoBlocks => "no free huge page",
        AdviceWhy::NoRoom => "too little free memory",
    }
}

/// What one process told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// The path of its program.
    pub executable: String,
    /// Its number, in its own PID namespace.
    pub pid: u64,
    /// That of its parent.
    pub parent: u64,
    /// When it began, in clock ticks since the boot.
    #[serde(skip)]
    pub ticks: u64,
    /// The PID namespace in which `pid` is its number; 0: not known.
    #[serde(skip)]
    pub namespace: u64,
    /// Why nothing was advised, if nothing was.
    pub left_alone: Option<LeftAlone>,
    /// Regions made huge pages.
    pub promoted: u64,
    /// Huge pages that were split.
    pub demoted: u64,
    /// Memory populated ahead.
    pub populated_bytes: u64,
    /// To be huge when they are touched.
    pub advised_bytes: u64,
    /// Of the thread that populates.
    pub cpu_seconds: f64,
    /// Looked at.
    pub ranges: u64,
    /// Not looked at, for there were too many.
    pub ranges_lost: u64,
    /// Rules of the profile that a range was found for.
    pub rules_matched: u64,
    /// Rules for this program that no range was found for.
    pub rules_unmatched: u64,
    /// For other programs, or other builds.
    pub rules_of_others: u64,
    /// The most memory in huge pages.
    pub huge_bytes_peak: u64,
    /// The most anonymous memory.
    pub anonymous_bytes_peak: u64,
    /// The runtime's work before the program began.
    pub start_seconds: f64,
    /// How many there were.
    pub decisions: u64,
    /// The last of them.
    #[serde(skip)]
    pub last: Vec<Decision>,
}

/// A decision, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Where the range begins.
    pub address: u64,
    /// What was decided, and why.
    pub explained: Explained,
}

const NOT_TOLD: &str = "it is not what a process under bursar advise run leaves";
const OTHER_VERSION: &str = "it was written by another version of bursar";

/// A name, or the number of what a later runtime knows.
fn name(name: Option<&str>, number: u32) -> String {
    name.map_or_else(|| number.to_string(), Into::into)
}

fn decision(decision: &AdviceDecision, pid: u64) -> Decision {
    let kind = AdviceKind::from_number(decision.kind.into());
    let action = AdviceAction::from_number(decision.action.into());
    let why = AdviceWhy::from_number(decision.why.into());
    let is_mmap = kind == Some(AdviceKind::Mmap);
    let object = Some(runtime_abi::text(&decision.object)).filter(|object| !object.is_empty());
    let explained = Explained {
        pid: pid as i32,
        seconds: decision.t_ns as f64 / 1e9,
        which: if is_mmap { decision.size_class.to_string() } else { object.unwrap_or("-".into()) },
        ordinal: is_mmap.then_some(decision.ordinal),
        kind: name(kind.map(AdviceKind::name), decision.kind),
        from: decision.from,
        bytes: decision.bytes,
        action: name(action.map(AdviceAction::name), decision.action),
        why: name(why.map(describe), decision.why),
        cost_ns: decision.cost_ns as f64,
        benefit_ns: decision.benefit_ns as f64,
    };
    Decision { address: decision.address, explained }
}

impl Told {
    /// From the bytes of one file; `None`: the process ended before it told anything.
    pub fn read(bytes: &[u8]) -> Result<Option<Told>, &'static str> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let rest = bytes.strip_prefix(&ADVICE_MAGIC).ok_or(NOT_TOLD)?;
        match rest.first_chunk().map_or(0, |length| u64::from_le_bytes(*length)) {
            0 => return Err(NOT_TOLD),
            length if length == AdviceTold::BYTES as u64 => {}
            _ => return Err(OTHER_VERSION),
        }
        let told = AdviceTold::read(bytes).ok_or(NOT_TOLD)?;
        let kept = told.decision.len();
        let last = told.decision.iter().take(told.decisions.min(kept as u64) as usize);
        let mut last: Vec<Decision> = last.map(|one| decision(one, told.pid)).collect();
        // Of a ring, the oldest stands where the next would.
        if last.len() == kept {
            last.rotate_left((told.decisions % kept as u64) as usize);
        }
        Ok(Some(Told {
            executable: runtime_abi::text(&told.executable),
            pid: told.pid,
            parent: told.parent,
            ticks: told.ticks,
            namespace: told.namespace,
            left_alone: match told.left_alone {
                0 => None,
                number => Some(LeftAlone::from_number(number).unwrap_or(LeftAlone::Disabled)),
            },
            promoted: told.promoted,
            demoted: told.demoted,
            populated_bytes: told.populated_bytes,
            advised_bytes: told.advised_bytes,
            cpu_seconds: told.helper_cpu_ns as f64 / 1e9,
            ranges: told.ranges,
            ranges_lost: told.ranges_lost,
            rules_matched: told.rules_matched,
            rules_unmatched: told.rules_unmatched,
            rules_of_others: told.rules_of_others,
            huge_bytes_peak: told.huge_bytes_peak,
            anonymous_bytes_peak: told.anonymous_bytes_peak,
            start_seconds: told.start_ns as f64 / 1e9,
            decisions: told.decisions,
            last,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: usize = 20;

    /// As the runtime writes it: the numbers 1, 2, 3 … in the order of `preload/abi.h`, and of decisions the n-th
    /// with n as its time in seconds.
    fn recorded(decisions: u64) -> Vec<u8> {
        let mut numbers: Vec<u64> = (1..=NUMBERS as u64).collect();
        (numbers[0], numbers[4], numbers[18]) = (AdviceTold::BYTES as u64, 1, decisions);
        let mut bytes = ADVICE_MAGIC.to_vec();
        bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(b"/opt/solve");
        bytes.resize(AdviceTold::BYTES, 0);
        let all = AdviceTold::DECISION_AT;
        for number in 0..decisions {
            let at = all + number as usize % runtime_abi::ADVICE_DECISIONS * AdviceDecision::BYTES;
            let mut decision: Vec<u8> = [number * 1_000_000_000, 0x7f00, 4096, 2 << 20].map(u64::to_le_bytes).concat();
            decision.extend([0, 27].map(u32::to_le_bytes).concat());
            decision.extend(5_u64.to_le_bytes());
            decision.extend([5, 1].map(u32::to_le_bytes).concat());
            decision.extend([600, 700].map(u64::to_le_bytes).concat());
            bytes[at..at + decision.len()].copy_from_slice(&decision);
        }
        bytes
    }

    #[test]
    fn each_field_is_where_the_header_puts_it() {
        let told = Told::read(&recorded(1)).unwrap().unwrap();
        assert_eq!((told.pid, told.parent, told.executable.as_str()), (2, 3, "/opt/solve"));
        assert_eq!((told.ticks, told.namespace), (4, 20));
        assert_eq!(told.left_alone, Some(LeftAlone::Sanitizer));
        assert_eq!((told.promoted, told.demoted, told.populated_bytes, told.advised_bytes), (6, 7, 8, 9));
        assert_eq!((told.cpu_seconds, told.ranges, told.ranges_lost), (10e-9, 11, 12));
        assert_eq!((told.rules_matched, told.rules_unmatched, told.rules_of_others), (13, 14, 15));
        assert_eq!((told.huge_bytes_peak, told.anonymous_bytes_peak, told.start_seconds), (16, 17, 18e-9));
        let Decision { address, explained: decision } = &told.last[0];
        assert_eq!(*address, 0x7f00);
        assert_eq!((decision.kind.as_str(), decision.which.as_str(), decision.ordinal), ("mmap", "27", Some(5)));
        assert_eq!((decision.from, decision.bytes, decision.action.as_str()), (4096, 2 << 20, "ahead"));
        assert_eq!((decision.why.as_str(), decision.cost_ns, decision.benefit_ns), ("filled in order", 600.0, 700.0));
    }

    #[test]
    fn of_more_decisions_than_are_kept_the_last_are_there_in_order() {
        let told = Told::read(&recorded(1003)).unwrap().unwrap();
        let seconds: Vec<f64> = told.last.iter().map(|decision| decision.explained.seconds).collect();
        assert_eq!(seconds, (3..1003).map(f64::from).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_cut_short_or_of_another_version_is_refused() {
        let whole = recorded(2);
        assert_eq!(Told::read(&[0; 4096]), Ok(None));
        for cut in [1, 8, 16, 400, AdviceTold::BYTES - 1] {
            assert_eq!(Told::read(&whole[..cut]), Err(NOT_TOLD), "{cut}");
        }
        let mut longer = whole.clone();
        longer[8..16].copy_from_slice(&(1u64 << 20).to_le_bytes());
        assert_eq!(Told::read(&longer), Err(OTHER_VERSION));
    }
}

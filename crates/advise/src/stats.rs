//! Statistics that the runtime within a process writes about its advice (`struct advice_told` of `preload/abi.h`).

use model::Explained;
use runtime_abi::{ADVICE_MAGIC, AdviceAction, AdviceDecision, AdviceKind, AdviceTold, AdviceWhy};
use schemars::JsonSchema;
use serde::Serialize;

/// Why a process was not advised although the runtime was loaded in it.
pub use runtime_abi::AdviceLeftAlone as LeftAlone;

fn describe(why: AdviceWhy) -> &'static str {
    match why {
        AdviceWhy::ByRule => "by the profile",
        AdviceWhy::InOrder => "filled in order",
        AdviceWhy::LikeSuch => "similar ranges were filled in order",
        AdviceWhy::Sparse => "memory populated ahead was not filled",
        AdviceWhy::NoBlocks => "no free huge page",
        AdviceWhy::NoRoom => "too little free memory",
    }
}

/// Statistics of one process.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct ProcessStats {
    /// Path of its program.
    pub executable: String,
    /// Its PID, in its own PID namespace.
    pub pid: u64,
    /// PID of its parent.
    pub parent: u64,
    /// When it began, in clock ticks since the boot.
    #[serde(skip)]
    pub ticks: u64,
    /// The PID namespace of `pid`; 0: unknown.
    #[serde(skip)]
    pub namespace: u64,
    /// Why nothing was advised; `None` if something was.
    pub left_alone: Option<LeftAlone>,
    /// Regions made huge pages.
    pub promoted: u64,
    /// Huge pages split.
    pub demoted: u64,
    /// Bytes populated ahead.
    pub populated_bytes: u64,
    /// Bytes advised to be huge at first touch.
    pub advised_bytes: u64,
    /// CPU time of the thread that populates.
    pub cpu_seconds: f64,
    /// Ranges considered.
    pub ranges: u64,
    /// Ranges not considered, because there were too many.
    pub ranges_lost: u64,
    /// Rules of the profile that matched a range.
    pub rules_matched: u64,
    /// Rules for this program that matched no range.
    pub rules_unmatched: u64,
    /// Rules for other programs or other builds.
    pub rules_of_others: u64,
    /// Peak of memory in huge pages.
    pub huge_bytes_peak: u64,
    /// Peak of anonymous memory.
    pub anonymous_bytes_peak: u64,
    /// Time that the runtime took before the program began.
    pub start_seconds: f64,
    /// Number of decisions.
    pub decisions: u64,
    /// The last of them.
    #[serde(skip)]
    pub last: Vec<Decision>,
}

/// A decision, with its address.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// First address of the range.
    pub address: u64,
    /// The decision, with the reason.
    pub explained: Explained,
}

const MALFORMED: &str = "it is not a statistics file of bursar advise run";
const OTHER_VERSION: &str = "it was written by another version of bursar";

/// A name, or the number if only a later runtime knows it.
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

impl ProcessStats {
    /// Reads one file; `None`: the process ended before it wrote anything.
    pub fn read(bytes: &[u8]) -> Result<Option<ProcessStats>, &'static str> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let rest = bytes.strip_prefix(&ADVICE_MAGIC).ok_or(MALFORMED)?;
        match rest.first_chunk().map_or(0, |length| u64::from_le_bytes(*length)) {
            0 => return Err(MALFORMED),
            length if length == AdviceTold::BYTES as u64 => {}
            _ => return Err(OTHER_VERSION),
        }
        let stats = AdviceTold::read(bytes).ok_or(MALFORMED)?;
        let kept = stats.decision.len();
        let last = stats.decision.iter().take(stats.decisions.min(kept as u64) as usize);
        let mut last: Vec<Decision> = last.map(|one| decision(one, stats.pid)).collect();
        // The decisions are a ring: the oldest is where the next one would go.
        if last.len() == kept {
            last.rotate_left((stats.decisions % kept as u64) as usize);
        }
        Ok(Some(ProcessStats {
            executable: runtime_abi::text(&stats.executable),
            pid: stats.pid,
            parent: stats.parent,
            ticks: stats.ticks,
            namespace: stats.namespace,
            left_alone: match stats.left_alone {
                0 => None,
                number => Some(LeftAlone::from_number(number).unwrap_or(LeftAlone::Disabled)),
            },
            promoted: stats.promoted,
            demoted: stats.demoted,
            populated_bytes: stats.populated_bytes,
            advised_bytes: stats.advised_bytes,
            cpu_seconds: stats.helper_cpu_ns as f64 / 1e9,
            ranges: stats.ranges,
            ranges_lost: stats.ranges_lost,
            rules_matched: stats.rules_matched,
            rules_unmatched: stats.rules_unmatched,
            rules_of_others: stats.rules_of_others,
            huge_bytes_peak: stats.huge_bytes_peak,
            anonymous_bytes_peak: stats.anonymous_bytes_peak,
            start_seconds: stats.start_ns as f64 / 1e9,
            decisions: stats.decisions,
            last,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: usize = 20;

    /// A file as the runtime writes it: the numbers 1, 2, 3 … in the order of `preload/abi.h`; the n-th decision has n
    /// as its time in seconds.
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
    fn each_field_has_its_offset_in_the_header() {
        let stats = ProcessStats::read(&recorded(1)).unwrap().unwrap();
        assert_eq!((stats.pid, stats.parent, stats.executable.as_str()), (2, 3, "/opt/solve"));
        assert_eq!((stats.ticks, stats.namespace), (4, 20));
        assert_eq!(stats.left_alone, Some(LeftAlone::Sanitizer));
        assert_eq!((stats.promoted, stats.demoted, stats.populated_bytes, stats.advised_bytes), (6, 7, 8, 9));
        assert_eq!((stats.cpu_seconds, stats.ranges, stats.ranges_lost), (10e-9, 11, 12));
        assert_eq!((stats.rules_matched, stats.rules_unmatched, stats.rules_of_others), (13, 14, 15));
        assert_eq!((stats.huge_bytes_peak, stats.anonymous_bytes_peak, stats.start_seconds), (16, 17, 18e-9));
        let Decision { address, explained: decision } = &stats.last[0];
        assert_eq!(*address, 0x7f00);
        assert_eq!((decision.kind.as_str(), decision.which.as_str(), decision.ordinal), ("mmap", "27", Some(5)));
        assert_eq!((decision.from, decision.bytes, decision.action.as_str()), (4096, 2 << 20, "ahead"));
        assert_eq!((decision.why.as_str(), decision.cost_ns, decision.benefit_ns), ("filled in order", 600.0, 700.0));
    }

    #[test]
    fn the_last_decisions_are_kept_in_order() {
        let stats = ProcessStats::read(&recorded(1003)).unwrap().unwrap();
        let seconds: Vec<f64> = stats.last.iter().map(|decision| decision.explained.seconds).collect();
        assert_eq!(seconds, (3..1003).map(f64::from).collect::<Vec<_>>());
    }

    #[test]
    fn truncated_and_other_versions_are_refused() {
        let whole = recorded(2);
        assert_eq!(ProcessStats::read(&[0; 4096]), Ok(None));
        for cut in [1, 8, 16, 400, AdviceTold::BYTES - 1] {
            assert_eq!(ProcessStats::read(&whole[..cut]), Err(MALFORMED), "{cut}");
        }
        let mut longer = whole.clone();
        longer[8..16].copy_from_slice(&(1u64 << 20).to_le_bytes());
        assert_eq!(ProcessStats::read(&longer), Err(OTHER_VERSION));
    }
}

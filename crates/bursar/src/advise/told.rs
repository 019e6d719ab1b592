//! What the runtime within a process tells about the advice it gave (`struct advice_told` of `preload/advice.h`).

use model::Explained;
use serde::Serialize;

const MAGIC: &[u8; 8] = b"BURADVC1";

const KINDS: [&str; 4] = ["mmap", "heap", "bss", "data"];
const ACTIONS: [&str; 7] = ["leave", "huge", "eager", "base", "pool", "ahead", "demote"];
const WHYS: [&str; 6] = [
    "by the profile",
    "filled in order",
    "such ranges were filled in order",
    "what was populated ahead was not filled",
    "no free huge page",
    "too little free memory",
];

/// Why a process was not advised though the runtime was in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftAlone {
    Sanitizer,
    Libc,
    /// It has switched huge pages off for itself.
    Disabled,
}

/// What one process told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    pub executable: String,
    pub pid: u64,
    pub parent: u64,
    /// When it began, in clock ticks since the boot.
    #[serde(skip)]
    pub ticks: u64,
    /// The PID namespace in which `pid` is its number; 0: not known.
    #[serde(skip)]
    pub namespace: u64,
    pub left_alone: Option<LeftAlone>,
    pub promoted: u64,
    pub demoted: u64,
    pub populated_bytes: u64,
    /// To be huge when they are touched.
    pub advised_bytes: u64,
    /// Of the thread that populates.
    pub cpu_seconds: f64,
    /// Looked at.
    pub ranges: u64,
    /// Not looked at, for there were too many.
    pub ranges_lost: u64,
    pub rules_matched: u64,
    pub rules_unmatched: u64,
    /// For other programs, or other builds.
    pub rules_of_others: u64,
    pub huge_bytes_peak: u64,
    pub anonymous_bytes_peak: u64,
    /// The runtime's work before the program began.
    pub start_seconds: f64,
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
    pub explained: Explained,
}

const NOT_TOLD: &str = "it is not what a process under bursar advise run leaves";
const OTHER_VERSION: &str = "it was written by another version of bursar";

/// Fields one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *field
    }

    fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    fn int(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    fn text<const N: usize>(&mut self) -> String {
        let text: [u8; N] = self.bytes();
        String::from_utf8_lossy(text.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
    }

    fn name(&mut self, names: &[&str]) -> String {
        let number = self.int() as usize;
        names.get(number).map_or_else(|| number.to_string(), |name| (*name).into())
    }

    fn decision(&mut self, pid: u64) -> Decision {
        let [t_ns, address, from, bytes] = [self.long(), self.long(), self.long(), self.long()];
        let kind = self.name(&KINDS);
        let (size_class, ordinal) = (self.int(), self.long());
        let [action, why] = [self.name(&ACTIONS), self.name(&WHYS)];
        let [cost_ns, benefit_ns] = [self.long() as f64, self.long() as f64];
        let object: String = self.text::<{ Told::OBJECT }>();
        let is_mmap = kind == "mmap";
        let explained = Explained {
            pid: pid as i32,
            seconds: t_ns as f64 / 1e9,
            which: if is_mmap {
                size_class.to_string()
            } else {
                Some(object).filter(|o| !o.is_empty()).unwrap_or("-".into())
            },
            ordinal: is_mmap.then_some(ordinal),
            kind,
            from,
            bytes,
            action,
            why,
            cost_ns,
            benefit_ns,
        };
        Decision { address, explained }
    }
}

impl Told {
    const NAME: usize = 256;
    const OBJECT: usize = 48;
    const DECISIONS: usize = 1000;
    const DECISION: usize = 8 * 7 + 4 * 4 + Told::OBJECT;
    const NUMBERS: usize = 20;
    const BYTES: usize = MAGIC.len() + 8 * Told::NUMBERS + Told::NAME + Told::DECISIONS * Told::DECISION;

    /// From the bytes of one file; `None`: the process ended before it told anything.
    pub fn read(bytes: &[u8]) -> Result<Option<Told>, &'static str> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let mut fields = Fields(bytes.strip_prefix(MAGIC).ok_or(NOT_TOLD)?);
        match fields.long() as usize {
            0 => return Err(NOT_TOLD),
            Told::BYTES => {}
            _ => return Err(OTHER_VERSION),
        }
        if bytes.len() < Told::BYTES {
            return Err(NOT_TOLD);
        }
        let mut told = Told {
            pid: fields.long(),
            parent: fields.long(),
            executable: String::new(),
            ticks: fields.long(),
            left_alone: match fields.long() {
                0 => None,
                1 => Some(LeftAlone::Sanitizer),
                2 => Some(LeftAlone::Libc),
                _ => Some(LeftAlone::Disabled),
            },
            promoted: fields.long(),
            demoted: fields.long(),
            populated_bytes: fields.long(),
            advised_bytes: fields.long(),
            cpu_seconds: fields.long() as f64 / 1e9,
            ranges: fields.long(),
            ranges_lost: fields.long(),
            rules_matched: fields.long(),
            rules_unmatched: fields.long(),
            rules_of_others: fields.long(),
            huge_bytes_peak: fields.long(),
            anonymous_bytes_peak: fields.long(),
            start_seconds: fields.long() as f64 / 1e9,
            decisions: fields.long(),
            namespace: fields.long(),
            last: Vec::new(),
        };
        told.executable = fields.text::<{ Told::NAME }>();
        let kept = told.decisions.min(Told::DECISIONS as u64) as usize;
        let mut last: Vec<Decision> = (0..kept).map(|_| fields.decision(told.pid)).collect();
        // Of a ring, the oldest stands where the next would.
        if kept == Told::DECISIONS {
            last.rotate_left((told.decisions % Told::DECISIONS as u64) as usize);
        }
        told.last = last;
        Ok(Some(told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the runtime writes it: the numbers 1, 2, 3 … in the order of `preload/advice.h`, and of decisions the n-th
    /// with n as its time in seconds.
    fn recorded(decisions: u64) -> Vec<u8> {
        let mut numbers: Vec<u64> = (1..=Told::NUMBERS as u64).collect();
        (numbers[0], numbers[4], numbers[18]) = (Told::BYTES as u64, 1, decisions);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(b"/opt/solve");
        bytes.resize(Told::BYTES, 0);
        let all = Told::BYTES - Told::DECISIONS * Told::DECISION;
        for number in 0..decisions {
            let at = all + number as usize % Told::DECISIONS * Told::DECISION;
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
        for cut in [1, 8, 16, 400, Told::BYTES - 1] {
            assert_eq!(Told::read(&whole[..cut]), Err(NOT_TOLD), "{cut}");
        }
        let mut longer = whole.clone();
        longer[8..16].copy_from_slice(&(1u64 << 20).to_le_bytes());
        assert_eq!(Told::read(&longer), Err(OTHER_VERSION));
    }
}

//! What earlier runs have shown of a program's ranges, as readable text.
//!
//! ```text
//! bursar profile 1
//! program xz 5f3e0c77                 name, build-id or -
//! command xz -9 -k linux.tar          for people
//! mmap 27 0 0..192M huge=2100000 touched=100% sure=90% eager=40000
//! heap - - 0..64M touched=12%
//! bss libfoo.so:77ab - 16M..24M huge=90000
//! ```

mod parse;
mod print;

use crate::wrong::Malformed;

/// A profile of one program, or of several that run together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The programs.
    pub programs: Vec<Program>,
}

/// What is known of one program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Its name, without the directory.
    pub name: String,
    /// Its build ID in hexadecimal digits; `None`: it has none.
    pub build_id: Option<String>,
    /// The profiled command, for people.
    pub command: Option<String>,
    /// Its ranges. Ranges of the same mapping do not overlap. If several apply to an address, as with `mmap * *`, the
    /// first one counts.
    pub ranges: Vec<ProfiledRange>,
}

/// What is known of one range.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfiledRange {
    /// The mapping that it is in.
    pub mapping: Mapping,
    /// Start offset within the mapping, in bytes.
    pub from: u64,
    /// End offset; `None`: the end of the mapping.
    pub to: Option<u64>,
    /// Page walk time that each huge page saves over a run, in ns of the program's time; `None`: unknown. If known, it
    /// must pay for huge pages by itself.
    pub huge_ns: Option<u64>,
    /// Time saved by populating ahead, in ns per MiB.
    pub eager_ns_per_mib: Option<u64>,
    /// Share of its 4 KiB pages that a run touches, 0 to 1.
    pub touched: Option<f64>,
    /// Confidence of the profiler, 0 to 1.
    pub confidence: f64,
}

/// Identifies a mapping in a way that is valid for every run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mapping {
    /// The heap (`brk`).
    Heap,
    /// The stack of the first thread.
    Stack,
    /// An anonymous mapping.
    Mmap {
        /// Binary logarithm of its size, rounded down; `None`: any.
        class: Option<u32>,
        /// Its number within the class, in the order in which they are made, from 0; `None`: all.
        ordinal: Option<u64>,
    },
    /// Part of an object file.
    Object {
        /// Which part.
        section: Section,
        /// The object; `None`: the executable.
        object: Option<Object>,
    },
}

/// Part of an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Zero at the start.
    Bss,
    /// Data.
    Data,
    /// Code.
    Code,
}

/// A shared object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object {
    /// Its name, without the directory.
    pub name: String,
    /// Its build ID in hexadecimal digits; `None`: it has none.
    pub build_id: Option<String>,
}

impl ProfiledRange {
    /// A range of which nothing is known yet.
    pub fn of(mapping: Mapping, from: u64, to: Option<u64>) -> ProfiledRange {
        ProfiledRange { mapping, from, to, huge_ns: None, eager_ns_per_mib: None, touched: None, confidence: 1.0 }
    }
}

impl Mapping {
    /// The size class of an anonymous mapping of this size.
    pub fn class(bytes: u64) -> u32 {
        bytes.max(1).ilog2()
    }

    /// Reads the first three words of a profile's line; `None`: they are malformed.
    pub fn parse(kind: &str, which: &str, ordinal: &str) -> Option<Mapping> {
        parse::mapping(kind, (1, which), (1, ordinal)).ok()
    }

    /// The name of its kind in profiles.
    pub fn kind(&self) -> &'static str {
        match self {
            Mapping::Heap => "heap",
            Mapping::Stack => "stack",
            Mapping::Mmap { .. } => "mmap",
            Mapping::Object { section: Section::Bss, .. } => "bss",
            Mapping::Object { section: Section::Data, .. } => "data",
            Mapping::Object { section: Section::Code, .. } => "code",
        }
    }
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// All errors in it: the first one of each line.
    pub fn parse(text: &str) -> Result<Profile, Malformed> {
        parse::profile(text)
    }
}

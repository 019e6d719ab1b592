//! What earlier runs have shown of a program's ranges; readable text.
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

/// A profile: of a program, or of several that run together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The programs.
    pub programs: Vec<Program>,
}

/// What is known of one program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Its name, without the folder.
    pub name: String,
    /// Its build-id in hexadecimal digits; `None`: it has none.
    pub build_id: Option<String>,
    /// The command that was profiled, for people.
    pub command: Option<String>,
    /// Its ranges. No two of the same mapping overlap; of several that hold for an address, as with `mmap * *`, the first does.
    pub ranges: Vec<ProfiledRange>,
}

/// What is known of one range.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfiledRange {
    /// The mapping that it is in.
    pub mapping: Mapping,
    /// Where it begins within the mapping, in bytes.
    pub from: u64,
    /// Where it ends; `None`: where the mapping does.
    pub to: Option<u64>,
    /// What each huge page there saves of page walks over a run, in ns of the program's time; `None`: not known. What is known
    /// must pay for huge pages by itself.
    pub huge_ns: Option<u64>,
    /// What populating ahead saves, in ns per MiB.
    pub eager_ns_per_mib: Option<u64>,
    /// Share of its pages of 4 KiB that a run touches, 0 to 1.
    pub touched: Option<f64>,
    /// How sure the profiler is, 0 to 1.
    pub sure: f64,
}

/// Which mapping, in words that hold for every run.
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
        /// Which of the class, in the order in which they are made, from 0; `None`: all.
        ordinal: Option<u64>,
    },
    /// Part of an object file.
    Object {
        /// Which part.
        section: Section,
        /// Of which object; `None`: the executable.
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
    /// Its name, without the folder.
    pub name: String,
    /// Its build-id in hexadecimal digits; `None`: it has none.
    pub build_id: Option<String>,
}

impl ProfiledRange {
    /// A range of which nothing is known yet.
    pub fn of(mapping: Mapping, from: u64, to: Option<u64>) -> ProfiledRange {
        ProfiledRange { mapping, from, to, huge_ns: None, eager_ns_per_mib: None, touched: None, sure: 1.0 }
    }
}

impl Mapping {
    /// The size class of an anonymous mapping of so many bytes.
    pub fn class(bytes: u64) -> u32 {
        bytes.max(1).ilog2()
    }

    /// From the first three words of a profile's line; `None`: they are none.
    pub fn parse(kind: &str, which: &str, ordinal: &str) -> Option<Mapping> {
        parse::mapping(kind, (1, which), (1, ordinal)).ok()
    }

    /// Its kind, as profiles have it.
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
    /// All that is wrong with it: of each line, the first.
    pub fn parse(text: &str) -> Result<Profile, Malformed> {
        parse::profile(text)
    }
}

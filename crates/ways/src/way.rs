//! The ways of having huge pages that `bursar advise try` compares, and which of them can be had here.

use std::ffi::OsString;
use std::fmt;

use linux::{pools, thp};
use model::Bytes;
use rustix::fs::{Access, access};
use session::launch::Launcher;
use session::unseen::{self, Purpose};

use crate::program::Program;

/// The tunable of glibc's malloc that asks for huge pages.
pub(crate) const TUNABLES: &str = "GLIBC_TUNABLES";
pub(crate) const HUGETLB: &str = "glibc.malloc.hugetlb";
/// The first glibc that has it.
const LEAST_GLIBC: (u32, u32) = (2, 35);
/// Of the sizes between 4 KiB and 2 MiB, those that are compared unless others are named: the smallest that maps a table's cache
/// line of entries twice over, and the largest.
const SIZES: [u64; 2] = [64 << 10, 1 << 20];

/// A way of having huge pages, or of having none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As the machine is set.
    Plain,
    /// glibc's malloc asks for them.
    Tunable,
    /// `bursar advise run`, without a profile.
    Advise,
    /// `bursar provision`, without a pool.
    Provision,
    /// `bursar advise run` with a profile that was made before.
    Profiled,
    /// `bursar provision` with the pool `default`.
    Pool,
    /// The machine gives them to all.
    Always,
    /// Pages of this size for all.
    Sized(u64),
    /// This process and what it starts get none.
    Never,
}

/// The ways that are compared unless others are named. Of those that gain the same the first is named: what one variable does comes
/// before what needs bursar, and that before what changes the whole machine.
pub(crate) fn all() -> Vec<Way> {
    let private = [Way::Tunable, Way::Advise, Way::Provision, Way::Profiled, Way::Pool, Way::Always];
    private.into_iter().chain(SIZES.map(Way::Sized)).chain([Way::Never]).collect()
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Plain => "plain",
            Way::Tunable => "glibc-hugetlb",
            Way::Advise => "advise",
            Way::Provision => "provision",
            Way::Profiled => "advise-profile",
            Way::Pool => "provision-pool",
            Way::Always => "always",
            Way::Never => "never",
            Way::Sized(bytes) if bytes % (1 << 20) == 0 => return write!(f, "mthp-{}m", bytes >> 20),
            Way::Sized(bytes) => return write!(f, "mthp-{}k", bytes >> 10),
        })
    }
}

impl Way {
    /// As it is displayed. The plain run always takes part and is not named.
    ///
    /// # Errors
    /// A sentence with the ways that there are.
    pub fn parse(text: &str) -> Result<Way, String> {
        let known = all();
        if let Some(way) = known.iter().find(|way| way.to_string() == text) {
            return Ok(*way);
        }
        let size = text.strip_prefix("mthp-").and_then(|size| size.parse::<Bytes>().ok());
        if let Some(Bytes(bytes)) = size.filter(|size| size.0.is_power_of_two() && (8 << 10..2 << 20).contains(&size.0))
        {
            return Ok(Way::Sized(bytes));
        }
        let names: Vec<String> = known.iter().map(Way::to_string).collect();
        Err(format!("no such way; there are: {}", names.join(", ")))
    }

    /// Whether bursar's library is in the command.
    pub(crate) fn has_library(self) -> bool {
        matches!(self, Way::Advise | Way::Profiled | Way::Provision | Way::Pool)
    }

    /// Whether other programs are affected while it runs.
    pub(crate) fn is_of_machine(self) -> bool {
        matches!(self, Way::Always | Way::Sized(_))
    }
}

/// The machine's setting and the command, as far as ways depend on them.
pub(crate) struct Surroundings<'a> {
    pub mode: Option<String>,
    pub command: &'a [OsString],
    pub launcher: Option<Launcher>,
    pub program: &'a Program,
}

impl Surroundings<'_> {
    /// Why a way cannot be had here, as a clause; `Ok`: it can.
    pub(crate) fn allow(&self, way: Way) -> Result<(), String> {
        let mode = self.mode.as_deref().unwrap_or("none");
        match way {
            Way::Plain => Ok(()),
            _ if mode == "none" => Err("the kernel was built without transparent huge pages".into()),
            Way::Never if mode == "never" => Err("plain is that already: the machine's setting is never".into()),
            Way::Never => Ok(()),
            Way::Always if mode == "always" => Err("plain is that already: the machine's setting is always".into()),
            Way::Always => may_set(None),
            Way::Sized(bytes) => match thp::mode_of(Some(bytes)).as_deref() {
                None => Err(format!("the kernel has no pages of {}", Bytes(bytes))),
                Some("always") => Err("plain is that already: the machine's setting for this size is always".into()),
                Some("inherit") if mode == "always" => {
                    Err("plain is that already: the machine's setting for this size is inherit, and that is always"
                        .into())
                }
                Some(_) => may_set(Some(bytes)),
            },
            Way::Tunable => self.tunable(mode),
            Way::Provision | Way::Pool | Way::Advise | Way::Profiled => {
                let is_advice = matches!(way, Way::Advise | Way::Profiled);
                let purpose = if is_advice { Purpose::Advise } else { Purpose::Provision };
                let of_file = unseen::obstacle(self.command, self.launcher, purpose);
                if let Some(why) = of_file.or_else(|| unseen::sanitizer(self.command, self.launcher, purpose)) {
                    return Err(why.trim_end_matches('.').into());
                }
                // With never, huge pages come only by collapsing what was populated.
                if is_advice && mode == "never" && !thp::can_collapse() {
                    return Err("the machine's setting is never, and Linux collapses pages only from 6.1 on".into());
                }
                if way == Way::Pool && pools::answers(&pools::socket(pools::DEFAULT)).is_err() {
                    return Err("there is no pool `default` (sudo bursar pool create SIZE)".into());
                }
                Ok(())
            }
        }
    }

    fn tunable(&self, mode: &str) -> Result<(), String> {
        let set = std::env::var(TUNABLES).unwrap_or_default();
        if set.contains(HUGETLB) {
            return Err(format!("{TUNABLES} sets {HUGETLB} already"));
        }
        if let Some(library) = self.program.allocator {
            return Err(format!("the program's malloc is {library}'s, and the tunable is for glibc's"));
        }
        match self.program.glibc {
            None => Err("the program is not linked dynamically with glibc".into()),
            Some((major, minor)) if (major, minor) < LEAST_GLIBC => {
                Err(format!("the program's glibc is {major}.{minor}, and the tunable came with 2.35"))
            }
            Some(_) if mode != "madvise" => {
                Err(format!("glibc asks for huge pages only where the machine's setting is madvise, and it is {mode}"))
            }
            Some(_) => Ok(()),
        }
    }
}

fn may_set(size: Option<u64>) -> Result<(), String> {
    let file = thp::setting(size);
    access(&file, Access::WRITE_OK).map_err(|error| {
        let how = if rustix::process::geteuid().is_root() { "" } else { "; it needs root" };
        format!("it is a setting of the whole machine, and {} cannot be written: {error}{how}", file.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_as_they_are_written() {
        for way in all().into_iter().chain([Way::Sized(256 << 10)]) {
            assert_eq!(Way::parse(&way.to_string()), Ok(way));
        }
        for wrong in ["plain", "mthp-3k", "mthp-4k", "mthp-2m", "mthp-", "", "Always"] {
            assert!(Way::parse(wrong).unwrap_err().contains("glibc-hugetlb"), "{wrong}");
        }
    }

    fn reason(mode: Option<&str>, glibc: Option<(u32, u32)>, way: Way) -> Result<(), String> {
        let program = Program { glibc, ..Program::default() };
        let mode = mode.map(String::from);
        Surroundings { mode, command: &["true".into()], launcher: None, program: &program }.allow(way)
    }

    #[test]
    fn a_way_that_changes_nothing_is_left_out() {
        let why = |mode, way| reason(Some(mode), Some((2, 36)), way).unwrap_err();
        assert!(why("always", Way::Always).contains("plain is that already"));
        assert!(why("never", Way::Never).contains("plain is that already"));
        assert!(why("always", Way::Tunable).contains("only where the machine's setting is madvise"));
        assert_eq!(reason(Some("never"), None, Way::Advise).is_ok(), thp::can_collapse());
        assert!(reason(None, Some((2, 36)), Way::Provision).unwrap_err().contains("built without"));
        assert_eq!(reason(Some("madvise"), None, Way::Never), Ok(()));
    }

    #[test]
    fn the_tunable_is_for_glibc_from_2_35_on() {
        let madvise = |glibc| reason(Some("madvise"), glibc, Way::Tunable);
        assert_eq!(madvise(Some((2, 35))), Ok(()));
        assert!(madvise(Some((2, 31))).unwrap_err().contains("2.31"));
        assert!(madvise(None).unwrap_err().contains("not linked dynamically"));
        let program = Program { glibc: Some((2, 36)), allocator: Some("libjemalloc"), ..Program::default() };
        let mode = Some("madvise".to_string());
        let of_another = Surroundings { mode, command: &["true".into()], launcher: None, program: &program };
        assert!(of_another.allow(Way::Tunable).unwrap_err().contains("malloc is libjemalloc's"));
    }
}

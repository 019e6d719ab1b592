//! What a command's program is, as far as its huge pages depend on that.

use std::ffi::OsString;
use std::process::Command;

use session::unseen;

/// Programs and runtimes that have settings of their own for huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Java,
    Go,
    Postgres,
    Redis,
    Jemalloc,
    Mimalloc,
}

/// The command's program.
#[derive(Debug, Default)]
pub(crate) struct Program {
    /// The version of the glibc that it is linked with; `None`: it is statically linked, or with another libc.
    pub glibc: Option<(u32, u32)>,
    pub families: Vec<Family>,
    /// The library that its malloc is of, if that is not glibc's.
    pub allocator: Option<&'static str>,
}

/// Allocators that programs are linked with, or that are preloaded.
const ALLOCATORS: [&str; 3] = ["libjemalloc", "libtcmalloc", "libmimalloc"];

impl Program {
    /// Looks at the command's file, and asks its loader for its version.
    pub(crate) fn of(command: &[OsString]) -> Program {
        let Some(path) = unseen::program(command) else { return Program::default() };
        let loader = unseen::loader(&path);
        let said = loader.and_then(|loader| linux::children::output(Command::new(loader).arg("--version")).ok());
        let glibc = said.and_then(|said| version(&String::from_utf8_lossy(&said.stdout)));
        let named = match path.file_name().map(|name| name.to_string_lossy()).as_deref() {
            Some("java") => Some(Family::Java),
            Some("postgres") => Some(Family::Postgres),
            Some("redis-server" | "valkey-server") => Some(Family::Redis),
            _ => None,
        };
        let preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        let preloaded = preloaded.to_string_lossy();
        let has = |library: &&str| preloaded.contains(*library) || unseen::is_linked_with(&path, library);
        let allocator = ALLOCATORS.into_iter().find(has);
        let switch = match allocator {
            Some("libjemalloc") => Some(Family::Jemalloc),
            Some("libmimalloc") => Some(Family::Mimalloc),
            _ => None,
        };
        let found = [named, unseen::is_go(&path).then_some(Family::Go), switch];
        Program { glibc, families: found.into_iter().flatten().collect(), allocator }
    }
}

/// Of the first line that glibc's loader prints: `ld.so (Debian GLIBC 2.36-9) stable release version 2.36.`
fn version(said: &str) -> Option<(u32, u32)> {
    let line = said.lines().next().filter(|line| line.starts_with("ld.so "))?;
    let (major, minor) = line.split_once(" version ")?.1.trim_end_matches('.').split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_the_loader_says() {
        assert_eq!(version("ld.so (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.\nmore"), Some((2, 36)));
        assert_eq!(version("ld.so (GNU libc) stable release version 2.38.\n"), Some((2, 38)));
        assert_eq!(version("musl libc (x86_64)\nVersion 1.2.3\n"), None);
        assert_eq!(version("ld.so version"), None);
    }

    #[test]
    fn a_command_that_is_not_there_is_of_no_family() {
        let none = Program::of(&["/nowhere/nothing".into()]);
        assert!(none.glibc.is_none() && none.families.is_empty());
    }
}

//! Files that the job has mapped: where no reference tells which files it reads, these are known, and can be evicted.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Those of all processes of the job now.
pub fn files() -> BTreeSet<PathBuf> {
    let living = linux::procfs::descendants(std::process::id() as i32);
    let maps = living.into_iter().filter_map(|pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).ok());
    let paths: BTreeSet<PathBuf> = maps.flat_map(|maps| maps.lines().filter_map(path).collect::<Vec<_>>()).collect();
    paths.into_iter().filter(|path| path.is_file()).collect()
}

/// `7f…-7f… r--p 00000000 00:2f 1234   /path`
fn path(line: &str) -> Option<PathBuf> {
    line.find('/').map(|at| line[at..].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_program_is_among_what_is_mapped() {
        let mut child = std::process::Command::new("sleep").arg("20").spawn().unwrap();
        let program = std::fs::canonicalize(format!("/proc/{}/exe", child.id())).unwrap();
        let found = files();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&program), "{found:?}");
        assert!(found.iter().all(|path| path.is_absolute()));
    }
}

//! Which of the records that nobody named are kept, and which temporary files a killed bursar left.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use linux::secure_file::NewFile;
use record::Record;
use schemars::JsonSchema;
use serde::Serialize;

/// The newest records are kept, as many and as large together as this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// How many.
    pub records: usize,
    /// Their size together.
    pub bytes: u64,
}

/// Records that are kept where nothing else is said.
const KEPT_RECORDS: usize = 200;
/// MiB that are kept where nothing else is said.
const KEPT_MIB: u64 = 256;

/// A temporary file that was not written for longer has no writer any more.
const LEFT_BEHIND_AGE: Duration = Duration::from_secs(24 * 3600);

/// The records that were removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Pruned {
    /// How many.
    pub records: usize,
    /// Their size together.
    pub bytes: u64,
}

impl Keep {
    /// By `BURSAR_KEEP_RECORDS` and `BURSAR_KEEP_MIB`.
    ///
    /// # Errors
    /// One of them is not a whole number.
    pub fn of_environment() -> anyhow::Result<Keep> {
        let records = number("BURSAR_KEEP_RECORDS", KEPT_RECORDS as u64)?;
        let mib = number("BURSAR_KEEP_MIB", KEPT_MIB)?;
        Ok(Keep { records: usize::try_from(records).unwrap_or(usize::MAX), bytes: mib.saturating_mul(1 << 20) })
    }
}

fn number(name: &str, otherwise: u64) -> anyhow::Result<u64> {
    match std::env::var_os(name) {
        None => Ok(otherwise),
        Some(value) => {
            let number = value.to_str().and_then(|value| value.trim().parse().ok());
            number.with_context(|| format!("{name} is '{}', which is not a whole number", value.to_string_lossy()))
        }
    }
}

/// Removes the oldest records that bursar named itself until no more are there than `keep` says. Others' files, links, files
/// of other names and records that are being written stay. Temporary files of the caller are removed a day after they were
/// last written. Another bursar may do the same at the same time.
///
/// # Errors
/// The folder cannot be read, or a file cannot be removed.
pub fn prune(folder: &Path, keep: Keep) -> io::Result<Pruned> {
    let own = rustix::process::geteuid().as_raw();
    let now = SystemTime::now();
    let mut found: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_temporary = NewFile::is_temporary_name(&entry.file_name());
        if !is_temporary && !entry.file_name().to_str().is_some_and(is_default_name) {
            continue;
        }
        // Of the entry itself, not of what a link leads to. One that is gone by now was removed by another bursar.
        let Ok(metadata) = entry.metadata() else { continue };
        if !metadata.is_file() || metadata.uid() != own {
            continue;
        }
        let modified = metadata.modified()?;
        if !is_temporary {
            found.push((modified, entry.path(), metadata.len()));
        } else if now.duration_since(modified).is_ok_and(|age| age > LEFT_BEHIND_AGE) {
            remove(&entry.path())?;
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    let (mut kept, mut bytes) = (0, 0);
    let mut pruned = Pruned::default();
    for (_, path, size) in found {
        if kept < keep.records && bytes + size <= keep.bytes || Record::may_be_written(&path) {
            (kept, bytes) = (kept + 1, bytes + size);
            continue;
        }
        if remove(&path)? {
            pruned = Pruned { records: pruned.records + 1, bytes: pruned.bytes + size };
        }
    }
    Ok(pruned)
}

/// The newest records of a folder that bursar named itself, at most so many; none if there is no such folder.
pub fn newest(folder: &Path, most: usize) -> Vec<PathBuf> {
    let record = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        entry.file_name().to_str().filter(|name| is_default_name(name))?;
        Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
    };
    let mut found: Vec<_> = fs::read_dir(folder).into_iter().flatten().filter_map(record).collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().take(most).map(|(_, path)| path).collect()
}

/// False: another bursar has removed it.
fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// `WHAT-COMMAND-DATE-TIME.bursar`, with a rank or a PID behind the time: a name that bursar gave.
fn is_default_name(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".bursar") else { return false };
    let kinds = ["run-", "attach-", "budget-", "watch-", "attribute-", "faults-", "advise-"];
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = stem.split('-').collect();
    let ends_in_time = |parts: &[&str]| matches!(parts, [.., _, date, time] if digits(date, 8) && digits(time, 6));
    kinds.iter().any(|kind| stem.starts_with(kind))
        && match parts.as_slice() {
            [before @ .., last] if number(last.strip_prefix("rank").unwrap_or(last)) && ends_in_time(before) => {
                before.len() >= 4
            }
            parts => parts.len() >= 4 && ends_in_time(parts),
        }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A file of 4 KiB that bursar seems to have named, `age` seconds old.
    fn file(folder: &Path, name: &str, age: u64) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, vec![1; 4096]).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        path
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_newest_records_come_first() {
        let folder = tempfile::tempdir().unwrap();
        assert!(newest(&folder.path().join("none"), 9).is_empty());
        let names = ["run-a-20260101-000000.bursar", "run-b-20260101-000000.bursar", "watch-c-20260101-000000.bursar"];
        let files: Vec<_> = names.iter().zip([30, 10, 20]).map(|(name, age)| file(folder.path(), name, age)).collect();
        file(folder.path(), "own.bursar", 1);
        assert_eq!(newest(folder.path(), 2), [files[1].clone(), files[2].clone()]);
    }

    #[test]
    fn only_names_that_bursar_gave_count() {
        for name in [
            "run-true-20261128-120000.bursar",
            "budget-a-b.c-20261128-120000.bursar",
            "run-x-20261128-120000-rank3.bursar",
            "run-x-20261128-120000-4711.bursar",
        ] {
            assert!(is_default_name(name), "{name}");
        }
        for name in
            ["mine.bursar", "run-mine.bursar", "run-x-2026-12.bursar", "x-y-20261128-120000.bursar", "costs.json"]
        {
            assert!(!is_default_name(name), "{name}");
        }
    }

    #[test]
    fn the_newest_records_stay() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for age in 1..=5 {
            file(folder, &format!("run-x-20261128-12000{age}.bursar"), age);
        }
        file(folder, "mine.bursar", 100);
        std::os::unix::fs::symlink(folder.join("mine.bursar"), folder.join("run-link-20261128-120000.bursar")).unwrap();
        let pruned = prune(folder, Keep { records: 3, bytes: 1 << 30 }).unwrap();
        assert_eq!(pruned.records, 2);
        let left = ["run-x-20261128-120001.bursar", "run-x-20261128-120002.bursar", "run-x-20261128-120003.bursar"];
        assert_eq!(names(folder), [&["mine.bursar", "run-link-20261128-120000.bursar"], &left[..]].concat());
        assert_eq!(prune(folder, Keep { records: 10, bytes: 8192 }).unwrap().records, 1);
        assert_eq!(prune(folder, Keep { records: 0, bytes: 0 }).unwrap().records, 2);
        assert_eq!(names(folder), ["mine.bursar", "run-link-20261128-120000.bursar"]);
    }

    #[test]
    fn removes_temporary_files_of_our_own_after_a_day() {
        let name = |digit: &str| format!(".bursar-{}.tmp", digit.repeat(32));
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (young, old) = (24 * 3600 - 600, 24 * 3600 + 600);
        file(folder, &name("0"), old);
        let other_names = [
            name("A"),
            name("1").replace(".tmp", ""),
            name("1").replace(".bursar-", "bursar-"),
            ".bursar-1.tmp".into(),
        ];
        other_names.iter().for_each(|name| drop(file(folder, name, old)));
        let mut left = [&other_names[..], &[name("2"), name("3"), name("4")]].concat();
        file(folder, &name("2"), young);
        fs::create_dir(folder.join(name("3"))).unwrap();
        std::os::unix::fs::symlink(folder.join(name("2")), folder.join(name("4"))).unwrap();
        for name in [name("3"), name("4")] {
            let long_ago = rustix::fs::Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
            let times = rustix::fs::Timestamps { last_access: long_ago, last_modification: long_ago };
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(rustix::fs::CWD, folder.join(name), &times, flags).unwrap();
        }
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(file(folder, &name("5"), old), Some(65534), None).unwrap();
            left.push(name("5"));
        }
        let pruned = prune(folder, Keep { records: 0, bytes: 0 }).unwrap();
        assert_eq!(pruned, Pruned::default(), "no record was removed");
        left.sort();
        assert_eq!(names(folder), left);
    }

    #[test]
    fn two_that_prune_at_once_keep_the_same_records() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for age in 10..60 {
            file(folder, &format!("run-x-20261128-1200{age}.bursar"), age);
        }
        let keep = Keep { records: 5, bytes: 1 << 30 };
        let removed: usize = std::thread::scope(|scope| {
            let both: Vec<_> = (0..2).map(|_| scope.spawn(|| prune(folder, keep).unwrap().records)).collect();
            both.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(removed, 45);
        assert_eq!(names(folder).len(), 5);
    }
}

//! Killed writers, damaged files, full disks, files that are no records.

mod common;

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{header, observation, others, write};
use record::{Entry, Error, HEADER_BYTES, Record, Writer};
use rusqlite::Connection;
use tempfile::{TempDir, tempdir};

const WRITER: &str = "BURSAR_TEST_WRITE_FOREVER_TO";

fn small_file(path: &Path) -> Vec<u8> {
    drop(write(path, &[Entry::of_run(&observation(0)), others()].concat()));
    fs::read(path).unwrap()
}

/// The first and the last byte of the header, and of the length, the checksum and the payload of each frame.
fn edges(bytes: &[u8]) -> Vec<usize> {
    let mut edges = vec![0];
    let mut start = HEADER_BYTES as usize;
    while let Some(length) = bytes.get(start..start + 4) {
        edges.extend([start - 1, start, start + 3, start + 4, start + 7, start + 8]);
        start += 8 + u32::from_le_bytes(length.try_into().unwrap()) as usize;
    }
    assert_eq!(start, bytes.len());
    edges.push(start - 1);
    edges
}

fn opens_with_what_is_before_the_cut(lengths: impl Fn(&[u8]) -> Vec<usize>) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("whole.bursar");
    let bytes = small_file(&path);
    let whole = Record::open(&path).unwrap();
    let cut = folder.path().join("cut.bursar");
    let mut opened = 0;
    let lengths = lengths(&bytes);
    for &length in &lengths {
        fs::write(&cut, &bytes[..length]).unwrap();
        match Record::open(&cut) {
            Ok(record) => {
                opened += 1;
                assert!(!record.complete);
                assert_eq!(record.header, whole.header);
                for (run, all) in record.runs.iter().zip(&whole.runs) {
                    for (series, all) in run.series.iter().zip(&all.series) {
                        assert!(all.points.starts_with(&series.points), "cut at {length}");
                    }
                }
            }
            Err(Error::Empty(_)) => assert_eq!(length, 0),
            Err(Error::NoHeader(_)) => assert_eq!(opened, 0, "cut at {length}"),
            Err(error) => panic!("cut at {length}: {error}"),
        }
    }
    assert!(opened > lengths.len() / 2);
}

#[test]
fn a_file_cut_at_the_edge_of_a_frame_opens_with_what_is_before_the_cut() {
    opens_with_what_is_before_the_cut(edges);
}

#[test]
fn a_file_cut_at_any_byte_opens_with_what_is_before_the_cut() {
    opens_with_what_is_before_the_cut(|bytes| (0..bytes.len()).collect());
}

fn costs_only_what_is_behind_it(positions: impl Fn(&[u8]) -> Vec<usize>) {
    let folder = tempdir().unwrap();
    let path = folder.path().join("flipped.bursar");
    let bytes = small_file(&path);
    let header_end = bytes.windows(10).position(|w| w == b"\"run_begin").unwrap() - 10;
    for position in positions(&bytes).into_iter().filter(|position| *position >= header_end) {
        let mut flipped = bytes.clone();
        flipped[position] ^= 0x10;
        fs::write(&path, flipped).unwrap();
        let record = Record::open(&path).unwrap();
        assert_eq!(record.header, header());
        assert!(!record.complete);
    }
}

#[test]
fn a_flipped_byte_at_the_edge_of_a_frame_costs_only_what_is_behind_it() {
    costs_only_what_is_behind_it(edges);
}

#[test]
fn a_flipped_byte_costs_only_what_is_behind_it() {
    costs_only_what_is_behind_it(|bytes| (0..bytes.len()).collect());
}

#[test]
fn a_damaged_tail_is_cut_off_before_the_record_goes_on() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("tail.bursar");
    let bytes = small_file(&path);
    fs::write(&path, [&bytes[..], b"half a fra"].concat()).unwrap();
    let mut writer = Writer::resume(&path).unwrap();
    writer.append(&Entry::Note("goes on".into())).unwrap();
    writer.seal().unwrap();
    let record = Record::open(&path).unwrap();
    assert_eq!(record.notes, ["a sentence", "goes on"]);
    assert!(record.complete);
}

/// The process that the next tests kill. Does nothing in a test run of its own.
#[test]
fn writes_samples_for_ever_when_asked() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let mut writer = write(&PathBuf::from(path), &Entry::of_run(&observation(0))[..2]);
    for t_ns in 0.. {
        writer.append(&Entry::Sample { t_ns, values: vec![(0, t_ns as f64)] }).unwrap();
        if t_ns == 1000 {
            println!("\nthousand");
        }
        if t_ns > 1000 {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
    }
}

fn writing_process(path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writes_samples_for_ever_when_asked", "--nocapture"])
        .env(WRITER, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.lines().any(|line| line.unwrap() == "thousand"));
    child
}

fn killed_record(path: &Path) {
    let mut child = writing_process(path);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn after_sigkill_all_that_was_appended_is_there_and_the_record_can_be_sealed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("killed.bursar");
    killed_record(&path);
    let record = Record::open(&path).unwrap();
    assert!(!record.complete);
    let points = &record.runs[0].series[0].points;
    assert!(points.len() > 1000);
    assert!((0u64..).zip(points).all(|(i, point)| *point == (i, i as f64)));
    assert!(Record::seal_if_possible(&path).unwrap());
    assert!(!Record::seal_if_possible(&path).unwrap(), "it is sealed already");
    assert_eq!(Record::open(&path).unwrap(), record);
}

#[test]
fn a_record_is_neither_sealed_nor_resumed_while_its_writer_lives() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("live.bursar");
    let mut child = writing_process(&path);
    assert!(Record::open(&path).unwrap().runs[0].series[0].points.len() > 1000);
    assert!(!Record::seal_if_possible(&path).unwrap());
    let busy = Writer::resume(&path).unwrap_err();
    assert!(matches!(busy, Error::Busy { pid, .. } if pid == child.id() as i32), "{busy}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A small file system of its own, gone with this value.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let folder = tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(SmallDisk(folder));
        }
        println!("SKIPPED: mounting a small file system needs root");
        None
    }

    fn read_only(&self) {
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(self.0.path()).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn on_a_full_disk_the_record_keeps_what_it_has_and_says_what_to_do() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.0.path().join("full.bursar");
    let mut writer = write(&path, &Entry::of_run(&observation(0)));
    let note = "x".repeat(1000);
    let mut kept = 0;
    let full = loop {
        match writer.append(&Entry::Note(note.clone())) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(full.to_string().contains("could not be written: No space left"), "{full}");
    let record = Record::open(&path).unwrap();
    assert_eq!((record.notes.len(), &record.runs), (kept, &vec![observation(0)]));
    let unsealed = writer.seal().unwrap_err();
    assert!(unsealed.to_string().contains("could not be sealed"), "{unsealed}");
    assert_eq!(Record::open(&path).unwrap(), record, "it stays as it was");
    assert_eq!(disk.0.path().read_dir().unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_short_write_leaves_no_half_entry_behind() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.0.path().join("short.bursar");
    let mut writer = write(&path, &[]);
    let ballast = disk.0.path().join("ballast");
    fs::write(&ballast, vec![0; 60 * 1024]).unwrap();
    assert!(writer.append(&Entry::Note("y".repeat(100_000))).is_err());
    fs::remove_file(&ballast).unwrap();
    writer.append(&Entry::Note("there is room again".into())).unwrap();
    assert_eq!(Record::open(&path).unwrap().notes, ["there is room again"]);
}

#[test]
fn in_a_read_only_folder_records_are_read_and_nothing_is_written() {
    let Some(disk) = SmallDisk::mount() else { return };
    let folder = disk.0.path();
    let (sealed, framed) = (folder.join("sealed.bursar"), folder.join("framed.bursar"));
    write(&sealed, &Entry::of_run(&observation(0))).seal().unwrap();
    drop(write(&framed, &Entry::of_run(&observation(0))));
    disk.read_only();
    assert_eq!(Record::open(&sealed).unwrap().runs, Record::open(&framed).unwrap().runs);
    for error in [
        Writer::create(&folder.join("new.bursar"), &header()).unwrap_err(),
        Writer::resume(&sealed).unwrap_err(),
        Writer::resume(&framed).unwrap_err(),
    ] {
        assert!(error.to_string().contains("Read-only file system"), "{error}");
    }
}

#[test]
fn what_is_no_record_is_told_in_a_sentence() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("x.bursar");
    let says = |words: &str| {
        for error in [
            Record::open(&path).unwrap_err(),
            Record::seal_if_possible(&path).unwrap_err(),
            Writer::resume(&path).unwrap_err(),
        ] {
            assert!(error.to_string().contains(words), "{error}");
        }
    };
    says("could not be opened: No such file");
    fs::write(&path, "").unwrap();
    says("is empty");
    for text in ["hello", "a longer text that is not a record at all\n"] {
        fs::write(&path, text).unwrap();
        says("is not a bursar record");
    }
    fs::write(&path, b"\x89BURSAR\n\0\0\0\0and so on").unwrap();
    says("is not a bursar record");
    fs::write(&path, b"\x89BUR").unwrap();
    says("cut short before its header");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    says("Is a directory");
}

#[test]
fn a_database_of_somebody_else_is_no_record_and_a_broken_one_is_damaged() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("other.bursar");
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(matches!(Record::open(&path), Err(Error::NotARecord(_))));
    let mut bytes = fs::read(&path).unwrap();
    bytes[16..].fill(0xff);
    fs::write(&path, bytes).unwrap();
    assert!(matches!(Record::open(&path), Err(Error::Damaged { .. })));
}

#[test]
fn a_sealed_record_with_garbage_in_it_is_an_error_and_no_panic() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("garbage.bursar");
    write(&path, &[Entry::of_run(&observation(0)), others()].concat()).seal().unwrap();
    let bytes = fs::read(&path).unwrap();
    for position in (100..bytes.len()).step_by(97) {
        let mut garbage = bytes.clone();
        garbage[position..(position + 16).min(bytes.len())].fill(0xa5);
        fs::write(&path, garbage).unwrap();
        if let Err(error) = Record::open(&path) {
            assert!(matches!(error, Error::Damaged { .. } | Error::NotARecord(_) | Error::NoHeader(_)), "{error}");
        }
    }
}

#[test]
fn a_record_of_a_later_version_is_refused_with_both_versions_named() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("later.bursar");
    let bytes = small_file(&path);
    let later = record::VERSION + 1;
    OpenOptions::new().write(true).open(&path).unwrap().write_all(b"\x89BURSAR\n").unwrap();
    fs::write(&path, [&bytes[..8], &later.to_le_bytes(), &bytes[12..]].concat()).unwrap();
    let says = |error: Error| {
        let text = error.to_string();
        assert!(text.contains(&format!("version {later}")), "{text}");
        assert!(text.contains(&format!("up to version {}", record::VERSION)), "{text}");
    };
    says(Record::open(&path).unwrap_err());
    says(Writer::resume(&path).unwrap_err());
    fs::write(&path, bytes).unwrap();
    Writer::resume(&path).unwrap().seal().unwrap();
    Connection::open(&path).unwrap().pragma_update(None, "user_version", later).unwrap();
    says(Record::open(&path).unwrap_err());
    says(Writer::resume(&path).unwrap_err());
}

#[test]
fn an_existing_file_is_not_overwritten_unless_asked() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("there.bursar");
    write(&path, &others()).seal().unwrap();
    let error = Writer::create(&path, &header()).unwrap_err();
    assert!(error.to_string().contains("is there already and is left as it is"), "{error}");
    assert_eq!(Record::open(&path).unwrap().notes.len(), 1);
    Writer::replace(&path, &header()).unwrap().seal().unwrap();
    assert_eq!(Record::open(&path).unwrap().notes.len(), 0);
}

#[test]
fn links_planted_beside_a_record_are_not_written_through() {
    let (folder, elsewhere) = (tempdir().unwrap(), tempdir().unwrap());
    let (path, victim) = (folder.path().join("b.bursar"), elsewhere.path().join("victim"));
    fs::write(&victim, "precious").unwrap();
    let new = elsewhere.path().join("new");
    for pid in [std::process::id(), std::process::id() + 1] {
        std::os::unix::fs::symlink(&victim, folder.path().join(format!(".b.bursar.{pid}.tmp"))).unwrap();
    }
    for beside in ["b.bursar-journal", "b.bursar-wal", ".b.bursar.tmp"] {
        std::os::unix::fs::symlink(&new, folder.path().join(beside)).unwrap();
    }
    write(&path, &others()).seal().unwrap();
    Writer::resume(&path).unwrap().seal().unwrap();
    assert_eq!(Record::open(&path).unwrap().notes.len(), 1);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!new.exists());
}

#[test]
fn a_link_to_a_record_is_not_resumed() {
    let folder = tempdir().unwrap();
    let (path, link) = (folder.path().join("b.bursar"), folder.path().join("link.bursar"));
    write(&path, &others()).seal().unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let error = Writer::resume(&link).unwrap_err().to_string();
    assert!(error.contains("is a symbolic link"), "{error}");
}

#[test]
fn a_record_is_for_its_user_alone_before_and_after_it_is_sealed() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempdir().unwrap();
    let path = folder.path().join("b.bursar");
    let writer = write(&path, &others());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    writer.seal().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

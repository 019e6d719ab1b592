//! The next bursar undoes the changes of a killed one.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use linux::journal::{self, Journal};
use linux::place::Place;
use linux::procfs;

use crate::support::{job_cgroup, skip, spawn_in};

const SYSCTL: &str = "/proc/sys/vm/stat_interval";

/// Not a test by itself: the bursar that the next test kills.
#[test]
#[ignore = "started by the test below"]
fn owner_to_be_killed() {
    let journal = Journal::open().unwrap();
    let _sysctl = journal.sysctl("vm.stat_interval", "3").unwrap();
    let cgroup = Place::find().new_cgroup(&journal, "killed").unwrap().unwrap();
    let mut sleeper = spawn_in(&cgroup, "sleep", &["300"]);
    if let Ok(inner) = cgroup.create_child("inner") {
        std::mem::forget(inner);
    }
    println!("\nREADY {} {}", sleeper.id(), cgroup.dir().display());
    sleeper.wait().unwrap();
}

#[test]
fn changes_of_a_killed_bursar_are_undone() {
    if job_cgroup("probe").is_none() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("sysctls need root");
    }
    let before = std::fs::read_to_string(SYSCTL).unwrap();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "journal::owner_to_be_killed", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let ready = lines.map_while(Result::ok).find(|line| line.starts_with("READY ")).expect("the helper did not start");
    let mut words = ready.split(' ').skip(1);
    let sleeper: i32 = words.next().unwrap().parse().unwrap();
    let dir = PathBuf::from(words.next().unwrap());
    assert!(dir.exists());
    assert_eq!(std::fs::read_to_string(SYSCTL).unwrap().trim(), "3");
    assert!(
        journal::repair(|_| Err("a machine of others".into()), &mut |_| {})
            .iter()
            .all(|line| !line.contains(dir.to_str().unwrap())),
        "its owner lives"
    );
    assert!(dir.exists());

    owner.kill().unwrap();
    owner.wait().unwrap();
    let sentences = journal::repair(|_| Err("a machine of others".into()), &mut |_| {});
    assert!(sentences.iter().any(|line| line.contains(dir.to_str().unwrap())), "{sentences:?}");
    assert!(sentences.iter().any(|line| line.contains("stat_interval was put back")), "{sentences:?}");
    assert!(sentences.iter().all(|line| !line.contains("cannot")), "{sentences:?}");
    assert!(!dir.exists());
    // Whether it is reaped depends on init.
    assert!(procfs::stat(sleeper).is_ok_and(|stat| stat.state == 'Z') || procfs::stat(sleeper).is_err());
    assert_eq!(std::fs::read_to_string(SYSCTL).unwrap(), before);
}

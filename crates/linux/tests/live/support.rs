//! Jobs and cgroups for the tests.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use linux::cgroup::Cgroup;
use linux::journal::Journal;
use linux::place::{JobCgroup, Place};

/// A cgroup for a job; `None`, with a message, if this machine allows none.
pub fn job_cgroup(name: &str) -> Option<JobCgroup> {
    let place = Place::find();
    match place.new_cgroup(&Journal::open().unwrap(), name).unwrap() {
        Some(cgroup) => Some(cgroup),
        None => {
            skip(&place.missing().join("; "));
            None
        }
    }
}

/// Prints that a test is skipped; fails if that is not allowed.
pub fn skip(why: &str) {
    assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "this test must not be skipped here: {why}");
    eprintln!("skipped: {why}");
}

/// Starts a command that moves itself into a cgroup before exec, and waits until it is there.
pub fn spawn_in(cgroup: &Cgroup, program: &str, arguments: &[&str]) -> Child {
    let mut files = cgroup.v1_tasks();
    files.extend(cgroup.v2_directory().map(|dir| dir.join("cgroup.procs")));
    let joins = files.iter().map(|file| format!("echo 0 > {} &&", file.display())).collect::<String>();
    let script = format!("{joins} exec \"$@\"");
    let child =
        Command::new("sh").args(["-c", &script, "sh", program]).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id() as i32;
    let joined = || {
        let ended = linux::procfs::stat(pid).is_ok_and(|stat| stat.state == 'Z');
        // On every hierarchy: a shell that still has to join one would fail if a test removes the cgroup meanwhile.
        let lists = |file: &PathBuf| {
            fs::read_to_string(file).is_ok_and(|text| text.lines().any(|line| line == pid.to_string()))
        };
        ended || files.iter().all(lists)
    };
    while !joined() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child
}

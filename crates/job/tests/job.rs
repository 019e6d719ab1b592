//! Commands as jobs: what a person would see without bursar, they see with it.

use std::fs::File;
use std::time::Duration;

use job::{Command, Error, Forwarding, Output, Prepared};
use linux::journal::Journal;
use linux::place::Place;
use model::Exit;

fn quiet(words: &[&str]) -> (Command, File) {
    let errors = tempfile::tempfile().unwrap();
    let output = Output::Quiet { input: None, errors: errors.try_clone().unwrap() };
    (Command { words: words.iter().map(Into::into).collect(), environment: Vec::new(), output, cgroup: None }, errors)
}

fn run(words: &[&str]) -> (job::Ended, f64) {
    let running = Prepared::new(&quiet(words).0).unwrap().go(&Forwarding::start().unwrap()).unwrap();
    running.wait(Duration::from_secs(60)).unwrap().expect("the command ends")
}

#[test]
fn the_status_is_the_commands_own() {
    assert_eq!(run(&["sh", "-c", "exit 42"]).0.exit, Exit::Status(42));
    assert_eq!(run(&["sh", "-c", "kill -KILL $$"]).0.exit, Exit::Signal(9));
}

#[test]
fn a_small_program_started_from_a_large_parent_reads_its_own_peak() {
    let ballast = vec![1u8; 64 << 20];
    let (ended, _) = run(&["/bin/true"]);
    assert!(ended.rusage.max_rss_bytes < 8 << 20, "{} with {} of ballast", ended.rusage.max_rss_bytes, ballast.len());
}

#[test]
fn a_command_that_does_not_exist_gives_127_and_one_that_is_no_program_126() {
    let start = |word: &str| Prepared::new(&quiet(&[word]).0).unwrap().go(&Forwarding::start().unwrap()).unwrap_err();
    let missing = start("no-such-command-anywhere");
    assert!(matches!(missing, Error::NotFound { .. }) && missing.exit_status() == 127, "{missing}");
    let folder = start("/etc");
    assert!(matches!(folder, Error::NotExecutable { .. }) && folder.exit_status() == 126, "{folder}");
}

#[test]
fn nothing_runs_before_go_and_nothing_at_all_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let witness = folder.path().join("witness");
    let (command, _) = quiet(&["touch", witness.to_str().unwrap()]);
    let prepared = Prepared::new(&command).unwrap();
    let stub = prepared.pid();
    drop(prepared);
    linux::wait::wait4(stub, true).unwrap();
    assert!(!witness.exists());
}

#[test]
fn a_command_begins_in_its_cgroup_and_nowhere_else() {
    let journal = Journal::open().unwrap();
    let Some(group) = Place::find().new_cgroup(&journal, "job").unwrap() else {
        assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "this test needs a cgroup, and may not be skipped");
        eprintln!("skipped: no cgroup can be made here");
        return;
    };
    let within = |words| Prepared::new(&Command { cgroup: Some((*group).clone()), ..quiet(words).0 }).unwrap();
    let running = within(&["sleep", "60"]).go(&Forwarding::start().unwrap()).unwrap();
    assert_eq!(group.processes().unwrap(), [running.pid()]);
    running.signal(9);
    running.wait(Duration::from_secs(60)).unwrap().expect("the command ends");

    let prepared = within(&["true"]);
    group.remove().unwrap();
    let error = prepared.go(&Forwarding::start().unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("could not put the command into its cgroup: No such file"), "{error}");
}

#[test]
fn waiting_gives_up_when_patience_ends_and_a_signal_ends_the_command() {
    let running = Prepared::new(&quiet(&["sleep", "60"]).0).unwrap().go(&Forwarding::start().unwrap()).unwrap();
    assert!(running.wait(Duration::from_millis(1)).unwrap().is_none());
    running.signal(15);
    let (ended, wall) = running.wait(Duration::from_secs(60)).unwrap().expect("the command ends");
    assert_eq!(ended.exit, Exit::Signal(15));
    assert!(wall < 60.0);
}

#[test]
fn a_signal_that_comes_before_the_command_does_is_not_lost() {
    let forwarding = job::Forwarding::start().unwrap();
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
    while !forwarding.interrupted() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let running = Prepared::new(&quiet(&["sleep", "60"]).0).unwrap().go(&forwarding).unwrap();
    let (ended, _) = running.wait(Duration::from_secs(60)).unwrap().expect("the command ends");
    assert_eq!(ended.exit, Exit::Signal(15));
}

/// What is written to a socket whose other end is closed brings SIGPIPE, whose handler wrote there, too, for ever.
#[test]
fn signals_that_come_while_forwarding_ends_do_not_hold_it_up() {
    let commands = std::thread::spawn(|| {
        for _ in 0..50 {
            run(&["true"]);
        }
    });
    while !commands.is_finished() {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::WINCH).unwrap();
    }
    commands.join().unwrap();
}

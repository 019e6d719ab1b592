//! A test binary of its own: other tests' descriptors would be seen here.

use std::io::{Read, Seek};
use std::time::Duration;

use job::{Command, Forwarding, Output, Prepared};

const SCRIPT: &str = "echo $PPID >&2; ls /proc/self/fd >&2";

#[test]
fn the_command_is_our_child_and_has_no_descriptor_that_it_would_not_have_without_us() {
    let without = std::process::Command::new("sh").args(["-c", SCRIPT]).output().unwrap().stderr;

    let mut errors = tempfile::tempfile().unwrap();
    let output = Output::Quiet { input: None, errors: errors.try_clone().unwrap() };
    let command =
        Command { words: ["sh", "-c", SCRIPT].map(Into::into).to_vec(), environment: Vec::new(), output, cgroup: None };
    let running = Prepared::new(&command).unwrap().go(&Forwarding::start().unwrap()).unwrap();
    running.wait(Duration::from_secs(60)).unwrap().expect("the command ends");
    let mut with = String::new();
    errors.rewind().unwrap();
    errors.read_to_string(&mut with).unwrap();

    assert_eq!(with, String::from_utf8(without).unwrap());
}

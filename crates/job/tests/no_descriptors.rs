//! A test binary of its own: the limit of descriptors is the whole process's.

use std::time::Duration;

use job::{Command, Forwarding, Output, Prepared};
use model::Exit;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

#[test]
fn a_command_is_followed_and_ended_without_a_descriptor_for_it() {
    let output = Output::Quiet { input: None, errors: tempfile::tempfile().unwrap() };
    let words = ["sleep", "300"].map(Into::into).to_vec();
    let prepared = Prepared::new(&Command { words, environment: Vec::new(), output, cgroup: None }).unwrap();
    let signals = Forwarding::start().unwrap();

    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).unwrap();
    let running = prepared.go(&signals);
    setrlimit(Resource::Nofile, before).unwrap();

    let running = running.expect("the command runs");
    assert!(running.wait(Duration::from_secs(1)).unwrap().is_none());
    running.signal(Signal::TERM.as_raw());
    let ended = (0..).find_map(|_| running.wait(Duration::from_secs(60)).unwrap()).unwrap();
    assert_eq!(ended.0.exit, Exit::Signal(Signal::TERM.as_raw()));
}

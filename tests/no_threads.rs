//! A thread or process that the kernel refuses is an answer, not a panic. The injector of the campaign refuses each in turn.

mod support;

use std::path::Path;
use std::process::Command;

use support::{bursar, is_root};

/// `clone3`, by which threads and processes are made, on all architectures.
const CLONE3: &str = "435";
const EAGAIN: &str = "11";

/// Refuses the `nth`; bursar's status and what it said, or `None` if there are not so many.
fn without(injector: &Path, folder: &Path, nth: u32, words: &[&str]) -> Option<(i32, String)> {
    let (status, log) = (folder.join("status"), folder.join("log"));
    let own = bursar();
    let mut injected = Command::new(injector);
    injected.arg(&status).arg(&log).args(["fail", CLONE3, &nth.to_string(), EAGAIN]).arg(own.get_program()).args(words);
    injected.env("XDG_STATE_HOME", folder.join("state")).env_remove("RUST_BACKTRACE");
    let output = injected.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let is_done = !std::fs::read_to_string(log).unwrap().is_empty();
    let status = std::fs::read_to_string(status).unwrap().trim().parse().unwrap();
    is_done.then(|| (status, String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn a_refused_thread_or_process_is_no_panic() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let injector = folder.path().join("inject");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/campaign/inject.c");
    assert!(Command::new("cc").args(["-O2", "-o"]).args([&injector, &source]).status().unwrap().success());
    let budget = ["budget", "-q", "--max-trials", "1", "--no-compare", "--", "true"];
    let results: Vec<_> = (1..).map_while(|nth| without(&injector, folder.path(), nth, &budget)).collect();
    assert!(results.len() > 3, "threads and processes are made: {results:?}");
    for (status, said) in results {
        // It may go on without, or say why not.
        let is_refusal = status == 125 << 8 && !said.is_empty();
        assert!((status == 0 || is_refusal) && !said.contains("panicked"), "status {status}: {said}");
    }
}

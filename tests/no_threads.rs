//! Where the kernel refuses a thread or process, bursar reports an error and does not panic. The campaign's injector refuses each in turn.

mod support;

use std::path::Path;
use std::process::Command;

use support::{bursar, is_root};

/// `clone3`, the system call that creates threads and processes, on all architectures.
const CLONE3: &str = "435";
const EAGAIN: &str = "11";

/// Refuses the `nth` call; bursar's status and standard error, or `None` if there are fewer calls.
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
fn a_refused_thread_or_process_causes_no_panic() {
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
    for (status, stderr) in results {
        // bursar may continue without the thread, or report the reason.
        let is_refusal = status == 125 << 8 && !stderr.is_empty();
        assert!((status == 0 || is_refusal) && !stderr.contains("panicked"), "status {status}: {stderr}");
    }
}

//! `bursar doctor` advises what would help the one who asks, and nothing else.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{bursar, can_unshare, copy_program, is_root};

const DROP_ALL: [&str; 3] = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
const NOBODY: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// Installs a seccomp filter that allows all, as a container's does for most, and becomes the command.
const UNDER_A_FILTER: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
rule = ctypes.create_string_buffer(struct.pack('HBBI', 0x06, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(rule)))
if libc.prctl(22, 2, program, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
";

/// What doctor advises, run by these words.
fn advice(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("bursar");
    copy_program(Path::new(bursar().get_program()), &program);
    let mut command = Command::new(words.first().copied().unwrap_or("env"));
    let output = command.args(words.iter().skip(1)).arg(&program).args(["doctor", "--json"]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = told["findings"].as_array().unwrap();
    findings.iter().filter_map(|finding| finding["enable"].as_str()).map(str::to_string).collect()
}

fn asks_for_root(advice: &[String]) -> Vec<&String> {
    let asks = |advice: &&String| advice.contains("sudo") || advice.contains("as root") || advice.contains("setcap");
    advice.iter().filter(asks).collect()
}

#[test]
fn a_user_who_can_become_root_is_advised_to() {
    if is_root() {
        let advice = advice(&NOBODY);
        assert!(!asks_for_root(&advice).is_empty(), "{advice:?}");
    }
}

#[test]
fn root_without_capabilities_is_not_advised_to_become_root() {
    if is_root() {
        let told = advice(&DROP_ALL);
        let told: Vec<_> =
            asks_for_root(&told).into_iter().filter(|advice| !advice.contains(" pool ")).cloned().collect();
        assert!(told.is_empty(), "{told:?}");
    }
}

#[test]
fn nobody_is_advised_to_become_root_where_that_gains_nothing() {
    if !is_root() {
        return;
    }
    let without_new_privileges = [&NOBODY[..], &["--no-new-privs"]].concat();
    let under_a_filter = [&["python3", "-c", UNDER_A_FILTER], &NOBODY[..]].concat();
    let user_namespace = ["unshare", "--user", "--map-user=1000"];
    let root_of_a_namespace = ["unshare", "--user", "--map-root-user"];
    let mut all = vec![without_new_privileges, under_a_filter];
    if can_unshare(&["--user", "--map-root-user"]) {
        all.extend([user_namespace.to_vec(), root_of_a_namespace.to_vec()]);
    }
    for words in all {
        let told = advice(&words);
        let told = asks_for_root(&told);
        assert!(told.is_empty(), "{words:?}: {told:?}");
    }
}

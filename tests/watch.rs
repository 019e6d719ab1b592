//! `bursar watch` on programs whose working set is known.

mod support;

use std::process::{Command, Stdio};

use serde_json::Value;
use support::bursar;

const MIB: u64 = 1 << 20;

/// Goes round and round 48 MiB, and has 16 MiB more that it does not touch.
const ROUND: &str = "
import mmap, sys, time
rest = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE); rest[::4096] = b'x' * (len(rest) // 4096)
memory = mmap.mmap(-1, 48 << 20, mmap.MAP_PRIVATE)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    memory[::4096] = b'x' * (len(memory) // 4096)
sys.exit(7)
";

fn intervals(output: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_working_set_of_a_loop_is_its_size_and_the_status_the_commands() {
    let output = bursar()
        .args(["watch", "--interval", "500ms", "--json", "-", "--", "python3", "-c", ROUND, "6"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let intervals = intervals(&output.stdout);
    assert!(intervals.len() >= 4, "{intervals:?}");
    let is_right = |interval: &&Value| {
        let wss = interval["wss_bytes"].as_u64();
        wss.is_some_and(|wss| (40 * MIB..64 * MIB).contains(&wss))
    };
    let right = intervals.iter().filter(is_right).count();
    assert!(right >= 2, "{right} of {}: {intervals:?}", intervals.len());
    let lines = String::from_utf8(output.stderr).unwrap();
    assert!(lines.contains("needs about") && lines.contains("looking costs"), "{lines}");
}

#[test]
fn a_process_that_bursar_did_not_start_is_left_alone_unless_that_is_allowed() {
    let mut other = Command::new("python3").args(["-c", ROUND, "60"]).spawn().unwrap();
    let pid = other.id().to_string();
    let refused = bursar().args(["watch", &pid]).output().unwrap();
    let complaint = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(125) && complaint.contains("--intrusive"), "{complaint}");
    let mut watched =
        bursar().args(["watch", "--intrusive", "--interval", "200ms", &pid]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    other.kill().unwrap();
    other.wait().unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut watched.stdout.take().unwrap(), &mut text).unwrap();
    assert!(watched.wait().unwrap().success());
    assert!(text.lines().count() >= 3 && text.contains("touched"), "{text}");
}

#[test]
fn what_is_not_there_is_told() {
    for (arguments, told) in [(&["4194304"][..], "no process"), (&["/sys/fs/cgroup/no-such-group"], "no-such-group")] {
        let output = bursar().arg("watch").args(arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(125) && complaint.contains(told), "{complaint}");
    }
    let missing = bursar().args(["watch", "--", "/no/such/command"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(127), "{missing:?}");
}

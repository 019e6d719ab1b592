//! `bursar balance` on virtual machines without a guest: requests to QEMU, and failures. Tests with guests are in tests/vm.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use support::{bursar, need};

const MIB: u64 = 1 << 20;

/// QEMU with 64 MiB and nothing to boot; ended when dropped.
struct Machine {
    socket: PathBuf,
    child: Child,
}

impl Machine {
    /// `None` without QEMU.
    fn start(folder: &Path, name: &str, devices: &[&str]) -> Option<Machine> {
        let socket = folder.join(name);
        let child = Command::new("qemu-system-x86_64")
            .args(["-accel", "tcg", "-m", "64M", "-nodefaults", "-no-user-config", "-display", "none"])
            .args(["-qmp", &format!("unix:{},server=on,wait=off", socket.display())])
            .args(devices)
            .stdin(Stdio::null())
            .spawn();
        if !need("qemu-system-x86_64", child.is_ok()) {
            return None;
        }
        let machine = Machine { socket, child: child.ok()? };
        wait_until("its socket is there", || machine.socket.exists());
        Some(machine)
    }

    fn target(&self) -> String {
        format!("qmp:{}", self.socket.display())
    }

    /// Sends a request while no other client is connected.
    fn ask(&self, command: &str, arguments: &Value) -> Value {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        for (command, arguments) in [("qmp_capabilities", &json!({})), (command, arguments)] {
            let line = json!({ "execute": command, "arguments": arguments });
            writeln!(stream, "{line}").unwrap();
        }
        let answers = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        answers.filter_map(|answer| answer.get("return").cloned()).nth(1).unwrap()
    }

    fn size(&self) -> u64 {
        self.ask("query-balloon", &json!({}))["actual"].as_u64().unwrap()
    }

    fn polling_seconds(&self) -> u64 {
        let property =
            json!({ "path": "/machine/peripheral-anon/device[0]", "property": "guest-stats-polling-interval" });
        self.ask("qom-get", &property).as_u64().unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(300), "did not happen in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn signal(child: &Child, signal: Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

const BALLOON: [&str; 2] = ["-device", "virtio-balloon-pci"];

#[test]
fn a_machine_is_restored_after_any_end() {
    let folder = tempfile::tempdir().unwrap();
    let Some(one) = Machine::start(folder.path(), "one", &BALLOON) else { return };
    let Some(mut two) = Machine::start(folder.path(), "two", &BALLOON) else { return };
    let json = folder.path().join("intervals.json");
    let balance = |options: &[&str]| {
        let mut command = bursar();
        command.args(["balance", "-q", "--total", "100M", "--interval", "300ms"]).args(options);
        command.args([one.target(), two.target()]);
        command
    };
    let live = || {
        let child = balance(&["--json", json.to_str().unwrap()]).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("an interval", || fs::read_to_string(&json).is_ok_and(|text| text.contains('\n')));
        child
    };
    let last = || {
        let text = fs::read_to_string(&json).unwrap_or_default();
        text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok())
    };

    let dry = balance(&["--dry-run", "--duration", "400ms", "--json", "-"]).output().unwrap();
    assert!(dry.status.success() && !dry.stdout.is_empty(), "{dry:?}");
    assert_eq!((one.size(), one.polling_seconds()), (64 * MIB, 0), "a dry run only queries, and changes nothing");

    let mut ended = live();
    let interval = last().unwrap();
    assert_eq!(interval["targets"][0]["name"], one.target());
    // A guest that reports no statistics keeps its memory: what it could give is unknown.
    assert_eq!(interval["targets"][0]["limit_bytes"], 64 * MIB);
    signal(&ended, Signal::TERM);
    assert!(ended.wait().unwrap().success());
    assert_eq!((one.size(), one.polling_seconds()), (64 * MIB, 0), "after SIGTERM");

    fs::remove_file(&json).unwrap();
    let mut killed = live();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(one.polling_seconds(), 1, "nobody has put it back yet");
    let repaired = bursar().args(["doctor", "--repair"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&repaired.stdout).into_owned();
    assert!(stderr.contains(&format!("the balloon of {} was put back", one.socket.display())), "{stderr}");
    assert_eq!((one.polling_seconds(), two.polling_seconds()), (0, 0), "after SIGKILL and repair");

    let one_is_left =
        || last().is_some_and(|last| last["targets"].as_array().is_some_and(|targets| targets.len() == 1));
    let ended_without_two = |mut goes_on: Child| {
        wait_until("one is left", one_is_left);
        signal(&goes_on, Signal::INT);
        let stderr = std::io::read_to_string(goes_on.stderr.take().unwrap()).unwrap();
        assert!(goes_on.wait().unwrap().success());
        assert_eq!(one.polling_seconds(), 0, "after Ctrl-C");
        stderr
    };
    fs::remove_file(&json).unwrap();
    let goes_on = live();
    signal(&two.child, Signal::STOP);
    let stderr = ended_without_two(goes_on);
    signal(&two.child, Signal::CONT);
    assert!(stderr.contains(&format!("{} is out of reach", two.target())), "{stderr}");
    assert!(stderr.contains("`bursar doctor --repair` tries again"), "{stderr}");
    assert!(bursar().args(["doctor", "--repair"]).output().unwrap().status.success());
    assert_eq!(two.polling_seconds(), 0, "it serves again, and was put back");

    fs::remove_file(&json).unwrap();
    let goes_on = live();
    two.child.kill().unwrap();
    two.child.wait().unwrap();
    let stderr = ended_without_two(goes_on);
    assert!(stderr.contains(&format!("{} has ended", two.target())), "{stderr}");
}

#[test]
fn sockets_that_are_not_a_machine_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Some(without) = Machine::start(folder.path(), "without", &[]) else { return };
    let Some(taken) = Machine::start(folder.path(), "taken", &BALLOON) else { return };
    let _client = UnixStream::connect(&taken.socket).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let deaf = folder.path().join("deaf");
    let _deaf = UnixListener::bind(&deaf).unwrap();
    let target = |path: &Path| format!("qmp:{}", path.display());
    for (target, stderr) in [
        (without.target(), "has no balloon"),
        (taken.target(), "one client at a time"),
        (target(&deaf), "does not greet"),
        (target(&file), "nobody serves"),
        (target(&folder.path().join("absent")), "nobody serves"),
    ] {
        let output = bursar().args(["balance", "--total", "64M", "--dry-run", &target]).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(125) && complaint.contains(stderr), "{target}: {complaint}");
    }
}

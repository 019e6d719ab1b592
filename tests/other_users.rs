//! Attacks by other users, one test for each promise of `docs/threat-model.md`. Each needs root, to act as two users.

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use support::{bursar, need};
use tempfile::TempDir;

/// The user nobody.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    need("root, to act as two users", rustix::process::geteuid().is_root())
}

/// A folder of the user nobody.
fn folder_of_nobody() -> TempDir {
    let folder = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    folder
}

/// A folder of root that no other user can write to, and a file in it.
fn folder_of_root() -> (TempDir, PathBuf) {
    let folder = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let file = folder.path().join("precious");
    fs::write(&file, "precious").unwrap();
    (folder, file)
}

/// A copy of bursar in this folder that every user may execute.
fn copy_to(folder: &Path) -> PathBuf {
    let path = folder.join("bursar");
    fs::copy(assert_cmd::cargo::cargo_bin("bursar"), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn as_nobody(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.uid(NOBODY).gid(NOBODY).env("HOME", home).current_dir(home);
    for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "SUDO_UID", "SUDO_GID", "TMPDIR"] {
        command.env_remove(name);
    }
    command
}

/// A process that is killed, with its children, when this is dropped.
struct Attacker(Child);

impl Attacker {
    fn start(command: &mut Command) -> Attacker {
        Attacker(command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

#[test]
fn a_record_of_root_in_a_users_folder_overwrites_no_file() {
    if !is_root() {
        return;
    }
    let (theirs, (own, precious)) = (folder_of_nobody(), folder_of_root());
    let new = own.path().join("new");
    // The attacker replaces everything that appears in the folder by links, as fast as it can.
    let script = r#"cd "$1"; trap 'exit 0' TERM
        while :; do for name in .*.tmp .bursar-* x.bursar .x.bursar-journal x.bursar-wal; do
            case $name in .|..|*'*') continue;; esac
            rm -rf "$name" 2>/dev/null; ln -s "$2" "$name" 2>/dev/null; ln -s "$3" ".bursar-planted.tmp" 2>/dev/null
        done; done"#;
    let mut attack = Command::new("sh");
    attack.args(["-c", script, "sh"]).args([theirs.path(), new.as_path(), precious.as_path()]);
    let _attacker = Attacker::start(attack.uid(NOBODY).gid(NOBODY));
    for _ in 0..3 {
        let record = theirs.path().join("x.bursar");
        let _ = fs::remove_file(&record);
        // The attacker may remove the record, and nothing else.
        let ran = bursar().args(["run", "-q", "--record"]).arg(&record).args(["--", "true"]).output().unwrap();
        assert!(ran.status.code().is_some(), "{ran:?}");
        let json = theirs.path().join("x.json");
        let _ = bursar().args(["run", "-q", "--json"]).arg(&json).args(["--", "true"]).output().unwrap();
    }
    assert!(!new.exists(), "root made a file where a link of nobody led");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    assert_eq!(fs::read_dir(own.path()).unwrap().count(), 1);
}

#[test]
fn results_do_not_follow_links_of_other_users() {
    if !is_root() {
        return;
    }
    let (theirs, (_own, precious)) = (folder_of_nobody(), folder_of_root());
    let run = |option: &str, path: &Path| {
        bursar().args(["run", "-q", option]).arg(path).args(["--", "true"]).output().unwrap()
    };
    for (option, name) in [("--json", "r.json"), ("--html", "r.html"), ("--record", "r.bursar")] {
        let link = theirs.path().join(name);
        symlink(&precious, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
        let ran = run(option, &link);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious", "{option}");
        // A record never replaces an existing file; a result replaces the link.
        assert_eq!(ran.status.success(), option != "--record", "{option}: {ran:?}");
    }
    let folder = theirs.path().join("folder");
    symlink(precious.parent().unwrap(), &folder).unwrap();
    std::os::unix::fs::lchown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
    let ran = run("--record", &folder.join("new.bursar"));
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(error.contains("folder is a symbolic link of user 65534"), "{error}");
    assert_eq!(fs::read_dir(precious.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn records_and_links_of_other_users_are_not_resumed() {
    if !is_root() {
        return;
    }
    let theirs = folder_of_nobody();
    let (record, link) = (theirs.path().join("b.bursar"), theirs.path().join("link.bursar"));
    let marker = theirs.path().join("marker");
    let touch = format!("touch {}", marker.display());
    let made = bursar().args(["run", "-q", "--record"]).arg(&record).args(["--", "sh", "-c", &touch]).status();
    assert!(made.unwrap().success());
    fs::remove_file(&marker).unwrap();
    let resume = |path: &Path| {
        let ran = bursar().args(["budget", "-q", "--resume"]).arg(path).output().unwrap();
        assert_eq!(ran.status.code(), Some(125));
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    symlink(&record, &link).unwrap();
    let error = resume(&link);
    assert!(error.contains("symbolic link"), "{error}");
    chown(&record, Some(NOBODY), Some(NOBODY)).unwrap();
    let before = fs::read(&record).unwrap();
    let error = resume(&record);
    assert!(error.contains("belongs to user 65534"), "{error}");
    assert_eq!(fs::read(&record).unwrap(), before, "it is as it was");
    assert!(!marker.exists(), "its command is not run");
}

#[test]
fn a_first_use_by_sudo_leaves_a_usable_state_folder() {
    if !is_root() {
        return;
    }
    let home = folder_of_nobody();
    let id = NOBODY.to_string();
    let mut sudo = bursar();
    sudo.env_remove("XDG_STATE_HOME").env("HOME", home.path()).env("SUDO_UID", &id).env("SUDO_GID", &id);
    assert!(sudo.args(["run", "-q", "--", "true"]).status().unwrap().success());
    let state = home.path().join(".local/state/bursar");
    let records = || fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    for path in [&home.path().join(".local"), &home.path().join(".local/state"), &state] {
        let found = fs::metadata(path).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o777), (NOBODY, 0o700), "{}", path.display());
    }
    assert_eq!(records().len(), 1);
    let found = fs::metadata(&records()[0]).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (NOBODY, NOBODY, 0o600));
    let ran = as_nobody(&copy_to(home.path()), home.path()).args(["run", "--", "true"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && !stderr.contains("No record is kept"), "{stderr}");
    assert_eq!(records().len(), 2);
}

#[test]
fn file_capabilities_show_no_process_of_another_user() {
    if !is_root() {
        return;
    }
    let home = folder_of_nobody();
    let bursar = copy_to(home.path());
    let set = Command::new("setcap").arg("cap_bpf,cap_perfmon+ep").arg(&bursar).stderr(Stdio::null()).status();
    if !need("setcap(8)", set.is_ok_and(|status| status.success())) {
        return;
    }
    let attach = |pid: u32| {
        let mut command = as_nobody(&bursar, home.path());
        command.args(["run", "-q", "--json", "-", "--timeout", "100ms", "--pid", &pid.to_string(), "--tree"]);
        command.output().unwrap()
    };
    let secret = tempfile::Builder::new().prefix("secret-name-").tempfile_in("/root").unwrap();
    let script = format!("while :; do cat {} >/dev/null; done", secret.path().display());
    let ours = Attacker::start(Command::new("sh").args(["-c", &script]));
    let seen = attach(ours.0.id());
    let (out, error) = (String::from_utf8_lossy(&seen.stdout), String::from_utf8_lossy(&seen.stderr));
    assert_eq!(seen.status.code(), Some(125), "{error}");
    assert!(error.contains("is not yours to trace"), "{error}");
    assert!(!out.contains("secret-name-"), "{out}");
    let theirs = Attacker::start(Command::new("sleep").arg("1000").uid(NOBODY).gid(NOBODY));
    let seen = attach(theirs.0.id());
    let error = String::from_utf8_lossy(&seen.stderr);
    assert_eq!(seen.status.code(), Some(0), "its own process: {error}");
}

#[test]
fn records_are_readable_only_by_their_user() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let ran = bursar().env("XDG_STATE_HOME", &state).args(["run", "-q", "--", "true"]).status().unwrap();
    assert!(ran.success());
    let found = fs::metadata(state.join("bursar")).unwrap();
    assert_eq!(found.mode() & 0o777, 0o700);
    for record in fs::read_dir(state.join("bursar")).unwrap() {
        assert_eq!(record.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
}

#[test]
fn redacted_words_are_in_no_record_and_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let ran = bursar()
        .args(["run", "-v", "--redact", "--password=(.*)", "--redact", "(?i)token [a-z]+"])
        .arg("--record")
        .arg(path("r.bursar"))
        .arg("--json")
        .arg(path("r.json"))
        .arg("--html")
        .arg(path("r.html"))
        .args(["--", "true", "--password=hunter2", "Token swordfish"])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let files = ["r.bursar", "r.json", "r.html"].map(|name| fs::read(path(name)).unwrap());
    for content in files.iter().chain([&ran.stderr, &ran.stdout]) {
        let text = String::from_utf8_lossy(content);
        assert!(!text.contains("hunter2") && !text.contains("swordfish"), "{text}");
    }
    let report = bursar().arg("report").arg(path("r.bursar")).output().unwrap();
    let text = [report.stdout, report.stderr].concat();
    assert!(String::from_utf8_lossy(&text).contains("--password=[redacted]"), "{}", String::from_utf8_lossy(&text));
}

//! Helpers that the end-to-end tests share.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod allocators;
pub mod filter;
mod need;
pub mod pool;
pub mod shown;
pub mod zram;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

pub use need::need;
use serde_json::Value;

/// The bursar command, which keeps its records in a folder of the tests.
pub fn bursar() -> Command {
    static STATE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let state = STATE.get_or_init(|| tempfile::tempdir().unwrap());
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("bursar"));
    command.env("XDG_STATE_HOME", state.path()).env_remove("RUST_BACKTRACE");
    command
}

/// All commands that run a command, with `-q` and their output in the folder. Beside other tests, a trial of `budget` may be slow; the
/// largest allowed slow-down keeps it from being stopped by SIGTERM.
pub fn every_command(folder: &Path) -> Vec<Vec<String>> {
    let profile = format!("advise profile -q --output {}", folder.join("profile").display());
    let commands = [
        "run -q",
        "budget -q --slowdown 1000%",
        "attribute -q",
        "watch -q",
        "faults -q",
        "provision -q",
        "advise run -q",
        &profile,
    ];
    commands.iter().map(|words| words.split(' ').map(Into::into).collect()).collect()
}

/// Runs a quiet command with `--json -` that prints nothing else; returns its status and the JSON.
pub fn json_of(command: &mut Command) -> (i32, Value) {
    let (status, json, _) = json_after(command);
    (status, json)
}

/// The same for a command that also prints; the third value is the text before the JSON.
pub fn json_after(command: &mut Command) -> (i32, Value, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let begin = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|i| i + 1) };
    let begin = begin.unwrap_or_else(|| panic!("no JSON in {text:?}; standard error: {errors}"));
    let json = serde_json::from_str(&text[begin..]).unwrap_or_else(|e| panic!("{e} in {text}"));
    (output.status.code().unwrap_or(-1), json, text[..begin].to_string())
}

/// Builds a Makefile of the tests; returns the folder of the results.
pub fn make(source: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(source);
    std::fs::create_dir_all(&folder).unwrap();
    // The first test binary builds; the others wait, and find the results.
    let lock = std::fs::File::create(folder.with_extension("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(source);
    let made = Command::new("make").arg("-sC").arg(source).arg(format!("OUT={}", folder.display())).status();
    assert!(made.is_ok_and(|status| status.success()), "the tests' programs are built by make and cc");
    folder
}

/// The programs in tests/programs.
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    pub fn build() -> Programs {
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        let folder = BUILT.get_or_init(|| make("programs"));
        Programs { folder: folder.clone() }
    }

    pub fn advised(&self) -> &str {
        self.path("advised")
    }

    pub fn bursts(&self) -> &str {
        self.path("bursts")
    }

    pub fn descriptors(&self) -> &str {
        self.path("descriptors")
    }

    pub fn faults(&self) -> &str {
        self.path("faults")
    }

    pub fn heaps(&self) -> &str {
        self.path("heaps")
    }

    pub fn footprint(&self) -> &str {
        self.path("footprint")
    }

    pub fn inherited(&self) -> &str {
        self.path("inherited")
    }

    pub fn misbehave(&self) -> &str {
        self.path("misbehave")
    }

    pub fn lease(&self) -> &str {
        self.path("lease")
    }

    pub fn mapped(&self) -> &str {
        self.path("mapped")
    }

    pub fn revisit(&self) -> &str {
        self.path("revisit")
    }

    pub fn signals(&self) -> &str {
        self.path("signals")
    }

    fn path(&self, name: &str) -> &'static str {
        Box::leak(self.folder.join(name).to_string_lossy().into_owned().into_boxed_str())
    }
}

/// The accepted error of a figure: 1 % or 1 MiB.
pub fn tolerance(bytes: u64) -> u64 {
    (bytes / 100).max(1 << 20)
}

/// Whether limits can be enforced here; see [`need`] for what happens if not.
pub fn can_limit() -> bool {
    need("a cgroup of one's own", linux::place::Place::find().can_limit())
}

/// A cgroup beside those of the jobs; removed when dropped.
pub struct OtherCgroup(PathBuf);

impl OtherCgroup {
    pub fn make() -> OtherCgroup {
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let root = if v1.exists() { v1 } else { Path::new("/sys/fs/cgroup") };
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let dir = root.join(format!("test-{}-{number}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        OtherCgroup(dir)
    }

    /// The shell command that moves the shell into it.
    pub fn enter(&self) -> String {
        format!("echo $$ >{}/cgroup.procs", self.0.display())
    }
}

impl Drop for OtherCgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// A lock for tests that change or count the machine's huge pages: one test at a time, across all test programs.
pub fn huge_pages_alone() -> std::fs::File {
    let lock = std::fs::File::create(std::env::temp_dir().join("bursar-test-huge-pages.lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    lock
}

/// Prefix that starts a command in a PID namespace of its own, where its PIDs differ from those outside.
pub const PID_NAMESPACE: [&str; 4] = ["unshare", "--pid", "--fork", "--mount-proc"];

/// Whether `unshare` can create namespaces with these options here.
pub fn can_unshare(options: &[&str]) -> bool {
    let can = Command::new("unshare").args(options).arg("true").output();
    need("unshare", is_root() && can.is_ok_and(|output| output.status.success()))
}

pub fn is_root() -> bool {
    need("root", rustix::process::geteuid().is_root())
}

/// Copies a program that is to be executed, in a separate process. If the test wrote the file itself, a child started meanwhile by another
/// thread would inherit the open descriptor until its exec, and executing the file would fail: "Text file busy".
pub fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

/// bursar for a user without any rights: a copy in a folder that every user may enter.
pub fn bursar_as_nobody(folder: &Path) -> Command {
    let own = folder.join("bursar");
    copy_program(&assert_cmd::cargo::cargo_bin("bursar"), &own);
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(own).env("XDG_STATE_HOME", folder);
    command
}

/// The same command in a mount namespace without `/sys/fs/cgroup`.
pub fn without_cgroups(command: &Command) -> Command {
    let mut hidden = Command::new("unshare");
    hidden.args(["--mount", "sh", "-c", "umount -Rl /sys/fs/cgroup; exec \"$@\"", "sh"]);
    hidden.arg(command.get_program()).args(command.get_args()).stderr(Stdio::inherit());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => hidden.env(name, value),
            None => hidden.env_remove(name),
        };
    }
    hidden
}

/// Whether [`without_cgroups`] works here.
pub fn can_hide_cgroups() -> bool {
    is_root() && need("unshare --mount", can_unshare(&["--mount"]))
}

/// A folder inside this one that every user may write to.
pub fn shared_folder(folder: &Path) -> PathBuf {
    let shared = folder.join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    shared
}

//! Every command with bursar in a code block of the documentation runs in a folder that tests/docs/prepare fills, or is listed with the
//! reason why it does not. crates/bursar/src/cli.rs tests that each of them parses.

mod support;

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use support::shown::{Shown, shown};
use support::{can_limit, huge_pages_alone, is_root, need};

/// Beginnings of commands that are not run, with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("#SBATCH", "a line of a Slurm job"),
    ("salloc ", "a Slurm allocation"),
    ("srun --bursar ", "Slurm and its plugin, tests/slurm"),
    ("kubectl ", "a Kubernetes cluster, tests/kubernetes"),
    ("helm ", "a Kubernetes cluster, tests/kubernetes"),
    ("bursar run --name ", "a unit of systemd, tests/vm"),
    ("sudo bursar run --name ", "a unit of systemd, tests/vm"),
    ("bursar advise attach --name ", "a unit of systemd, tests/vm"),
    ("bursar run --cgroup ", "a cgroup of the reader's, tests/run.rs"),
    ("bursar balance ", "programs in cgroups of their own, tests/balance.rs"),
    ("sudo bursar balance ", "programs in cgroups of their own or virtual machines, tests/balance.rs"),
    ("bursar pool create ", "huge pages of the whole machine, tests/pool.rs"),
    ("bursar pool destroy", "a pool, tests/pool.rs"),
    ("bursar pool status [NAME]", "a pool, tests/pool.rs"),
    ("sudo bursar pool ", "huge pages of the whole machine, tests/pool.rs"),
    ("bursar budget --fast-tier ", "swap or a second NUMA node, tests/fast_tier.rs"),
    ("bursar serve", "it ends when it is stopped, tests/serve.rs"),
    ("bursar advise try -- ", "tens of seconds; docs/how-to/huge-pages.md has it with --rounds"),
    ("bursar advise run --pool ", "a pool, tests/advise_run.rs"),
    ("bursar advise run [--profile PROFILE] [--pool NAME]", "a pool, tests/advise_run.rs"),
    ("bursar check --baseline RECORD|FOLDER", "docs/how-to/ci.md has it with a record"),
    ("bursar predict [--from PATH…]", "other files than bursar's, tests/predict.rs"),
];

/// Exit statuses other than 0.
const STATUSES: &[(&str, i32)] = &[("bursar check --baseline base.bursar -- python3 grow.py 110", 1)];

/// The PID that the documentation attaches to.
const TARGET: &str = "4711";

/// How long the program runs to which a command attaches, in seconds.
const SECONDS: &str = "3";
/// The same where its working set is recorded: the working set of memory that was just filled is known after eight intervals.
const WATCHED_SECONDS: &str = "7";

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The folder with the files that the commands name; `None` where it cannot be prepared.
fn prepared() -> Option<&'static Path> {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let has = |program| need(program, Command::new(program).arg("--version").output().is_ok());
    if !is_root() || !can_limit() || !has("sqlite3") || !has("python3") || !has("xz") {
        return None;
    }
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let made = in_folder(Command::new(root().join("tests/docs/prepare")).arg(folder.path()), folder.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        folder
    });
    Some(folder.path())
}

/// Lets a command find bursar and the programs in a folder, and keeps its records there.
fn in_folder<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    let bursar = assert_cmd::cargo::cargo_bin("bursar");
    let path = format!(
        "{}:{}:{}",
        folder.join("bin").display(),
        bursar.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    command.env("PATH", path).env("HOME", folder).env("BURSAR_POOLS", folder.join("pools")).stdin(Stdio::null())
}

/// A program that a command attaches to; ended when dropped.
struct Target(Child);

impl Target {
    fn start(folder: &Path) -> Target {
        let mut app = Command::new(folder.join("app"));
        Target(in_folder(&mut app, folder).env("APP_SECONDS", SECONDS).stdout(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command in a folder; returns a description of the failure, if any.
fn end_of(shown: &Shown, folder: &Path) -> Option<String> {
    let mut line = shown.command();
    let target = line.contains(TARGET).then(|| Target::start(folder));
    if let Some(Target(child)) = &target {
        line = line.replace(TARGET, &child.id().to_string());
    }
    // Its record is not there yet.
    let words: Vec<_> = line.split(' ').collect();
    if let Some(at) = words.iter().position(|word| *word == "--record") {
        let _ = std::fs::remove_file(folder.join(words[at + 1]));
    }
    let mut command = Command::new("timeout");
    in_folder(&mut command, folder).args(["60", "sh", "-c", &line]).current_dir(folder);
    if line.starts_with("bursar watch --always ") {
        command.env("APP_SECONDS", WATCHED_SECONDS);
    }
    let _alone = line.starts_with("bursar advise try ").then(huge_pages_alone);
    let output = command.output().unwrap();
    let expected = STATUSES.iter().find(|(text, _)| *text == shown.text).map_or(0, |(_, status)| *status);
    (output.status.code() != Some(expected)).then(|| {
        let output_text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        format!("{}:{}: {}: {line}\n{output_text}", shown.page.display(), shown.line, output.status)
    })
}

fn is_run(shown: &Shown) -> bool {
    !NOT_RUN.iter().any(|(begin, _)| shown.text.starts_with(begin))
}

#[test]
fn every_shown_command_runs() {
    let Some(prepared) = prepared() else { return };
    let all = shown(root());
    // Commands of one page depend on each other.
    let pages: Vec<&[Shown]> = all.chunk_by(|one, next| one.page == next.page).collect();
    let (left, wrong) = (Mutex::new(VecDeque::from(pages)), Mutex::new(Vec::new()));
    // A command on two pages runs once, unless other commands of its page read its record.
    let known = Mutex::new(BTreeSet::new());
    let is_new = |shown: &Shown| {
        let command = shown.text.trim_start_matches("sudo ").to_string();
        command.contains("--record") || known.lock().unwrap().insert(command)
    };
    let next = || left.lock().unwrap().pop_front();
    let one_page = || {
        while let Some(page) = next() {
            let folder = tempfile::tempdir().unwrap();
            assert!(
                Command::new("cp").arg("-a").arg(prepared.join(".")).arg(folder.path()).status().unwrap().success()
            );
            let run = page.iter().filter(|shown| is_run(shown) && is_new(shown));
            let failures: Vec<_> = run.filter_map(|shown| end_of(shown, folder.path())).collect();
            wrong.lock().unwrap().extend(failures);
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(one_page))));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_exception_matches_a_shown_command() {
    let all = shown(root());
    assert!(all.iter().filter(|shown| is_run(shown)).count() > 80, "few are run");
    let unused = NOT_RUN.iter().filter(|(begin, _)| !all.iter().any(|shown| shown.text.starts_with(begin)));
    assert_eq!(unused.collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
    let unused = STATUSES.iter().filter(|(text, _)| !all.iter().any(|shown| shown.text == *text));
    assert_eq!(unused.collect::<Vec<_>>(), Vec::<&(&str, i32)>::new());
}

//! A command inherits the same properties under bursar as without it.

mod support;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::pool::Pool;
use support::{Programs, every_command, need};

const BURSAR: &str = env!("CARGO_BIN_EXE_bursar");

/// A prefix that changes what the command inherits, and its requirements.
struct Setting {
    name: &'static str,
    prefix: Vec<String>,
    needs_root: bool,
}

fn settings(programs: &Programs) -> Vec<Setting> {
    let words = |prefix: &str| prefix.split(' ').map(String::from).collect::<Vec<_>>();
    let shell = |script: &str| ["sh", "-c", script, "sh"].map(String::from).to_vec();
    let setting = |name, prefix, needs_root| Setting { name, prefix, needs_root };
    vec![
        setting(
            "signals, umask, priorities, processors, personality",
            [
                words("env --ignore-signal=HUP,INT,QUIT,PIPE,CHLD,USR1,XFSZ,TSTP,RTMIN+3 --block-signal=USR2,TERM,CHLD,RTMAX"),
                words("nice -n 7 ionice -c 2 -n 6 chrt --batch 0 taskset -c 0 setarch -R choom -n 300 --"),
                shell("umask 027; exec \"$@\" 7</etc/passwd 9>>/dev/null"),
            ]
            .concat(),
            false,
        ),
        setting(
            "environment, huge pages, timer slack, keyring, death of the parent",
            [words(programs.inherited()), words("set")].concat(),
            false,
        ),
        setting("no standard input", shell("exec \"$@\" <&-"), false),
        setting("no standard output", shell("exec \"$@\" >&-"), false),
        setting("no standard streams", shell("exec \"$@\" <&- >&- 2>&-"), false),
        setting("a working directory that was removed", shell("mkdir gone && cd gone && rmdir ../gone; exec \"$@\""), false),
        setting(
            "limits",
            shell("ulimit -S -n 1000; ulimit -S -v 3000000; ulimit -c 0; ulimit -S -s 4096; ulimit -S -t 500; exec \"$@\""),
            false,
        ),
        setting(
            "rights",
            words("setpriv --no-new-privs --inh-caps=+net_raw,+chown --ambient-caps=+net_raw --bounding-set=-mknod --securebits=+no_setuid_fixup"),
            true,
        ),
        setting("a real-time policy", words("chrt --rr 5"), true),
        setting("a policy that forks do not inherit", words("chrt --reset-on-fork --batch 0"), false),
        setting("a real-time policy that forks do not inherit", words("chrt --reset-on-fork --rr 5"), true),
    ]
}

/// The output of the command with these words before it.
fn printed(folder: &Path, words: &[String], program: &str) -> String {
    let file = folder.join("printed");
    let _ = std::fs::remove_file(&file);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args([program, file.to_str().unwrap(), "", "b c"]).current_dir(folder);
    // Files have the same name each time; pipes have numbers.
    let output = folder.join("output");
    let created = File::create(&output).unwrap();
    command.stdin(Stdio::null()).stdout(created.try_clone().unwrap()).stderr(created);
    let status = command.env("XDG_STATE_HOME", folder).env_remove("RUST_BACKTRACE").status().unwrap();
    let stderr = std::fs::read_to_string(&output).unwrap();
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{words:?}: {error}; {status}: {stderr}"))
}

/// Drops documented differences: trials have streams of their own, and a command with bursar's library in it has the variables that load
/// the library.
fn comparable(text: &str, arguments: &[String]) -> String {
    let is_of_trials = arguments.first().is_some_and(|word| word == "budget");
    let is_same = |line: &&str| {
        let is_stream = ["descriptor-0 ", "descriptor-1 ", "descriptor-2 "].iter().any(|name| line.starts_with(name));
        let is_ours = line.starts_with("environment LD_PRELOAD=") || line.starts_with("environment BURSAR_");
        !(is_ours || is_stream && is_of_trials)
    };
    text.lines().filter(is_same).map(|line| format!("{line}\n")).collect()
}

#[test]
fn inherited_properties_are_the_same_as_without_bursar() {
    let programs = Programs::build();
    let folder = tempfile::tempdir().unwrap();
    let work: PathBuf = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let is_root = need("root", rustix::process::geteuid().is_root());
    let mut wrong = Vec::new();
    for setting in settings(&programs).into_iter().filter(|setting| is_root || !setting.needs_root) {
        let without = printed(&work, &setting.prefix, programs.inherited());
        for arguments in every_command(folder.path()) {
            let bursar = std::iter::once(BURSAR.to_string()).chain(arguments.clone()).chain(["--".to_string()]);
            let with =
                printed(&work, &setting.prefix.iter().cloned().chain(bursar).collect::<Vec<_>>(), programs.inherited());
            let (with, without) = (comparable(&with, &arguments), comparable(&without, &arguments));
            let missing = without.lines().filter(|line| !with.lines().any(|other| other == *line));
            let added = with.lines().filter(|line| !without.lines().any(|other| other == *line));
            let differing: Vec<String> =
                missing.map(|line| format!("-{line}")).chain(added.map(|line| format!("+{line}"))).collect();
            if !differing.is_empty() || with != without {
                wrong.push(format!("{}: {}:\n    {}", setting.name, arguments.join(" "), differing.join("\n    ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The descriptors that the documentation reserves for the library: the log; a segment of the pool, and two for zeroing.
const OF_THE_LIBRARY: [(&str, u64); 3] =
    [("attribute -q", 1), ("provision -q --pool default", 3), ("advise run -q --pool default", 3)];

#[test]
fn a_program_has_its_own_descriptors_under_a_low_limit() {
    let programs = Programs::build();
    let folder = tempfile::tempdir().unwrap();
    let pool = Pool::create();
    let printed = |limit: u64, prefix: &[&str], way: &str| -> (String, u64) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "ulimit -S -n $0; exec \"$@\"", &limit.to_string()]).args(prefix);
        shell.args([programs.descriptors(), way]).env("XDG_STATE_HOME", folder.path()).stdin(Stdio::null());
        let output = pool.iter().fold(&mut shell, |shell, pool| pool.with(shell)).output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{limit} {prefix:?} {way}: {output:?}");
        assert!(output.stderr.is_empty(), "{limit} {prefix:?} {way}: {output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let (numbers, opened) = text.trim().rsplit_once("\nopened ").unwrap();
        (numbers.to_string(), opened.parse().unwrap())
    };
    for limit in [20, 64, 256, 899] {
        for way in ["nothing", "range", "each"] {
            let (numbers, opened) = printed(limit, &[], way);
            assert!(numbers.contains("first 3 4 5\n"), "{numbers}");
            for (words, of_the_library) in OF_THE_LIBRARY {
                let words = if pool.is_some() { words } else { words.trim_end_matches(" --pool default") };
                let prefix: Vec<&str> = [BURSAR].into_iter().chain(words.split(' ')).chain(["--"]).collect();
                let (with, with_opened) = printed(limit, &prefix, way);
                assert_eq!(with, numbers, "{limit} {words} {way}");
                assert!(with_opened + of_the_library >= opened, "{limit} {words} {way}: {with_opened} of {opened}");
            }
        }
    }
}

/// Runs a command on a terminal of its own, in a session of its own.
const ON_A_TERMINAL: &str = "
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))
";

#[test]
fn the_command_can_read_the_terminal() {
    let programs = Programs::build();
    let folder = tempfile::tempdir().unwrap();
    let prefix = ["python3", "-c", ON_A_TERMINAL].map(String::from).to_vec();
    let of_terminal = |words: &[String]| -> Vec<String> {
        let text = printed(folder.path(), words, programs.inherited());
        let names = ["terminal ", "foreground "];
        text.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).map(str::to_string).collect()
    };
    assert_eq!(of_terminal(&prefix), ["terminal 1", "foreground 1"]);
    for arguments in every_command(folder.path()) {
        let bursar = std::iter::once(BURSAR.to_string()).chain(arguments.clone()).chain(["--".to_string()]);
        let words: Vec<String> = prefix.iter().cloned().chain(bursar).collect();
        assert_eq!(of_terminal(&words), ["terminal 1", "foreground 1"], "{arguments:?}");
    }
}

#[test]
fn too_low_a_hard_limit_is_reported_in_one_sentence() {
    if !support::is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (option, value) in [("-v", 200000), ("-n", 20)] {
        for arguments in every_command(folder.path()) {
            let script = format!("ulimit {option} {value}; exec \"$@\"");
            let mut shell = Command::new("setpriv");
            shell.args(["--bounding-set=-sys_resource", "sh", "-c", &script, "sh", BURSAR]);
            shell.args(arguments).args(["--", "true"]);
            let output = shell.env("XDG_STATE_HOME", folder.path()).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(125), "{errors}");
            assert!(
                errors.starts_with(&format!("bursar: ulimit {option} allows ")) && errors.lines().count() == 1,
                "{errors}"
            );
        }
    }
}

#[test]
fn names_the_process_limit_that_refuses_a_thread() {
    if !support::is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let nobody = support::bursar_as_nobody(folder.path());
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    for arguments in every_command(folder.path()) {
        // A user who has no other processes.
        let mut limited = Command::new("setpriv");
        limited.args(["--reuid=65529", "--regid=65529", "--clear-groups", "prlimit", "--nproc=1"]);
        limited.arg(nobody.get_args().last().unwrap()).args(&arguments).args(["--", "true"]);
        let output = limited.env("XDG_STATE_HOME", folder.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {errors}");
        assert!(
            ["cannot be started: ", "could not ", "no thread to ", "cannot start a thread "]
                .iter()
                .any(|what| errors.contains(what)),
            "{arguments:?}: {errors}"
        );
        assert!(errors.contains("ulimit -u allows this user 1 processes and threads"), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_missing_proc_is_reported_in_one_sentence() {
    let hides = "mount --make-rprivate / && umount -l /proc && exec \"$@\"";
    let can = Command::new("unshare").args(["-m", "sh", "-c", hides, "sh", "true"]).output();
    if !support::need("unshare -m", support::is_root() && can.is_ok_and(|output| output.status.success())) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for arguments in every_command(folder.path()) {
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "sh", "-c", hides, "sh", BURSAR]).args(arguments).args(["--", "true"]);
        let output = unshare.env("XDG_STATE_HOME", folder.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{errors}");
        assert!(
            errors.starts_with("bursar: /proc, which bursar needs, is not mounted here") && errors.lines().count() == 1,
            "{errors}"
        );
    }
}

#[test]
fn a_missing_interpreter_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("without-interpreter");
    std::fs::write(&script, "#!/no/such/interpreter -x\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    for arguments in every_command(folder.path()) {
        for command in [script.to_str().unwrap(), "without-interpreter"] {
            let mut bursar = Command::new(BURSAR);
            bursar.args(&arguments).args(["--", command]).env("PATH", &path).env("XDG_STATE_HOME", folder.path());
            let output = bursar.output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(126), "{errors}");
            assert!(errors.contains("because /no/such/interpreter, which"), "{errors}");
        }
    }
}

//! With a read-only root, as containers have it, the command still runs.

mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::{copy_program, is_root};

const BURSAR: &str = env!("CARGO_BIN_EXE_bursar");

/// Makes every mount read-only except `$1`, which is writable and noexec; then executes the remaining words.
const READ_ONLY: &str = r#"writable=$1; shift
mount --make-rprivate /
mount -t tmpfs tmpfs /var/cache || exit 97 # hides a library that root stored earlier
[ -z "$writable" ] || mount -t tmpfs -o noexec,mode=1777 tmpfs "$writable" || exit 98
cut -d ' ' -f 5 /proc/self/mountinfo | sort -u | while read -r point; do
    case " $writable /proc " in *" $point "*) continue ;; esac
    mount -o remount,bind,ro "$point" 2>/dev/null
done
! touch /tmp/x /var/tmp/x "$HOME/x" /run/x 2>/dev/null || exit 99
exec "$@""#;

/// Prefixes for the user who runs bursar.
const USERS: [&str; 2] = ["", "setpriv --reuid=65534 --regid=65534 --clear-groups"];
/// Commands that load the library into the command.
const WITH_LIBRARY: [&[&str]; 3] = [&["attribute"], &["provision"], &["advise", "run"]];

/// A copy of bursar in a folder that every user may enter.
struct Copy(tempfile::TempDir);

impl Copy {
    /// `None` without root, which is needed to make such a root.
    fn make() -> Option<Copy> {
        if !is_root() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        copy_program(Path::new(BURSAR), &folder.path().join("bursar"));
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Some(Copy(folder))
    }

    /// Runs bursar on a root that is read-only except for `writable`.
    fn run(&self, user: &str, writable: &str, words: &[&str]) -> Output {
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "sh", "-c", READ_ONLY, "sh", writable]).args(user.split_whitespace());
        unshare.arg(self.0.path().join("bursar")).args(words);
        unshare.env("HOME", "/root").env_remove("XDG_STATE_HOME").env_remove("XDG_CACHE_HOME").env_remove("TMPDIR");
        unshare.current_dir("/").output().unwrap()
    }

    /// The same for each command that loads the library, followed by `command`, as each user.
    fn run_each(&self, users: &[&str], writable: &str, command: &[&str], judge: impl Fn(&str, &str, &Output)) {
        for (user, words) in users.iter().flat_map(|user| WITH_LIBRARY.map(|words| (user, words))) {
            let output = self.run(user, writable, &[words, command].concat());
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            judge(&text(&output.stdout), &format!("{user} {words:?}: {}", text(&output.stderr)), &output);
        }
    }
}

#[test]
fn the_library_is_in_memory_where_no_file_can_be_written() {
    let Some(bursar) = Copy::make() else { return };
    bursar.run_each(&USERS, "/dev/shm", &["-q", "--", "cat", "/proc/self/maps"], |maps, stderr, output| {
        assert!(output.status.success() && output.stderr.is_empty(), "{stderr}");
        assert!(maps.contains("/memfd:libbursar-"), "{stderr}");
    });
}

#[test]
fn processes_that_cannot_see_the_memfd_run_without_the_library() {
    let Some(bursar) = Copy::make() else { return };
    for way in ["setpriv --reuid=65534 --clear-groups", "unshare --pid --fork --mount-proc"] {
        let start = format!("cd / && {way} /bin/true");
        bursar.run_each(&USERS[..1], "/dev/shm", &["-q", "--", "sh", "-c", &start], |_, stderr, output| {
            assert_eq!(output.status.code(), Some(0), "{way} {stderr}");
            assert!(!stderr.contains("ld.so"), "{way} {stderr}");
        });
    }
}

#[test]
fn a_command_runs_without_the_library_where_nothing_can_be_written() {
    let Some(bursar) = Copy::make() else { return };
    bursar.run_each(&USERS, "", &["--", "sh", "-c", "echo $LD_PRELOAD ran; exit 7"], |stdout, stderr, output| {
        assert_eq!(output.status.code(), Some(7), "{stderr}");
        assert_eq!(stdout.lines().next(), Some("ran"), "{stderr}");
        let sentences =
            stderr.matches("bursar: the command ran without bursar's library, and nothing is known of it: ");
        assert_eq!(sentences.count(), 1, "{stderr}");
    });
}

#[test]
fn costs_that_cannot_be_stored_are_still_printed() {
    let Some(bursar) = Copy::make() else { return };
    for user in USERS {
        let output = bursar.run(user, "", &["advise", "costs", "--again"]);
        let (stdout, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), stdout.lines().count()), (Some(0), 21), "{stdout}{errors}");
        assert!(errors.starts_with("bursar: the costs of this machine are not remembered: "), "{errors}");
    }
}

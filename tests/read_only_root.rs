//! A root on which nothing can be written, as containers have it: the command runs all the same.

mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::{copy_program, is_root};

const BURSAR: &str = env!("CARGO_BIN_EXE_bursar");

/// Makes every mount read-only but one, which holds what may be written and not executed, and becomes the rest.
const READ_ONLY: &str = r#"writable=$1; shift
mount --make-rprivate /
mount -t tmpfs tmpfs /var/cache || exit 97 # root's library may be there from before
[ -z "$writable" ] || mount -t tmpfs -o noexec,mode=1777 tmpfs "$writable" || exit 98
cut -d ' ' -f 5 /proc/self/mountinfo | sort -u | while read -r point; do
    case " $writable /proc " in *" $point "*) continue ;; esac
    mount -o remount,bind,ro "$point" 2>/dev/null
done
! touch /tmp/x /var/tmp/x "$HOME/x" /run/x 2>/dev/null || exit 99
exec "$@""#;

/// Who runs bursar.
const USERS: [&str; 2] = ["", "setpriv --reuid=65534 --regid=65534 --clear-groups"];

/// A copy of bursar in a folder that anybody may enter.
fn copy(folder: &Path) -> String {
    let bursar = folder.join("bursar");
    copy_program(Path::new(BURSAR), &bursar);
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    bursar.to_string_lossy().into_owned()
}

/// bursar on such a root.
fn on_read_only_root(user: &str, writable: &str, words: &[&str]) -> Output {
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "sh", "-c", READ_ONLY, "sh", writable]).args(user.split_whitespace()).args(words);
    unshare.env("HOME", "/root").env_remove("XDG_STATE_HOME").env_remove("XDG_CACHE_HOME").env_remove("TMPDIR");
    unshare.current_dir("/").output().unwrap()
}

#[test]
fn the_library_is_in_memory_where_no_file_of_it_can_be_written() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bursar = copy(folder.path());
    for user in USERS {
        for words in [&["attribute"][..], &["provision"], &["advise", "run"]] {
            let all = [&[bursar.as_str()], words, &["-q", "--", "cat", "/proc/self/maps"]].concat();
            let output = on_read_only_root(user, "/dev/shm", &all);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && errors.is_empty(), "{user} {all:?}: {errors}");
            assert!(String::from_utf8_lossy(&output.stdout).contains("/memfd:libbursar-"), "{user} {all:?}");
        }
    }
}

#[test]
fn what_does_not_see_the_library_in_memory_runs_without_it() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bursar = copy(folder.path());
    let ways = ["setpriv --reuid=65534 --clear-groups", "unshare --pid --fork --mount-proc"];
    for way in ways {
        let start = format!("cd / && {way} /bin/true");
        for words in [&["attribute", "-q"][..], &["provision", "-q"], &["advise", "run", "-q"]] {
            let all = [&[bursar.as_str()], words, &["--", "sh", "-c", &start]].concat();
            let output = on_read_only_root("", "/dev/shm", &all);
            assert_eq!(output.status.code(), Some(0), "{all:?}: {output:?}");
            assert!(!String::from_utf8_lossy(&output.stderr).contains("ld.so"), "{all:?}: {output:?}");
        }
    }
}

#[test]
fn a_command_runs_without_the_library_where_nothing_can_be_written() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bursar = copy(folder.path());
    for user in USERS {
        for words in [&["attribute"][..], &["provision"], &["advise", "run"]] {
            let all = [&[bursar.as_str()], words, &["--", "sh", "-c", "echo $LD_PRELOAD ran; exit 7"]].concat();
            let output = on_read_only_root(user, "", &all);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(7), "{user} {all:?}: {errors}");
            assert_eq!(String::from_utf8_lossy(&output.stdout).lines().next(), Some("ran"), "{user} {all:?}");
            let sentences =
                errors.matches("bursar: the command ran without bursar's library, and nothing is known of it: ");
            assert_eq!(sentences.count(), 1, "{user} {all:?}: {errors}");
        }
    }
}

#[test]
fn costs_that_cannot_be_remembered_are_told_all_the_same() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bursar = copy(folder.path());
    for user in USERS {
        let output = on_read_only_root(user, "", &[&bursar, "advise", "costs", "--again"]);
        let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), told.lines().count()), (Some(0), 21), "{told}{errors}");
        assert!(errors.starts_with("bursar: the costs of this machine are not remembered: "), "{errors}");
    }
}

//! File capabilities: a user who runs the program gets more rights than the user's own.
//!
//! With `setcap cap_bpf,cap_perfmon+ep` any user who may execute bursar could observe other users' processes through it. So such a bursar
//! observes only processes that its user could trace without it, and shows only paths that its user could look up.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::{geteuid, getgid, getuid};

use crate::becoming_root;
use crate::capability::{Capability, Sets};
use crate::procfs;

/// Whether this process has rights from its file that its user lacks: `AT_SECURE` is set, or a user other than root has permitted
/// capabilities.
pub fn are_borrowed() -> bool {
    static BORROWED: OnceLock<bool> = OnceLock::new();
    *BORROWED.get_or_init(|| {
        // SAFETY: getauxval(3) reads the vector that the kernel gave this process, and accesses no other memory.
        let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
        is_secure || (!geteuid().is_root() && !Sets::own().permitted.is_empty())
    })
}

/// Whether this process's user could trace another process without the file's rights. Always true without file rights: the kernel decides
/// then.
pub fn may_observe(pid: i32) -> bool {
    !are_borrowed() || is_traceable(pid)
}

/// Whether this process's user could find out that a path exists. Always true without file rights.
pub fn may_show(path: &Path) -> bool {
    // As the real user, and without capabilities.
    !are_borrowed() || accessat(CWD, path, Access::EXISTS, AtFlags::empty()).is_ok()
}

/// Whether all UIDs and GIDs of the process are this user's, and the kernel permits access: else its files in procfs belong to root. A
/// child of this process counts while it still has the file's rights, before it has become the command.
fn is_traceable(pid: i32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let are =
        |name: &str, own: u32| field(name).is_some_and(|ids| ids.split_whitespace().all(|id| id.parse() == Ok(own)));
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let is_child = field("PPid:").is_some_and(|parent| parent.parse() == Ok(std::process::id()));
    let has_less = Sets::of_status(&status).is_some_and(|sets| Sets::own().permitted.covers(sets.permitted));
    let is_dumpable = fs::metadata(format!("/proc/{pid}/environ")).is_ok_and(|found| found.uid() == user);
    are("Uid:", user) && are("Gid:", group) && has_less && (is_dumpable || is_child)
}

/// Those of these processes that may be observed.
pub fn observable(pids: &[i32]) -> Vec<i32> {
    pids.iter().copied().filter(|pid| may_observe(*pid)).collect()
}

/// The users who may observe a process that this user may not, as the end of a sentence; empty if unknown. The process's user is not named
/// if the kernel denies access to that user, too, as for a program that is executable but not readable.
pub fn who_may(pid: i32) -> String {
    let as_its_user = user_who_may_trace(pid).filter(|user| *user != geteuid().as_raw());
    let as_its_user = as_its_user.map(|user| format!("as user {user}"));
    let as_root = becoming_root::helps(Capability::SysPtrace).then(|| "as root (sudo bursar …)".to_string());
    let ways: Vec<String> = as_its_user.into_iter().chain(as_root).collect();
    if ways.is_empty() { String::new() } else { format!("; run bursar {}", ways.join(", or ")) }
}

/// The user of a process, if all its UIDs are equal and it has no additional rights.
fn user_who_may_trace(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let mut users = users.split_whitespace().filter_map(|user| user.parse().ok());
    let user = users.next()?;
    let is_one = users.all(|other| other == user);
    let has_less = Sets::of_status(&status)?.permitted.is_empty();
    let is_dumpable = fs::metadata(format!("/proc/{pid}/environ")).is_ok_and(|found| found.uid() == user);
    (is_one && has_less && is_dumpable).then_some(user)
}

/// Why a process is not observed, as a sentence.
pub fn refusal(pid: i32) -> String {
    let name = procfs::stat(pid).map(|stat| stat.comm).unwrap_or_default();
    format!(
        "process {pid} ({}) is not yours to trace, and bursar's file capabilities (setcap) are not for that{}",
        name.escape_debug(),
        who_may(pid)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_file_capabilities_rights_are_the_users() {
        assert!(!are_borrowed());
        assert!(may_observe(1) && may_show(Path::new("/nowhere")));
    }

    #[test]
    fn only_the_user_of_a_readable_process_is_named() {
        use std::os::unix::fs::PermissionsExt;
        use std::os::unix::process::CommandExt;
        if !geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = folder.path().join("sleep");
        assert!(std::process::Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
        for (mode, expected) in [(0o755, "; run bursar as user 65534"), (0o711, "")] {
            fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
            let mut theirs = std::process::Command::new(&program).arg("60").uid(65534).gid(65534).spawn().unwrap();
            assert_eq!(who_may(theirs.id() as i32), expected, "mode {mode:o}");
            let (_, _) = (theirs.kill(), theirs.wait());
        }
        assert_eq!(who_may(std::process::id() as i32), "");
    }

    #[test]
    fn a_process_is_traceable_only_by_its_own_user() {
        use std::os::unix::process::CommandExt;
        let mut own = std::process::Command::new("sleep");
        if geteuid().is_root() {
            own.uid(65534).gid(65534);
            let mut theirs = own.arg("60").spawn().unwrap();
            assert!(!is_traceable(theirs.id() as i32));
            let (_, _) = (theirs.kill(), theirs.wait());
        } else {
            let mut ours = own.arg("60").spawn().unwrap();
            assert!(is_traceable(ours.id() as i32));
            let (_, _) = (ours.kill(), ours.wait());
            assert!(!is_traceable(1));
        }
    }
}

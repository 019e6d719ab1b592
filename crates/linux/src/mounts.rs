//! Mounts from `/proc/PID/mountinfo`: cgroup hierarchies, file systems in memory.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// One line of `mountinfo` (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device number of the file system in the kernel's format: 12 bits of major above 20 of minor.
    pub device: u32,
    /// The mounted directory of the file system: for a container, its cgroup.
    pub root: PathBuf,
    /// The mount point.
    pub point: PathBuf,
    /// File system type.
    pub kind: String,
    /// Whether it is mounted read-only.
    pub read_only: bool,
    /// Options of the file system itself: for cgroup v1, the controllers.
    pub options: Vec<String>,
}

impl Mount {
    /// The directory that shows `path`, a path from the root of this file system; `None` if it is outside of the mount.
    pub fn resolve(&self, path: &Path) -> Option<PathBuf> {
        let beneath = path.strip_prefix(&self.root).ok()?;
        if beneath.components().any(|part| part == std::path::Component::ParentDir) {
            return None;
        }
        Some(if beneath.as_os_str().is_empty() { self.point.clone() } else { self.point.join(beneath) })
    }
}

/// All mounts in the text of a `mountinfo` file. Malformed lines are skipped.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = std::str::from_utf8(fields.nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let device = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
    let root = unescape(fields.next()?);
    let point = unescape(fields.next()?);
    let read_only = fields.next()?.split(|byte| *byte == b',').any(|option| option == b"ro");
    // A varying number of optional fields ends at a single hyphen.
    fields.find(|field| *field == b"-")?;
    let kind = String::from_utf8_lossy(fields.next()?).into_owned();
    let options = String::from_utf8_lossy(fields.nth(1)?).split(',').map(String::from).collect();
    Some(Mount { device, root, point, kind, read_only, options })
}

/// Space, tab, newline and backslash are written as three octal digits after a backslash.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut at = 0;
    while at < field.len() {
        let octal = field
            .get(at + 1..at + 4)
            .filter(|_| field[at] == b'\\')
            .filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match octal {
            Some(digits) => {
                bytes.push(digits.iter().fold(0u8, |value, digit| value.wrapping_mul(8).wrapping_add(digit - b'0')));
                at += 4;
            }
            None => {
                bytes.push(field[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The suitable mounts of one file system, the best first: writable before read-only, then those that show more of the file system, then
/// the last one mounted. A second mount may be another container's, or a chroot's.
pub fn best_first(mounts: &[Mount], serves: impl Fn(&Mount) -> bool) -> Vec<&Mount> {
    let mut serving: Vec<&Mount> = mounts.iter().rev().filter(|mount| serves(mount)).collect();
    serving.sort_by_key(|mount| (mount.read_only, mount.root.components().count()));
    serving
}

/// Mount points of file systems of this type.
pub fn points_of(kind: &str) -> Vec<PathBuf> {
    own().into_iter().filter(|mount| mount.kind == kind).map(|mount| mount.point).collect()
}

/// Devices of the mounted file systems that keep files in memory.
pub fn devices_in_memory() -> HashSet<u32> {
    in_memory(&own())
}

/// Devices of these mounts' file systems that keep files in memory.
pub fn in_memory(mounts: &[Mount]) -> HashSet<u32> {
    let is_in_memory = |mount: &&Mount| matches!(mount.kind.as_str(), "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs");
    mounts.iter().filter(is_in_memory).map(|mount| mount.device).collect()
}

/// The mounts of this process.
pub fn own() -> Vec<Mount> {
    std::fs::read("/proc/self/mountinfo").map(|text| parse(&text)).unwrap_or_default()
}

/// One line of `/proc/PID/cgroup`: its controllers (empty for v2) and the path within the hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Names of v1 controllers.
    pub controllers: Vec<String>,
    /// The path from the root of the cgroup namespace.
    pub path: PathBuf,
}

/// The lines of a `/proc/PID/cgroup`. A removed cgroup ends in ` (deleted)` and is skipped.
pub fn parse_memberships(text: &[u8]) -> Vec<Membership> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.ends_with(b" (deleted)"))
        .filter_map(|line| {
            let mut parts = line.splitn(3, |byte| *byte == b':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let controllers = String::from_utf8_lossy(controllers);
            Some(Membership {
                controllers: controllers.split(',').filter(|name| !name.is_empty()).map(String::from).collect(),
                path: PathBuf::from(std::ffi::OsStr::from_bytes(path)),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_with_spaces_and_backslashes_are_unescaped() {
        let line =
            br"31 23 0:28 /a\040b /mnt/x\134y\011z rw,relatime shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate";
        let mount = &parse(line)[0];
        assert_eq!(mount.device, 28);
        assert_eq!(mount.root, Path::new("/a b"));
        assert_eq!(mount.point, Path::new("/mnt/x\\y\tz"));
        assert_eq!((mount.kind.as_str(), mount.read_only), ("cgroup2", false));
        assert_eq!(mount.options, ["rw", "nsdelegate"]);
    }

    #[test]
    fn cut_lines_are_skipped() {
        assert_eq!(parse(b"31 23 0:28 / /sys rw\nnonsense\n\n31 23 0:28 / /sys rw - cgroup\n"), []);
    }

    #[test]
    fn a_container_sees_its_cgroup_at_the_mount_point() {
        let line = b"700 699 0:30 /docker/abc /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory";
        let mount = &parse(line)[0];
        assert!(mount.read_only);
        assert_eq!(mount.resolve(Path::new("/docker/abc")).unwrap(), Path::new("/sys/fs/cgroup/memory"));
        assert_eq!(mount.resolve(Path::new("/docker/abc/job")).unwrap(), Path::new("/sys/fs/cgroup/memory/job"));
        assert_eq!(mount.resolve(Path::new("/docker/abcd")), None);
        assert_eq!(mount.resolve(Path::new("/docker/abc/../other")), None);
    }

    #[test]
    fn memberships_of_both_versions() {
        let found =
            parse_memberships(b"4:memory:/a:b/c\n2:cpu,cpuacct:/\n0::/user.slice\n1:name=systemd:/x (deleted)\n");
        assert_eq!(found.len(), 3);
        assert_eq!(
            (found[0].controllers.as_slice(), found[0].path.as_path()),
            (["memory".to_string()].as_slice(), Path::new("/a:b/c"))
        );
        assert_eq!(found[1].controllers, ["cpu", "cpuacct"]);
        assert!(found[2].controllers.is_empty());
    }
}

//! Files: their numbers within the run, and their paths.

use std::collections::HashMap;
use std::fs;

use linux::bpf::FileKey;

/// Paths are only for the report: these are enough.
const MOST_PATHS: usize = 20_000;

/// The files of a run.
#[derive(Debug, Default)]
pub(crate) struct Files {
    numbers: HashMap<FileKey, u32>,
    keys: Vec<FileKey>,
    names: HashMap<u32, String>,
}

impl Files {
    /// The number of a file, a new one for a new file.
    pub(crate) fn number(&mut self, key: FileKey) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            (self.keys.len() - 1) as u32
        })
    }

    /// Keeps the names of a file within its file system, given leaf first.
    pub(crate) fn name(&mut self, key: FileKey, names: &[u8]) {
        let number = self.number(key);
        if names.is_empty() || self.names.len() >= MOST_PATHS {
            return;
        }
        let mut parts: Vec<_> = names.split(|byte| *byte == 0).filter(|part| !part.is_empty()).collect();
        parts.reverse();
        let path = parts.iter().flat_map(|part| ["/".into(), String::from_utf8_lossy(part)]).collect();
        self.names.insert(number, path);
    }

    /// The key of a number that [`Files::number`] gave.
    pub(crate) fn key(&self, number: u32) -> Option<FileKey> {
        self.keys.get(number as usize).copied()
    }

    /// The path of a file as bursar sees it now; `None` if its file system is not mounted here or it had no name.
    pub(crate) fn path(&self, number: u32, mounts: &Mounts) -> Option<String> {
        let key = self.key(number)?;
        mounts.path(key.device, self.names.get(&number)?)
    }
}

/// Device → where it is mounted, and which of its directories.
#[derive(Debug)]
pub(crate) struct Mounts(Vec<(u32, String, String)>);

impl Mounts {
    pub(crate) fn read() -> Mounts {
        Mounts::parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
    }

    /// `ID PARENT MAJOR:MINOR ROOT MOUNTPOINT …`, proc_pid_mountinfo(5).
    fn parse(text: &str) -> Mounts {
        let mount = |line: &str| {
            let mut fields = line.split(' ').skip(2);
            let (major, minor) = fields.next()?.split_once(':')?;
            let device = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
            Some((device, unescape(fields.next()?), unescape(fields.next()?)))
        };
        Mounts(text.lines().filter_map(mount).collect())
    }

    fn path(&self, device: u32, name: &str) -> Option<String> {
        self.0.iter().filter(|(of, ..)| *of == device).find_map(|(_, root, point)| {
            let below = name.strip_prefix(root.trim_end_matches('/'))?;
            (below.is_empty() || below.starts_with('/')).then(|| format!("{}{below}", point.trim_end_matches('/')))
        })
    }
}

/// Blanks in mount points are written `\040`.
fn unescape(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(code) => {
                text.push(code.into());
                text.push_str(&part[3..]);
            }
            None => text.push_str(part),
        }
    }
    text
}

/// The device number as `stat` gives it, of one as the kernel holds it.
pub(crate) fn stat_device(kernel: u32) -> u64 {
    let (major, minor) = (u64::from(kernel >> 20), u64::from(kernel & 0xf_ffff));
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_mount_point_and_the_names_below_its_root() {
        let mounts = Mounts::parse(
            "21 1 254:0 / / rw - ext4 /dev/vda rw\n22 21 8:1 /sub /mnt/my\\040disk rw - ext4 /dev/sda1 rw\nbroken\n",
        );
        let mut files = Files::default();
        let root = FileKey { inode: 7, device: 254 << 20, generation: 1 };
        let disk = FileKey { inode: 7, device: 8 << 20 | 1, generation: 1 };
        let outside = FileKey { inode: 8, ..disk };
        files.name(root, b"passwd\0etc\0");
        files.name(disk, b"b.dat\0a\0sub\0");
        files.name(outside, b"b.dat\0substitute\0");
        assert_eq!(files.path(0, &mounts).as_deref(), Some("/etc/passwd"));
        assert_eq!(files.path(1, &mounts).as_deref(), Some("/mnt/my disk/a/b.dat"));
        assert_eq!(files.path(2, &mounts), None, "not below the directory that is mounted");
        assert_eq!(files.number(root), 0);
        assert_eq!(files.number(FileKey { generation: 2, ..root }), 3, "the number was used again");
    }

    #[test]
    fn device_numbers_are_those_of_stat() {
        assert_eq!(stat_device(254 << 20), 254 << 8);
        assert_eq!(stat_device(8 << 20 | 0x1_2345), 0x1_2300 << 12 | 8 << 8 | 0x45);
    }
}

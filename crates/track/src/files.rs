//! Files: their numbers within the run, and their paths.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use foldhash::fast::RandomState;
use linux::bpf::FileKey;
use linux::rights;

/// Paths appear only in the report, so this many are enough.
const MAX_PATHS: usize = 20_000;

/// A referenced file. Two files may have had the same inode number at different times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackedFile {
    /// Device number as `stat` gives it; on overlayfs, that of the underlying file system; on btrfs, not that of the
    /// subvolume.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Path at its first reference, in bursar's mount namespace; `None` if the file had no path there.
    pub path: Option<String>,
}

/// The files of a run.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// ScanResult up for every reference, hence the fast hasher.
    numbers: HashMap<FileKey, u32, RandomState>,
    keys: Vec<FileKey>,
    names: HashMap<u32, String>,
}

impl Files {
    /// Returns the number of a file; a file not seen before gets a new number.
    pub(crate) fn number(&mut self, key: FileKey) -> u32 {
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            (self.keys.len() - 1) as u32
        })
    }

    /// Stores the path of a file within its file system. `names` holds the path components, leaf first.
    pub(crate) fn name(&mut self, key: FileKey, names: &[u8]) {
        let number = self.number(key);
        if names.is_empty() || self.names.len() >= MAX_PATHS {
            return;
        }
        let mut parts: Vec<_> = names.split(|byte| *byte == 0).filter(|part| !part.is_empty()).collect();
        parts.reverse();
        let path = parts.iter().flat_map(|part| ["/".into(), String::from_utf8_lossy(part)]).collect();
        self.names.insert(number, path);
    }

    /// All files, indexed by their number.
    pub(crate) fn finish(self) -> Vec<TrackedFile> {
        self.resolve(&Mounts::read())
    }

    fn resolve(mut self, mounts: &Mounts) -> Vec<TrackedFile> {
        let names = &mut self.names;
        let file = |(number, key): (usize, &FileKey)| TrackedFile {
            device: stat_device(key.device),
            inode: key.inode,
            path: names
                .remove(&(number as u32))
                .and_then(|name| mounts.path(key.device, &name))
                .filter(|path| rights::may_show(Path::new(path))),
        };
        self.keys.iter().enumerate().map(file).collect()
    }
}

/// (Device, root directory within the file system, mount point).
#[derive(Debug)]
struct Mounts(Vec<(u32, String, String)>);

impl Mounts {
    fn read() -> Mounts {
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

/// Decodes octal escapes: mountinfo writes blanks as `\040`.
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

/// Converts a device number from the kernel's encoding to that of `stat`.
fn stat_device(kernel: u32) -> u64 {
    let (major, minor) = (u64::from(kernel >> 20), u64::from(kernel & 0xf_ffff));
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12
}

/// Converts a device number from the encoding of `stat` to the kernel's.
pub(crate) fn kernel_device(stat: u64) -> u32 {
    let (major, minor) = (stat >> 8 & 0xfff, stat & 0xff | stat >> 12 & 0xf_ff00);
    (major << 20 | minor) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_joins_mount_point_and_names_below_its_root() {
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
        assert_eq!(files.number(root), 0);
        assert_eq!(files.number(FileKey { generation: 2, ..root }), 3, "the inode number was reused");
        let paths: Vec<_> = files.resolve(&mounts).into_iter().map(|file| file.path).collect();
        assert_eq!(paths, [Some("/etc/passwd".into()), Some("/mnt/my disk/a/b.dat".into()), None, None]);
    }

    #[test]
    fn device_numbers_convert_to_those_of_stat() {
        assert_eq!(stat_device(254 << 20), 254 << 8);
        assert_eq!(stat_device(8 << 20 | 0x1_2345), 0x1_2300 << 12 | 8 << 8 | 0x45);
        for device in [254 << 20, 8 << 20 | 0x1_2345, 0xfff << 20 | 0xf_ffff] {
            assert_eq!(kernel_device(stat_device(device)), device);
        }
    }
}

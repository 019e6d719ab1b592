//! Reads a snapshot of a process's mappings (`/proc/PID/maps`), and names each as profiles do.

use std::collections::HashMap;

use crate::profile::{Mapping, Object, Section};
use crate::wrong::{Malformed, Wrong, shown, words};

/// A mapping, and its name in a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// First address.
    pub begin: u64,
    /// End address (exclusive).
    pub end: u64,
    /// Its name.
    pub mapping: Mapping,
}

/// One line.
struct Entry<'a> {
    begin: u64,
    end: u64,
    permissions: &'a str,
    path: &'a str,
}

/// Reads a snapshot. `executable` is the path of the program's own file; `build_id` returns the build ID of a file.
///
/// The snapshot does not show the order in which anonymous mappings were made. Those at higher addresses are taken to
/// be older, because the kernel allocates addresses downwards.
///
/// # Errors
/// All lines that do not have this format.
pub fn read(text: &str, executable: &str, build_id: impl Fn(&str) -> Option<String>) -> Result<Vec<Area>, Malformed> {
    let mut entries = Vec::new();
    let mut wrong = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match entry(line) {
            Some(entry) => entries.push(entry),
            None => {
                let what = format!("{} is no line of /proc/PID/maps", shown(line));
                wrong.push(Wrong { line: index + 1, column: 1, what });
            }
        }
    }
    if !wrong.is_empty() {
        return Err(Malformed(wrong));
    }
    let mut areas: Vec<Area> = Vec::new();
    let mut before: Option<&Entry> = None;
    for entry in &entries {
        // A mapping without a file that follows an object's data is its .bss.
        let follows =
            before.filter(|before| before.end == entry.begin && entry.path.is_empty() && !before.path.is_empty());
        let of = follows.filter(|before| before.path.starts_with('/') && before.permissions.contains('w'));
        if let Some(mapping) = named(entry, of, executable, &build_id) {
            areas.push(Area { begin: entry.begin, end: entry.end, mapping });
        }
        before = Some(entry);
    }
    let mut made: HashMap<u32, u64> = HashMap::new();
    for area in areas.iter_mut().rev() {
        if let Mapping::Mmap { class: Some(class), ordinal } = &mut area.mapping {
            let next = made.entry(*class).or_default();
            *ordinal = Some(*next);
            *next += 1;
        }
    }
    // Parts of one object's section are adjacent.
    areas.dedup_by(|next, last| {
        let is_same = last.end == next.begin && last.mapping == next.mapping;
        last.end = if is_same { next.end } else { last.end };
        is_same
    });
    Ok(areas)
}

fn named(
    entry: &Entry,
    data_before: Option<&Entry>,
    executable: &str,
    build_id: &impl Fn(&str) -> Option<String>,
) -> Option<Mapping> {
    let object = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path).to_string();
        (path != executable).then(|| Object { name, build_id: build_id(path) })
    };
    match (entry.path, data_before) {
        ("[heap]", _) => Some(Mapping::Heap),
        ("[stack]", _) => Some(Mapping::Stack),
        ("", Some(data)) => Some(Mapping::Object { section: Section::Bss, object: object(data.path) }),
        (path, _) if path.is_empty() || path.starts_with("[anon") => {
            Some(Mapping::Mmap { class: Some(Mapping::class(entry.end - entry.begin)), ordinal: None })
        }
        (path, _) if path.starts_with('/') => {
            let section = if entry.permissions.contains('x') { Section::Code } else { Section::Data };
            Some(Mapping::Object { section, object: object(path) })
        }
        _ => None,
    }
}

/// `7f00-7f80 rw-p 00000000 00:00 0   /path`.
fn entry(line: &str) -> Option<Entry<'_>> {
    let mut fields = words(line);
    let (begin, end) = fields.next()?.1.split_once('-')?;
    let (begin, end) = (u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let permissions = fields.next()?.1;
    let (offset, _device, inode) = (fields.next()?.1, fields.next()?.1, fields.next()?.1);
    u64::from_str_radix(offset, 16).ok()?;
    inode.parse::<u64>().ok()?;
    let path = fields.next().map_or("", |(_, word)| &line[word.as_ptr() as usize - line.as_ptr() as usize..]);
    (begin < end).then_some(Entry { begin, end, permissions, path: path.trim_end() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNAPSHOT: &str = "\
        555555554000-555555556000 r--p 00000000 fe:00 1234  /usr/bin/xz\n\
        555555556000-555555566000 r-xp 00002000 fe:00 1234  /usr/bin/xz\n\
        555555566000-555555568000 rw-p 00012000 fe:00 1234  /usr/bin/xz\n\
        555555568000-555555868000 rw-p 00000000 00:00 0 \n\
        555555868000-555555889000 rw-p 00000000 00:00 0     [heap]\n\
        7ff000000000-7ff008000000 rw-p 00000000 00:00 0 \n\
        7ff100000000-7ff10c000000 rw-p 00000000 00:00 0 \n\
        7ff110000000-7ff110010000 rw-p 00000000 00:00 0     [anon:malloc]\n\
        7ff200000000-7ff200001000 r-xp 00000000 fe:00 99    /lib/my lib.so (deleted)\n\
        7ffff0000000-7ffff0021000 rw-p 00000000 00:00 0     [stack]\n\
        7ffff0021000-7ffff0023000 r-xp 00000000 00:00 0     [vdso]\n";

    #[test]
    fn mappings_are_named_as_in_profiles() {
        let areas = read(SNAPSHOT, "/usr/bin/xz", |path| path.starts_with("/lib").then(|| "77ab".into())).unwrap();
        let names: Vec<_> = areas.iter().map(|area| area.mapping.to_string()).collect();
        let library = "code my\\040lib.so\\040(deleted):77ab -";
        let expected = [
            "data - -",
            "code - -",
            "data - -",
            "bss - -",
            "heap - -",
            "mmap 27 1",
            "mmap 27 0",
            "mmap 16 0",
            library,
            "stack - -",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_malformed_line_is_reported() {
        let Malformed(wrong) = read("hello\n\n7f-7e rw-p 0 0 0\n", "/bin/x", |_| None).unwrap_err();
        assert_eq!(wrong.iter().map(|wrong| wrong.line).collect::<Vec<_>>(), [1, 3]);
        assert!(wrong[0].what.contains("'hello' is no line of /proc/PID/maps"));
    }
}

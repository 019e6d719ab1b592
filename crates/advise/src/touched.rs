//! Memory of a process that was present when the process freed it or ended, as reported by the runtime within it
//! (`preload/abi.h`).

use std::path::PathBuf;

use crate::profile::Mapping;
use crate::range::HUGE_BYTES;

/// What one program of a process reported, in order.
#[derive(Debug, PartialEq)]
pub struct Touched {
    /// PID.
    pub pid: i32,
    /// When the process began, in clock ticks.
    pub start: u64,
    /// The PID namespace of `pid`; 0: unknown.
    pub namespace: u64,
    /// Path of the program.
    pub executable: PathBuf,
    /// Its present memory.
    pub regions: Vec<Region>,
}

/// One region of 2 MiB.
#[derive(Debug, PartialEq)]
pub struct Region {
    /// The mapping.
    pub mapping: Mapping,
    /// Offset of the region in the mapping; negative if the mapping begins within the region.
    pub offset: i64,
    /// Present pages of 4 KiB.
    pub present_pages: u64,
}

const MALFORMED: &str = "it is not a memory report of bursar advise profile";

impl Touched {
    /// Reads the file of one process: an entry for each program that it has run.
    pub fn read(bytes: &[u8]) -> Result<Option<Vec<Touched>>, &'static str> {
        let text = String::from_utf8_lossy(bytes);
        let mut programs: Vec<Touched> = Vec::new();
        // The last line may have been cut short by a full disk.
        for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
            match (process(line), regions(line), programs.last_mut()) {
                (Some(program), ..) => programs.push(program),
                (_, Some(regions), Some(program)) => program.regions.extend(regions),
                _ => return Err(MALFORMED),
            }
        }
        Ok(Some(programs))
    }
}

fn process(line: &str) -> Option<Touched> {
    let (pid, rest) = line.strip_prefix("process ")?.split_once(' ')?;
    let (start, rest) = rest.split_once(' ')?;
    let (namespace, executable) = rest.split_once(' ')?;
    Some(Touched {
        pid: pid.parse().ok()?,
        start: start.parse().ok()?,
        namespace: namespace.parse().ok()?,
        executable: executable.into(),
        regions: Vec::new(),
    })
}

fn regions(line: &str) -> Option<Vec<Region>> {
    let mut words = line.split(' ');
    let mapping = Mapping::parse(words.next()?, words.next()?, words.next()?)?;
    let [origin, first]: [i64; 2] = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
    let mut offset = first.checked_sub(origin)?;
    words
        .map(|word| {
            let present_pages = word.parse().ok()?;
            let region = Region { mapping: mapping.clone(), offset, present_pages };
            offset = offset.checked_add(HUGE_BYTES as i64)?;
            Some(region)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_of_a_process_is_read() {
        let text = "process 7 12345 9 /opt/a b/solve\nmmap 24 3 6291456 4194304 12 512\nheap - - 4096 0 1\n\
                    process 7 12345 9 /bin/true\nbss libfoo.so:77ab - 0 2097152 9\nmmap 2";
        let programs_read = Touched::read(text.as_bytes()).unwrap().unwrap();
        let programs: Vec<_> =
            programs_read.iter().map(|one| (one.pid, one.start, one.executable.to_str().unwrap())).collect();
        assert_eq!(programs_read[0].namespace, 9);
        assert_eq!(programs, [(7, 12345, "/opt/a b/solve"), (7, 12345, "/bin/true")]);
        let mapping = Mapping::Mmap { class: Some(24), ordinal: Some(3) };
        let region = |mapping, offset, present_pages| Region { mapping, offset, present_pages };
        assert_eq!(
            programs_read[0].regions,
            [region(mapping.clone(), -2 << 20, 12), region(mapping, 0, 512), region(Mapping::Heap, -4096, 1)]
        );
        assert_eq!(programs_read[1].regions[0].present_pages, 9);
    }

    #[test]
    fn a_malformed_file_is_refused() {
        assert_eq!(Touched::read(b""), Ok(Some(Vec::new())));
        for wrong in
            ["mmap 24 3 0 0 1\n", "process 7 1 9 x\nmmap 24 3 0\n", "process 7 1 9 x\nmmap 24 3 0 0 -1\n", "\n"]
        {
            assert!(Touched::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let far = format!("process 7 1 9 x\nmmap 24 3 0 {} 1 1 1\n", i64::MAX);
        assert!(Touched::read(far.as_bytes()).is_err());
    }
}

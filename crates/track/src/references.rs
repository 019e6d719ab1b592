//! References, spooled in bounded memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use linux::environment;
use model::{FileReference, ReferenceKind};

/// Bytes kept in memory before they go to disk.
const MEMORY_BYTES: usize = 2 << 20;
/// Two references within this time, of which the second continues the first, are stored as one.
const JOIN_NS: u64 = 10_000_000;
/// A stored reference has at most this many pages. The order of references is exact to that size.
const JOIN_PAGES: u32 = 256;

/// References in the order they were made; times never go back. The order of one task's references is exact; that of
/// different tasks is exact to 32 pages each. Two to four bytes each; beyond 2 MiB they go to an unlinked file in the
/// temporary directory.
#[derive(Debug, Default)]
pub struct References {
    memory: Vec<u8>,
    disk: Option<File>,
    disk_bytes: u64,
    last: Option<FileReference>,
    coder: Coder,
    count: u64,
    lost: u64,
    full: bool,
}

/// The state against which the next reference is encoded.
#[derive(Clone, Copy, Debug, Default)]
struct Coder {
    t_ns: u64,
    file: u32,
    next_page: u64,
}

/// Iterates over [`References`].
#[derive(Debug)]
pub struct Iter<'a> {
    from: &'a References,
    coder: Coder,
    block: Vec<u8>,
    at: usize,
    offset: u64,
    is_last_done: bool,
}

const SAME_FILE: u8 = 4;
const NEXT_PAGE: u8 = 8;
const ONE_PAGE: u8 = 16;
const MAX_ENCODED_BYTES: usize = 1 + 4 * 10;

impl References {
    /// Appends one. If the disk is full, it is dropped and counted in [`References::lost`].
    pub(crate) fn push(&mut self, reference: FileReference) {
        if let Some(last) = &mut self.last {
            let joins = last.file == reference.file
                && last.kind == reference.kind
                && last.first_page + u64::from(last.pages) == reference.first_page
                && reference.t_ns.saturating_sub(last.t_ns) < JOIN_NS
                && last.pages.saturating_add(reference.pages) <= JOIN_PAGES;
            if joins {
                last.pages += reference.pages;
                return;
            }
        }
        if let Some(last) = self.last.replace(reference) {
            self.store(last);
        }
    }

    fn store(&mut self, reference: FileReference) {
        if self.full {
            self.lost += 1;
            return;
        }
        self.coder.encode(&reference, &mut self.memory);
        self.count += 1;
        if self.memory.len() < MEMORY_BYTES {
            return;
        }
        if let Err(error) = self.spill() {
            tracing::warn!(
                "references to files cannot be kept in {}: {error}; later ones are counted as lost",
                environment::temporary().display()
            );
            self.full = true;
        }
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.disk.is_none() {
            self.disk = Some(tempfile::tempfile_in(environment::temporary())?);
        }
        if let Some(disk) = &self.disk {
            disk.write_all_at(&self.memory, self.disk_bytes)?;
            self.disk_bytes += self.memory.len() as u64;
            self.memory.clear();
        }
        Ok(())
    }

    /// References dropped because the disk was full.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Number of page runs that [`References::iter`] yields.
    pub fn len(&self) -> u64 {
        self.count + u64::from(self.last.is_some())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All, in order. Ends early if the temporary file cannot be read back.
    pub fn iter(&self) -> Iter<'_> {
        Iter { from: self, coder: Coder::default(), block: Vec::new(), at: 0, offset: 0, is_last_done: false }
    }
}

impl<'a> IntoIterator for &'a References {
    type Item = FileReference;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Iter<'_> {
    /// Ensures that the block holds a whole reference, if one is left.
    fn fill(&mut self) {
        let end = self.from.disk_bytes + self.from.memory.len() as u64;
        if self.block.len() - self.at >= MAX_ENCODED_BYTES || self.offset == end {
            return;
        }
        self.block.drain(..self.at);
        self.at = 0;
        if self.offset < self.from.disk_bytes {
            let begin = self.block.len();
            let wanted = (self.from.disk_bytes - self.offset).min(64 << 10) as usize;
            self.block.resize(begin + wanted, 0);
            let read = self.from.disk.as_ref().map(|disk| disk.read_exact_at(&mut self.block[begin..], self.offset));
            if !matches!(read, Some(Ok(()))) {
                self.block.truncate(begin);
                self.offset = end;
                return;
            }
            self.offset += wanted as u64;
        }
        if self.offset >= self.from.disk_bytes && self.block.len() < MAX_ENCODED_BYTES {
            let begin = (self.offset - self.from.disk_bytes) as usize;
            let wanted = &self.from.memory[begin..self.from.memory.len().min(begin + (64 << 10))];
            self.block.extend_from_slice(wanted);
            self.offset += wanted.len() as u64;
        }
    }
}

impl Iterator for Iter<'_> {
    type Item = FileReference;

    fn next(&mut self) -> Option<FileReference> {
        self.fill();
        let (reference, used) = match self.coder.decode(&self.block[self.at..]) {
            Some(decoded) => decoded,
            None if self.is_last_done => return None,
            None => {
                self.is_last_done = true;
                return self.from.last;
            }
        };
        self.at += used;
        Some(reference)
    }
}

impl Coder {
    fn encode(&mut self, reference: &FileReference, out: &mut Vec<u8>) {
        let same_file = reference.file == self.file;
        let next_page = reference.first_page == self.next_page;
        let mut head = match reference.kind {
            ReferenceKind::Read => 0,
            ReferenceKind::Write => 1,
            ReferenceKind::Fault => 2,
            ReferenceKind::Removal => 3,
        };
        for (flag, set) in [(SAME_FILE, same_file), (NEXT_PAGE, next_page), (ONE_PAGE, reference.pages == 1)] {
            head |= if set { flag } else { 0 };
        }
        out.push(head);
        // Events of different processors may be slightly out of order.
        put(out, zigzag(reference.t_ns.wrapping_sub(self.t_ns)));
        if !same_file {
            put(out, u64::from(reference.file));
        }
        if !next_page {
            put(out, zigzag(reference.first_page.wrapping_sub(self.next_page)));
        }
        if reference.pages != 1 {
            put(out, u64::from(reference.pages));
        }
        self.after(reference);
    }

    fn decode(&mut self, bytes: &[u8]) -> Option<(FileReference, usize)> {
        let mut rest = bytes;
        let (&head, after) = rest.split_first()?;
        rest = after;
        let t_ns = self.t_ns.wrapping_add(unzigzag(get(&mut rest)?));
        let file = if head & SAME_FILE != 0 { self.file } else { get(&mut rest)? as u32 };
        let moved = if head & NEXT_PAGE != 0 { 0 } else { unzigzag(get(&mut rest)?) };
        let pages = if head & ONE_PAGE != 0 { 1 } else { get(&mut rest)? as u32 };
        let kind = match head & 3 {
            0 => ReferenceKind::Read,
            1 => ReferenceKind::Write,
            2 => ReferenceKind::Fault,
            _ => ReferenceKind::Removal,
        };
        let first_page = self.next_page.wrapping_add(moved);
        let reference = FileReference { t_ns, file, first_page, pages, kind };
        self.after(&reference);
        Some((reference, bytes.len() - rest.len()))
    }

    fn after(&mut self, reference: &FileReference) {
        self.t_ns = reference.t_ns;
        self.file = reference.file;
        self.next_page = reference.first_page.wrapping_add(u64::from(reference.pages));
    }
}

fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn get(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(t_ns: u64, file: u32, first_page: u64, pages: u32, kind: ReferenceKind) -> FileReference {
        FileReference { t_ns, file, first_page, pages, kind }
    }

    #[test]
    fn references_come_out_in_order_from_memory_and_disk() {
        let kinds = [ReferenceKind::Read, ReferenceKind::Write, ReferenceKind::Fault];
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 20
        };
        let put_in: Vec<_> = (0..600_000u64)
            .map(|i| {
                let pages = 1 + (random() % 300) as u32;
                // Times jump back now and then; pages are anywhere.
                let t = i * 20_000_000 - (random() % 3).min(i) * 1_000_000;
                reference(t, (random() % 5) as u32, random() % (1 << 40), pages, kinds[(random() % 3) as usize])
            })
            .collect();
        let mut references = References::default();
        put_in.iter().for_each(|r| references.push(*r));
        assert!(references.disk_bytes > 0 && !references.memory.is_empty());
        assert_eq!(references.len(), put_in.len() as u64);
        assert!(references.iter().eq(put_in.iter().copied()));
        assert!(references.iter().eq(put_in.iter().copied()), "a second time");
    }

    #[test]
    fn no_references_give_none() {
        assert!(References::default().is_empty());
        assert_eq!(References::default().iter().next(), None);
    }

    #[test]
    fn consecutive_reads_are_one_run() {
        let mut references = References::default();
        for page in 0..600 {
            references.push(reference(page * 1000, 0, page, 1, ReferenceKind::Read));
        }
        let runs: Vec<_> = references.iter().map(|r| (r.first_page, r.pages)).collect();
        assert_eq!(runs, [(0, 256), (256, 256), (512, 88)]);
    }

    #[test]
    fn other_kinds_files_gaps_and_pauses_begin_a_new_run() {
        let mut references = References::default();
        let all = [
            reference(0, 0, 0, 1, ReferenceKind::Read),
            reference(1, 0, 1, 1, ReferenceKind::Write),
            reference(2, 1, 2, 1, ReferenceKind::Write),
            reference(3, 1, 4, 1, ReferenceKind::Write),
            reference(3 + JOIN_NS, 1, 5, 1, ReferenceKind::Write),
        ];
        all.iter().for_each(|r| references.push(*r));
        assert!(references.iter().eq(all));
    }
}

//! Writes logs as `preload/abi.h` describes them.
#![allow(dead_code)] // each test program uses a part

use attribute::{LogError, ProcessLog, Reader};
use model::MemoryKind;
use record::{Frames, HEADER_BYTES};

pub const MIB: u64 = 1 << 20;
/// When every log begins, nanoseconds since 1970.
pub const BEGIN: u64 = 1_700_000_000_000_000_000;

/// Ids of owners that every log names.
pub const UNATTRIBUTED: u64 = runtime_abi::Owner::Unattributed as u64;
pub const RETAINED: u64 = runtime_abi::Owner::Retained as u64;
pub const OWN: u64 = runtime_abi::Owner::Own as u64;
pub const APPLICATION: u64 = 8;
pub const MPI: u64 = 9;
/// MPI's, through the library `libLLVM.so`.
pub const LLVM: u64 = 10;

/// A log in the making.
#[derive(Clone)]
pub struct Log(pub Vec<u8>);

/// Whose log it is.
#[derive(Clone)]
pub struct Who {
    pub pid: u64,
    pub parent: u64,
    pub unix_ns: u64,
    pub rank: Option<u64>,
    pub ranks: u64,
    pub world: &'static str,
    pub host: &'static str,
    pub executable: &'static str,
}

impl Default for Who {
    fn default() -> Who {
        Who {
            pid: 100,
            parent: 1,
            unix_ns: BEGIN,
            rank: None,
            ranks: 0,
            world: "",
            host: "node1",
            executable: "/usr/bin/app",
        }
    }
}

/// An entry: its kind and fields.
pub struct Entry(Vec<u8>);

impl Entry {
    pub fn new(kind: char) -> Entry {
        Entry(vec![kind as u8])
    }

    pub fn n(mut self, mut value: u64) -> Entry {
        loop {
            let digits = (value & 0x7f) as u8;
            value >>= 7;
            self.0.push(if value > 0 { digits | 0x80 } else { digits });
            if value == 0 {
                return self;
            }
        }
    }

    pub fn s(self, text: &str) -> Entry {
        let mut entry = self.n(text.len() as u64);
        entry.0.extend(text.as_bytes());
        entry
    }
}

impl Log {
    /// Whose log it is, and the owners above.
    pub fn new(who: Who) -> Log {
        let mut log = Log([&runtime_abi::LOG_MAGIC[..], &(runtime_abi::LOG_VERSION as u32).to_le_bytes()].concat());
        log.put(
            Entry::new('P')
                .n(4096)
                .n(who.pid)
                .n(who.parent)
                .n(who.pid * 10)
                .n(who.unix_ns)
                .n(who.rank.map_or(0, |rank| rank + 1))
                .n(who.ranks)
                .s(who.host)
                .s(who.executable)
                .n(2)
                .s("app")
                .s("-x")
                .n(2)
                .s("application")
                .s("mpi")
                .s(who.world),
        );
        log.put(Entry::new('O').n(1).n(0).n(0).s(who.executable).s("").n(1).s("libc.so.6"));
        log.put(Entry::new('O').n(2).n(1).n(1).s("/usr/lib/libLLVM.so").s("libLLVM.so").n(0));
        log.put(Entry::new('W').n(APPLICATION).n(0).n(0));
        log.put(Entry::new('W').n(MPI).n(1).n(0));
        log.put(Entry::new('W').n(LLVM).n(1).n(2));
        log
    }

    pub fn put(&mut self, entry: Entry) {
        self.0.extend((entry.0.len() as u32).to_le_bytes());
        self.0.extend(crc32fast::hash(&entry.0).to_le_bytes());
        self.0.extend(entry.0);
    }

    /// Totals at a millisecond: owner, kind, RSS and PSS in KiB.
    pub fn totals(self, ms: u64, reason: &str, held: &[(u64, MemoryKind, u64, u64)]) -> Log {
        self.by('T', ms, reason, held)
    }

    /// Heap of so many MiB by who touched it, all of it private.
    pub fn touched(self, ms: u64, reason: &str, held: &[(u64, u64)]) -> Log {
        let held: Vec<_> = held.iter().map(|(owner, mib)| (*owner, MemoryKind::Heap, mib << 10, mib << 10)).collect();
        self.by('U', ms, reason, &held)
    }

    fn by(mut self, axis: char, ms: u64, reason: &str, held: &[(u64, MemoryKind, u64, u64)]) -> Log {
        let entry = Entry::new(axis).n(ms * 1000).s(reason).n(held.len() as u64);
        let held = held.iter();
        self.put(held.fold(entry, |entry, (owner, kind, rss, pss)| entry.n(owner * 8 + *kind as u64).n(*rss).n(*pss)));
        self
    }

    /// Heap of so many MiB, all of them private.
    pub fn heap(self, ms: u64, reason: &str, held: &[(u64, u64)]) -> Log {
        let held: Vec<_> = held.iter().map(|(owner, mib)| (*owner, MemoryKind::Heap, mib << 10, mib << 10)).collect();
        self.totals(ms, reason, &held)
    }

    /// Heap of so many MiB that components have obtained since the last totals.
    pub fn grown(mut self, ms: u64, grown: &[(u64, u64)]) -> Log {
        let entry = Entry::new('G').n(ms * 1000).n(grown.len() as u64);
        self.put(grown.iter().fold(entry, |entry, (component, mib)| entry.n(*component).n(mib << 20)));
        self
    }

    pub fn mark(mut self, ms: u64, name: &str) -> Log {
        self.put(Entry::new('M').n(ms * 1000).s(name));
        self
    }

    pub fn function(mut self, id: u64, component: u64, name: &str) -> Log {
        self.put(Entry::new('F').n(id).n(component).s(name));
        self
    }

    /// Function, calls, bytes got, bytes given back.
    pub fn calls(mut self, ms: u64, calls: &[(u64, u64, u64, u64)]) -> Log {
        let entry = Entry::new('C').n(ms * 1000).n(calls.len() as u64);
        self.put(calls.iter().fold(entry, |entry, (id, calls, got, gave)| entry.n(*id).n(*calls).n(*got).n(*gave)));
        self
    }

    /// Function, nanoseconds.
    pub fn durations(mut self, ms: u64, durations: &[(u64, u64)]) -> Log {
        let entry = Entry::new('D').n(ms * 1000).n(durations.len() as u64);
        self.put(durations.iter().fold(entry, |entry, (id, ns)| entry.n(*id).n(*ns)));
        self
    }

    /// To which rank, messages, bytes.
    pub fn sent(mut self, ms: u64, sent: &[(Option<u64>, u64, u64)]) -> Log {
        let entry = Entry::new('X').n(ms * 1000).n(sent.len() as u64);
        let to = |to: &Option<u64>| to.map_or(0, |rank| rank + 1);
        self.put(sent.iter().fold(entry, |entry, (rank, messages, bytes)| entry.n(to(rank)).n(*messages).n(*bytes)));
        self
    }

    pub fn note(mut self, text: &str) -> Log {
        self.put(Entry::new('N').s(text));
        self
    }

    pub fn end(mut self, ms: u64, how: &str) -> Log {
        self.put(Entry::new('E').n(ms * 1000).s(how));
        self
    }

    pub fn read(&self) -> ProcessLog {
        read(&self.0[..]).unwrap()
    }
}

/// Reads a file's bytes as bursar does.
pub fn read(bytes: &[u8]) -> Result<ProcessLog, LogError> {
    let (header, rest) = bytes.split_at(bytes.len().min(HEADER_BYTES as usize));
    let mut reader = Reader::begin(header)?;
    let mut frames = Frames::new(rest);
    while let Some(payload) = frames.next().unwrap() {
        if !reader.take(payload) {
            break;
        }
    }
    reader.end(frames.good_bytes() == bytes.len() as u64)
}

// Generated from preload/abi.h by `UPDATE_ABI=1 cargo test -p runtime-abi`. Do not edit.
#![allow(missing_docs)]

use schemars::JsonSchema;
use serde::Serialize;

use crate::{field, put};

pub const LOG_MAGIC: [u8; 8] = *b"\x89BURLOG\n";

pub const POOL_MAGIC: [u8; 8] = *b"BURPOOL1";

pub const ZERO_MAGIC: [u8; 8] = *b"BURZERO1";

pub const PROVISION_MAGIC: [u8; 8] = *b"BURTOLD1";

pub const ADVICE_MAGIC: [u8; 8] = *b"BURADVC1";

pub const REFERENCE_MAGIC: [u8; 8] = *b"BURREFS1";

pub const LOG_VERSION: usize = 1;
pub const LOG_HEADER_BYTES: usize = 12;
pub const LOG_FRAME_BYTES: usize = 8;
pub const LOG_KINDS: usize = 8;
pub const KINDS: usize = 6;
pub const OWNERS_BEGIN: usize = 8;
pub const OWNERS: usize = 128;
pub const POOL_SEGMENTS: usize = 240;
pub const POOL_ZEROING_UNITS: usize = 65472;
pub const PASSED_REASONS: usize = 13;
pub const PLAN_VERSION: usize = 1;
pub const REGION_BYTES: usize = 2097152;
pub const ADVICE_DECISIONS: usize = 1000;
pub const ADVICE_OBJECT: usize = 48;
pub const REFERENCE_RING: usize = 65536;
pub const REFERENCE_RUNS: usize = 4096;
pub const REFERENCE_CLASSES: usize = 16;
pub const REFERENCE_RUNS_AT: usize = 4096;
pub const REFERENCE_RING_AT: usize = 266240;
pub const REFERENCE_FILE_BYTES: usize = 1314816;
pub const PROCESS_GOES_ON: usize = 256;

/// `enum log_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum LogEntry {
    Process = 80,
    Object = 79,
    Owner = 87,
    Totals = 84,
    Touched = 85,
    Grown = 71,
    Function = 70,
    Calls = 67,
    Durations = 68,
    Exchanged = 88,
    Mark = 77,
    Note = 78,
    End = 69,
}

impl LogEntry {
    pub const ALL: [LogEntry; 13] = [LogEntry::Process, LogEntry::Object, LogEntry::Owner, LogEntry::Totals, LogEntry::Touched, LogEntry::Grown, LogEntry::Function, LogEntry::Calls, LogEntry::Durations, LogEntry::Exchanged, LogEntry::Mark, LogEntry::Note, LogEntry::End];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 13] = ["process", "object", "owner", "totals", "touched", "grown", "function", "calls", "durations", "exchanged", "mark", "note", "end"];

    pub fn from_number(number: u64) -> Option<LogEntry> {
        LogEntry::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            LogEntry::Process => "process",
            LogEntry::Object => "object",
            LogEntry::Owner => "owner",
            LogEntry::Totals => "totals",
            LogEntry::Touched => "touched",
            LogEntry::Grown => "grown",
            LogEntry::Function => "function",
            LogEntry::Calls => "calls",
            LogEntry::Durations => "durations",
            LogEntry::Exchanged => "exchanged",
            LogEntry::Mark => "mark",
            LogEntry::Note => "note",
            LogEntry::End => "end",
        }
    }
}

/// `enum log_reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum LogReason {
    Start = 0,
    Timer = 1,
    Shrink = 2,
    Mark = 3,
    Init = 4,
    Initialized = 5,
    Finalize = 6,
    Fork = 7,
    Share = 8,
    Sandbox = 9,
    Exec = 10,
    Exit = 11,
}

impl LogReason {
    pub const ALL: [LogReason; 12] = [LogReason::Start, LogReason::Timer, LogReason::Shrink, LogReason::Mark, LogReason::Init, LogReason::Initialized, LogReason::Finalize, LogReason::Fork, LogReason::Share, LogReason::Sandbox, LogReason::Exec, LogReason::Exit];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 12] = ["start", "timer", "shrink", "mark", "init", "initialized", "finalize", "fork", "share", "sandbox", "exec", "exit"];

    pub fn from_number(number: u64) -> Option<LogReason> {
        LogReason::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            LogReason::Start => "start",
            LogReason::Timer => "timer",
            LogReason::Shrink => "shrink",
            LogReason::Mark => "mark",
            LogReason::Init => "init",
            LogReason::Initialized => "initialized",
            LogReason::Finalize => "finalize",
            LogReason::Fork => "fork",
            LogReason::Share => "share",
            LogReason::Sandbox => "sandbox",
            LogReason::Exec => "exec",
            LogReason::Exit => "exit",
        }
    }
}

/// `enum kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum Kind {
    Heap = 0,
    Mapped = 1,
    Stack = 2,
    Shared = 3,
    PageCache = 4,
    Hugetlb = 5,
}

impl Kind {
    pub const ALL: [Kind; 6] = [Kind::Heap, Kind::Mapped, Kind::Stack, Kind::Shared, Kind::PageCache, Kind::Hugetlb];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 6] = ["heap", "mapped", "stack", "shared", "page_cache", "hugetlb"];

    pub fn from_number(number: u64) -> Option<Kind> {
        Kind::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Heap => "heap",
            Kind::Mapped => "mapped",
            Kind::Stack => "stack",
            Kind::Shared => "shared",
            Kind::PageCache => "page_cache",
            Kind::Hugetlb => "hugetlb",
        }
    }
}

/// `enum owner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum Owner {
    Unattributed = 0,
    Retained = 1,
    Own = 2,
}

impl Owner {
    pub const ALL: [Owner; 3] = [Owner::Unattributed, Owner::Retained, Owner::Own];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 3] = ["unattributed", "retained", "own"];

    pub fn from_number(number: u64) -> Option<Owner> {
        Owner::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Owner::Unattributed => "unattributed",
            Owner::Retained => "retained",
            Owner::Own => "own",
        }
    }
}

/// `enum pool_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum PoolStatus {
    Granted = 0,
    Exhausted = 1,
    OverUser = 2,
    OverCgroup = 3,
    Refused = 4,
}

impl PoolStatus {
    pub const ALL: [PoolStatus; 5] = [PoolStatus::Granted, PoolStatus::Exhausted, PoolStatus::OverUser, PoolStatus::OverCgroup, PoolStatus::Refused];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 5] = ["granted", "exhausted", "over_user", "over_cgroup", "refused"];

    pub fn from_number(number: u64) -> Option<PoolStatus> {
        PoolStatus::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            PoolStatus::Granted => "granted",
            PoolStatus::Exhausted => "exhausted",
            PoolStatus::OverUser => "over_user",
            PoolStatus::OverCgroup => "over_cgroup",
            PoolStatus::Refused => "refused",
        }
    }
}

/// `enum pool_zeroing_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum PoolZeroingState {
    NotToZero = 0,
    ToZero = 1,
    BeingZeroed = 2,
    Zeroed = 3,
}

impl PoolZeroingState {
    pub const ALL: [PoolZeroingState; 4] = [PoolZeroingState::NotToZero, PoolZeroingState::ToZero, PoolZeroingState::BeingZeroed, PoolZeroingState::Zeroed];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 4] = ["not_to_zero", "to_zero", "being_zeroed", "zeroed"];

    pub fn from_number(number: u64) -> Option<PoolZeroingState> {
        PoolZeroingState::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            PoolZeroingState::NotToZero => "not_to_zero",
            PoolZeroingState::ToZero => "to_zero",
            PoolZeroingState::BeingZeroed => "being_zeroed",
            PoolZeroingState::Zeroed => "zeroed",
        }
    }
}

/// `enum passed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum Passed {
    Small = 0,
    Reserved = 1,
    Stack = 2,
    Fixed = 3,
    Code = 4,
    Kind = 5,
    Edge = 6,
    Exhausted = 7,
    Cap = 8,
    NoPool = 9,
    TakenBack = 10,
    Forked = 11,
    Advised = 12,
}

impl Passed {
    pub const ALL: [Passed; 13] = [Passed::Small, Passed::Reserved, Passed::Stack, Passed::Fixed, Passed::Code, Passed::Kind, Passed::Edge, Passed::Exhausted, Passed::Cap, Passed::NoPool, Passed::TakenBack, Passed::Forked, Passed::Advised];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 13] = ["small", "reserved", "stack", "fixed", "code", "kind", "edge", "exhausted", "cap", "no_pool", "taken_back", "forked", "advised"];

    pub fn from_number(number: u64) -> Option<Passed> {
        Passed::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Passed::Small => "small",
            Passed::Reserved => "reserved",
            Passed::Stack => "stack",
            Passed::Fixed => "fixed",
            Passed::Code => "code",
            Passed::Kind => "kind",
            Passed::Edge => "edge",
            Passed::Exhausted => "exhausted",
            Passed::Cap => "cap",
            Passed::NoPool => "no_pool",
            Passed::TakenBack => "taken_back",
            Passed::Forked => "forked",
            Passed::Advised => "advised",
        }
    }
}

/// `enum provision_left_alone`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum ProvisionLeftAlone {
    Sanitizer = 1,
    Libc = 2,
}

impl ProvisionLeftAlone {
    pub const ALL: [ProvisionLeftAlone; 2] = [ProvisionLeftAlone::Sanitizer, ProvisionLeftAlone::Libc];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 2] = ["sanitizer", "libc"];

    pub fn from_number(number: u64) -> Option<ProvisionLeftAlone> {
        ProvisionLeftAlone::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            ProvisionLeftAlone::Sanitizer => "sanitizer",
            ProvisionLeftAlone::Libc => "libc",
        }
    }
}

/// `enum advice_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum AdviceKind {
    Mmap = 0,
    Heap = 1,
    Bss = 2,
    Data = 3,
}

impl AdviceKind {
    pub const ALL: [AdviceKind; 4] = [AdviceKind::Mmap, AdviceKind::Heap, AdviceKind::Bss, AdviceKind::Data];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 4] = ["mmap", "heap", "bss", "data"];

    pub fn from_number(number: u64) -> Option<AdviceKind> {
        AdviceKind::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            AdviceKind::Mmap => "mmap",
            AdviceKind::Heap => "heap",
            AdviceKind::Bss => "bss",
            AdviceKind::Data => "data",
        }
    }
}

/// `enum advice_action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum AdviceAction {
    Leave = 0,
    Huge = 1,
    Eager = 2,
    Base = 3,
    Pool = 4,
    Ahead = 5,
    Demote = 6,
}

impl AdviceAction {
    pub const ALL: [AdviceAction; 7] = [AdviceAction::Leave, AdviceAction::Huge, AdviceAction::Eager, AdviceAction::Base, AdviceAction::Pool, AdviceAction::Ahead, AdviceAction::Demote];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 7] = ["leave", "huge", "eager", "base", "pool", "ahead", "demote"];

    pub fn from_number(number: u64) -> Option<AdviceAction> {
        AdviceAction::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            AdviceAction::Leave => "leave",
            AdviceAction::Huge => "huge",
            AdviceAction::Eager => "eager",
            AdviceAction::Base => "base",
            AdviceAction::Pool => "pool",
            AdviceAction::Ahead => "ahead",
            AdviceAction::Demote => "demote",
        }
    }
}

/// `enum advice_why`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum AdviceWhy {
    ByRule = 0,
    InOrder = 1,
    LikeSuch = 2,
    Sparse = 3,
    NoBlocks = 4,
    NoRoom = 5,
}

impl AdviceWhy {
    pub const ALL: [AdviceWhy; 6] = [AdviceWhy::ByRule, AdviceWhy::InOrder, AdviceWhy::LikeSuch, AdviceWhy::Sparse, AdviceWhy::NoBlocks, AdviceWhy::NoRoom];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 6] = ["by_rule", "in_order", "like_such", "sparse", "no_blocks", "no_room"];

    pub fn from_number(number: u64) -> Option<AdviceWhy> {
        AdviceWhy::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            AdviceWhy::ByRule => "by_rule",
            AdviceWhy::InOrder => "in_order",
            AdviceWhy::LikeSuch => "like_such",
            AdviceWhy::Sparse => "sparse",
            AdviceWhy::NoBlocks => "no_blocks",
            AdviceWhy::NoRoom => "no_room",
        }
    }
}

/// `enum advice_left_alone`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum AdviceLeftAlone {
    Sanitizer = 1,
    Libc = 2,
    Disabled = 3,
}

impl AdviceLeftAlone {
    pub const ALL: [AdviceLeftAlone; 3] = [AdviceLeftAlone::Sanitizer, AdviceLeftAlone::Libc, AdviceLeftAlone::Disabled];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 3] = ["sanitizer", "libc", "disabled"];

    pub fn from_number(number: u64) -> Option<AdviceLeftAlone> {
        AdviceLeftAlone::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            AdviceLeftAlone::Sanitizer => "sanitizer",
            AdviceLeftAlone::Libc => "libc",
            AdviceLeftAlone::Disabled => "disabled",
        }
    }
}

/// `enum reference_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum ReferenceKind {
    Read = 0,
    Write = 1,
    Fault = 2,
    File = 3,
    Mapped = 4,
    Process = 5,
    Removed = 6,
    InMemory = 7,
}

impl ReferenceKind {
    pub const ALL: [ReferenceKind; 8] = [ReferenceKind::Read, ReferenceKind::Write, ReferenceKind::Fault, ReferenceKind::File, ReferenceKind::Mapped, ReferenceKind::Process, ReferenceKind::Removed, ReferenceKind::InMemory];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 8] = ["read", "write", "fault", "file", "mapped", "process", "removed", "in_memory"];

    pub fn from_number(number: u64) -> Option<ReferenceKind> {
        ReferenceKind::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            ReferenceKind::Read => "read",
            ReferenceKind::Write => "write",
            ReferenceKind::Fault => "fault",
            ReferenceKind::File => "file",
            ReferenceKind::Mapped => "mapped",
            ReferenceKind::Process => "process",
            ReferenceKind::Removed => "removed",
            ReferenceKind::InMemory => "in_memory",
        }
    }
}

/// `enum process_part`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum ProcessPart {
    Pid = 0,
    Parent = 1,
    BeganNs = 2,
    PeakBytes = 3,
    Resident = 4,
    Heap = 5,
    MostHeap = 6,
    Inherited = 7,
    Shares = 8,
    Own = 9,
    UserUs = 10,
    SystemUs = 11,
    MinorFaults = 12,
    MajorFaults = 13,
    Name = 14,
    NameRest = 15,
    Status = 16,
    EndedNs = 17,
    HeapAt = 18,
}

impl ProcessPart {
    pub const ALL: [ProcessPart; 19] = [ProcessPart::Pid, ProcessPart::Parent, ProcessPart::BeganNs, ProcessPart::PeakBytes, ProcessPart::Resident, ProcessPart::Heap, ProcessPart::MostHeap, ProcessPart::Inherited, ProcessPart::Shares, ProcessPart::Own, ProcessPart::UserUs, ProcessPart::SystemUs, ProcessPart::MinorFaults, ProcessPart::MajorFaults, ProcessPart::Name, ProcessPart::NameRest, ProcessPart::Status, ProcessPart::EndedNs, ProcessPart::HeapAt];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 19] = ["pid", "parent", "began_ns", "peak_bytes", "resident", "heap", "most_heap", "inherited", "shares", "own", "user_us", "system_us", "minor_faults", "major_faults", "name", "name_rest", "status", "ended_ns", "heap_at"];

    pub fn from_number(number: u64) -> Option<ProcessPart> {
        ProcessPart::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            ProcessPart::Pid => "pid",
            ProcessPart::Parent => "parent",
            ProcessPart::BeganNs => "began_ns",
            ProcessPart::PeakBytes => "peak_bytes",
            ProcessPart::Resident => "resident",
            ProcessPart::Heap => "heap",
            ProcessPart::MostHeap => "most_heap",
            ProcessPart::Inherited => "inherited",
            ProcessPart::Shares => "shares",
            ProcessPart::Own => "own",
            ProcessPart::UserUs => "user_us",
            ProcessPart::SystemUs => "system_us",
            ProcessPart::MinorFaults => "minor_faults",
            ProcessPart::MajorFaults => "major_faults",
            ProcessPart::Name => "name",
            ProcessPart::NameRest => "name_rest",
            ProcessPart::Status => "status",
            ProcessPart::EndedNs => "ended_ns",
            ProcessPart::HeapAt => "heap_at",
        }
    }
}

/// `enum reference_class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u32)]
pub enum ReferenceClass {
    PageCache = 0,
    Direct = 1,
    Dax = 2,
    Tmpfs = 3,
    Ramfs = 4,
    Hugetlbfs = 5,
    Nfs = 6,
    Cifs = 7,
    Plan9 = 8,
    Fuse = 9,
    Ceph = 10,
    Afs = 11,
    Lustre = 12,
    Gpfs = 13,
    Zfs = 14,
    Beegfs = 15,
}

impl ReferenceClass {
    pub const ALL: [ReferenceClass; 16] = [ReferenceClass::PageCache, ReferenceClass::Direct, ReferenceClass::Dax, ReferenceClass::Tmpfs, ReferenceClass::Ramfs, ReferenceClass::Hugetlbfs, ReferenceClass::Nfs, ReferenceClass::Cifs, ReferenceClass::Plan9, ReferenceClass::Fuse, ReferenceClass::Ceph, ReferenceClass::Afs, ReferenceClass::Lustre, ReferenceClass::Gpfs, ReferenceClass::Zfs, ReferenceClass::Beegfs];
    /// In the order of [`Self::ALL`].
    pub const NAMES: [&'static str; 16] = ["page_cache", "direct", "dax", "tmpfs", "ramfs", "hugetlbfs", "nfs", "cifs", "plan9", "fuse", "ceph", "afs", "lustre", "gpfs", "zfs", "beegfs"];

    pub fn from_number(number: u64) -> Option<ReferenceClass> {
        ReferenceClass::ALL.into_iter().find(|value| *value as u64 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            ReferenceClass::PageCache => "page_cache",
            ReferenceClass::Direct => "direct",
            ReferenceClass::Dax => "dax",
            ReferenceClass::Tmpfs => "tmpfs",
            ReferenceClass::Ramfs => "ramfs",
            ReferenceClass::Hugetlbfs => "hugetlbfs",
            ReferenceClass::Nfs => "nfs",
            ReferenceClass::Cifs => "cifs",
            ReferenceClass::Plan9 => "plan9",
            ReferenceClass::Fuse => "fuse",
            ReferenceClass::Ceph => "ceph",
            ReferenceClass::Afs => "afs",
            ReferenceClass::Lustre => "lustre",
            ReferenceClass::Gpfs => "gpfs",
            ReferenceClass::Zfs => "zfs",
            ReferenceClass::Beegfs => "beegfs",
        }
    }
}

/// `struct pool_request`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolRequest {
    pub magic: Vec<u8>,
    pub node: i32,
    pub flags: u32,
    pub bytes: u64,
    pub least: u64,
}

impl PoolRequest {
    pub const BYTES: usize = 32;
    pub const MAGIC_AT: usize = 0;
    pub const NODE_AT: usize = 8;
    pub const FLAGS_AT: usize = 12;
    pub const BYTES_AT: usize = 16;
    pub const LEAST_AT: usize = 24;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<PoolRequest> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(PoolRequest {
            magic: bytes[0..8].to_vec(),
            node: i32::from_le_bytes(field(bytes, 8)),
            flags: u32::from_le_bytes(field(bytes, 12)),
            bytes: u64::from_le_bytes(field(bytes, 16)),
            least: u64::from_le_bytes(field(bytes, 24)),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 8, &self.magic);
        put(&mut bytes, 8, 4, &self.node.to_le_bytes());
        put(&mut bytes, 12, 4, &self.flags.to_le_bytes());
        put(&mut bytes, 16, 8, &self.bytes.to_le_bytes());
        put(&mut bytes, 24, 8, &self.least.to_le_bytes());
        bytes
    }
}

/// `struct pool_segment`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolSegment {
    pub bytes: u64,
    pub node: i32,
    pub dirty: u32,
}

impl PoolSegment {
    pub const BYTES: usize = 16;
    pub const BYTES_AT: usize = 0;
    pub const NODE_AT: usize = 8;
    pub const DIRTY_AT: usize = 12;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<PoolSegment> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(PoolSegment {
            bytes: u64::from_le_bytes(field(bytes, 0)),
            node: i32::from_le_bytes(field(bytes, 8)),
            dirty: u32::from_le_bytes(field(bytes, 12)),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 8, &self.bytes.to_le_bytes());
        put(&mut bytes, 8, 4, &self.node.to_le_bytes());
        put(&mut bytes, 12, 4, &self.dirty.to_le_bytes());
        bytes
    }
}

/// `struct pool_reply`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolReply {
    pub status: u32,
    pub segments: u32,
    pub page_bytes: u64,
    pub free_bytes: u64,
    pub segment: Vec<PoolSegment>,
}

impl PoolReply {
    pub const BYTES: usize = 3864;
    pub const STATUS_AT: usize = 0;
    pub const SEGMENTS_AT: usize = 4;
    pub const PAGE_BYTES_AT: usize = 8;
    pub const FREE_BYTES_AT: usize = 16;
    pub const SEGMENT_AT: usize = 24;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<PoolReply> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(PoolReply {
            status: u32::from_le_bytes(field(bytes, 0)),
            segments: u32::from_le_bytes(field(bytes, 4)),
            page_bytes: u64::from_le_bytes(field(bytes, 8)),
            free_bytes: u64::from_le_bytes(field(bytes, 16)),
            segment: (0..240).map(|i| PoolSegment::read(&bytes[24 + i * 16..])).collect::<Option<_>>()?,
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 4, &self.status.to_le_bytes());
        put(&mut bytes, 4, 4, &self.segments.to_le_bytes());
        put(&mut bytes, 8, 8, &self.page_bytes.to_le_bytes());
        put(&mut bytes, 16, 8, &self.free_bytes.to_le_bytes());
        self.segment.iter().take(240).enumerate().for_each(|(i, one)| put(&mut bytes, 24 + i * 16, 16, &one.to_bytes()));
        bytes
    }
}

/// `struct pool_to_zero`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolToZero {
    pub magic: Vec<u8>,
    pub first_unit: u32,
    pub units: u32,
    pub unit_bytes: u64,
}

impl PoolToZero {
    pub const BYTES: usize = 24;
    pub const MAGIC_AT: usize = 0;
    pub const FIRST_UNIT_AT: usize = 8;
    pub const UNITS_AT: usize = 12;
    pub const UNIT_BYTES_AT: usize = 16;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<PoolToZero> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(PoolToZero {
            magic: bytes[0..8].to_vec(),
            first_unit: u32::from_le_bytes(field(bytes, 8)),
            units: u32::from_le_bytes(field(bytes, 12)),
            unit_bytes: u64::from_le_bytes(field(bytes, 16)),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 8, &self.magic);
        put(&mut bytes, 8, 4, &self.first_unit.to_le_bytes());
        put(&mut bytes, 12, 4, &self.units.to_le_bytes());
        put(&mut bytes, 16, 8, &self.unit_bytes.to_le_bytes());
        bytes
    }
}

/// `struct pool_zeroing`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolZeroing {
    pub asleep: u32,
    pub unused: Vec<u32>,
    pub state: Vec<u8>,
}

impl PoolZeroing {
    pub const BYTES: usize = 65536;
    pub const ASLEEP_AT: usize = 0;
    pub const UNUSED_AT: usize = 4;
    pub const STATE_AT: usize = 64;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<PoolZeroing> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(PoolZeroing {
            asleep: u32::from_le_bytes(field(bytes, 0)),
            unused: (0..15).map(|i| Some(u32::from_le_bytes(field(bytes, 4 + i * 4)))).collect::<Option<_>>()?,
            state: bytes[64..65536].to_vec(),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 4, &self.asleep.to_le_bytes());
        self.unused.iter().take(15).enumerate().for_each(|(i, one)| put(&mut bytes, 4 + i * 4, 4, &one.to_le_bytes()));
        put(&mut bytes, 64, 65472, &self.state);
        bytes
    }
}

/// `struct provision_passed`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProvisionPassed {
    pub calls: u64,
    pub bytes: u64,
}

impl ProvisionPassed {
    pub const BYTES: usize = 16;
    pub const CALLS_AT: usize = 0;
    pub const BYTES_AT: usize = 8;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<ProvisionPassed> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(ProvisionPassed {
            calls: u64::from_le_bytes(field(bytes, 0)),
            bytes: u64::from_le_bytes(field(bytes, 8)),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 8, &self.calls.to_le_bytes());
        put(&mut bytes, 8, 8, &self.bytes.to_le_bytes());
        bytes
    }
}

/// `struct provision_told`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProvisionTold {
    pub magic: Vec<u8>,
    pub bytes: u64,
    pub pid: u64,
    pub parent: u64,
    pub ticks: u64,
    pub rank_plus_1: u64,
    pub node_plus_1: u64,
    pub leased_bytes: u64,
    pub pool_bytes: u64,
    pub pool_bytes_peak: u64,
    pub demand_bytes: u64,
    pub demand_bytes_peak: u64,
    pub served_calls: u64,
    pub served_bytes: u64,
    pub start_ns: u64,
    pub lease_ns: u64,
    pub populate_ns: u64,
    pub zeroed_bytes: u64,
    pub zeroed_beside_bytes: u64,
    pub forks: u64,
    pub fork_ns: u64,
    pub fallbacks: u64,
    pub failed: u64,
    pub left_alone: u64,
    pub copied_bytes: u64,
    pub unwritten_bytes: u64,
    pub namespace: u64,
    pub passed: Vec<ProvisionPassed>,
    pub executable: Vec<u8>,
}

impl ProvisionTold {
    pub const BYTES: usize = 680;
    pub const MAGIC_AT: usize = 0;
    pub const BYTES_AT: usize = 8;
    pub const PID_AT: usize = 16;
    pub const PARENT_AT: usize = 24;
    pub const TICKS_AT: usize = 32;
    pub const RANK_PLUS_1_AT: usize = 40;
    pub const NODE_PLUS_1_AT: usize = 48;
    pub const LEASED_BYTES_AT: usize = 56;
    pub const POOL_BYTES_AT: usize = 64;
    pub const POOL_BYTES_PEAK_AT: usize = 72;
    pub const DEMAND_BYTES_AT: usize = 80;
    pub const DEMAND_BYTES_PEAK_AT: usize = 88;
    pub const SERVED_CALLS_AT: usize = 96;
    pub const SERVED_BYTES_AT: usize = 104;
    pub const START_NS_AT: usize = 112;
    pub const LEASE_NS_AT: usize = 120;
    pub const POPULATE_NS_AT: usize = 128;
    pub const ZEROED_BYTES_AT: usize = 136;
    pub const ZEROED_BESIDE_BYTES_AT: usize = 144;
    pub const FORKS_AT: usize = 152;
    pub const FORK_NS_AT: usize = 160;
    pub const FALLBACKS_AT: usize = 168;
    pub const FAILED_AT: usize = 176;
    pub const LEFT_ALONE_AT: usize = 184;
    pub const COPIED_BYTES_AT: usize = 192;
    pub const UNWRITTEN_BYTES_AT: usize = 200;
    pub const NAMESPACE_AT: usize = 208;
    pub const PASSED_AT: usize = 216;
    pub const EXECUTABLE_AT: usize = 424;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<ProvisionTold> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(ProvisionTold {
            magic: bytes[0..8].to_vec(),
            bytes: u64::from_le_bytes(field(bytes, 8)),
            pid: u64::from_le_bytes(field(bytes, 16)),
            parent: u64::from_le_bytes(field(bytes, 24)),
            ticks: u64::from_le_bytes(field(bytes, 32)),
            rank_plus_1: u64::from_le_bytes(field(bytes, 40)),
            node_plus_1: u64::from_le_bytes(field(bytes, 48)),
            leased_bytes: u64::from_le_bytes(field(bytes, 56)),
            pool_bytes: u64::from_le_bytes(field(bytes, 64)),
            pool_bytes_peak: u64::from_le_bytes(field(bytes, 72)),
            demand_bytes: u64::from_le_bytes(field(bytes, 80)),
            demand_bytes_peak: u64::from_le_bytes(field(bytes, 88)),
            served_calls: u64::from_le_bytes(field(bytes, 96)),
            served_bytes: u64::from_le_bytes(field(bytes, 104)),
            start_ns: u64::from_le_bytes(field(bytes, 112)),
            lease_ns: u64::from_le_bytes(field(bytes, 120)),
            populate_ns: u64::from_le_bytes(field(bytes, 128)),
            zeroed_bytes: u64::from_le_bytes(field(bytes, 136)),
            zeroed_beside_bytes: u64::from_le_bytes(field(bytes, 144)),
            forks: u64::from_le_bytes(field(bytes, 152)),
            fork_ns: u64::from_le_bytes(field(bytes, 160)),
            fallbacks: u64::from_le_bytes(field(bytes, 168)),
            failed: u64::from_le_bytes(field(bytes, 176)),
            left_alone: u64::from_le_bytes(field(bytes, 184)),
            copied_bytes: u64::from_le_bytes(field(bytes, 192)),
            unwritten_bytes: u64::from_le_bytes(field(bytes, 200)),
            namespace: u64::from_le_bytes(field(bytes, 208)),
            passed: (0..13).map(|i| ProvisionPassed::read(&bytes[216 + i * 16..])).collect::<Option<_>>()?,
            executable: bytes[424..680].to_vec(),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 8, &self.magic);
        put(&mut bytes, 8, 8, &self.bytes.to_le_bytes());
        put(&mut bytes, 16, 8, &self.pid.to_le_bytes());
        put(&mut bytes, 24, 8, &self.parent.to_le_bytes());
        put(&mut bytes, 32, 8, &self.ticks.to_le_bytes());
        put(&mut bytes, 40, 8, &self.rank_plus_1.to_le_bytes());
        put(&mut bytes, 48, 8, &self.node_plus_1.to_le_bytes());
        put(&mut bytes, 56, 8, &self.leased_bytes.to_le_bytes());
        put(&mut bytes, 64, 8, &self.pool_bytes.to_le_bytes());
        put(&mut bytes, 72, 8, &self.pool_bytes_peak.to_le_bytes());
        put(&mut bytes, 80, 8, &self.demand_bytes.to_le_bytes());
        put(&mut bytes, 88, 8, &self.demand_bytes_peak.to_le_bytes());
        put(&mut bytes, 96, 8, &self.served_calls.to_le_bytes());
        put(&mut bytes, 104, 8, &self.served_bytes.to_le_bytes());
        put(&mut bytes, 112, 8, &self.start_ns.to_le_bytes());
        put(&mut bytes, 120, 8, &self.lease_ns.to_le_bytes());
        put(&mut bytes, 128, 8, &self.populate_ns.to_le_bytes());
        put(&mut bytes, 136, 8, &self.zeroed_bytes.to_le_bytes());
        put(&mut bytes, 144, 8, &self.zeroed_beside_bytes.to_le_bytes());
        put(&mut bytes, 152, 8, &self.forks.to_le_bytes());
        put(&mut bytes, 160, 8, &self.fork_ns.to_le_bytes());
        put(&mut bytes, 168, 8, &self.fallbacks.to_le_bytes());
        put(&mut bytes, 176, 8, &self.failed.to_le_bytes());
        put(&mut bytes, 184, 8, &self.left_alone.to_le_bytes());
        put(&mut bytes, 192, 8, &self.copied_bytes.to_le_bytes());
        put(&mut bytes, 200, 8, &self.unwritten_bytes.to_le_bytes());
        put(&mut bytes, 208, 8, &self.namespace.to_le_bytes());
        self.passed.iter().take(13).enumerate().for_each(|(i, one)| put(&mut bytes, 216 + i * 16, 16, &one.to_bytes()));
        put(&mut bytes, 424, 256, &self.executable);
        bytes
    }
}

/// `struct advice_decision`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdviceDecision {
    pub t_ns: u64,
    pub address: u64,
    pub from: u64,
    pub bytes: u64,
    pub kind: u32,
    pub size_class: u32,
    pub ordinal: u64,
    pub action: u32,
    pub why: u32,
    pub cost_ns: u64,
    pub benefit_ns: u64,
    pub object: Vec<u8>,
}

impl AdviceDecision {
    pub const BYTES: usize = 120;
    pub const T_NS_AT: usize = 0;
    pub const ADDRESS_AT: usize = 8;
    pub const FROM_AT: usize = 16;
    pub const BYTES_AT: usize = 24;
    pub const KIND_AT: usize = 32;
    pub const SIZE_CLASS_AT: usize = 36;
    pub const ORDINAL_AT: usize = 40;
    pub const ACTION_AT: usize = 48;
    pub const WHY_AT: usize = 52;
    pub const COST_NS_AT: usize = 56;
    pub const BENEFIT_NS_AT: usize = 64;
    pub const OBJECT_AT: usize = 72;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<AdviceDecision> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(AdviceDecision {
            t_ns: u64::from_le_bytes(field(bytes, 0)),
            address: u64::from_le_bytes(field(bytes, 8)),
            from: u64::from_le_bytes(field(bytes, 16)),
            bytes: u64::from_le_bytes(field(bytes, 24)),
            kind: u32::from_le_bytes(field(bytes, 32)),
            size_class: u32::from_le_bytes(field(bytes, 36)),
            ordinal: u64::from_le_bytes(field(bytes, 40)),
            action: u32::from_le_bytes(field(bytes, 48)),
            why: u32::from_le_bytes(field(bytes, 52)),
            cost_ns: u64::from_le_bytes(field(bytes, 56)),
            benefit_ns: u64::from_le_bytes(field(bytes, 64)),
            object: bytes[72..120].to_vec(),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 8, &self.t_ns.to_le_bytes());
        put(&mut bytes, 8, 8, &self.address.to_le_bytes());
        put(&mut bytes, 16, 8, &self.from.to_le_bytes());
        put(&mut bytes, 24, 8, &self.bytes.to_le_bytes());
        put(&mut bytes, 32, 4, &self.kind.to_le_bytes());
        put(&mut bytes, 36, 4, &self.size_class.to_le_bytes());
        put(&mut bytes, 40, 8, &self.ordinal.to_le_bytes());
        put(&mut bytes, 48, 4, &self.action.to_le_bytes());
        put(&mut bytes, 52, 4, &self.why.to_le_bytes());
        put(&mut bytes, 56, 8, &self.cost_ns.to_le_bytes());
        put(&mut bytes, 64, 8, &self.benefit_ns.to_le_bytes());
        put(&mut bytes, 72, 48, &self.object);
        bytes
    }
}

/// `struct advice_told`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdviceTold {
    pub magic: Vec<u8>,
    pub bytes: u64,
    pub pid: u64,
    pub parent: u64,
    pub ticks: u64,
    pub left_alone: u64,
    pub promoted: u64,
    pub demoted: u64,
    pub populated_bytes: u64,
    pub advised_bytes: u64,
    pub helper_cpu_ns: u64,
    pub ranges: u64,
    pub ranges_lost: u64,
    pub rules_matched: u64,
    pub rules_unmatched: u64,
    pub rules_of_others: u64,
    pub huge_bytes_peak: u64,
    pub anonymous_bytes_peak: u64,
    pub start_ns: u64,
    pub decisions: u64,
    pub namespace: u64,
    pub executable: Vec<u8>,
    pub decision: Vec<AdviceDecision>,
}

impl AdviceTold {
    pub const BYTES: usize = 120424;
    pub const MAGIC_AT: usize = 0;
    pub const BYTES_AT: usize = 8;
    pub const PID_AT: usize = 16;
    pub const PARENT_AT: usize = 24;
    pub const TICKS_AT: usize = 32;
    pub const LEFT_ALONE_AT: usize = 40;
    pub const PROMOTED_AT: usize = 48;
    pub const DEMOTED_AT: usize = 56;
    pub const POPULATED_BYTES_AT: usize = 64;
    pub const ADVISED_BYTES_AT: usize = 72;
    pub const HELPER_CPU_NS_AT: usize = 80;
    pub const RANGES_AT: usize = 88;
    pub const RANGES_LOST_AT: usize = 96;
    pub const RULES_MATCHED_AT: usize = 104;
    pub const RULES_UNMATCHED_AT: usize = 112;
    pub const RULES_OF_OTHERS_AT: usize = 120;
    pub const HUGE_BYTES_PEAK_AT: usize = 128;
    pub const ANONYMOUS_BYTES_PEAK_AT: usize = 136;
    pub const START_NS_AT: usize = 144;
    pub const DECISIONS_AT: usize = 152;
    pub const NAMESPACE_AT: usize = 160;
    pub const EXECUTABLE_AT: usize = 168;
    pub const DECISION_AT: usize = 424;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<AdviceTold> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(AdviceTold {
            magic: bytes[0..8].to_vec(),
            bytes: u64::from_le_bytes(field(bytes, 8)),
            pid: u64::from_le_bytes(field(bytes, 16)),
            parent: u64::from_le_bytes(field(bytes, 24)),
            ticks: u64::from_le_bytes(field(bytes, 32)),
            left_alone: u64::from_le_bytes(field(bytes, 40)),
            promoted: u64::from_le_bytes(field(bytes, 48)),
            demoted: u64::from_le_bytes(field(bytes, 56)),
            populated_bytes: u64::from_le_bytes(field(bytes, 64)),
            advised_bytes: u64::from_le_bytes(field(bytes, 72)),
            helper_cpu_ns: u64::from_le_bytes(field(bytes, 80)),
            ranges: u64::from_le_bytes(field(bytes, 88)),
            ranges_lost: u64::from_le_bytes(field(bytes, 96)),
            rules_matched: u64::from_le_bytes(field(bytes, 104)),
            rules_unmatched: u64::from_le_bytes(field(bytes, 112)),
            rules_of_others: u64::from_le_bytes(field(bytes, 120)),
            huge_bytes_peak: u64::from_le_bytes(field(bytes, 128)),
            anonymous_bytes_peak: u64::from_le_bytes(field(bytes, 136)),
            start_ns: u64::from_le_bytes(field(bytes, 144)),
            decisions: u64::from_le_bytes(field(bytes, 152)),
            namespace: u64::from_le_bytes(field(bytes, 160)),
            executable: bytes[168..424].to_vec(),
            decision: (0..1000).map(|i| AdviceDecision::read(&bytes[424 + i * 120..])).collect::<Option<_>>()?,
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 8, &self.magic);
        put(&mut bytes, 8, 8, &self.bytes.to_le_bytes());
        put(&mut bytes, 16, 8, &self.pid.to_le_bytes());
        put(&mut bytes, 24, 8, &self.parent.to_le_bytes());
        put(&mut bytes, 32, 8, &self.ticks.to_le_bytes());
        put(&mut bytes, 40, 8, &self.left_alone.to_le_bytes());
        put(&mut bytes, 48, 8, &self.promoted.to_le_bytes());
        put(&mut bytes, 56, 8, &self.demoted.to_le_bytes());
        put(&mut bytes, 64, 8, &self.populated_bytes.to_le_bytes());
        put(&mut bytes, 72, 8, &self.advised_bytes.to_le_bytes());
        put(&mut bytes, 80, 8, &self.helper_cpu_ns.to_le_bytes());
        put(&mut bytes, 88, 8, &self.ranges.to_le_bytes());
        put(&mut bytes, 96, 8, &self.ranges_lost.to_le_bytes());
        put(&mut bytes, 104, 8, &self.rules_matched.to_le_bytes());
        put(&mut bytes, 112, 8, &self.rules_unmatched.to_le_bytes());
        put(&mut bytes, 120, 8, &self.rules_of_others.to_le_bytes());
        put(&mut bytes, 128, 8, &self.huge_bytes_peak.to_le_bytes());
        put(&mut bytes, 136, 8, &self.anonymous_bytes_peak.to_le_bytes());
        put(&mut bytes, 144, 8, &self.start_ns.to_le_bytes());
        put(&mut bytes, 152, 8, &self.decisions.to_le_bytes());
        put(&mut bytes, 160, 8, &self.namespace.to_le_bytes());
        put(&mut bytes, 168, 256, &self.executable);
        self.decision.iter().take(1000).enumerate().for_each(|(i, one)| put(&mut bytes, 424 + i * 120, 120, &one.to_bytes()));
        bytes
    }
}

/// `struct reference`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    pub what: u64,
    pub place: u64,
}

impl Reference {
    pub const BYTES: usize = 16;
    pub const WHAT_AT: usize = 0;
    pub const PLACE_AT: usize = 8;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<Reference> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(Reference {
            what: u64::from_le_bytes(field(bytes, 0)),
            place: u64::from_le_bytes(field(bytes, 8)),
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 8, &self.what.to_le_bytes());
        put(&mut bytes, 8, 8, &self.place.to_le_bytes());
        bytes
    }
}

/// `struct reference_run`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReferenceRun {
    pub file: u32,
    pub pages: u32,
    pub first_page: u64,
    pub kind: u32,
    pub ms: u32,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub unused: Vec<u64>,
}

impl ReferenceRun {
    pub const BYTES: usize = 64;
    pub const FILE_AT: usize = 0;
    pub const PAGES_AT: usize = 4;
    pub const FIRST_PAGE_AT: usize = 8;
    pub const KIND_AT: usize = 16;
    pub const MS_AT: usize = 20;
    pub const READ_BYTES_AT: usize = 24;
    pub const WRITTEN_BYTES_AT: usize = 32;
    pub const UNUSED_AT: usize = 40;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<ReferenceRun> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(ReferenceRun {
            file: u32::from_le_bytes(field(bytes, 0)),
            pages: u32::from_le_bytes(field(bytes, 4)),
            first_page: u64::from_le_bytes(field(bytes, 8)),
            kind: u32::from_le_bytes(field(bytes, 16)),
            ms: u32::from_le_bytes(field(bytes, 20)),
            read_bytes: u64::from_le_bytes(field(bytes, 24)),
            written_bytes: u64::from_le_bytes(field(bytes, 32)),
            unused: (0..3).map(|i| Some(u64::from_le_bytes(field(bytes, 40 + i * 8)))).collect::<Option<_>>()?,
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 4, &self.file.to_le_bytes());
        put(&mut bytes, 4, 4, &self.pages.to_le_bytes());
        put(&mut bytes, 8, 8, &self.first_page.to_le_bytes());
        put(&mut bytes, 16, 4, &self.kind.to_le_bytes());
        put(&mut bytes, 20, 4, &self.ms.to_le_bytes());
        put(&mut bytes, 24, 8, &self.read_bytes.to_le_bytes());
        put(&mut bytes, 32, 8, &self.written_bytes.to_le_bytes());
        self.unused.iter().take(3).enumerate().for_each(|(i, one)| put(&mut bytes, 40 + i * 8, 8, &one.to_le_bytes()));
        bytes
    }
}

/// `struct reference_head`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReferenceHead {
    pub magic: Vec<u8>,
    pub bytes: u64,
    pub tail: u64,
    pub processes: u64,
    pub unpatched: u64,
    pub lost: u64,
    pub runs: u64,
    pub hold_until_ms: u64,
    pub ended: u64,
    pub with_io_uring: u64,
    pub wants_paths: u64,
    pub pipe_bytes: u64,
    pub unused: Vec<u64>,
    pub head: u64,
    pub unused_too: Vec<u64>,
    pub hidden_bytes: Vec<u64>,
}

impl ReferenceHead {
    pub const BYTES: usize = 320;
    pub const MAGIC_AT: usize = 0;
    pub const BYTES_AT: usize = 8;
    pub const TAIL_AT: usize = 16;
    pub const PROCESSES_AT: usize = 24;
    pub const UNPATCHED_AT: usize = 32;
    pub const LOST_AT: usize = 40;
    pub const RUNS_AT: usize = 48;
    pub const HOLD_UNTIL_MS_AT: usize = 56;
    pub const ENDED_AT: usize = 64;
    pub const WITH_IO_URING_AT: usize = 72;
    pub const WANTS_PATHS_AT: usize = 80;
    pub const PIPE_BYTES_AT: usize = 88;
    pub const UNUSED_AT: usize = 96;
    pub const HEAD_AT: usize = 128;
    pub const UNUSED_TOO_AT: usize = 136;
    pub const HIDDEN_BYTES_AT: usize = 192;

    /// `None`: too few bytes.
    pub fn read(bytes: &[u8]) -> Option<ReferenceHead> {
        let bytes = bytes.get(..Self::BYTES)?;
        Some(ReferenceHead {
            magic: bytes[0..8].to_vec(),
            bytes: u64::from_le_bytes(field(bytes, 8)),
            tail: u64::from_le_bytes(field(bytes, 16)),
            processes: u64::from_le_bytes(field(bytes, 24)),
            unpatched: u64::from_le_bytes(field(bytes, 32)),
            lost: u64::from_le_bytes(field(bytes, 40)),
            runs: u64::from_le_bytes(field(bytes, 48)),
            hold_until_ms: u64::from_le_bytes(field(bytes, 56)),
            ended: u64::from_le_bytes(field(bytes, 64)),
            with_io_uring: u64::from_le_bytes(field(bytes, 72)),
            wants_paths: u64::from_le_bytes(field(bytes, 80)),
            pipe_bytes: u64::from_le_bytes(field(bytes, 88)),
            unused: (0..4).map(|i| Some(u64::from_le_bytes(field(bytes, 96 + i * 8)))).collect::<Option<_>>()?,
            head: u64::from_le_bytes(field(bytes, 128)),
            unused_too: (0..7).map(|i| Some(u64::from_le_bytes(field(bytes, 136 + i * 8)))).collect::<Option<_>>()?,
            hidden_bytes: (0..16).map(|i| Some(u64::from_le_bytes(field(bytes, 192 + i * 8)))).collect::<Option<_>>()?,
        })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        put(&mut bytes, 0, 8, &self.magic);
        put(&mut bytes, 8, 8, &self.bytes.to_le_bytes());
        put(&mut bytes, 16, 8, &self.tail.to_le_bytes());
        put(&mut bytes, 24, 8, &self.processes.to_le_bytes());
        put(&mut bytes, 32, 8, &self.unpatched.to_le_bytes());
        put(&mut bytes, 40, 8, &self.lost.to_le_bytes());
        put(&mut bytes, 48, 8, &self.runs.to_le_bytes());
        put(&mut bytes, 56, 8, &self.hold_until_ms.to_le_bytes());
        put(&mut bytes, 64, 8, &self.ended.to_le_bytes());
        put(&mut bytes, 72, 8, &self.with_io_uring.to_le_bytes());
        put(&mut bytes, 80, 8, &self.wants_paths.to_le_bytes());
        put(&mut bytes, 88, 8, &self.pipe_bytes.to_le_bytes());
        self.unused.iter().take(4).enumerate().for_each(|(i, one)| put(&mut bytes, 96 + i * 8, 8, &one.to_le_bytes()));
        put(&mut bytes, 128, 8, &self.head.to_le_bytes());
        self.unused_too.iter().take(7).enumerate().for_each(|(i, one)| put(&mut bytes, 136 + i * 8, 8, &one.to_le_bytes()));
        self.hidden_bytes.iter().take(16).enumerate().for_each(|(i, one)| put(&mut bytes, 192 + i * 8, 8, &one.to_le_bytes()));
        bytes
    }
}

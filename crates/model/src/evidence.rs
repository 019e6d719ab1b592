//! What shows whether a run's figures are of the job, and the doubts made of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes that a command moved, with all descendants that were waited for (`/proc/PID/io`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct BytesMoved {
    /// By read calls: files, cached or not, pipes and terminals.
    pub read: u64,
    /// By write calls.
    pub written: u64,
    /// Read from storage.
    pub storage_read: u64,
    /// Sent to storage, or to be sent.
    pub storage_written: u64,
}

impl BytesMoved {
    /// What was moved after `before`.
    pub fn since(self, before: BytesMoved) -> BytesMoved {
        BytesMoved {
            read: self.read.saturating_sub(before.read),
            written: self.written.saturating_sub(before.written),
            storage_read: self.storage_read.saturating_sub(before.storage_read),
            storage_written: self.storage_written.saturating_sub(before.storage_written),
        }
    }
}

/// Something with a name, and how much memory it had.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Named {
    /// A program, a file, a segment.
    pub name: String,
    /// Bytes, if known.
    pub bytes: Option<u64>,
}

/// Upper bounds of kernel buffers, which only a cgroup counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Buffers {
    /// Pipes that the job had open at once.
    pub pipes: u64,
    /// What they can hold.
    pub pipe_bytes: u64,
    /// Sockets whose buffers the kernel did not report.
    pub unknown_sockets: u64,
    /// What they can hold by default.
    pub socket_bytes: u64,
}

impl Buffers {
    /// There were none.
    pub fn is_empty(&self) -> bool {
        *self == Buffers::default()
    }

    /// The larger of each.
    pub fn most(self, other: Buffers) -> Buffers {
        Buffers {
            pipes: self.pipes.max(other.pipes),
            pipe_bytes: self.pipe_bytes.max(other.pipe_bytes),
            unknown_sockets: self.unknown_sockets.max(other.unknown_sockets),
            socket_bytes: self.socket_bytes.max(other.socket_bytes),
        }
    }
}

/// Facts about one run that show whether its figures are of the job. A fact that was not checked is empty or `None`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Bytes that the command read and wrote.
    pub moved: Option<BytesMoved>,
    /// So much at most did processes obtain that told nothing of themselves, and of which no sample told: a page for each of their page
    /// faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold_bytes: Option<u64>,
    /// Processes of the job that were seen in another cgroup, with their peak RSS.
    pub outside: Vec<Named>,
    /// Processes of the job that went on when the command ended, with their RSS then.
    pub went_on: Vec<Named>,
    /// Files on tmpfs and System V segments that were there before and were used while the command ran.
    pub shared_before: Vec<Named>,
    /// Files in memory that processes of the job opened, with what of each was charged elsewhere then: the largest, and the sum of
    /// the others as one. Unlike `shared_before` it is known that the job used them.
    pub shared_opened: Vec<Named>,
    /// There may be more of those: the kernel lost events.
    pub shared_opened_is_incomplete: bool,
    /// Peak of the shared memory that the job had mapped: of the process that had most, or in proportion.
    pub shared_mapped_bytes: Option<u64>,
    /// Peak of the pages of the hugetlb pools that the process with most of them had mapped.
    pub hugetlb_mapped_bytes: Option<u64>,
    /// Without a cgroup: peak of the files on tmpfs and ramfs and of the memfds that the job had open, beyond what it had mapped, by
    /// the name of the largest. They are in no RSS.
    pub files_in_memory: Option<Named>,
    /// Likewise the most that heap and these files took at the same time, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_files_in_memory_bytes: Option<u64>,
    /// Without a cgroup: so much more than its page tables showed may the job have held in shared memory that it mapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmapped_shared_bytes: Option<u64>,
    /// Without a cgroup: the job's pipes and sockets, as far as the kernel does not tell what they hold.
    #[serde(skip_serializing_if = "Buffers::is_empty")]
    pub buffers: Buffers,
    /// What bursar itself, and what started it, held of the job's cgroup at most; taken off all figures.
    pub own_bytes: Option<u64>,
    /// bursar was sent a signal to end (Ctrl-C, SIGTERM, a hang-up), and so was the command.
    pub interrupted: bool,
    /// The command waited for no child: the status that it exited with is its own, and no signal's that ended a child.
    pub waited_for_none: bool,
    /// Why the command had not the standard input that bursar has.
    pub input_missing: Option<String>,
    /// Where its page cache was counted, and held to a limit, from outside the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<EmulatedLimit>,
}

/// What holding a run's page cache to a limit showed, where no cgroup did it: `emulate`. Without a limit, what it held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct EmulatedLimit {
    /// The most that it held and had in the page cache at once.
    pub peak_bytes: u64,
    /// Of it the page cache.
    pub peak_cached_bytes: u64,
    /// The most page cache, perhaps at another time. Records of older versions do not have it.
    pub most_cached_bytes: Option<u64>,
    /// File pages that were dropped and referenced again.
    pub read_again_pages: u64,
    /// File pages that were dropped, each time.
    pub dropped_bytes: u64,
    /// By how much it was above the limit: mean over the run's time.
    pub above_bytes: u64,
    /// Distinct pages of files that could not be opened: they are neither counted nor dropped.
    pub out_of_reach_bytes: u64,
    /// Distinct pages that it mapped: they are not dropped.
    pub mapped_bytes: u64,
    /// Distinct pages of programs and libraries that it touched: nor are they.
    pub loaded_bytes: u64,
}

/// Kinds of reasons why the figures may not be of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DoubtKind {
    /// Processes of it ran in another cgroup, where they were neither counted nor limited.
    LeftCgroup,
    /// The command is the client of a server that does the work.
    Client,
    /// The command had not the input that it was given.
    InputMissing,
    /// It uses shared memory that was there before and is charged elsewhere.
    SharedBefore,
    /// It read files that were in the page cache before and are charged elsewhere.
    CachedBefore,
    /// It read what no rung of the ladder sees.
    NotSeen,
    /// It held, or may have held, memory that cannot be reclaimed and that no rung of the ladder counts.
    NotCounted,
    /// It had files in memory, which no rung of the ladder counts: at least as much as looks saw of them.
    FilesInMemory,
    /// The memory of its processes together is known between two bounds; figures and answers use the upper one.
    BetweenBounds,
    /// The cgroup's charge holds memory of processes that are not the job's.
    OthersInCgroup,
    /// Processes of it went on when the command ended.
    WentOn,
    /// Equal runs did different amounts of work.
    WorkDiffers,
    /// A limit was emulated, and the run was not held to it.
    LimitNotHeld,
}

/// One reason to doubt that a figure is of the job.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Doubt {
    /// Which.
    pub kind: DoubtKind,
    /// The memory or the data concerned, if known.
    pub bytes: Option<u64>,
    /// The memory of the job is unknown because of it: there is no figure.
    pub voids: bool,
    /// Memory of the job is, or may be, missing from its peak, which is then a lower bound. Records of older versions do not have it.
    #[serde(default)]
    pub missing_from_peak: bool,
    /// A clause for the first lines, without a capital letter and a full stop.
    pub sentence: String,
}

impl Doubt {
    /// Whether a job may be killed under a limit by that figure: memory that cannot be reclaimed is, or may be, missing from it.
    pub fn may_kill(&self) -> bool {
        use DoubtKind::{BetweenBounds, CachedBefore, NotSeen, OthersInCgroup};
        !matches!(self.kind, BetweenBounds | CachedBefore | NotSeen | OthersInCgroup)
    }

    /// How much memory that cannot be reclaimed is known to be missing from that figure, or may be.
    pub fn missing_bytes(&self) -> Option<u64> {
        use DoubtKind::{FilesInMemory, LeftCgroup, NotCounted, SharedBefore};
        self.bytes.filter(|_| matches!(self.kind, FilesInMemory | LeftCgroup | NotCounted | SharedBefore))
    }
}

impl Evidence {
    /// Of a job whose parts these are.
    pub fn join(parts: impl IntoIterator<Item = Evidence>) -> Evidence {
        let most = |a: Option<u64>, b: Option<u64>| a.max(b);
        parts.into_iter().fold(Evidence::default(), |mut all, part| {
            all.moved = match (all.moved, part.moved) {
                (Some(a), Some(b)) => Some(BytesMoved {
                    read: a.read.saturating_add(b.read),
                    written: a.written.saturating_add(b.written),
                    storage_read: a.storage_read.saturating_add(b.storage_read),
                    storage_written: a.storage_written.saturating_add(b.storage_written),
                }),
                (a, b) => a.or(b),
            };
            all.outside.extend(part.outside);
            all.went_on.extend(part.went_on);
            all.shared_before.extend(part.shared_before);
            all.shared_opened.extend(part.shared_opened);
            all.shared_opened_is_incomplete |= part.shared_opened_is_incomplete;
            all.shared_mapped_bytes = most(all.shared_mapped_bytes, part.shared_mapped_bytes);
            all.hugetlb_mapped_bytes = most(all.hugetlb_mapped_bytes, part.hugetlb_mapped_bytes);
            all.files_in_memory =
                [all.files_in_memory, part.files_in_memory].into_iter().flatten().max_by_key(|files| files.bytes);
            all.with_files_in_memory_bytes = most(all.with_files_in_memory_bytes, part.with_files_in_memory_bytes);
            all.unmapped_shared_bytes = most(all.unmapped_shared_bytes, part.unmapped_shared_bytes);
            all.buffers = all.buffers.most(part.buffers);
            all.own_bytes = most(all.own_bytes, part.own_bytes);
            all.interrupted |= part.interrupted;
            all.input_missing = all.input_missing.or(part.input_missing);
            all
        })
    }
}

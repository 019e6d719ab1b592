//! Who inside a program held its memory: what `bursar attribute --json` prints.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Spread;

/// How a note begins that says of a pattern of a component that it matches nothing.
pub const UNMATCHED_NOTE: &str = "--component ";

/// The rule by which memory is a component's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// The component's call obtained the memory.
    #[default]
    Owner,
    /// The component's code touched the memory first.
    Touch,
}

/// A rank among those of all the worlds of a run: `0`, and of the second world `w2:0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankId {
    /// The number of its `MPI_COMM_WORLD`, from 1 in the order in which they began.
    pub world: u32,
    /// Its number there.
    pub rank: u32,
}

/// Kinds of memory, in the order in which the in-process logs number them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryKind {
    /// Blocks of the allocator.
    Heap,
    /// Anonymous private mappings beside the heap.
    Mapped,
    /// Stacks of threads.
    Stacks,
    /// Shared memory.
    Shared,
    /// Mapped files, the program's own and its libraries' included.
    PageCache,
    /// Pages of the hugetlb pools, which RSS and PSS of the kernel leave out.
    Hugetlb,
}

/// Bytes by kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct KindBytes {
    /// [`MemoryKind::Heap`].
    pub heap: u64,
    /// [`MemoryKind::Mapped`].
    pub mapped: u64,
    /// [`MemoryKind::Stacks`].
    pub stacks: u64,
    /// [`MemoryKind::Shared`].
    pub shared: u64,
    /// [`MemoryKind::PageCache`].
    pub page_cache: u64,
    /// [`MemoryKind::Hugetlb`].
    pub hugetlb: u64,
}

/// What one component held of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RankHolding {
    /// Peak, by RSS.
    pub peak_bytes: u64,
    /// Peak by PSS, which may be at another moment.
    pub peak_pss_bytes: u64,
    /// By RSS, when the rank's largest process ended.
    pub at_end_bytes: u64,
    /// Parts of the peak.
    #[serde(flatten)]
    pub at_peak: KindBytes,
}

/// What one component held of all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Holding {
    /// Peak of the sum over the ranks by PSS, so that what processes of a host share counts once.
    pub peak_bytes: u64,
    /// Peak of the sum of RSS: shared memory counts once per process.
    pub peak_rss_bytes: u64,
    /// When the first rank, or without ranks the largest process, ended; counted as `peak_bytes`.
    pub at_end_bytes: u64,
    /// Parts of the peak.
    #[serde(flatten)]
    pub at_peak: KindBytes,
    /// The ranks' own peaks by RSS.
    pub rank_peaks: Spread,
    /// The ranks' own peaks by PSS.
    pub rank_peaks_pss: Spread,
}

/// Growth of memory during `MPI_Init`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct InitGrowth {
    /// The function that was called.
    pub function: String,
    /// Ranks that came through it.
    pub ranks: u32,
    /// How long it took, mean over the ranks.
    pub seconds: f64,
    /// Growth of the ranks' RSS.
    pub grew_bytes: Spread,
    /// The same by component, mean over the ranks.
    pub components: BTreeMap<String, i64>,
    /// The same by library, mean over the ranks, largest first.
    pub libraries: Vec<LibraryGrowth>,
}

/// Growth of one library's memory during `MPI_Init`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LibraryGrowth {
    /// The component it counts to.
    pub component: String,
    /// Its file.
    pub library: String,
    /// Mean over the ranks.
    pub grew_bytes: i64,
}

/// One rank's `MPI_Init`.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RankInit {
    /// When it began, since the run did.
    pub begin_seconds: f64,
    /// When it ended.
    pub end_seconds: f64,
    /// Growth of RSS.
    pub grew_bytes: i64,
}

/// One rank; without MPI, one process.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RankUse {
    /// Its number; `None` in a run without ranks.
    pub rank: Option<u32>,
    /// The number of its `MPI_COMM_WORLD`, from 1: ranks that others spawn have their own.
    pub world: Option<u32>,
    /// Its largest process.
    pub pid: i32,
    /// Start of that in clock ticks since boot.
    pub start_ticks: u64,
    /// Where it ran.
    pub host: String,
    /// That process's executable.
    pub command: String,
    /// Peak of all but bursar's own, by RSS.
    pub total_peak_bytes: u64,
    /// The same by PSS.
    pub total_peak_pss_bytes: u64,
    /// Peak of what could not be explained.
    pub unattributed_peak_bytes: u64,
    /// Peak of resident memory that was free in the allocator; `None` with `--by touch`.
    pub allocator_retained_peak_bytes: Option<u64>,
    /// Peak of bursar's own memory, which is in no other figure.
    pub own_bytes: u64,
    /// By component.
    pub components: BTreeMap<String, RankHolding>,
    /// `None`: it did not come through `MPI_Init`.
    pub init: Option<RankInit>,
    /// How it ended: `exit`; `None`: its log does not say, as after a kill.
    pub ended: Option<String>,
}

/// A process of an MPI run that is no rank: a shell, a helper.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct OtherProcess {
    /// Its PID.
    pub pid: i32,
    /// Where it ran.
    pub host: String,
    /// Its executable.
    pub command: String,
    /// Peak, by RSS.
    pub peak_bytes: u64,
}

/// What one entry of a component's libraries was called for, all ranks together.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FunctionUse {
    /// Its name.
    pub name: String,
    /// The component of the function.
    pub component: String,
    /// Calls from outside its component.
    pub calls: u64,
    /// Obtained within.
    pub grew_bytes: u64,
    /// Given back within.
    pub shrank_bytes: u64,
    /// Time between entering and leaving it, all threads together; `None`: not measured.
    pub seconds: Option<f64>,
}

/// What a component held through one library at the component's peak, all ranks together.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LibraryUse {
    /// The component.
    pub component: String,
    /// The library's file; empty: not known which.
    pub library: String,
    /// Counted as the component's peak.
    pub bytes: u64,
    /// By kind.
    #[serde(flatten)]
    pub kinds: KindBytes,
}

/// Messages from one to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Messages {
    /// How many.
    pub messages: u64,
    /// Their contents.
    pub bytes: u64,
}

/// Point-to-point messages between ranks. Rows are senders, columns receivers.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct CommMatrix {
    /// The ranks in the order of rows and columns, as [`RankId`] names them.
    pub ranks: Vec<String>,
    /// How many messages.
    pub messages: Vec<Vec<u64>>,
    /// Their contents.
    pub bytes: Vec<Vec<u64>>,
    /// From ranks of one world to those of another, in no row.
    pub to_other_worlds: Messages,
}

/// A phase that the program named; one that comes again is one phase.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PhaseUse {
    /// Name; `start` is the time before the first mark.
    pub name: String,
    /// Ranks that came to it.
    pub ranks: u32,
    /// When the first rank came to it first, since the run began.
    pub begin_seconds: f64,
    /// The ranks' peaks in it, by RSS.
    pub total: Spread,
    /// The same by component.
    pub components: BTreeMap<String, Spread>,
}

/// Memory of a program by component. Field names are the stable contract of `--json`.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Attribution {
    /// The run it is of.
    pub run: u32,
    /// The rule by which memory is a component's.
    pub by: Axis,
    /// How that was seen.
    pub rung: String,
    /// Ranks, or without MPI processes, that left a log.
    pub ranks: u32,
    /// Peak of all components, unattributed and allocator-retained memory included, all ranks together.
    pub total_peak_bytes: u64,
    /// Peak of what could not be explained.
    pub unattributed_peak_bytes: u64,
    /// Peak of resident memory that was free in the allocator; `None` with `--by touch`.
    pub allocator_retained_peak_bytes: Option<u64>,
    /// By component.
    pub components: BTreeMap<String, Holding>,
    /// All of them together, with the two below.
    pub total: Holding,
    /// What could not be explained.
    pub unattributed: Holding,
    /// Resident memory that was free in the allocator; `None` with `--by touch`.
    pub allocator_retained: Option<Holding>,
    /// bursar's own, which is in no other figure.
    pub own: Holding,
    /// By rank, in their order.
    pub per_rank: Vec<RankUse>,
    /// Those that obtained most first.
    pub functions: Vec<FunctionUse>,
    /// `None`: no rank came through `MPI_Init`.
    pub init: Option<InitGrowth>,
    /// In the order in which they began; empty if the program named none.
    pub phases: Vec<PhaseUse>,
    /// By component and library, largest first; by touch none.
    pub libraries: Vec<LibraryUse>,
    /// `None`: not asked for, or no ranks.
    pub comm_matrix: Option<CommMatrix>,
    /// Processes that are no ranks; they are in no other figure.
    pub other_processes: Vec<OtherProcess>,
    /// Memory at the peaks of processes that the kernel counted and no sample saw; it is unattributed.
    #[serde(default)]
    pub not_looked_at_bytes: u64,
    /// Processes that held much without the library, largest first; they are in no other figure.
    #[serde(default)]
    pub without_library: Vec<OtherProcess>,
    /// Notes, as sentences.
    pub notes: Vec<String>,
}

/// Lines beside those of components in the names of [`line_name`].
pub mod lines {
    /// All but [`OWN`].
    pub const TOTAL: &str = "total";
    /// What could not be explained.
    pub const UNATTRIBUTED: &str = "unattributed";
    /// Free in the allocator, but resident.
    pub const RETAINED: &str = "allocator-retained";
    /// bursar's own.
    pub const OWN: &str = "bursar";
    /// All of them; no component can have their names.
    pub const RESERVED: [&str; 4] = [TOTAL, UNATTRIBUTED, RETAINED, OWN];
}

/// How memory that several processes share counts on a time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// For each of them: RSS. On lines of all ranks together once.
    Whole,
    /// Divided among them: PSS. Of ranks alone.
    Proportional,
}

/// The name of a time line: `attribute.mpi_bytes`, `attribute.mpi.heap_bytes`, `attribute.mpi.heap_pss_bytes`.
pub fn line_name(line: &str, kind: Option<MemoryKind>, share: Share) -> String {
    let kind = kind.map_or_else(String::new, |kind| format!(".{}", kind.name()));
    let pss = if share == Share::Proportional { "_pss" } else { "" };
    format!("attribute.{line}{kind}{pss}_bytes")
}

impl MemoryKind {
    /// Every kind.
    pub const ALL: [MemoryKind; 6] = [
        MemoryKind::Heap,
        MemoryKind::Mapped,
        MemoryKind::Stacks,
        MemoryKind::Shared,
        MemoryKind::PageCache,
        MemoryKind::Hugetlb,
    ];

    /// Its name in JSON and of time lines.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::Heap => "heap",
            MemoryKind::Mapped => "mapped",
            MemoryKind::Stacks => "stacks",
            MemoryKind::Shared => "shared",
            MemoryKind::PageCache => "page_cache",
            MemoryKind::Hugetlb => "hugetlb",
        }
    }
}

impl KindBytes {
    /// Of each kind, in the order of [`MemoryKind::ALL`].
    pub fn of(bytes: [u64; 6]) -> KindBytes {
        let [heap, mapped, stacks, shared, page_cache, hugetlb] = bytes;
        KindBytes { heap, mapped, stacks, shared, page_cache, hugetlb }
    }

    /// In the order of [`MemoryKind::ALL`].
    pub fn by_kind(&self) -> [u64; 6] {
        [self.heap, self.mapped, self.stacks, self.shared, self.page_cache, self.hugetlb]
    }
}

impl fmt::Display for RankId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.world {
            0 | 1 => write!(f, "{}", self.rank),
            world => write!(f, "w{world}:{}", self.rank),
        }
    }
}

impl RankUse {
    /// Which rank it is; `None` in a run without ranks.
    pub fn id(&self) -> Option<RankId> {
        self.rank.map(|rank| RankId { world: self.world.unwrap_or(1), rank })
    }
}

impl Attribution {
    /// The components as people list them: the application, MPI, the others by name.
    pub fn components_in_order(&self) -> Vec<(&str, &Holding)> {
        let place = |name: &str| match name {
            "application" => 0,
            "mpi" => 1,
            _ => 2,
        };
        let mut listed: Vec<(&str, &Holding)> =
            self.components.iter().map(|(name, held)| (name.as_str(), held)).collect();
        listed.sort_by_key(|(name, _)| place(name));
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_has_the_names_of_the_contract() {
        let holding = Holding { peak_bytes: 7, at_peak: KindBytes::of([1, 2, 3, 0, 0, 1]), ..Holding::default() };
        let attribution = Attribution { components: [("mpi".to_string(), holding)].into(), ..Attribution::default() };
        let json = serde_json::to_value(&attribution).unwrap();
        let mpi = &json["components"]["mpi"];
        for (name, value) in
            [("peak_bytes", 7), ("heap", 1), ("mapped", 2), ("stacks", 3), ("shared", 0), ("hugetlb", 1)]
        {
            assert_eq!(mpi[name], value, "{name}");
        }
        assert_eq!(serde_json::from_value::<Attribution>(json).unwrap(), attribution);
    }

    #[test]
    fn lines_are_named_by_whose_they_are_then_by_kind() {
        assert_eq!(line_name("mpi", None, Share::Whole), "attribute.mpi_bytes");
        assert_eq!(line_name("mpi", Some(MemoryKind::PageCache), Share::Whole), "attribute.mpi.page_cache_bytes");
        assert_eq!(line_name("mpi", Some(MemoryKind::Heap), Share::Proportional), "attribute.mpi.heap_pss_bytes");
    }

    #[test]
    fn ranks_of_the_first_world_have_their_number_alone() {
        assert_eq!([(1, 7), (2, 0)].map(|(world, rank)| RankId { world, rank }.to_string()), ["7", "w2:0"]);
    }

    #[test]
    fn the_application_comes_first_then_mpi() {
        let components = ["a", "mpi", "application"].map(|name| (name.to_string(), Holding::default())).into();
        let attribution = Attribution { components, ..Attribution::default() };
        let names: Vec<&str> = attribution.components_in_order().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["application", "mpi", "a"]);
    }
}

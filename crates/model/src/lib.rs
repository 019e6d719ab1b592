//! Plain types that bursar's stages share: bytes, process identity, series, what a run showed, what was made of it.
//!
//! Nothing here reads a clock, a file or the kernel. Bytes are bytes, times are seconds (`f64`) except on time lines,
//! where they are nanoseconds since the run began (`u64`). A figure that could not be had is `None`, never 0.

mod account;
mod advice;
mod arms;
mod attribution;
mod breakdown;
mod bytes;
mod costs;
mod curve;
mod demand;
mod evidence;
mod faults;
mod jobs;
mod observation;
mod pages;
mod performance;
mod process;
mod program;
mod reference;
mod replay;
mod seconds;
mod series;
mod steering;
mod trial;

pub use account::{FaultCounts, FlowCounts, KEPT_PEAK_NOTE, ListSizes, Pressure, RunAccount, Spread};
pub use advice::{Advice, AdviceFigures, Explained};
pub use arms::{ArmFigures, ArmSetting, ArmsEnded, ArmsReport, LEAST_GAIN, LeftOut};
pub use attribution::{
    Attribution, Axis, CommMatrix, FunctionUse, Holding, InitGrowth, KindBytes, LibraryGrowth, LibraryUse, MemoryKind,
    Messages, OtherProcess, PhaseUse, RankHolding, RankId, RankInit, RankUse, Share, UNMATCHED_NOTE, line_name, lines,
};
pub use breakdown::{Breakdown, Detail};
pub use bytes::{Bytes, ParseBytesError};
pub use costs::Costs;
pub use curve::{CurveFigures, CurvePoint, SizeUnit, TenantCurve, ToleranceOf, TraceCurve, WindowCurve, WorkingSet};
pub use demand::{DemandPoint, FileDemand, ForeignFile, LATER_THROUGH_MAPPINGS};
pub use evidence::{Buffers, BytesMoved, Doubt, DoubtKind, EmulatedLimit, Evidence, Named};
pub use faults::{
    CallFigures, FaultCauses, FaultFigures, FaultKind, FaultMoment, FaultShare, Faults, Latencies, LatencyHistogram,
    MemoryCall, OrderFaults, SlowFault, SlowFaults, TracerCost,
};
pub use jobs::{ByNumber, Figures, JobEnd, JobMemory, JobsMemory, MemoryPer, PastJob, PastStep};
pub use observation::{Exit, Header, INPUT_BYTES, KeptPeaks, Observation, Origin, RecordKind, RunRole, Rusage, Target};
pub use pages::{
    AgeBytes, MappingHeat, MissPoint, Overhead, PagesRound, Signal, TOLERATED_MISSES, WatchInterval, told_apart,
};
pub use performance::{performance, performance_per_gb};
pub use process::{OwnPid, ProcessKey, ProcessRecord, Resident};
pub use program::Program;
pub use reference::{FileReference, ReferenceKind};
pub use replay::{PhaseReplay, ReplayArm, ReplayedArm, ReplayedRecord};
pub use seconds::seconds;
pub use series::{HUGETLB_CHARGED, STOCKS_BYTES, Series, Unit, names};
pub use steering::{printable, printable_json, printable_lines, steers};
pub use trial::{Answer, BudgetReport, LimitSource, Method, MethodRow, NodeNeed, NodeRun, Outcome, Trial};

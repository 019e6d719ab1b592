//! The miss ratio curve of a trace: what `bursar curve trace --json` prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a trace's references need.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TraceCurve {
    /// Where it was read from.
    pub trace: String,
    /// Its format, by the name of `--format`.
    pub format: String,
    /// The engine, by the name of `--engine`.
    pub engine: String,
    /// Share of the objects that the engine sampled; 1 is all.
    pub sampled_share: f64,
    /// What sizes count.
    pub unit: SizeUnit,
    /// The size of a page, where references to addresses were cut into pages.
    pub page_bytes: Option<u64>,
    /// References at the beginning that are not counted.
    pub warm_up: u64,
    /// Malformed records passed over.
    pub skipped: u64,
    /// The first malformed record: where it is, and what is wrong with it.
    #[serde(default)]
    pub first_skipped: Option<String>,
    /// Well-formed records that are no references: requests to delete an object.
    #[serde(default)]
    pub left_out: u64,
    /// Columns and units that the format implies, in words.
    #[serde(default)]
    pub implies: Option<String>,
    /// Of the whole trace.
    #[serde(flatten)]
    pub whole: CurveFigures,
    /// Of each tenant, if asked for.
    pub tenants: Vec<TenantCurve>,
    /// Of each window of time, if asked for.
    pub windows: Vec<WindowCurve>,
}

/// What sizes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SizeUnit {
    /// Objects, whatever their size; pages, where there are pages.
    Objects,
    /// Bytes.
    Bytes,
}

/// A curve in figures.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CurveFigures {
    /// References counted.
    pub references: u64,
    /// Distinct objects among them; an estimate where the engine samples.
    pub distinct: u64,
    /// The curve, sizes rising.
    pub points: Vec<CurvePoint>,
    /// The working set.
    pub working_set: WorkingSet,
    /// The share of the references that miss at any size: those that are the first to an object.
    #[serde(default)]
    pub first_share: Option<f64>,
}

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct CurvePoint {
    /// A cache of this size …
    pub size: u64,
    /// … misses this share of the references.
    pub miss_ratio: f64,
}

/// The least size with few enough misses.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WorkingSet {
    /// The share that may miss.
    pub tolerance: f64,
    /// The size; none if first references alone are more.
    pub size: Option<u64>,
    /// The references of which the tolerance is a share; in JSON only if these are not all references.
    #[serde(default, skip_serializing_if = "ToleranceOf::is_of_references")]
    pub of: ToleranceOf,
}

/// What a tolerance is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToleranceOf {
    /// Of all references; those that miss are counted, first ones too.
    #[default]
    References,
    /// Of the first references, one to each object; those that miss beyond the first ones are counted.
    FirstReferences,
}

impl ToleranceOf {
    fn is_of_references(&self) -> bool {
        *self == ToleranceOf::References
    }
}

/// One tenant's curve, as if it had a cache for itself.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TenantCurve {
    /// Its name in the trace.
    pub tenant: String,
    /// Its curve.
    #[serde(flatten)]
    pub figures: CurveFigures,
}

/// The curve of the references within a window of time.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WindowCurve {
    /// Its beginning, on the trace's clock.
    pub start_seconds: f64,
    /// Its end.
    pub end_seconds: f64,
    /// Its curve.
    #[serde(flatten)]
    pub figures: CurveFigures,
}

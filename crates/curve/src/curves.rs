//! The curves of a whole trace as figures, computed in one pass.

use std::io::Read;

use model::{CurveFigures, CurvePoint, SizeUnit, TenantCurve, ToleranceOf, TraceCurve, WindowCurve, WorkingSet};

use crate::trace::{Format, Reading, Trace, TraceError};
use crate::{EngineKind, MissRatioCurve, Object, OfRecord, Part, PartOf, Parts, Profile, ProfileError, Settings};

/// Maximum number of windows; a larger table is of no use.
const MAX_WINDOWS: usize = 100_000;

/// Minimum average number of references per window; with fewer, the time unit is wrong or the window too short.
const MIN_PER_WINDOW: f64 = 2.0;

/// Number of tenants whose curves are drawn, those with the most references.
const DRAWN_TENANTS: usize = 6;

/// Which curves to make of a trace.
#[derive(Clone, Debug)]
pub struct Options {
    /// The trace's format.
    pub format: Format,
    /// How to read it; with sizes in bytes, the curves are by bytes.
    pub reading: Reading,
    /// How to make the curves.
    pub settings: Settings,
    /// Sizes to print; if empty, `points` sizes, evenly up to the largest that matters.
    pub sizes: Vec<u64>,
    /// Number of sizes if none are named.
    pub points: u64,
    /// The share of references that the working set may miss.
    pub tolerance: f64,
}

/// A curve to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// Its name.
    pub name: String,
    /// (Size, miss ratio), sizes rising, with straight lines between them.
    pub points: Vec<(u64, f64)>,
}

/// Why a trace has no curves. The first field is the trace's name.
#[derive(Debug, thiserror::Error)]
pub enum CurvesError {
    /// It cannot be read in the format that the name ends with, if one is known.
    #[error("{0}")]
    Trace(String, #[source] TraceError),
    /// It lacks data that the curves need.
    #[error("{0}")]
    Profile(String, #[source] ProfileError),
    /// Every record is malformed.
    #[error("{name} holds no reference as {format}, and {skipped} malformed records; the first, {first}")]
    OnlyBad {
        /// The trace's name.
        name: String,
        /// The format it was read in.
        format: String,
        /// Number of malformed records.
        skipped: u64,
        /// The first of them.
        first: String,
    },
    /// It has no records.
    #[error("{0} is empty: it holds no reference")]
    Empty(String),
    /// The warm-up covers all of it.
    #[error("{0} holds {1} references, and --warm-up leaves none to count")]
    WarmUp(String, u64),
    /// The unit of its times is wrong, or the windows are too short.
    #[error(
        "{0}: a window holds {1:.1} references on average; the times may not be in the unit they are read in: name it with \
         --time-unit s, ms, us, 100ns or ns, or make --window longer"
    )]
    FewPerWindow(String, f64),
    /// There are too many windows.
    #[error(
        "{0}: there are more than {most} windows; make --window longer, or name the unit of the times with --time-unit",
        most = MAX_WINDOWS
    )]
    ManyWindows(String),
}

/// Reads the trace to its end. Returns the curves as figures, and those to draw: the whole, then the tenants with the
/// most references.
///
/// # Errors
/// See [`CurvesError`].
pub fn of_trace(
    input: impl Read + Send + 'static,
    name: &str,
    options: &Options,
) -> Result<(TraceCurve, Vec<Outline>), CurvesError> {
    match options.reading.needs.bytes {
        true => curves::<Object>(input, name, options),
        false => curves::<u64>(input, name, options),
    }
}

fn curves<I: OfRecord + 'static>(
    input: impl Read + Send + 'static,
    name: &str,
    options: &Options,
) -> Result<(TraceCurve, Vec<Outline>), CurvesError> {
    let settings = options.settings;
    let bytes = options.reading.needs.bytes;
    let named = || name.to_string();
    let mut trace =
        Trace::open(input, &options.format, &options.reading).map_err(|why| as_format(name, &options.format, why))?;
    let (format, page_bytes) = (trace.format().clone(), trace.page_bytes());
    let has_data_apart = format == Format::Lackey;
    let mut profile = Profile::<I>::new(settings);
    let mut windows: Vec<WindowCurve> = Vec::new();
    let mut seen = 0u64;
    if settings.parts == Parts::Whole {
        seen = whole(&mut trace, &mut profile, settings.engine.batch(), name, &format)?;
    } else {
        while let Some(record) = trace.read().map_err(|why| as_format(name, &format, why))? {
            seen += 1;
            let ended = profile.reference(&record).map_err(|why| CurvesError::Profile(named(), why))?;
            windows.extend(ended.and_then(|part| window(&part, options)));
            if windows.len() > MAX_WINDOWS {
                refuse_windows(&windows, seen, trace.assumes_seconds(), name)?;
            }
        }
    }
    let (skipped, first_bad) = trace.skipped();
    if seen == 0 {
        return Err(match first_bad {
            Some(bad) => {
                CurvesError::OnlyBad { name: named(), format: format.to_string(), skipped, first: bad.to_string() }
            }
            None => CurvesError::Empty(named()),
        });
    }
    if seen <= settings.warm_up {
        return Err(CurvesError::WarmUp(named(), seen));
    }
    let (whole, sampled_share, parts) = profile.finish();
    let mut lines = vec![Outline { name: "whole trace".to_string(), points: whole.outline() }];
    let mut tenants = Vec::new();
    for part in parts {
        match part.of {
            PartOf::Window(..) => windows.extend(window(&part, options)),
            PartOf::Tenant(number) => tenants.push((trace.tenants()[number as usize].clone(), part.curve)),
        }
    }
    refuse_windows(&windows, seen, trace.assumes_seconds(), name)?;
    tenants.sort_by_key(|(_, curve)| std::cmp::Reverse(curve.references()));
    let drawn = tenants.iter().take(DRAWN_TENANTS);
    lines.extend(drawn.map(|(tenant, curve)| Outline { name: tenant.clone(), points: curve.outline() }));
    let curve = TraceCurve {
        trace: named(),
        format: format.to_string(),
        engine: engine_name(settings.engine).to_string(),
        sampled_share,
        unit: if bytes { SizeUnit::Bytes } else { SizeUnit::Objects },
        page_bytes,
        warm_up: settings.warm_up,
        skipped,
        first_skipped: first_bad.map(ToString::to_string),
        left_out: trace.left_out(),
        implies: Some(trace.implies().to_string()),
        whole: figures(&whole, options, has_data_apart),
        tenants: tenants
            .into_iter()
            .map(|(tenant, curve)| TenantCurve { tenant, figures: figures(&curve, options, has_data_apart) })
            .collect(),
        windows,
    };
    Ok((curve, lines))
}

/// Reads all references if only the items matter. Returns their number.
fn whole<I: OfRecord + 'static>(
    trace: &mut Trace,
    profile: &mut Profile<I>,
    batch: usize,
    name: &str,
    format: &Format,
) -> Result<u64, CurvesError> {
    let (mut items, mut seen) = (Vec::with_capacity(batch), 0);
    loop {
        items.clear();
        I::read(trace, &mut items, batch).map_err(|why| as_format(name, format, why))?;
        profile.references(&items).map_err(|why| CurvesError::Profile(name.to_string(), why))?;
        seen += items.len() as u64;
        if items.len() < batch {
            return Ok(seen);
        }
    }
}

fn window(part: &Part, options: &Options) -> Option<WindowCurve> {
    let PartOf::Window(start_seconds, end_seconds) = part.of else { return None };
    Some(WindowCurve { start_seconds, end_seconds, figures: figures(&part.curve, options, false) })
}

/// Refuses too many windows, and nearly empty windows if the unit of the times was assumed.
fn refuse_windows(
    windows: &[WindowCurve],
    references: u64,
    assumes_seconds: bool,
    name: &str,
) -> Result<(), CurvesError> {
    let per_window = references as f64 / windows.len().max(1) as f64;
    if assumes_seconds && windows.len() >= 2 && per_window < MIN_PER_WINDOW {
        return Err(CurvesError::FewPerWindow(name.to_string(), per_window));
    }
    if windows.len() > MAX_WINDOWS {
        return Err(CurvesError::ManyWindows(name.to_string()));
    }
    Ok(())
}

fn as_format(name: &str, format: &Format, why: TraceError) -> CurvesError {
    match format {
        Format::Auto => CurvesError::Trace(name.to_string(), why),
        format => CurvesError::Trace(format!("{name} as {format}"), why),
    }
}

/// `by_first_touches`: apply the tolerance to first references. In a trace of a program's accesses there are about a
/// thousand to each page, so that a share of all accesses would allow the program to fetch every page again all the
/// time.
fn figures(curve: &MissRatioCurve, options: &Options, by_first_touches: bool) -> CurveFigures {
    let sizes = match options.sizes.is_empty() {
        true => curve.even_sizes(options.points),
        false => {
            let mut sizes = options.sizes.clone();
            sizes.sort_unstable();
            sizes
        }
    };
    CurveFigures {
        references: curve.references(),
        distinct: curve.distinct(),
        points: sizes.into_iter().map(|size| CurvePoint { size, miss_ratio: curve.miss_ratio_at(size) }).collect(),
        working_set: WorkingSet {
            tolerance: options.tolerance,
            size: if by_first_touches {
                curve.working_set_beyond_first(options.tolerance)
            } else {
                curve.working_set(options.tolerance)
            },
            of: if by_first_touches { ToleranceOf::FirstReferences } else { ToleranceOf::References },
        },
        first_share: Some(curve.miss_ratio_at(u64::MAX)),
    }
}

fn engine_name(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Exact => "exact",
        EngineKind::ShardsRate(_) => "shards-rate",
        EngineKind::ShardsSize(_) => "shards-size",
        EngineKind::Aet(_) => "aet",
    }
}

//! The curves of a whole trace in figures, read in one pass.

use std::io::Read;

use model::{CurveFigures, CurvePoint, SizeUnit, TenantCurve, ToleranceOf, TraceCurve, WindowCurve, WorkingSet};

use crate::trace::{Format, Reading, Trace, TraceError};
use crate::{EngineKind, MissRatioCurve, Object, OfRecord, Part, PartOf, Parts, Profile, ProfileError, Settings};

/// More windows than these are refused: a table of them says nothing to anybody.
const MOST_WINDOWS: usize = 100_000;

/// Windows of fewer references than this, on average, are refused: the unit of the times is wrong, or the window too short.
const FEWEST_PER_WINDOW: f64 = 2.0;

/// Tenants whose curves are drawn: those with the most references.
const DRAWN_TENANTS: usize = 6;

/// What curves are made of a trace.
#[derive(Clone, Debug)]
pub struct Options {
    /// The trace's format.
    pub format: Format,
    /// How it is read; the curves are of sizes in bytes where these are needed.
    pub reading: Reading,
    /// How curves are made.
    pub settings: Settings,
    /// Sizes at which they are given; empty: `points` sizes, evenly up to the largest that matters.
    pub sizes: Vec<u64>,
    /// How many, where they are not named.
    pub points: u64,
    /// The share of references that the working set may miss.
    pub tolerance: f64,
}

/// A curve, to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// What it is of.
    pub name: String,
    /// Sizes, rising, each with its miss ratio; straight lines between.
    pub points: Vec<(u64, f64)>,
}

/// Why there are no curves of a trace. The first field is the trace's name.
#[derive(Debug, thiserror::Error)]
pub enum CurvesError {
    /// It cannot be read, in the format that the name ends with if one is known.
    #[error("{0}")]
    Trace(String, #[source] TraceError),
    /// It lacks what the curves need.
    #[error("{0}")]
    Profile(String, #[source] ProfileError),
    /// All of it is malformed.
    #[error("{name} holds no reference as {format}, and {skipped} malformed records; the first, {first}")]
    OnlyBad {
        /// The trace's name.
        name: String,
        /// As what it was read.
        format: String,
        /// How many records are malformed.
        skipped: u64,
        /// The first of them.
        first: String,
    },
    /// It holds nothing.
    #[error("{0} is empty: it holds no reference")]
    Empty(String),
    /// All of it is left out.
    #[error("{0} holds {1} references, and --warm-up leaves none to count")]
    WarmUp(String, u64),
    /// The unit of its times is wrong, or the windows are too short.
    #[error(
        "{0}: a window holds {1:.1} references on average; the times may not be in the unit they are read in: name it with \
         --time-unit s, ms, us, 100ns or ns, or make --window longer"
    )]
    FewPerWindow(String, f64),
    /// The windows are too many.
    #[error(
        "{0}: there are more than {most} windows; make --window longer, or name the unit of the times with --time-unit",
        most = MOST_WINDOWS
    )]
    ManyWindows(String),
}

/// Reads the trace to its end; the curves in figures, and to be drawn: of the whole, then of the tenants with the most references.
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
            if windows.len() > MOST_WINDOWS {
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

/// Takes in all references where only the items matter; how many there are.
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

/// Too many windows, or windows of hardly a reference where nothing says the unit of the times.
fn refuse_windows(
    windows: &[WindowCurve],
    references: u64,
    assumes_seconds: bool,
    name: &str,
) -> Result<(), CurvesError> {
    let per_window = references as f64 / windows.len().max(1) as f64;
    if assumes_seconds && windows.len() >= 2 && per_window < FEWEST_PER_WINDOW {
        return Err(CurvesError::FewPerWindow(name.to_string(), per_window));
    }
    if windows.len() > MOST_WINDOWS {
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

/// `by_first_touches`: the tolerance is of the first references, as in a trace of a program's accesses: it makes a thousand to each page
/// that it touches, so that a share of its accesses would allow to fetch each page anew all the time.
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

//! `bursar curve trace`: what each size of a cache would miss of a trace's references.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use ::report::html::Drawn;
use anyhow::{Context, bail, ensure};
use curve::trace::{Columns, Format, Needs, Reading, Record, Trace};
use curve::{EngineKind, MissRatioCurve, Object, OfRecord, Part, PartOf, Parts, Profile, Settings};
use model::{CurveFigures, CurvePoint, SizeUnit, TenantCurve, ToleranceOf, TraceCurve, WindowCurve, WorkingSet};
use session::input::{is_dash, name};
use session::status::Status;

use crate::cli;
use crate::cli::curve::Engine;
use crate::replace::replace;
use crate::results::{style, write_json, write_page};

/// More windows than these are refused: a table of them says nothing to anybody.
const MOST_WINDOWS: usize = 100_000;

/// Windows of fewer references than this, on average, are refused: the unit of the times is wrong, or the window too short.
const FEWEST_PER_WINDOW: f64 = 2.0;

/// Tenants whose curves are drawn: those with the most references.
const DRAWN_TENANTS: usize = 6;

pub fn trace(options: &cli::curve::Trace) -> anyhow::Result<Status> {
    let to_stdout = [&options.json, &options.csv].into_iter().flatten().filter(|path| is_dash(path)).count();
    ensure!(to_stdout < 2, "only one of --json and --csv can go to standard output");
    let (curve, lines) = if options.bytes { curves::<Object>(options) } else { curves::<u64>(options) }?;
    if to_stdout == 0 {
        let text = ::report::terminal::trace(&curve, style());
        let out = linux::standard_output::open();
        out.and_then(|mut out| out.write_all(text.as_bytes()))
            .context("the table could not be written to standard output")?;
    }
    if let Some(path) = &options.json {
        write_json(path, &curve)?;
    }
    if let Some(path) = &options.csv {
        write_csv(path, &curve).with_context(|| format!("the CSV could not be written to {}", path.display()))?;
    }
    if let Some(path) = &options.html {
        write_page(path, &::report::html::trace(&curve, &lines))?;
    }
    Ok(Status::of(0))
}

fn write_csv(path: &Path, curve: &TraceCurve) -> io::Result<()> {
    if is_dash(path) {
        return ::export::trace_csv(curve, &mut BufWriter::new(linux::standard_output::open()?));
    }
    replace(path, |out| ::export::trace_csv(curve, out))
}

/// Reads the trace to its end; the curves in figures, and as lines to draw.
fn curves<I: OfRecord + 'static>(options: &cli::curve::Trace) -> anyhow::Result<(TraceCurve, Vec<Drawn>)> {
    let name = name(&options.file);
    let format = format(options)?;
    let settings = settings(options);
    refuse_brotli(&options.file)?;
    let mut trace =
        Trace::open(input(&options.file)?, &format, &reading(options)).with_context(|| as_format(&name, &format))?;
    let (format, page_bytes) = (trace.format().clone(), trace.page_bytes());
    let has_data_apart = format == Format::Lackey;
    let mut profile = Profile::<I>::new(settings);
    let mut windows: Vec<WindowCurve> = Vec::new();
    let mut seen = 0u64;
    if settings.parts == Parts::Whole {
        seen = whole(&mut trace, &mut profile, settings.engine.batch(), &name, &format)?;
    } else {
        while let Some(record) = next(&mut trace, &name, &format)? {
            seen += 1;
            let ended = profile.reference(&record).with_context(|| name.clone())?;
            windows.extend(ended.and_then(|part| window(&part, options)));
            if windows.len() > MOST_WINDOWS {
                refuse_windows(&windows, seen, trace.assumes_seconds(), &name)?;
            }
        }
    }
    let (skipped, first_bad) = trace.skipped();
    if seen == 0 {
        match first_bad {
            Some(bad) => {
                bail!("{name} holds no reference as {format}, and {skipped} malformed records; the first, {bad}")
            }
            None => bail!("{name} is empty: it holds no reference"),
        }
    }
    ensure!(seen > options.warm_up, "{name} holds {seen} references, and --warm-up leaves none to count");
    let (whole, sampled_share, parts) = profile.finish();
    let mut lines = vec![Drawn { name: "whole trace".to_string(), points: whole.outline() }];
    let mut tenants = Vec::new();
    for part in parts {
        match part.of {
            PartOf::Window(..) => windows.extend(window(&part, options)),
            PartOf::Tenant(number) => tenants.push((trace.tenants()[number as usize].clone(), part.curve)),
        }
    }
    refuse_windows(&windows, seen, trace.assumes_seconds(), &name)?;
    tenants.sort_by_key(|(_, curve)| std::cmp::Reverse(curve.references()));
    let drawn = tenants.iter().take(DRAWN_TENANTS);
    lines.extend(drawn.map(|(tenant, curve)| Drawn { name: tenant.clone(), points: curve.outline() }));
    let curve = TraceCurve {
        trace: name,
        format: format.to_string(),
        engine: engine_name(options.engine).to_string(),
        sampled_share,
        unit: if options.bytes { SizeUnit::Bytes } else { SizeUnit::Objects },
        page_bytes,
        warm_up: options.warm_up,
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
) -> anyhow::Result<u64> {
    let (mut items, mut seen) = (Vec::with_capacity(batch), 0);
    loop {
        items.clear();
        I::read(trace, &mut items, batch).with_context(|| format!("{name} as {format}"))?;
        profile.references(&items).with_context(|| name.to_string())?;
        seen += items.len() as u64;
        if items.len() < batch {
            return Ok(seen);
        }
    }
}

fn next(trace: &mut Trace, name: &str, format: &Format) -> anyhow::Result<Option<Record>> {
    trace.read().with_context(|| format!("{name} as {format}"))
}

fn window(part: &Part, options: &cli::curve::Trace) -> Option<WindowCurve> {
    let PartOf::Window(start_seconds, end_seconds) = part.of else { return None };
    Some(WindowCurve { start_seconds, end_seconds, figures: figures(&part.curve, options, false) })
}

/// Too many windows, or windows of hardly a reference where nothing says the unit of the times.
fn refuse_windows(windows: &[WindowCurve], references: u64, assumes_seconds: bool, name: &str) -> anyhow::Result<()> {
    let per_window = references as f64 / windows.len().max(1) as f64;
    ensure!(
        !assumes_seconds || windows.len() < 2 || per_window >= FEWEST_PER_WINDOW,
        "{name}: a window holds {per_window:.1} references on average; the times may not be in the unit they are read in: name it with \
         --time-unit s, ms, us, 100ns or ns, or make --window longer"
    );
    ensure!(
        windows.len() <= MOST_WINDOWS,
        "{name}: there are more than {MOST_WINDOWS} windows; make --window longer, or name the unit of the times with --time-unit"
    );
    Ok(())
}

fn as_format(name: &str, format: &Format) -> String {
    if *format == Format::Auto { name.to_string() } else { format!("{name} as {format}") }
}

fn reading(options: &cli::curve::Trace) -> Reading {
    Reading {
        page_bytes: options.page,
        skips_bad: options.skip_bad,
        time_unit: options.time_unit,
        needs: Needs { bytes: options.bytes, time: options.window.is_some(), tenant: options.tenants },
    }
}

/// `by_first_touches`: the tolerance is of the first references, as in a trace of a program's accesses: it makes a thousand to each page
/// that it touches, so that a share of its accesses would allow to fetch each page anew all the time.
fn figures(curve: &MissRatioCurve, options: &cli::curve::Trace, by_first_touches: bool) -> CurveFigures {
    let sizes = match options.sizes.is_empty() {
        true => curve.even_sizes(options.points.into()),
        false => {
            let mut sizes: Vec<u64> = options.sizes.iter().map(|size| size.0).collect();
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

fn settings(options: &cli::curve::Trace) -> Settings {
    let samples = options.samples as usize;
    Settings {
        engine: match options.engine {
            Engine::Exact => EngineKind::Exact,
            Engine::ShardsRate => EngineKind::ShardsRate(options.rate),
            Engine::ShardsSize => EngineKind::ShardsSize(samples),
            Engine::Aet => EngineKind::Aet(samples),
        },
        warm_up: options.warm_up,
        parts: match (options.tenants, options.window) {
            (true, _) => Parts::Tenants,
            (false, Some(window)) => Parts::Windows(window.as_secs_f64()),
            (false, None) => Parts::Whole,
        },
    }
}

fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Exact => "exact",
        Engine::ShardsRate => "shards-rate",
        Engine::ShardsSize => "shards-size",
        Engine::Aet => "aet",
    }
}

fn format(options: &cli::curve::Trace) -> anyhow::Result<Format> {
    let columns = Columns {
        key: options.key_column.clone(),
        bytes: options.size_column.clone(),
        time: options.time_column.clone(),
        tenant: options.tenant_column.clone(),
    };
    let has_columns = columns != Columns::default();
    match options.format.clone().or_else(|| Format::of_name(&options.file)) {
        Some(Format::Csv(_)) => Ok(Format::Csv(columns)),
        Some(Format::Auto) | None if has_columns => Ok(Format::Csv(columns)),
        Some(format) if has_columns => bail!("columns are for --format csv; {format} has its own"),
        Some(format) => Ok(format),
        None => Ok(Format::Auto),
    }
}

/// Brotli has no magic number: only the name says it.
fn refuse_brotli(path: &Path) -> anyhow::Result<()> {
    let is_brotli = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("br"));
    ensure!(!is_brotli, "{} is compressed by brotli, which is not read; decompress it first", path.display());
    Ok(())
}

fn input(path: &Path) -> anyhow::Result<Box<dyn Read + Send>> {
    if is_dash(path) {
        return Ok(Box::new(io::stdin()));
    }
    let file = File::open(path).with_context(|| format!("{} could not be opened", path.display()))?;
    Ok(Box::new(file))
}

//! `bursar curve trace`: what each size of a cache would miss of a trace's references.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use ::curve::curves::{Options, Outline, of_trace};
use ::curve::trace::{Columns, Format, Needs, Reading};
use ::curve::{EngineKind, Parts, Settings};
use ::report::html::Drawn;
use anyhow::{Context, bail, ensure};
use history::input::{is_dash, name};
use model::TraceCurve;
use session::status::Status;

use crate::cli;
use crate::cli::curve::Engine;
use crate::results::{style, write_json, write_page};
use session::replace::replace;

pub fn trace(options: &cli::curve::Trace) -> anyhow::Result<Status> {
    let to_stdout = [&options.json, &options.csv].into_iter().flatten().filter(|path| is_dash(path)).count();
    ensure!(to_stdout < 2, "only one of --json and --csv can go to standard output");
    let asked = Options {
        format: format(options)?,
        reading: reading(options),
        settings: settings(options),
        sizes: options.sizes.iter().map(|size| size.0).collect(),
        points: options.points.into(),
        tolerance: options.tolerance,
    };
    refuse_brotli(&options.file)?;
    let (curve, outlines) = of_trace(input(&options.file)?, &name(&options.file), &asked)?;
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
        let lines: Vec<Drawn> = outlines.into_iter().map(|Outline { name, points }| Drawn { name, points }).collect();
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

fn reading(options: &cli::curve::Trace) -> Reading {
    Reading {
        page_bytes: options.page,
        skips_bad: options.skip_bad,
        time_unit: options.time_unit,
        needs: Needs { bytes: options.bytes, time: options.window.is_some(), tenant: options.tenants },
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

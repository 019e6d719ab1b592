//! The comparison of methods (Figures 1 and 2 of the MEMSYS paper) and the run time by budget.

use model::{Breakdown, BudgetReport, FileDemand, MethodRow, Spread, Trial};
use plotly::common::{
    DashType, ErrorData, ErrorType, Line, Marker, MarkerSymbol, Mode, Orientation, Pattern, PatternFillMode,
    PatternShape, Position, TickMode,
};
use plotly::layout::{Axis, AxisRange, AxisType, BarMode, CategoryOrder, TraceOrder};
use plotly::{Bar, Scatter, Trace};

use super::plots::{
    ANSWER, FILE, HEAP, KERNEL, LIMIT, PREDICTED, SHARED, UNSPLIT, axis, draw, layout, legend, line, mib, rule,
};
use crate::format::{bytes, percent, ratio};
use crate::verdict::{died, method_name, outcome_name};

/// Ratios to mark on a logarithmic axis.
const TICKS: [f64; 10] = [1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];

/// Memory by kind, one bar per figure (Figure 1).
pub fn memory_bars(id: &str, rows: &[(&str, Option<u64>, Breakdown)]) -> String {
    let known: Vec<_> =
        rows.iter().filter_map(|(name, total, parts)| Some((name.to_string(), (*total)?, *parts))).collect();
    if known.is_empty() {
        return String::new();
    }
    let names = || known.iter().map(|(name, _, _)| name.clone()).collect::<Vec<_>>();
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let mut bar = |name: &str, color: &'static str, of: &dyn Fn(u64, &Breakdown) -> f64| {
        let values: Vec<f64> = known.iter().map(|(_, total, parts)| mib(of(*total, parts))).collect();
        if values.iter().any(|v| *v > 0.0) {
            traces.push(
                Bar::new(values, names())
                    .name(name)
                    .orientation(Orientation::Horizontal)
                    .marker(Marker::new().color(color))
                    .hover_template("%{y}: %{x:,.4~r} MiB"),
            );
        }
    };
    bar("heap", HEAP, &|_, parts| parts.heap.unwrap_or(0) as f64);
    bar("file", FILE, &|_, parts| parts.file.unwrap_or(0) as f64);
    bar("shared", SHARED, &|_, parts| parts.shared.unwrap_or(0) as f64);
    bar("kernel", KERNEL, &|_, parts| parts.kernel.unwrap_or(0) as f64);
    bar("not split", UNSPLIT, &|total, parts| {
        let split = [parts.heap, parts.file, parts.shared, parts.kernel].iter().flatten().sum::<u64>();
        total.saturating_sub(split) as f64
    });
    let largest = known.iter().map(|(_, total, _)| mib(*total as f64)).fold(0.0, f64::max);
    traces.push(end_labels(
        known.iter().map(|(_, total, _)| mib(*total as f64)).collect(),
        names(),
        known.iter().map(|(_, total, _)| bytes(Some(*total))).collect::<Vec<_>>(),
    ));
    let layout =
        layout(axis("MiB").range(AxisRange::new(0.0, largest * 1.25)), categories(&names()), 130 + 34 * known.len());
    draw(id, traces, layout)
}

/// Run time by method with its spread (Figure 2a).
pub fn time_bars(id: &str, report: &BudgetReport) -> String {
    let finished = |row: &MethodRow| row.runtime_ratio.filter(|_| !row.outcome.is_some_and(died));
    if report.methods.iter().all(|row| finished(row).is_none()) {
        return String::new();
    }
    let rows: Vec<_> = report.methods.iter().map(|row| (row, finished(row).unwrap_or(0.0))).collect();
    let names: Vec<String> = rows.iter().map(|(row, _)| method_name(row.name).to_string()).collect();
    let spread: Vec<f64> = rows
        .iter()
        .map(|(row, _)| row.runtime_stddev_seconds.filter(|_| row.runs > 1).zip(report.reference_seconds))
        .map(|pair| pair.map_or(0.0, |(stddev, reference)| stddev / reference))
        .collect();
    let shapes =
        rows.iter().map(|(row, _)| if row.lower_bound { PatternShape::RightDiagonalLine } else { PatternShape::None });
    let slowest = rows.iter().zip(&spread).map(|((_, ratio), spread)| ratio + spread).fold(1.0, f64::max);
    let bars = Bar::new(rows.iter().map(|(_, ratio)| *ratio).collect(), names.clone())
        .name("measured (hatched: lower bound)")
        .orientation(Orientation::Horizontal)
        .marker(
            Marker::new()
                .color(HEAP)
                .pattern(Pattern::new().shape_array(shapes.collect()).fill_mode(PatternFillMode::Overlay)),
        )
        .error_x(ErrorData::new(ErrorType::Data).array(spread).visible(true).color(UNSPLIT))
        .hover_template("%{y}: %{x:.3f}x");
    // What is predicted for a run that was killed has nothing beside it to compare.
    let predicted_of = |row: &MethodRow| row.predicted_ratio.filter(|_| finished(row).is_some());
    let predicted = Scatter::new(rows.iter().map(|(row, _)| predicted_of(row)).collect(), names.clone())
        .name("predicted")
        .mode(Mode::Markers)
        .marker(Marker::new().symbol(MarkerSymbol::DiamondOpen).size(9).color(PREDICTED))
        .hover_template("%{y}: %{x:.3f}x predicted");
    let label = |row: &MethodRow| match (finished(row), row.outcome) {
        (None, Some(outcome)) => outcome_name(outcome).to_string(),
        (known, _) => ratio(known, row.lower_bound),
    };
    let labels = rows.iter().map(|(row, _)| label(row)).collect();
    let widest = rows.iter().filter_map(|(row, _)| predicted_of(row)).fold(slowest, f64::max);
    // A label beside the bar, unless the prediction's mark is there.
    let beside = |row: &MethodRow, measured: f64| match predicted_of(row) {
        Some(predicted) if predicted > measured && predicted < measured + 0.15 * widest => predicted,
        _ => measured,
    };
    let label_at = rows.iter().map(|(row, measured)| beside(row, *measured) + 0.01 * widest).collect();
    let traces: Vec<Box<dyn Trace>> = vec![bars, predicted, end_labels(label_at, names.clone(), labels)];
    let x = axis("run time / reference").range(AxisRange::new(0.0, widest * 1.2));
    draw(id, traces, layout(x, categories(&names), 130 + 34 * rows.len()))
}

/// Performance, performance per gigabyte and I/O share by method (Figure 2b, Table 2).
pub fn score_bars(id: &str, report: &BudgetReport) -> String {
    let names = || report.methods.iter().map(|row| method_name(row.name).to_string()).collect::<Vec<_>>();
    let bar = |name: &str, color: &'static str, values: Vec<Option<f64>>| -> Option<Box<dyn Trace>> {
        values.iter().any(Option::is_some).then(|| -> Box<dyn Trace> {
            Bar::new(values, names())
                .name(name)
                .orientation(Orientation::Horizontal)
                .marker(Marker::new().color(color))
                .hover_template("%{y}: %{x:.3f}")
        })
    };
    let of = |value: fn(&MethodRow) -> Option<f64>| report.methods.iter().map(value).collect::<Vec<_>>();
    let traces: Vec<Box<dyn Trace>> = [
        bar("performance", HEAP, of(|row| row.performance)),
        bar("performance per GB", ANSWER, of(|row| row.performance_per_gb)),
        bar("I/O share", FILE, of(|row| row.io_wait_share)),
    ]
    .into_iter()
    .flatten()
    .rev()
    .collect();
    if traces.is_empty() {
        return String::new();
    }
    // Performance is over 1 where noise made a limited run faster than the reference.
    let largest = report.methods.iter().filter_map(|row| row.performance).fold(1.0, f64::max);
    let x = axis("share or score").range(AxisRange::new(0.0, largest * 1.05));
    draw(
        id,
        traces,
        layout(x, categories(&names()), 130 + 46 * report.methods.len())
            .bar_mode(BarMode::Group)
            .legend(legend().trace_order(TraceOrder::Reversed)),
    )
}

/// Run time by budget: what was predicted, what was measured, the floor, the answer.
pub fn budget_curve(id: &str, report: &BudgetReport, trials: &[Trial], seconds_per_byte: Option<f64>) -> String {
    let limited: Vec<(&Trial, f64)> = trials.iter().filter_map(|t| Some((t, mib(t.limit_bytes? as f64)))).collect();
    if limited.is_empty() {
        return String::new();
    }
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let (demanded, predicted) = (demand_line(report, seconds_per_byte), predictions(report, &limited));
    let top = limited
        .iter()
        .filter_map(|(t, _)| t.runtime_ratio)
        .chain(predicted.iter().map(|p| p.1))
        .fold(1.0 + 2.0 * report.slowdown_target, f64::max);
    if let Some((x, y)) = demanded {
        traces.push(
            line("file demand x storage speed", x, y, SHARED).line(Line::new().color(SHARED).dash(DashType::Dot)),
        );
    }
    if !predicted.is_empty() {
        let (x, y) = predicted.into_iter().unzip();
        traces.push(
            line("predicted before each trial", x, y, PREDICTED)
                .mode(Mode::LinesMarkers)
                .marker(Marker::new().symbol(MarkerSymbol::DiamondOpen).size(8)),
        );
    }
    traces.extend(measured(&limited, top));
    let width = limited.iter().map(|(_, x)| *x).fold(0.0, f64::max) * 1.05;
    let allowed = 1.0 + report.slowdown_target;
    let allowed_name = format!("{} slower", percent(Some(report.slowdown_target)));
    traces.push(rule(&allowed_name, (0.0, allowed), (width, allowed), UNSPLIT));
    let logarithmic = top > 8.0;
    let bottom = if logarithmic { 0.5 } else { 0.0 };
    for (name, at, color) in [("floor", report.floor_bytes, LIMIT), ("answer", report.answer.budget_bytes, ANSWER)] {
        if let Some(at) = at {
            let x = mib(at as f64);
            traces.push(rule(&format!("{name} {}", bytes(Some(at))), (x, bottom), (x, top * 1.05), color));
        }
    }
    let y = if logarithmic {
        axis("run time / reference")
            .tick_mode(TickMode::Array)
            .tick_values(TICKS.to_vec())
            .type_(AxisType::Log)
            .range(AxisRange::new((0.7f64).log10(), (top * 1.3).log10()))
    } else {
        axis("run time / reference").range(AxisRange::new(0.0, top * 1.15))
    };
    let x = axis("memory limit, MiB").range(AxisRange::new(0.0, width));
    draw(id, traces, layout(x, y, 460))
}

/// The file demand curve.
pub fn demand_curve(id: &str, demand: &FileDemand) -> String {
    if demand.points.is_empty() {
        return String::new();
    }
    let every = demand.points.len().div_ceil(2000).max(1);
    let last = demand.points.len() - 1;
    let shown = demand.points.iter().enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, p)| p);
    let width = mib(demand.points[last].limit_bytes as f64) * 1.05;
    let (x, y) = shown.map(|p| (mib(p.limit_bytes as f64), mib(p.refault_bytes as f64))).unzip();
    let traces: Vec<Box<dyn Trace>> = vec![line("read again", x, y, FILE)];
    draw(
        id,
        traces,
        layout(axis("memory limit, MiB").range(AxisRange::new(0.0, width)), axis("read again, MiB"), 340)
            .show_legend(false),
    )
}

/// Names from the top down; the library counts from the bottom up.
fn categories(names: &[String]) -> Axis {
    Axis::new()
        .auto_margin(true)
        .category_order(CategoryOrder::Array)
        .category_array(names.iter().rev().cloned().collect())
}

fn end_labels(x: Vec<f64>, y: Vec<String>, text: Vec<String>) -> Box<dyn Trace> {
    Scatter::new(x, y)
        .text_array(text.into_iter().map(|text| format!("\u{a0}{text}")).collect::<Vec<_>>())
        .mode(Mode::Text)
        .text_position(Position::MiddleRight)
        .show_legend(false)
        .clip_on_axis(false)
        .hover_info(plotly::common::HoverInfo::Skip)
}

fn demand_line(report: &BudgetReport, seconds_per_byte: Option<f64>) -> Option<(Vec<f64>, Vec<f64>)> {
    let (demand, price, reference) = (report.file_demand.as_ref()?, seconds_per_byte?, report.reference_seconds?);
    let ratio = |refaults: u64| 1.0 + refaults as f64 * price / reference;
    Some(demand.points.iter().map(|p| (mib(p.limit_bytes as f64), ratio(p.refault_bytes))).unzip())
}

fn predictions(report: &BudgetReport, limited: &[(&Trial, f64)]) -> Vec<(f64, f64)> {
    let of_methods = report.methods.iter().filter_map(|m| Some((mib(m.memory_bytes? as f64), m.predicted_ratio?)));
    let of_trials = limited.iter().filter_map(|(t, x)| Some((*x, t.predicted_ratio?)));
    let mut points: Vec<(f64, f64)> = of_methods.chain(of_trials).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|a, b| a.0 == b.0);
    points
}

/// Medians with error bars, lower bounds as triangles that point up, the killed as crosses at the top.
fn measured(limited: &[(&Trial, f64)], top: f64) -> Vec<Box<dyn Trace>> {
    let mut by_limit: Vec<(f64, Vec<f64>)> = Vec::new();
    for (trial, x) in limited.iter().filter(|(t, _)| !t.lower_bound && !died(t.outcome)) {
        let Some(ratio) = trial.runtime_ratio else { continue };
        match by_limit.iter_mut().find(|(limit, _)| limit == x) {
            Some((_, ratios)) => ratios.push(ratio),
            None => by_limit.push((*x, vec![ratio])),
        }
    }
    let spreads: Vec<(f64, Spread)> =
        by_limit.iter().filter_map(|(x, ratios)| Some((*x, Spread::of(ratios)?))).collect();
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    if !spreads.is_empty() {
        traces.push(
            Scatter::new(spreads.iter().map(|s| s.0).collect(), spreads.iter().map(|s| s.1.median).collect())
                .name("measured (median, ± stddev)")
                .mode(Mode::Markers)
                .marker(Marker::new().size(9).color(HEAP))
                .error_y(
                    ErrorData::new(ErrorType::Data)
                        .array(spreads.iter().map(|s| s.1.stddev).collect())
                        .visible(true)
                        .color(HEAP),
                )
                .hover_template("%{x:,.4~r} MiB: %{y:.3f}x"),
        );
    }
    let mut markers = |name: &str, symbol: MarkerSymbol, color: &'static str, points: Vec<(f64, f64)>, hover: &str| {
        if !points.is_empty() {
            let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            let marker = Marker::new().symbol(symbol).size(11).color(color);
            traces.push(Scatter::new(x, y).name(name).mode(Mode::Markers).marker(marker).hover_template(hover));
        }
    };
    let bounds = limited.iter().filter(|(t, _)| t.lower_bound).filter_map(|(t, x)| Some((*x, t.runtime_ratio?)));
    markers("stopped early: at least", MarkerSymbol::TriangleUp, FILE, bounds.collect(), "%{x:,.4~r} MiB: > %{y:.2f}x");
    let killed = limited.iter().filter(|(t, _)| died(t.outcome)).map(|(_, x)| (*x, top));
    markers("killed or failed", MarkerSymbol::X, LIMIT, killed.collect(), "%{x:,.4~r} MiB: did not finish");
    traces
}

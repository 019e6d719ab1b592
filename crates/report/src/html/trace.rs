//! The page of a trace's curve.

use model::{SizeUnit, TraceCurve};
use plotly::Trace;
use plotly::common::{Line, LineShape, Mode};
use plotly::layout::AxisRange;
use plotly::{Layout, Scatter};

use super::markup::Html;
use super::page;
use super::plots::{
    ANSWER, FILE, HEAP, KERNEL, LIMIT, PREDICTED, SHARED, UNSPLIT, axis, draw, layout, line, mib, rule,
};
use crate::trace;

/// Colours of lines, the whole's first.
const COLORS: [&str; 7] = [FILE, HEAP, SHARED, KERNEL, PREDICTED, LIMIT, UNSPLIT];

/// A curve as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The observed target.
    pub name: String,
    /// Sizes, rising, each with its miss ratio; straight lines between.
    pub points: Vec<(u64, f64)>,
}

/// The curve of a trace as one HTML file that needs nothing else: plots of these lines, then the tables.
pub fn trace(curve: &TraceCurve, lines: &[Drawn]) -> String {
    let mut html = Html::default();
    page::open(&mut html, &curve.trace);
    html.element("h1", "", &trace::headline(curve));
    html.paragraph("command", &trace::made_from(curve));
    if let Some(read_as) = trace::read_as(curve) {
        html.paragraph("command", &read_as);
    }
    if let Some(warning) = trace::warning(curve) {
        html.paragraph("warning", &warning);
    }
    html.heading("Miss ratio by cache size");
    html.raw(&curves("plot-curve", curve, lines));
    html.table("points", &trace::points_table(curve));
    if !curve.tenants.is_empty() {
        html.heading("Tenants, each with a cache for itself");
        html.table("tenants", &trace::tenants_table(curve));
    }
    if !curve.windows.is_empty() {
        html.heading("Windows of time");
        html.raw(&working_sets("plot-windows", curve));
        html.table("windows", &trace::windows_table(curve));
    }
    page::close(&mut html);
    html.finish()
}

fn curves(id: &str, curve: &TraceCurve, lines: &[Drawn]) -> String {
    let width = lines.iter().filter_map(|line| line.points.last()).map(|(size, _)| axis_size(curve, *size));
    let width = width.fold(0.0, f64::max) * 1.05;
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (at, drawn) in lines.iter().enumerate() {
        let (mut x, mut y): (Vec<f64>, Vec<f64>) =
            drawn.points.iter().map(|(size, ratio)| (axis_size(curve, *size), *ratio)).unzip();
        if let Some(last) = y.last().copied() {
            x.push(width);
            y.push(last);
        }
        traces.push(line(&drawn.name, x, y, COLORS[at % COLORS.len()]));
    }
    if let Some(needed) = curve.whole.working_set.size {
        let at = axis_size(curve, needed);
        traces.push(rule("working set", (at, 0.0), (at, 1.0), ANSWER));
    }
    let x = axis(&trace::axis_name(curve)).range(AxisRange::new(0.0, width));
    draw(id, traces, layout(x, axis("miss ratio").range(AxisRange::new(0.0, 1.02)), 380))
}

/// Working set and distinct objects by window, drawn as steps.
fn working_sets(id: &str, curve: &TraceCurve) -> String {
    let steps = |name: &str, color, of: &dyn Fn(&model::CurveFigures) -> Option<u64>| {
        let known = curve.windows.iter().filter_map(|window| Some((window, of(&window.figures)?)));
        let ends = |(window, size): (&model::WindowCurve, u64)| {
            [(window.start_seconds, axis_size(curve, size)), (window.end_seconds, axis_size(curve, size))]
        };
        let (x, y): (Vec<f64>, Vec<f64>) = known.flat_map(ends).unzip();
        Scatter::new(x, y)
            .name(name)
            .mode(Mode::Lines)
            .line(Line::new().color(color).width(2.0).shape(LineShape::Linear))
    };
    let mut traces: Vec<Box<dyn Trace>> = vec![steps("working set", ANSWER, &|figures| figures.working_set.size)];
    if curve.unit == SizeUnit::Objects {
        traces.push(steps("distinct", UNSPLIT, &|figures| Some(figures.distinct)));
    }
    let layout: Layout = layout(axis("seconds"), axis(&trace::axis_name(curve)), 300);
    draw(id, traces, layout)
}

fn axis_size(curve: &TraceCurve, size: u64) -> f64 {
    match curve.unit {
        SizeUnit::Bytes => mib(size as f64),
        SizeUnit::Objects => size as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::curve;

    #[test]
    fn the_page_has_the_answer_the_plots_and_the_tables_and_asks_no_network() {
        let lines = [
            Drawn { name: "whole".to_string(), points: vec![(1, 1.0), (99, 1.0), (100, 0.0083)] },
            Drawn { name: "<north>".to_string(), points: vec![(1, 1.0)] },
        ];
        let html = trace(&curve(), &lines);
        for part in [
            "<h1>needs 100 pages (400 KiB)",
            "id=\"plot-curve\"",
            "id=\"plot-windows\"",
            "id=\"points\"",
            "&lt;north&gt;",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("<td><north>") && html.contains("default-src 'none'"));
        assert!(html.trim_end().ends_with("</html>"));
    }
}

//! Sets of runs beside each other, their curves drawn over each other.

use model::{Observation, names};
use plotly::Trace;
use plotly::layout::HoverMode;

use super::downsample::shared_times;
use super::markup::Html;
use super::page::{close, open};
use super::plots::{
    ANSWER, FILE, HEAP, KERNEL, LIMIT, PREDICTED, SHARED, UNSPLIT, axis, axis_seconds, draw, layout, line, mib,
};
use crate::diff::{Diff, DiffSet};
use crate::format::printable;

/// Points of a line at the most.
const MOST_POINTS: usize = 2000;
/// Of the sets, in their order.
const COLORS: [&str; 8] = [HEAP, FILE, SHARED, LIMIT, KERNEL, ANSWER, PREDICTED, UNSPLIT];

/// The whole comparison as one HTML file that needs nothing else.
pub fn diff(diff: &Diff) -> String {
    let mut html = Html::default();
    open(&mut html, "diff");
    html.element("h1", "", &diff.headline());
    html.table("sets", &diff.sets_table());
    html.heading("Figures");
    html.table("figures", &diff.table());
    for note in &diff.notes {
        html.paragraph("quiet", &printable(note));
    }
    for (id, title, names) in [
        ("plot-charge", "Charge over time", [names::CHARGE, names::TREE_RSS]),
        ("plot-heap", "Heap over time", [names::HEAP, names::TREE_RSS_ANON]),
    ] {
        let lines = lines(&diff.sets, |set| over_time(set.run, names));
        if !lines.is_empty() {
            html.heading(title);
            html.paragraph("quiet", "Of each, the run of median length.");
            let layout = layout(axis("seconds"), axis("MiB"), 380).hover_mode(HoverMode::XUnified);
            html.raw(&draw(id, lines, layout));
        }
    }
    let lines = lines(&diff.sets, |set| {
        let points = &set.demand?.points;
        let every = points.len().div_ceil(MOST_POINTS).max(1);
        let shown = points.iter().step_by(every).chain(points.last());
        Some(shown.map(|point| (mib(point.limit_bytes as f64), mib(point.refault_bytes as f64))).unzip())
    });
    if !lines.is_empty() {
        html.heading("What would be read again at a limit");
        html.raw(&draw("plot-demand", lines, layout(axis("memory limit, MiB"), axis("read again, MiB"), 380)));
    }
    close(&mut html);
    html.finish()
}

type Points = (Vec<f64>, Vec<f64>);

fn lines(sets: &[DiffSet], points: impl Fn(&DiffSet) -> Option<Points>) -> Vec<Box<dyn Trace>> {
    let mut lines: Vec<Box<dyn Trace>> = Vec::new();
    for ((letter, set), color) in ('a'..='z').zip(sets).zip(COLORS.iter().cycle()) {
        if let Some((x, y)) = points(set).filter(|(x, _)| !x.is_empty()) {
            lines.push(line(&format!("{letter}: {}", printable(&set.name)), x, y, color));
        }
    }
    lines
}

/// The first of these series that the run has.
fn over_time(run: &Observation, names: [&str; 2]) -> Option<Points> {
    let series = names.into_iter().find_map(|name| run.job_series(name))?;
    let times = shared_times(&[series], MOST_POINTS);
    Some(times.iter().filter_map(|t_ns| Some((axis_seconds(*t_ns), mib(series.at(*t_ns)?)))).unzip())
}

//! Time lines of one run.

use model::{Observation, Series, names};
use plotly::common::{DashType, Fill, HoverInfo, Line, Mode};
use plotly::layout::HoverMode;
use plotly::{Scatter, Trace};

use super::downsample::{rates, shared_times};
use super::plots::{
    ANSWER, FILE, HEAP, KERNEL, LIMIT, PREDICTED, SHARED, UNSPLIT, axis, axis_seconds, draw, layout, line, mib, rule,
};

/// Points of a line at the most.
const MOST_POINTS: usize = 2000;
/// Points of a rate: a rate over a shorter time is noise.
const MOST_RATES: usize = 400;

/// The charge by kind of page, with the limit.
pub fn stack(id: &str, run: &Observation) -> String {
    let kinds = [
        (names::HEAP, "heap", HEAP),
        (names::FILE, "file", FILE),
        (names::SHARED, "shared", SHARED),
        (names::KERNEL, "kernel", KERNEL),
    ];
    let charge = run.job_series(names::CHARGE);
    let known: Vec<_> =
        kinds.iter().filter_map(|(of, name, color)| Some((run.job_series(of)?, *name, *color))).collect();
    let all: Vec<&Series> = known.iter().map(|(series, _, _)| *series).chain(charge).collect();
    let times = shared_times(&all, MOST_POINTS);
    if times.is_empty() {
        return String::new();
    }
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (series, name, color) in &known {
        let (x, y) = at_times(series, &times);
        traces.push(
            Scatter::new(x, y)
                .name(*name)
                .mode(Mode::Lines)
                .stack_group("kinds")
                .fill(Fill::ToNextY)
                .line(Line::new().color(*color).width(0.5))
                .fill_color(*color),
        );
    }
    if let Some(series) = charge {
        let (x, y) = at_times(series, &times);
        traces.push(line("charge", x, y, UNSPLIT));
    }
    // The limit of a job over several nodes is each node's.
    if let Some(limit) = run.limit_bytes.filter(|_| !run.sources.contains_key("parts")) {
        let y = mib(limit as f64);
        traces.push(rule("limit", (0.0, y), (run.wall_seconds, y), LIMIT));
    }
    draw(id, traces, layout(axis("seconds"), axis("MiB"), 380).hover_mode(HoverMode::XUnified))
}

/// Other figures in bytes: the tree's, the machine's growth, swap, what is dirty.
pub fn others(id: &str, run: &Observation) -> String {
    let lines = [
        (names::TREE_RSS, "tree RSS", HEAP),
        (names::TREE_PSS, "tree PSS", SHARED),
        (names::SYSTEM_USED, "machine, growth", UNSPLIT),
        (names::SWAP, "swap", LIMIT),
        (names::FILE_DIRTY, "dirty", FILE),
        (names::FILE_WRITEBACK, "writeback", KERNEL),
        (names::TREE_HUGETLB, "huge pages (pool)", ANSWER),
    ];
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (of, name, color) in lines {
        let Some(series) = run.job_series(of).filter(|s| s.peak() > Some(0.0)) else { continue };
        let (x, mut y) = at_times(series, &shared_times(&[series], MOST_POINTS));
        if of == names::SYSTEM_USED {
            let start = y.first().copied().unwrap_or(0.0);
            y.iter_mut().for_each(|v| *v -= start);
        }
        traces.push(line(name, x, y, color));
    }
    if traces.is_empty() { String::new() } else { draw(id, traces, layout(axis("seconds"), axis("MiB"), 320)) }
}

/// Pressure and block I/O delay as a share of the time.
pub fn pressure(id: &str, run: &Observation) -> String {
    let lines = [
        (names::PSI_MEMORY_SOME, "memory, some", LIMIT, DashType::Solid),
        (names::PSI_MEMORY_FULL, "memory, full", LIMIT, DashType::Dot),
        (names::PSI_IO_SOME, "I/O, some", FILE, DashType::Solid),
        (names::PSI_IO_FULL, "I/O, full", FILE, DashType::Dot),
    ];
    counters(id, run, &lines, 100.0, "% of the time stalled")
}

/// Refaults, major faults and reclaim per second.
pub fn flow(id: &str, run: &Observation) -> String {
    let lines = [
        (names::REFAULTS_FILE, "refaults, file", FILE, DashType::Solid),
        (names::REFAULTS_ANON, "refaults, anonymous", HEAP, DashType::Solid),
        (names::MAJOR_FAULTS, "major faults", LIMIT, DashType::Solid),
        (names::RECLAIMED, "reclaimed", PREDICTED, DashType::Dot),
        (names::SCANNED, "scanned", UNSPLIT, DashType::Dot),
    ];
    counters(id, run, &lines, 1.0, "pages per second")
}

type CounterLine = (&'static str, &'static str, &'static str, DashType);

/// Counters that counted anything, as rates.
fn counters(id: &str, run: &Observation, lines: &[CounterLine], scale: f64, unit: &str) -> String {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (of, name, color, dash) in lines {
        let Some(series) = run.job_series(of) else { continue };
        let (x, y): (Vec<f64>, Vec<f64>) = rates(series, MOST_RATES)
            .into_iter()
            .map(|(t, rate)| (axis_seconds(t), (rate * scale * 100.0).round() / 100.0))
            .unzip();
        if y.iter().any(|v| *v > 0.0) {
            traces.push(
                line(name, x, y, color)
                    .line(Line::new().color(*color).width(1.5).dash(dash.clone()))
                    .hover_info(HoverInfo::All),
            );
        }
    }
    if traces.is_empty() { String::new() } else { draw(id, traces, layout(axis("seconds"), axis(unit), 280)) }
}

fn at_times(series: &Series, times: &[u64]) -> (Vec<f64>, Vec<f64>) {
    times.iter().filter_map(|t| Some((axis_seconds(*t), mib(series.at(*t)?)))).unzip()
}

//! The page of how long page faults took.

use model::{Bytes, FaultKind, Faults, LatencyHistogram};
use plotly::common::{DashType, ExponentFormat, Line, LineShape, Marker, Mode};
use plotly::layout::{Axis, AxisType};
use plotly::{Scatter, Trace};

use super::markup::{Html, escape};
use super::page;
use super::plots::{ANSWER, FILE, HEAP, KERNEL, LIMIT, PREDICTED, SHARED, UNSPLIT, axis, axis_seconds, draw, layout};
use crate::faults::{
    Faulted, arm, calls_table, headline, kinds_table, on_cpu_table, orders_table, sentences, slowest_table,
};

/// Points of the time line at the most.
const MOST_POINTS: usize = 2000;
/// Runs, and what tells their lines apart.
const DASHES: [DashType; 2] = [DashType::Solid, DashType::Dot];
const RUNS: [&str; 2] = [HEAP, LIMIT];

/// How long page faults took as one HTML file that needs nothing else.
pub fn faults(faulted: &Faulted) -> String {
    let mut html = Html::default();
    let program = faulted.header.command.first().map_or("bursar", |word| word.rsplit('/').next().unwrap_or(word));
    page::open(&mut html, program);
    html.element("h1", "", &faulted.runs.first().map_or("no run was recorded".into(), headline));
    html.paragraph("command", &faulted.command());
    for note in faulted.notes {
        html.paragraph("warning", note);
    }
    if faulted.runs.iter().any(|faults| !faults.kinds.is_empty()) {
        html.heading("How many faults took longer");
        html.raw(&tails("plot-tails", faulted.runs));
        html.paragraph("quiet", "The share of a kind's faults that took longer than a latency: 1 - CDF.");
    }
    if faulted.runs.iter().any(|faults| !faults.moments.is_empty()) {
        html.heading("Over time");
        html.raw(&over_time("plot-time", faulted.runs));
    }
    for faults in faulted.runs {
        run(&mut html, faults, faulted);
    }
    html.heading("Sources");
    let header = faulted.header;
    html.paragraph(
        "quiet",
        &format!(
            "bursar {} on {}: Linux {}, {} processors, {} of memory; seen by {}",
            header.bursar_version,
            header.host,
            header.kernel,
            header.cpus,
            Bytes(header.memory_bytes),
            faulted.runs.first().map_or("nothing", |faults| faults.rung.as_str())
        ),
    );
    page::close(&mut html);
    html.finish()
}

fn run(html: &mut Html, faults: &Faults, faulted: &Faulted) {
    let id = |name: &str| format!("{name}-{}", faults.run);
    let name = arm(faults);
    html.heading(if faulted.runs.len() > 1 { &name } else { "By kind" });
    html.table(&id("kinds"), &kinds_table(faults));
    html.table(&id("on-processor"), &on_cpu_table(faults));
    html.table(&id("orders"), &orders_table(faults, faulted.header.page_bytes));
    html.table(&id("calls"), &calls_table(faults));
    for sentence in sentences(faults) {
        html.paragraph("", &sentence);
    }
    for note in &faults.notes {
        html.paragraph("warning", note);
    }
    html.table(&id("slowest"), &slowest_table(faults));
}

fn color(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Base => HEAP,
        FaultKind::Large => PREDICTED,
        FaultKind::Huge => LIMIT,
        FaultKind::Zero => UNSPLIT,
        FaultKind::Cow => KERNEL,
        FaultKind::File => FILE,
        FaultKind::Shared => SHARED,
        FaultKind::Swap | FaultKind::Hugetlb => ANSWER,
        FaultKind::Other => "#bab0ac",
        FaultKind::Userfaultfd => "#9c755f",
    }
}

/// For legends; the load's whole command is in the heading.
fn short_arm(faults: &Faults) -> &'static str {
    if faults.beside.is_some() { "beside" } else { "alone" }
}

fn log_axis(title: &str) -> Axis {
    Axis::new()
        .title(plotly::common::Title::with_text(title))
        .auto_margin(true)
        .type_(AxisType::Log)
        .exponent_format(ExponentFormat::Power)
}

/// Log latency against the log of the share that took longer (CBMM).
fn tails(id: &str, runs: &[Faults]) -> String {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (at, faults) in runs.iter().enumerate() {
        for (kind, figures) in &faults.kinds {
            let (x, y) = tail(&figures.histogram);
            let dash = DASHES[at % DASHES.len()].clone();
            let line = Line::new().color(color(*kind)).width(2.0).shape(LineShape::Hv).dash(dash);
            let name =
                if runs.len() > 1 { format!("{}, {}", kind.name(), short_arm(faults)) } else { kind.name().into() };
            traces.push(Scatter::new(x, y).name(escape(&name)).mode(Mode::Lines).line(line));
        }
    }
    draw(id, traces, layout(log_axis("µs"), log_axis("share that took longer"), 420))
}

/// What none took longer than has no place on a logarithmic axis.
fn tail(histogram: &LatencyHistogram) -> (Vec<f64>, Vec<f64>) {
    histogram.tail().into_iter().filter(|(_, above)| *above > 0.0).map(|(ns, above)| (ns.max(1.0) / 1e3, above)).unzip()
}

/// Mean and longest of each moment (HPMMAP); how many, where no more is known.
fn over_time(id: &str, runs: &[Faults]) -> String {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let is_timed = runs.iter().all(|faults| faults.moments.iter().all(|moment| moment.sum_seconds.is_some()));
    for (at, faults) in runs.iter().enumerate() {
        let color = RUNS[at % RUNS.len()];
        let of_run =
            |what: &str| if runs.len() > 1 { format!("{what}, {}", short_arm(faults)) } else { what.to_string() };
        let stretches = faults.moments.chunks(faults.moments.len().div_ceil(MOST_POINTS).max(1));
        let points = stretches.map(|stretch| {
            let count: u64 = stretch.iter().map(|moment| moment.count).sum();
            let sum: f64 = stretch.iter().filter_map(|moment| moment.sum_seconds).sum();
            let max = stretch.iter().filter_map(|moment| moment.max_us).fold(0.0, f64::max);
            let seconds = axis_seconds((stretch[0].seconds * 1e9) as u64);
            (seconds, count, sum * 1e6 / count.max(1) as f64, max)
        });
        let points: Vec<_> = points.collect();
        let x: Vec<f64> = points.iter().map(|point| point.0).collect();
        let mut add = |what: &str, mode: Mode, y: Vec<f64>| {
            let scatter = Scatter::new(x.clone(), y).name(escape(&of_run(what))).mode(mode);
            traces.push(scatter.marker(Marker::new().color(color).size(4)).line(Line::new().color(color).width(1.5)));
        };
        if is_timed {
            add("mean", Mode::Lines, points.iter().map(|point| point.2).collect());
            add("longest", Mode::Markers, points.iter().map(|point| point.3).collect());
        } else {
            add("faults", Mode::Lines, points.iter().map(|point| point.1 as f64).collect());
        }
    }
    let y = if is_timed { log_axis("µs") } else { axis("faults") };
    draw(id, traces, layout(axis("seconds"), y, 380))
}

#[cfg(test)]
mod tests {
    use model::RecordKind;

    use super::*;
    use crate::faults::tests::{counted, faults as by_bpf};
    use crate::fixture;

    #[test]
    fn the_page_has_both_plots_and_both_runs_and_nothing_of_the_record_becomes_markup() {
        let header = fixture::header(RecordKind::Faults);
        let runs = [by_bpf(), Faults { run: 1, beside: Some("<make>".into()), ..by_bpf() }];
        let html = faults(&Faulted { header: &header, runs: &runs, notes: &[] });
        for part in [
            "id=\"plot-tails\"",
            "id=\"plot-time\"",
            "id=\"kinds-0\"",
            "id=\"kinds-1\"",
            "id=\"slowest-0\"",
            "beside &lt;make&gt;",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("<make>"));
    }

    #[test]
    fn without_latencies_it_is_still_a_page() {
        let header = fixture::header(RecordKind::Faults);
        for runs in [vec![], vec![counted()]] {
            let html = faults(&Faulted { header: &header, runs: &runs, notes: &[] });
            assert!(!html.contains("plot-tails") && html.trim_end().ends_with("</html>"));
        }
    }
}

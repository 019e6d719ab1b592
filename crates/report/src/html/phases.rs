//! The page of a replay of intermittent tracking: its tables, and the paper's Figure 2 of each record.

use model::PhaseReplay;
use plotly::common::{DashType, Line, LineShape, Mode};
use plotly::{Scatter, Trace};

use super::markup::Html;
use super::page;
use super::plots::{ANSWER, FILE, HEAP, KERNEL, LIMIT, SHARED, UNSPLIT, axis, draw, layout, mib};
use crate::phases;

const SIGNALS: [&str; 4] = [UNSPLIT, FILE, KERNEL, SHARED];

/// A record as it is drawn, interval by interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Followed {
    /// The component of the function.
    pub name: String,
    /// Ends of the intervals, seconds.
    pub seconds: Vec<f64>,
    /// Working sets in bytes.
    pub wss: Vec<f64>,
    /// Those that would have been told.
    pub told: Vec<f64>,
    /// Whether memory would have been tracked.
    pub on: Vec<bool>,
    /// The signals, with their names.
    pub signals: Vec<(String, Vec<f64>)>,
}

/// A replay as one HTML file that needs nothing else.
pub fn phases(replay: &PhaseReplay, followed: &[Followed]) -> String {
    let mut html = Html::default();
    page::open(&mut html, "phases");
    html.element("h1", "", &phases::headline(replay));
    html.table("arms", &phases::arms_table(replay));
    html.heading("Each record with the adaptive threshold");
    html.table("records", &phases::records_table(replay));
    for (number, record) in followed.iter().enumerate() {
        html.element("h3", "", &record.name);
        html.raw(&figure(&format!("plot-{number}"), record));
    }
    html.paragraph(
        "quiet",
        "Above: whether memory is tracked. Below: the working set, as tracked all the time and as it would have been told; the \
         signals, each as a share of its own largest value.",
    );
    page::close(&mut html);
    html.finish()
}

fn figure(id: &str, record: &Followed) -> String {
    let line = |name: &str, y: Vec<f64>, color: &'static str, width: f64, dash: DashType| -> Box<dyn Trace> {
        let line = Line::new().color(color).width(width).dash(dash).shape(LineShape::Vh);
        Scatter::new(record.seconds.clone(), y).name(name).mode(Mode::Lines).line(line)
    };
    let top = record.wss.iter().chain(&record.told).copied().fold(0.0, f64::max);
    let scaled = |values: &[f64]| -> Vec<f64> { values.iter().map(|bytes| mib(*bytes)).collect() };
    let state = |on: &bool| mib(top * if *on { 1.25 } else { 1.1 });
    let mut traces =
        vec![line("tracking on or off", record.on.iter().map(state).collect(), HEAP, 1.5, DashType::Solid)];
    for (at, (name, values)) in record.signals.iter().enumerate() {
        let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let shares = values.iter().map(|value| mib(value / most * top)).collect();
        traces.push(line(name, shares, SIGNALS[at % SIGNALS.len()], 1.0, DashType::Solid));
    }
    traces.push(line("working set", scaled(&record.wss), ANSWER, 3.0, DashType::Solid));
    traces.push(line("as told", scaled(&record.told), LIMIT, 1.5, DashType::Dot));
    draw(id, traces, layout(axis("seconds"), axis("MiB"), 340))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::tests::replay;

    #[test]
    fn the_page_has_the_tables_and_a_figure_of_each_record() {
        let followed = Followed {
            name: "<a>".into(),
            seconds: vec![1.0, 2.0],
            wss: vec![1e6, 2e6],
            told: vec![1e6, 1e6],
            on: vec![true, false],
            signals: vec![("DTLB misses".into(), vec![3.0, 4.0])],
        };
        let html = phases(&replay(), &[followed.clone(), followed]);
        for part in ["<h1>with the adaptive", "id=\"arms\"", "id=\"records\"", "id=\"plot-1\"", "<h3>&lt;a&gt;</h3>"] {
            assert!(html.contains(part), "{part}");
        }
        assert!(html.contains("&lt;a&gt;.bursar"));
    }
}

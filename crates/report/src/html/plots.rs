//! What all plots of the page share: colours, layout, axes.

use std::io::Read;

use flate2::read::GzDecoder;
use plotly::common::{Anchor, DashType, Line, LineShape, Mode, Orientation, Title};
use plotly::configuration::DisplayModeBar;
use plotly::layout::{Axis, BarMode, HoverMode, Legend, Margin, RangeMode, TraceOrder};
use plotly::{Configuration, Layout, Plot, Scatter, Trace};

/// Colour of heap, file, shared and kernel, readable on light and dark.
pub const HEAP: &str = "#4e79a7";
pub const FILE: &str = "#f28e2b";
pub const SHARED: &str = "#59a14f";
pub const KERNEL: &str = "#b07aa1";
/// Of memory whose kind is not known.
pub const UNSPLIT: &str = "#9aa0a6";
/// Of limits and of what was killed.
pub const LIMIT: &str = "#e15759";
/// Of the answer.
pub const ANSWER: &str = "#2ca089";
/// Of what was predicted.
pub const PREDICTED: &str = "#8a8fe0";

const MIB: f64 = (1u64 << 20) as f64;

/// Bytes as the MiB that the axes count in.
pub fn mib(bytes: f64) -> f64 {
    (bytes / MIB * 1000.0).round() / 1000.0
}

/// Nanoseconds as the seconds that the axes count in.
pub fn axis_seconds(t_ns: u64) -> f64 {
    (t_ns as f64 / 1e5).round() / 1e4
}

/// An axis with a title.
pub fn axis(title: &str) -> Axis {
    Axis::new().title(Title::with_text(title)).auto_margin(true).range_mode(RangeMode::ToZero)
}

/// A layout with these axes; the page's script gives it the colours of light or dark.
pub fn layout(x: Axis, y: Axis, height: usize) -> Layout {
    Layout::new()
        .x_axis(x)
        .y_axis(y)
        .height(height)
        .auto_size(true)
        .bar_mode(BarMode::Stack)
        .hover_mode(HoverMode::Closest)
        .margin(Margin::new().left(50).right(16).top(8).bottom(44))
        .show_legend(true)
        .legend(legend())
        .paper_background_color("rgba(0,0,0,0)")
        .plot_background_color("rgba(0,0,0,0)")
}

/// A legend above the plot, in the order of the traces.
pub fn legend() -> Legend {
    Legend::new()
        .trace_order(TraceOrder::Normal)
        .orientation(Orientation::Horizontal)
        .x(0.0)
        .y(1.02)
        .y_anchor(Anchor::Bottom)
}

/// A line from points.
pub fn line(name: &str, x: Vec<f64>, y: Vec<f64>, color: &'static str) -> Box<Scatter<f64, f64>> {
    Scatter::new(x, y).name(name).mode(Mode::Lines).line(Line::new().color(color).width(2.0).shape(LineShape::Linear))
}

/// A dashed straight line between two points: a limit, the floor, the answer.
pub fn rule(name: &str, from: (f64, f64), to: (f64, f64), color: &'static str) -> Box<Scatter<f64, f64>> {
    Scatter::new(vec![from.0, to.0], vec![from.1, to.1])
        .name(name)
        .mode(Mode::Lines)
        .line(Line::new().color(color).width(1.5).dash(DashType::Dash))
}

/// The markup of one plot.
pub fn draw(id: &str, traces: Vec<Box<dyn Trace>>, layout: Layout) -> String {
    let mut plot = Plot::new();
    plot.add_traces(traces);
    plot.set_layout(layout);
    plot.set_configuration(
        Configuration::new().responsive(true).display_logo(false).display_mode_bar(DisplayModeBar::False),
    );
    format!("<div class=\"plot\">{}</div>", plot.to_inline_html(Some(id)))
}

/// The plotting library itself, once per page: see assets/README.md.
pub fn library() -> String {
    let packed = include_bytes!("../../assets/plotly-cartesian.min.js.gz");
    let mut script = String::from("<script>");
    // Reading from memory what a test has unpacked cannot fail.
    let _ = GzDecoder::new(&packed[..]).read_to_string(&mut script);
    script + "</script>"
}

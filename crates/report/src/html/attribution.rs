//! The page of who held the memory.

use model::{Attribution, Axis, Bytes, CommMatrix, RankUse, Series, Share, line_name, lines};
use plotly::common::{ColorBar, ColorScale, ColorScalePalette, Fill, Line, LineShape, Mode};
use plotly::layout::{AxisType, HoverMode};
use plotly::{HeatMap, Scatter, Trace};

use super::downsample::shared_times;
use super::markup::{Html, escape};
use super::page::{self, figure_boxes};
use super::plots::{
    ANSWER, FILE, HEAP, KERNEL, LIMIT, PREDICTED, SHARED, UNSPLIT, axis, axis_seconds, draw, layout, mib, rule,
};
use crate::attribution::{
    Attributed, beside, components_table, functions_table, headline, init_sentence, libraries_table, peaks_table,
    phases_table, rank_name, ranks_table, scaling_table, times_table,
};
use crate::comm::{comm_table, sent_sentence};
use crate::figures::size;
use crate::tables::{Table, Tone};

/// Points of a line, and lines of ranks, at the most.
const MOST_POINTS: usize = 2000;
const MOST_RANKS: usize = 64;
/// More ranks are told apart by colour alone.
const MOST_NAMED: usize = 12;
/// Rows of the heat map of messages; more ranks share them.
const MOST_ROWS: usize = 256;
/// Colours of components; those beside them have their own.
const COLORS: [&str; 6] = [HEAP, FILE, SHARED, KERNEL, PREDICTED, ANSWER];

/// Who held the memory as one HTML file that needs nothing else.
pub fn attribution(attributed: &Attributed) -> String {
    let mut html = Html::default();
    let program = attributed.header.command.first().map_or("bursar", |word| word.rsplit('/').next().unwrap_or(word));
    page::open(&mut html, program);
    match attributed.shown() {
        None => html.element("h1", "", "no run was recorded"),
        Some(shown) => body(&mut html, attributed, shown),
    }
    sources(&mut html, attributed);
    page::close(&mut html);
    html.finish()
}

fn body(html: &mut Html, attributed: &Attributed, shown: &Attribution) {
    html.element("h1", "", &headline(shown, attributed.went_on(), attributed.files_in_memory()));
    html.paragraph("command", &attributed.command());
    let mut boxes = vec![("total".to_string(), size(shown.total_peak_bytes))];
    boxes.extend(shown.components_in_order().iter().map(|(name, held)| (name.to_string(), size(held.peak_bytes))));
    boxes.push((lines::UNATTRIBUTED.into(), size(shown.unattributed_peak_bytes)));
    boxes.extend(shown.allocator_retained_peak_bytes.map(|bytes| (lines::RETAINED.to_string(), size(bytes))));
    figure_boxes(html, &boxes.iter().map(|(name, text)| (name.as_str(), text.clone())).collect::<Vec<_>>());
    if let Some(sentence) = init_sentence(shown) {
        html.paragraph("", &sentence);
    }
    if attributed.attributions.len() > 1 {
        html.heading("By number of ranks");
        html.table("scaling", &scaling_table(&attributed.scale()));
    }
    let series = attributed.series();
    html.heading("All ranks together over time");
    html.raw(&stack("plot-all", shown, series));
    html.table("components", &components_table(shown));
    let by = match shown.by {
        Axis::Owner => "By whose call obtained it.",
        Axis::Touch => "By touch: in whose code it first became resident.",
    };
    html.paragraph(
        "quiet",
        &format!(
            "{by} What is shared between processes counts once. In the table each line is at its own peak, so that they need not \
             add up to the total's."
        ),
    );
    html.heading("Each rank over time");
    let names = shown.components_in_order().into_iter().map(|(name, _)| name).chain([lines::TOTAL]);
    for (number, name) in names.enumerate() {
        let plot = ranks(&format!("plot-ranks-{number}"), shown, name, series);
        if !plot.is_empty() {
            html.element("h3", "", name);
            html.raw(&plot);
        }
    }
    if shown.ranks > 1 {
        html.table("peaks", &peaks_table(shown));
    }
    html.table("ranks", &ranks_table(shown, MOST_RANKS));
    for (heading, id, table) in [
        ("Phases", "phases", phases_table(shown)),
        ("Functions that obtained most", "functions", functions_table(shown)),
        ("Functions that took most time", "times", times_table(shown)),
        ("Libraries, at their component's peak", "libraries", libraries_table(shown)),
    ] {
        if !table.rows.is_empty() {
            html.heading(heading);
            html.table(id, &table);
        }
    }
    if let Some(matrix) = &shown.comm_matrix {
        html.heading("Messages between ranks");
        html.paragraph("", &sent_sentence(matrix));
        html.raw(&messages("plot-messages", matrix));
        html.table("messages", &comm_table(matrix));
    }
}

/// Bytes from rank to rank (the paper's Figure 4).
fn messages(id: &str, matrix: &CommMatrix) -> String {
    let step = matrix.ranks.len().div_ceil(MOST_ROWS).max(1);
    let names: Vec<String> = matrix.ranks.iter().step_by(step).map(|rank| escape(rank)).collect();
    let sums = |rows: &[Vec<u64>]| -> Vec<Option<f64>> {
        let mut sums = vec![0.0; names.len()];
        for (to, bytes) in rows.iter().flat_map(|row| row.iter().enumerate()) {
            sums[to / step] += *bytes as f64;
        }
        sums.into_iter().map(|sum| Some(sum).filter(|sum| *sum > 0.0)).collect()
    };
    let map = HeatMap::new(names.clone(), names.clone(), matrix.bytes.chunks(step).map(sums).collect())
        .hover_on_gaps(false)
        .color_scale(ColorScale::Palette(ColorScalePalette::Viridis))
        .color_bar(ColorBar::new().title("bytes").thickness(12))
        .name("sent");
    let [to, from] = ["to rank", "from rank"].map(|title| axis(title).type_(AxisType::Category));
    draw(id, vec![map], layout(to, from, 420).show_legend(false))
}

/// The components and the lines beside them, on top of one another (the paper's Figure 6).
fn stack(id: &str, shown: &Attribution, series: &[Series]) -> String {
    let of_job = |line: &str| {
        let name = line_name(line, None, Share::Whole);
        series.iter().find(|series| series.process.is_none() && series.name == name)
    };
    let components = shown.components_in_order().into_iter().zip(COLORS.iter().cycle());
    let beside = [(lines::UNATTRIBUTED, LIMIT), (lines::RETAINED, UNSPLIT)];
    let stacked: Vec<(&str, &'static str, &Series)> = components
        .map(|((name, _), color)| (name, *color))
        .chain(beside)
        .filter_map(|(name, color)| Some((name, color, of_job(name)?)))
        .collect();
    let times = shared_times(&stacked.iter().map(|(.., series)| *series).collect::<Vec<_>>(), MOST_POINTS);
    if times.is_empty() {
        return String::new();
    }
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (name, color, series) in stacked {
        let (x, y) = at_times(series, &times);
        traces.push(
            Scatter::new(x, y)
                .name(escape(name))
                .mode(Mode::Lines)
                .stack_group("components")
                .fill(Fill::ToNextY)
                .line(Line::new().color(color).width(0.5).shape(LineShape::Hv))
                .fill_color(color),
        );
    }
    let top = mib(shown.total_peak_bytes as f64) * 1.05;
    for (number, phase) in shown.phases.iter().skip(1).enumerate() {
        let at = phase.begin_seconds;
        let line = rule("phases", (at, 0.0), (at, top), LIMIT).legend_group("phases").show_legend(number == 0);
        traces.push(line);
    }
    draw(id, traces, layout(axis("seconds"), axis("MiB"), 380).hover_mode(HoverMode::XUnified))
}

/// One line for every rank (the paper's Figure 5).
fn ranks(id: &str, shown: &Attribution, line: &str, series: &[Series]) -> String {
    let name = line_name(line, None, Share::Whole);
    let of_rank = |rank: &RankUse| {
        let is_its = |key: model::ProcessKey| (key.pid, key.start_ticks) == (rank.pid, rank.start_ticks);
        series.iter().find(|series| series.name == name && series.process.is_some_and(is_its))
    };
    let step = shown.per_rank.len().div_ceil(MOST_RANKS).max(1);
    let drawn: Vec<(&RankUse, &Series)> =
        shown.per_rank.iter().step_by(step).filter_map(|rank| Some((rank, of_rank(rank)?))).collect();
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (number, (rank, series)) in drawn.iter().enumerate() {
        let (x, y) = at_times(series, &shared_times(&[series], MOST_POINTS));
        // From blue to orange, light and dark alike.
        let hue = 215 - 190 * number / drawn.len().max(2);
        traces.push(
            Scatter::new(x, y)
                .name(escape(&rank_name(rank)))
                .mode(Mode::Lines)
                .line(Line::new().color(format!("hsl({hue}, 70%, 48%)")).width(1.5).shape(LineShape::Hv)),
        );
    }
    if traces.is_empty() {
        return String::new();
    }
    draw(id, traces, layout(axis("seconds"), axis("MiB, RSS"), 300).show_legend(drawn.len() <= MOST_NAMED))
}

fn at_times(series: &Series, times: &[u64]) -> (Vec<f64>, Vec<f64>) {
    times.iter().map(|t| (axis_seconds(*t), mib(series.at(*t).unwrap_or(0.0)))).unzip()
}

fn sources(html: &mut Html, attributed: &Attributed) {
    html.heading("Sources and notes");
    let (header, shown) = (attributed.header, attributed.shown());
    html.paragraph(
        "quiet",
        &format!(
            "bursar {} on {}: Linux {}, {} processors, {} of memory; seen from inside the processes",
            header.bursar_version,
            header.host,
            header.kernel,
            header.cpus,
            Bytes(header.memory_bytes)
        ),
    );
    for sentence in shown.map(beside).unwrap_or_default() {
        html.paragraph("quiet", &sentence);
    }
    let mut notes = Table::new(&["note"]);
    let all = attributed.notes.iter().chain(shown.map_or(&[][..], |shown| &shown.notes));
    notes.rows.extend(all.map(|note| (Tone::Plain, vec![note.clone()])));
    html.table("notes", &notes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_page_has_plots_and_tables_and_nothing_of_the_record_becomes_markup() {
        let header = fixture::header(model::RecordKind::Attribute);
        let attributions = [fixture::attribution(2)];
        let runs = [fixture::attributed_run(&attributions[0])];
        let attributed = Attributed { header: &header, attributions: &attributions, runs: &runs, notes: &[] };
        let html = attribution(&attributed);
        for id in [
            "plot-all",
            "plot-ranks-0",
            "plot-ranks-2",
            "plot-messages",
            "components",
            "peaks",
            "ranks",
            "phases",
            "functions",
            "messages",
            "notes",
        ] {
            assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
        }
        assert!(html.contains("<h1>held 314 MiB at peak (2 ranks)"));
        for foreign in ["solve<p>", "solve<r>", "<why>"] {
            assert!(!html.contains(foreign), "{foreign}");
        }
        assert!(html.contains("solve&lt;p&gt;"));
        assert!(!html.contains("id=\"scaling\"") && html.contains("By whose call obtained it."));
        let touched = [Attribution { by: Axis::Touch, comm_matrix: None, ..fixture::attribution(2) }];
        let html = attribution(&Attributed { attributions: &touched, ..attributed });
        assert!(html.contains("by touch, at their own peaks") && html.contains("By touch: in whose code"));
        assert!(!html.contains("plot-messages"));
    }

    #[test]
    fn many_ranks_share_the_rows_of_the_heat_map() {
        let ranks = 2 * MOST_ROWS + 1;
        let matrix = CommMatrix {
            ranks: (0..ranks).map(|rank| rank.to_string()).collect(),
            messages: vec![vec![1; ranks]; ranks],
            bytes: vec![vec![7; ranks]; ranks],
            ..CommMatrix::default()
        };
        let plot = messages("plot", &matrix);
        // Three ranks to three; rows and columns are named by the first of theirs.
        assert!(plot.contains("63.0") && plot.contains("\"510\"") && !plot.contains("\"511\""));
    }

    #[test]
    fn a_record_without_figures_is_still_a_page() {
        let header = fixture::header(model::RecordKind::Attribute);
        let attributed = Attributed { header: &header, attributions: &[], runs: &[], notes: &[] };
        let html = attribution(&attributed);
        assert!(html.contains("no run was recorded") && html.trim_end().ends_with("</html>"));
    }
}

//! The page of what was watched.

use std::collections::BTreeMap;

use model::{AgeBytes, Bytes, MappingHeat, PagesRound};
use plotly::common::{ColorBar, ColorScale, ColorScalePalette, Line, LineShape, Marker, Mode, Orientation, Title};
use plotly::layout::{Axis, AxisRange, AxisType};
use plotly::{Bar, HeatMap, Scatter, Trace};

use super::markup::Html;
use super::page;
use super::plots::{
    ANSWER, FILE, HEAP, KERNEL, LIMIT, PREDICTED, SHARED, UNSPLIT, axis, axis_seconds, draw, layout, mib, rule,
};
use crate::watch::{Phase, Watched, begin};

/// Curves that are drawn, of the longest phases.
const MOST_CURVES: usize = 6;
const COLORS: [&str; MOST_CURVES] = [FILE, HEAP, SHARED, KERNEL, PREDICTED, UNSPLIT];
/// Mappings, rows and columns of the heat map.
const MOST_MAPPINGS: usize = 14;
const ROWS: u64 = 96;
const MOST_COLUMNS: usize = 300;
/// Points of a line at the most.
const MOST_POINTS: usize = 4000;
/// Characters of a mapping's name beside the heat map.
const NAME: usize = 22;

/// What was watched as one HTML file that needs nothing else.
pub fn watch(watched: &Watched) -> String {
    let mut html = Html::default();
    let target = watched.target();
    page::open(&mut html, target.split(' ').next().unwrap_or("bursar"));
    html.element("h1", "", &watched.headline());
    html.paragraph("command", &target);
    html.paragraph("", &watched.summary());
    for note in watched.notes {
        html.paragraph("warning", note);
    }
    html.heading("Working set over time");
    html.raw(&time_line("plot-working-set", watched));
    html.table("phases", &watched.phases_table());
    html.heading("Misses per second by memory size");
    html.raw(&curves("plot-curve", watched));
    html.paragraph(
        "quiet",
        "Pages per second that would have to be brought back with so much memory, by phase. References are not counted, so \
         there is no ratio. Left of a curve's beginning nothing is known: so much is accessed between two looks.",
    );
    html.heading("Where memory was accessed");
    html.raw(&heat("plot-heat", watched.rounds));
    html.paragraph(
        "quiet",
        "Upwards: the largest mappings (process, resident) by address, without what was never resident; each is as high as it is \
         large. Blank: nothing was resident there then, or tracking was off.",
    );
    html.heading("How long ago memory was accessed");
    html.raw(&ages("plot-ages", watched.rounds));
    html.heading("Sources");
    let header = watched.header;
    let rung = watched.rounds.last().map_or("", |round| round.rung.as_str());
    html.paragraph(
        "quiet",
        &format!(
            "bursar {} on {}: Linux {}, {} processors, {} of memory; seen by {rung}",
            header.bursar_version,
            header.host,
            header.kernel,
            header.cpus,
            Bytes(header.memory_bytes)
        ),
    );
    page::close(&mut html);
    html.finish()
}

/// The working set, with a dashed line where a phase begins, and below it when memory was tracked.
fn time_line(id: &str, watched: &Watched) -> String {
    let rounds = watched.rounds;
    let mut told = Vec::new();
    let mut last = None;
    for round in rounds {
        last = round.wss_bytes.or(last);
        told.push(last);
    }
    let top = told.iter().flatten().max().map_or(1.0, |wss| mib(*wss as f64)) * 1.08;
    let kept = thinned(rounds, MOST_POINTS);
    let known = kept.iter().filter_map(|at| Some((axis_seconds(rounds[*at].t_ns), mib(told[*at]? as f64))));
    let (x, y): (Vec<f64>, Vec<f64>) = known.unzip();
    let mut traces: Vec<Box<dyn Trace>> = vec![step("working set", x, y, ANSWER)];
    let resident = kept.iter().filter(|at| rounds[**at].tracking);
    let (x, y): (Vec<f64>, Vec<f64>) =
        resident.map(|at| (axis_seconds(rounds[*at].t_ns), mib(rounds[*at].seen_bytes() as f64))).unzip();
    let top = y.iter().copied().fold(top, f64::max);
    traces.push(step("resident, and files", x, y, UNSPLIT));
    for (number, round) in rounds.iter().filter(|round| round.new_phase).enumerate() {
        let at = begin(round);
        let line = rule("new phase", (at, 0.0), (at, top), LIMIT).legend_group("phases").show_legend(number == 0);
        traces.push(line);
    }
    let tracked: Vec<f64> =
        kept.iter().filter(|at| rounds[**at].tracking).map(|at| axis_seconds(rounds[*at].t_ns)).collect();
    let floor = vec![0.0; tracked.len()];
    let marks = Scatter::new(tracked, floor).name("tracking on").mode(Mode::Markers);
    traces.push(marks.marker(Marker::new().color(FILE).size(5)));
    draw(id, traces, layout(axis("seconds"), axis("MiB"), 340))
}

/// The numbers of at most so many rounds: of each of as many equal stretches the last that was tracked, or the last.
fn thinned(rounds: &[PagesRound], most: usize) -> Vec<usize> {
    let numbers: Vec<usize> = (0..rounds.len()).collect();
    let stretches = numbers.chunks(rounds.len().div_ceil(most).max(1));
    stretches
        .filter_map(|stretch| stretch.iter().rfind(|at| rounds[**at].tracking).or(stretch.last()).copied())
        .collect()
}

fn step(name: &str, x: Vec<f64>, y: Vec<f64>, color: &'static str) -> Box<Scatter<f64, f64>> {
    Scatter::new(x, y).name(name).mode(Mode::Lines).line(Line::new().color(color).width(2.0).shape(LineShape::Vh))
}

fn curves(id: &str, watched: &Watched) -> String {
    let mut phases: Vec<Phase> = watched.phases().into_iter().filter(|phase| phase.shown().is_some()).collect();
    phases.sort_by_key(|phase| std::cmp::Reverse(phase.rounds.len()));
    phases.truncate(MOST_CURVES);
    phases.sort_by_key(|phase| phase.rounds[0].t_ns);
    let shown = || phases.iter().filter_map(|phase| Some((phase.name(), phase.shown()?)));
    let width = shown().map(|(_, round)| round.seen_bytes()).max().map_or(1.0, |bytes| mib(bytes as f64)) * 1.02;
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (at, (name, round)) in shown().enumerate() {
        let known = round.misses.iter().filter(|point| point.bytes >= round.blind_below);
        let (mut x, mut y): (Vec<f64>, Vec<f64>) =
            known.map(|point| (mib(point.bytes as f64), point.misses_per_second.round())).unzip();
        if let Some(last) = y.last().copied() {
            x.push(width);
            y.push(last);
        }
        let line = Line::new().color(COLORS[at]).width(2.0).shape(LineShape::Hv);
        traces.push(Scatter::new(x, y).name(name).mode(Mode::Lines).line(line));
    }
    draw(id, traces, layout(axis("MiB").range(AxisRange::new(0.0, width)), axis("pages per second"), 360))
}

/// A mapping over all intervals.
struct Mapped<'a> {
    of: &'a MappingHeat,
    by_round: BTreeMap<usize, &'a [Option<f32>]>,
}

fn heat(id: &str, rounds: &[PagesRound]) -> String {
    let columns = thinned(rounds, MOST_COLUMNS);
    let mut mappings: BTreeMap<(i32, u64), Mapped> = BTreeMap::new();
    for (column, at) in columns.iter().enumerate() {
        for heat in &rounds[*at].heat {
            let mapped = mappings
                .entry((heat.pid, heat.start))
                .or_insert_with(|| Mapped { of: heat, by_round: BTreeMap::new() });
            if heat.resident > mapped.of.resident {
                mapped.of = heat;
            }
            mapped.by_round.insert(column, &heat.parts);
        }
    }
    let mut largest: Vec<Mapped> = mappings.into_values().collect();
    largest.sort_by_key(|mapped| std::cmp::Reverse(mapped.of.resident));
    largest.truncate(MOST_MAPPINGS);
    largest.sort_by_key(|mapped| (mapped.of.pid, mapped.of.start));
    let all: u64 = largest.iter().map(|mapped| mapped.of.resident).sum::<u64>().max(1);
    let (mut names, mut z) = (Vec::new(), Vec::new());
    for mapped in &largest {
        // Much is reserved and never used: what was never resident has no row.
        let parts: Vec<usize> = (0..mapped.of.parts.len())
            .filter(|part| mapped.by_round.values().any(|shares| shares.get(*part).is_some_and(Option::is_some)))
            .collect();
        let height = (ROWS * mapped.of.resident / all).max(3) as usize;
        names.push((z.len() as f64 + height as f64 / 2.0 - 0.5, label(mapped.of)));
        for row in 0..height {
            let shares = (0..columns.len()).map(|column| {
                let part = parts.get(row * parts.len() / height)?;
                let share = mapped.by_round.get(&column)?.get(*part).copied().flatten()?;
                Some((share * 1000.0).round() / 10.0)
            });
            z.push(shares.collect::<Vec<_>>());
        }
    }
    let rows: Vec<f64> = (0..z.len()).map(|row| row as f64).collect();
    let times: Vec<f64> = columns.iter().map(|at| axis_seconds(rounds[*at].t_ns)).collect();
    let map = HeatMap::new(times, rows, z)
        .zmin(0.0)
        .zmax(100.0)
        .hover_on_gaps(false)
        .color_scale(ColorScale::Palette(ColorScalePalette::Viridis))
        .color_bar(ColorBar::new().title("% accessed").thickness(12))
        .name("accessed");
    let (at, text): (Vec<f64>, Vec<String>) = names.into_iter().unzip();
    let y = Axis::new().auto_margin(true).tick_values(at).tick_text(text).show_grid(false).zero_line(false);
    draw(id, vec![map], layout(axis("seconds"), y, 520).show_legend(false))
}

fn label(heat: &MappingHeat) -> String {
    let name: String = heat.name.rsplit('/').next().unwrap_or_default().chars().take(NAME).collect();
    // Plotly takes some markup in labels.
    format!("{} ({}, {})", super::markup::escape(&name), heat.pid, Bytes(heat.resident))
}

fn ages(id: &str, rounds: &[PagesRound]) -> String {
    let Some(last) = rounds.iter().rfind(|round| round.tracking && !round.ages.is_empty()) else {
        return String::new();
    };
    let name = |age: &AgeBytes| age.below.map_or("longer, or never seen".into(), |below| format!("under {below} s"));
    let (y, x): (Vec<String>, Vec<f64>) =
        last.ages.iter().filter(|age| age.bytes > 0).map(|age| (name(age), mib(age.bytes as f64))).unzip();
    let bars = Bar::new(x, y).orientation(Orientation::Horizontal).marker(Marker::new().color(HEAP)).name("memory");
    let time = format!("MiB, as of second {:.0}", last.t_ns as f64 / 1e9);
    let y = Axis::new().title(Title::with_text("last accessed")).auto_margin(true).type_(AxisType::Category);
    draw(id, vec![bars], layout(axis(&time), y, 320).show_legend(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::{header, rounds};

    #[test]
    fn the_page_has_the_answer_the_plots_and_the_phases_and_nothing_of_the_record_becomes_markup() {
        let (header, rounds) = (header(), rounds());
        let html = watch(&Watched { header: &header, rounds: &rounds, notes: &["<cut>".into()] });
        for part in [
            "<h1>needs about 64.0 MiB at peak, 16.0 MiB at its end</h1>",
            "id=\"plot-working-set\"",
            "id=\"plot-curve\"",
            "id=\"plot-heat\"",
            "id=\"plot-ages\"",
            "id=\"phases\"",
            "0 to 3 s: 64.0 MiB",
            "&lt;cut&gt;",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("<big>") && !html.contains("<input>"));
    }

    #[test]
    fn a_record_without_heat_is_still_a_page() {
        let header = header();
        let html = watch(&Watched { header: &header, rounds: &[PagesRound::default()], notes: &[] });
        assert!(html.contains("is unknown") && html.trim_end().ends_with("</html>"));
    }
}

//! The live view: the headline, the curve, the working set over time, the heat of mappings, and the ages of pages.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use model::{Bytes, MappingHeat, PagesRound};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind};
use ratatui::layout::{Constraint, Direction, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Bar, BarChart, BarGroup, Block, Chart, Dataset, GraphType, Paragraph, Wrap};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio;

/// Columns of a mapping's name and size.
const NAME: usize = 30;
const SIZE: usize = 10;

/// From not accessed to all accessed, dark to light; readable on a dark and on a light background.
const HEAT: [Color; 5] =
    [Color::Indexed(238), Color::Indexed(24), Color::Indexed(67), Color::Indexed(172), Color::Indexed(214)];

/// Number of intervals in the time line.
const HISTORY: usize = 600;
/// Height of the time line, and the minimum height of a terminal that shows it.
const TIME_LINE: u16 = 8;
const MIN_HEIGHT: u16 = 30;

const HELP: &str = "q, Esc or Ctrl-C  end; twice: kill the command\n?  this help, on and off\np  pause the picture, and a replay, on and off\n\u{2192}  in a replay, the next \
    interval at once\n\n\
    The curve: pages per second that would miss in this interval, by memory size; magenta: the working set of the \
    last eight tracked intervals together. Left of its beginning nothing is known.\n\
    Working set: over time; a red line where a new phase was found; yellow where memory was tracked. While the working set stays \
    the same, tracking is off, and the last results are shown.\n\
    Heat: each line a mapping, from its first address to its last; the lighter, the more of it was accessed in this interval.\n\
    Ages: memory by the time since it was last accessed.";

/// The terminal while it shows the view.
pub(crate) struct View {
    terminal: DefaultTerminal,
    shown: Shown,
}

/// What is drawn.
#[derive(Default)]
struct Shown {
    round: PagesRound,
    line: String,
    has_help: bool,
    is_paused: bool,
    history: VecDeque<Moment>,
}

/// One interval of the time line.
struct Moment {
    seconds: f64,
    wss_mib: f64,
    tracking: bool,
    new_phase: bool,
}

/// What the user has requested by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// End.
    Quit,
    /// Go on to the next interval.
    Next,
}

impl View {
    /// Takes over the terminal.
    pub(crate) fn open() -> std::io::Result<View> {
        Ok(View { terminal: ratatui::try_init()?, shown: Shown::default() })
    }

    /// Shows an interval and its line.
    pub(crate) fn show(&mut self, round: &PagesRound, line: String) -> std::io::Result<()> {
        if self.shown.history.len() == HISTORY {
            self.shown.history.pop_front();
        }
        self.shown.history.push_back(Moment {
            seconds: round.t_ns as f64 / 1e9,
            wss_mib: round.wss_bytes.unwrap_or(0) as f64 / (1u64 << 20) as f64,
            tracking: round.tracking,
            new_phase: round.new_phase,
        });
        if !self.shown.is_paused {
            self.shown.round = round.clone();
            self.shown.line = line;
        }
        self.draw()
    }

    /// Whether the view is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.shown.is_paused
    }

    /// Whether its terminal was closed.
    pub(crate) fn is_over(&self) -> bool {
        hangs_up(stdio::stdout(), Duration::ZERO)
    }

    /// Waits for keys, for at most `patience`.
    pub(crate) fn wait(&mut self, patience: Duration) -> std::io::Result<Option<Key>> {
        // Do not let crossterm wait: if the terminal is closed meanwhile, it reads end of file in an endless loop.
        let has_event =
            event::poll(Duration::ZERO)? || (!hangs_up(stdio::stdout(), patience) && event::poll(Duration::ZERO)?);
        if !has_event {
            return Ok(None);
        }
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(Some(Key::Quit)),
                KeyCode::Char('c') if key.modifiers.contains(event::KeyModifiers::CONTROL) => {
                    return Ok(Some(Key::Quit));
                }
                KeyCode::Right => return Ok(Some(Key::Next)),
                KeyCode::Char('?') => self.shown.has_help = !self.shown.has_help,
                KeyCode::Char('p') => self.shown.is_paused = !self.shown.is_paused,
                _ => return Ok(None),
            },
            Event::Resize(..) => {}
            _ => return Ok(None),
        }
        self.draw()?;
        Ok(None)
    }

    fn draw(&mut self) -> std::io::Result<()> {
        let shown = &self.shown;
        self.terminal.draw(|frame| draw(frame, shown)).map(|_| ())
    }
}

/// Waits until the terminal is closed or has input, for at most `patience`. Returns whether it is closed.
fn hangs_up(terminal: BorrowedFd<'_>, patience: Duration) -> bool {
    let mut asked = [PollFd::new(&terminal, PollFlags::IN)];
    let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    // A signal ends the wait too.
    let _ = poll(&mut asked, Some(&timeout));
    asked[0].revents().contains(PollFlags::HUP)
}

/// Redirects output away from a closed terminal, where writes would fail.
fn leave_terminal() -> std::io::Result<()> {
    let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
    stdio::dup2_stdout(&nowhere)?;
    if hangs_up(stdio::stderr(), Duration::ZERO) {
        stdio::dup2_stderr(&nowhere)?;
    }
    Ok(())
}

impl Drop for View {
    fn drop(&mut self) {
        if self.is_over() {
            let _ = leave_terminal();
        }
        let _ = ratatui::try_restore();
    }
}

fn draw(frame: &mut Frame<'_>, shown: &Shown) {
    let area = frame.area();
    let lines = 1 + (shown.line.chars().count() / area.width.max(1) as usize) as u16;
    let [answer, curve, time, below, keys] = Layout::vertical([
        Constraint::Length(lines),
        Constraint::Fill(1),
        Constraint::Length(if area.height >= MIN_HEIGHT { TIME_LINE } else { 0 }),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    let [heat, ages] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(30)]).areas(below);
    frame.render_widget(Paragraph::new(shown.line.as_str()).bold().wrap(Wrap { trim: true }), answer);
    if shown.has_help {
        let help = Paragraph::new(HELP).wrap(Wrap { trim: false }).block(Block::bordered().title(" keys and words "));
        frame.render_widget(help, curve.union(below));
    } else {
        draw_curve(frame, curve, &shown.round);
        draw_time(frame, time, &shown.history);
        draw_heat(frame, heat, &shown.round.heat);
        draw_ages(frame, ages, &shown.round);
    }
    let paused = if shown.is_paused { "paused  " } else { "" };
    let scans = format!(
        "{paused}q ends  ? help  p pauses   tracking is {}, costs {:.2} %; one page in {} every {:.0} ms, by {}",
        if shown.round.tracking { "on" } else { "off" },
        shown.round.overhead.share() * 100.0,
        shown.round.one_in,
        shown.round.interval * 1e3,
        shown.round.rung
    );
    frame.render_widget(Paragraph::new(scans).dim(), keys);
}

fn draw_curve(frame: &mut Frame<'_>, area: Rect, round: &PagesRound) {
    let known = round.misses.iter().filter(|point| point.bytes >= round.blind_below);
    let points: Vec<(f64, f64)> = known.map(|point| (point.bytes as f64, point.misses_per_second)).collect();
    let stairs: Vec<(f64, f64)> =
        points.windows(2).flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]).chain(points.last().copied()).collect();
    let wss = round.wss_bytes.unwrap_or(1);
    let right = points.last().map_or(0.0, |point| point.0).max(round.seen_bytes().max(wss) as f64);
    let top = points.iter().map(|point| point.1).fold(1.0, f64::max);
    let sizes = [0.0, 0.5, 1.0].map(|share| Bytes((right * share) as u64).to_string());
    let rates = [0.0, 0.5, 1.0].map(|share| format!("{:.0}", top * share));
    let mark: Vec<_> = round.wss_bytes.iter().flat_map(|wss| [(*wss as f64, 0.0), (*wss as f64, top)]).collect();
    let lines = [(mark.as_slice(), Style::new().magenta()), (stairs.as_slice(), Style::new().cyan())];
    let set =
        |(data, style)| Dataset::default().graph_type(GraphType::Line).marker(Marker::Braille).style(style).data(data);
    let chart = Chart::new(lines.map(set).into())
        .block(Block::bordered().title(match points.len() {
            0 | 1 => " misses per second by memory size: unknown, all used memory is accessed between two scans ",
            _ => " misses per second by memory size, in this interval; magenta: working set ",
        }))
        .x_axis(Axis::default().bounds([0.0, right]).labels(sizes))
        .y_axis(Axis::default().bounds([0.0, top]).labels(rates));
    frame.render_widget(chart, area);
}

fn draw_time(frame: &mut Frame<'_>, area: Rect, history: &VecDeque<Moment>) {
    let (Some(first), Some(last)) = (history.front(), history.back()) else { return };
    let top = history.iter().map(|moment| moment.wss_mib).fold(1.0, f64::max) * 1.05;
    let points = |of: fn(&Moment) -> bool, height: Option<f64>| -> Vec<(f64, f64)> {
        let some = history.iter().filter(|moment| of(moment));
        some.map(|moment| (moment.seconds, height.unwrap_or(moment.wss_mib))).collect()
    };
    let (line, tracked) = (points(|_| true, None), points(|moment| moment.tracking, Some(0.0)));
    let phases: Vec<[(f64, f64); 2]> =
        history.iter().filter(|m| m.new_phase).map(|m| [(m.seconds, 0.0), (m.seconds, top)]).collect();
    let set = |data, kind, style| Dataset::default().graph_type(kind).marker(Marker::Braille).style(style).data(data);
    let mut sets: Vec<_> =
        phases.iter().map(|phase| set(phase.as_slice(), GraphType::Line, Style::new().red())).collect();
    sets.push(set(&line, GraphType::Line, Style::new().cyan()));
    sets.push(set(&tracked, GraphType::Scatter, Style::new().yellow()));
    let times = [first.seconds, last.seconds].map(|seconds| format!("{seconds:.0} s"));
    let sizes = [0.0, top].map(|mib| Bytes((mib * (1u64 << 20) as f64) as u64).to_string());
    let chart = Chart::new(sets)
        .block(Block::bordered().title(" working set over time; red: a new phase; yellow: tracked "))
        .x_axis(Axis::default().bounds([first.seconds, last.seconds.max(first.seconds + 1e-9)]).labels(times))
        .y_axis(Axis::default().bounds([0.0, top]).labels(sizes));
    frame.render_widget(chart, area);
}

fn draw_heat(frame: &mut Frame<'_>, area: Rect, heat: &[MappingHeat]) {
    let mut largest: Vec<&MappingHeat> = heat.iter().filter(|mapping| mapping.resident > 0).collect();
    largest.sort_by_key(|mapping| std::cmp::Reverse(mapping.resident));
    let columns = (area.width as usize).saturating_sub(NAME + SIZE + 4);
    let lines: Vec<Line<'_>> =
        largest.into_iter().take(area.height as usize).map(|mapping| heat_line(mapping, columns)).collect();
    let block = Block::bordered().title(" where it was accessed: mapping, resident, first to last address ");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn heat_line(mapping: &MappingHeat, columns: usize) -> Line<'static> {
    let name = mapping.name.rsplit('/').next().unwrap_or_default();
    let label =
        format!("{:<NAME$.NAME$} {:>SIZE$} ", format!("{} {name}", mapping.pid), Bytes(mapping.resident).to_string());
    let cell = |column: usize| {
        let part = column * mapping.parts.len() / columns.max(1);
        match mapping.parts.get(part).copied().flatten() {
            Some(share) => {
                let at = (share.clamp(0.0, 1.0) * (HEAT.len() - 1) as f32).round() as usize;
                Span::styled("█", Style::new().fg(HEAT[at]))
            }
            None => Span::raw(" "),
        }
    };
    Line::from_iter(std::iter::once(Span::raw(label)).chain((0..columns).map(cell)))
}

fn draw_ages(frame: &mut Frame<'_>, area: Rect, round: &PagesRound) {
    let bars: Vec<Bar<'_>> = round
        .ages
        .iter()
        .filter(|age| age.bytes > 0)
        .map(|age| {
            let label = age.below.map_or("older".to_string(), |below| format!("<{below} s"));
            Bar::default().label(label.into()).value(age.bytes >> 10).text_value(Bytes(age.bytes).to_string())
        })
        .collect();
    let chart = BarChart::default().direction(Direction::Horizontal).data(BarGroup::default().bars(&bars));
    let chart = chart.bar_gap(0).block(Block::bordered().title(" last accessed "));
    frame.render_widget(chart, area);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::{AgeBytes, MissPoint};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::buffer::Buffer;

    use super::*;

    fn shown() -> Shown {
        let point = |mib: u64, misses_per_second| MissPoint { bytes: mib << 20, misses_per_second };
        let heat = MappingHeat {
            pid: 42,
            start: 0,
            end: 64 << 20,
            name: "/usr/lib/libbig.so".into(),
            resident: 64 << 20,
            touched: 32 << 20,
            blind: 0,
            parts: vec![Some(1.0), Some(0.0), None],
        };
        let round = PagesRound {
            tracked_bytes: 64 << 20,
            misses: vec![point(0, 900.0), point(32, 400.0), point(64, 0.0)],
            heat: vec![heat],
            ages: vec![AgeBytes { below: Some(1.0), bytes: 32 << 20 }, AgeBytes { below: None, bytes: 32 << 20 }],
            ..PagesRound::default()
        };
        let moment = |seconds, new_phase| Moment { seconds, wss_mib: 64.0, tracking: new_phase, new_phase };
        let history = [moment(1.0, true), moment(2.0, false)].into();
        Shown { round, line: "1 s: needs about 64.0 MiB now".into(), history, ..Shown::default() }
    }

    fn drawn(width: u16, height: u16, shown: &Shown) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, shown)).unwrap();
        terminal.backend().buffer().clone()
    }

    fn text(width: u16, height: u16, shown: &Shown) -> String {
        drawn(width, height, shown)
            .content
            .chunks(width as usize)
            .map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>() + "\n")
            .collect()
    }

    #[test]
    fn the_view_shows_headline_curve_heat_and_ages() {
        let text = text(120, 30, &shown());
        assert!(text.starts_with("1 s: needs about 64.0 MiB now"), "{text}");
        for part in [
            "misses per second",
            "32.0 MiB",
            "900",
            "42 libbig.so",
            "█",
            "<1 s",
            "older",
            "? help",
            "over time",
            "2 s",
            "tracking is off",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn the_curve_marks_the_working_set_at_its_size() {
        let columns = |wss_bytes| {
            let shown = Shown { round: PagesRound { wss_bytes, ..shown().round }, ..shown() };
            let buffer = drawn(120, 30, &shown);
            let cells = buffer.content.iter().enumerate();
            let line = cells.filter(|(_, cell)| cell.fg == Color::Magenta && cell.symbol() != " ");
            line.map(|(at, _)| at % 120).collect::<BTreeSet<_>>()
        };
        let (half, double) = (columns(Some(32 << 20)), columns(Some(128 << 20)));
        assert!(columns(None).is_empty() && half.len() == 1 && double.len() == 1, "{half:?} {double:?}");
        assert!(half.first() < double.first());
    }

    #[test]
    fn the_view_fits_any_terminal_size() {
        for (width, height) in [(1, 1), (20, 5), (80, 24), (400, 100)] {
            text(width, height, &shown());
            text(width, height, &Shown { has_help: true, ..shown() });
            text(width, height, &Shown::default());
        }
    }
}

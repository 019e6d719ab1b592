//! Peaks by phase.

use std::collections::BTreeMap;

use model::{PhaseUse, Spread};

use crate::memory::{Lines, Measure, Row};
use crate::replay::{Moment, Process};

/// What was before the first mark.
const BEFORE: &str = "start";

/// One rank's phases, as it goes through them.
pub struct RankPhases<'a> {
    /// Still to come.
    marks: std::iter::Peekable<std::vec::IntoIter<(u64, &'a str)>>,
    phases: Vec<RankPhase<'a>>,
    /// The phase that is on.
    now: usize,
    last: Vec<Row>,
}

struct RankPhase<'a> {
    name: &'a str,
    begin_ns: u64,
    peaks: Vec<u64>,
}

impl<'a> RankPhases<'a> {
    pub fn new(processes: &[&'a Process<'a>], lines: &Lines) -> RankPhases<'a> {
        let of = |process: &&'a Process<'a>| {
            let process = *process;
            process.log.marks.iter().map(move |mark| (process.at(mark.t_us), mark.name.as_str()))
        };
        let mut marks: Vec<(u64, &str)> = processes.iter().flat_map(of).collect();
        marks.sort_by_key(|(t_ns, _)| *t_ns);
        let lines = lines.total() + 1;
        RankPhases {
            marks: marks.into_iter().peekable(),
            phases: vec![RankPhase { name: BEFORE, begin_ns: 0, peaks: vec![0; lines] }],
            now: 0,
            last: vec![Row::default(); lines],
        }
    }

    pub fn see(&mut self, moment: &Moment) {
        // Totals are taken before the mark: they are the last of the phase that ends.
        while let Some((t_ns, name)) = self.marks.next_if(|(t_ns, _)| *t_ns < moment.t_ns) {
            self.enter(t_ns, name);
        }
        self.phases[self.now].see(moment.rows);
        self.last.copy_from_slice(moment.rows);
    }

    /// The program named no phase: none.
    pub fn finish(mut self) -> Vec<RankPeaks<'a>> {
        while let Some((t_ns, name)) = self.marks.next() {
            self.enter(t_ns, name);
        }
        if self.phases.len() == 1 {
            return Vec::new();
        }
        self.phases.into_iter().map(|phase| (phase.name, phase.begin_ns, phase.peaks)).collect()
    }

    /// A phase begins with what is there.
    fn enter(&mut self, t_ns: u64, name: &'a str) {
        self.now = self.phases.iter().position(|phase| phase.name == name).unwrap_or(self.phases.len());
        if self.now == self.phases.len() {
            self.phases.push(RankPhase { name, begin_ns: t_ns, peaks: vec![0; self.last.len()] });
        }
        self.phases[self.now].see(&self.last);
    }
}

impl RankPhase<'_> {
    fn see(&mut self, rows: &[Row]) {
        for (peak, row) in self.peaks.iter_mut().zip(rows) {
            *peak = (*peak).max(Measure::Rss.sum(row));
        }
    }
}

/// A phase of one rank: its name, when it began, its peaks by line.
pub type RankPeaks<'a> = (&'a str, u64, Vec<u64>);

/// The phases of all ranks.
pub fn of_ranks(ranks: &[Vec<RankPeaks>], lines: &Lines) -> Vec<PhaseUse> {
    let mut by_name: BTreeMap<&str, (u64, Vec<&Vec<u64>>)> = BTreeMap::new();
    for (name, begin_ns, peaks) in ranks.iter().flatten() {
        let phase = by_name.entry(name).or_insert((*begin_ns, Vec::new()));
        phase.0 = phase.0.min(*begin_ns);
        phase.1.push(peaks);
    }
    let mut phases: Vec<_> = by_name.into_iter().collect();
    phases.sort_by_key(|(_, (begin_ns, _))| *begin_ns);
    let phase = |(name, (begin_ns, peaks)): (&str, (u64, Vec<&Vec<u64>>))| {
        let spread = |line: usize| {
            let peaks: Vec<f64> = peaks.iter().map(|peaks| peaks[line] as f64).collect();
            Spread::of(&peaks).unwrap_or_default()
        };
        let components = lines.components().iter().enumerate();
        PhaseUse {
            name: name.to_string(),
            ranks: peaks.len() as u32,
            begin_seconds: begin_ns as f64 / 1e9,
            total: spread(lines.total()),
            components: components.map(|(line, name)| (name.clone(), spread(line))).collect(),
        }
    };
    phases.into_iter().map(phase).collect()
}

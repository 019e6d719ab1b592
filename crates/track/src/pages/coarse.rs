//! The lower rung: whole processes, by `clear_refs` and `smaps`.
//!
//! After the bits are cleared, what was accessed is read several times, each time later: the working set of that much time.

use std::time::{Duration, Instant};

use linux::pages::{Referenced, clear_referenced, referenced};
use model::{AgeBytes, MappingHeat, MissPoint, Overhead, PagesRound};

use super::scope::Members;
use super::{Error, Looks, Settings, own_cpu, page_bytes};

/// Readings after each clearing; the time between them doubles.
const READINGS: u32 = 4;
const SHORTEST: Duration = Duration::from_millis(50);
/// The program's part of a clearing: each page that it touches again.
const TOUCH_SECONDS: f64 = 0.4e-6;

/// The rung.
pub struct Coarse {
    settings: Settings,
    begin: Instant,
    round_began: Instant,
    round_cpu: Duration,
    /// Of the program, in this round.
    target: f64,
    cleared: Instant,
    /// Time since the clearing, and bytes accessed by then.
    readings: Vec<(f64, u64)>,
    /// The readings of the last clearing that was read to its end.
    last: Vec<(f64, u64)>,
    maps: Vec<(i32, Referenced)>,
}

impl Coarse {
    pub fn new(members: &mut Members, settings: Settings) -> Result<Coarse, Error> {
        let now = Instant::now();
        let mut coarse = Coarse {
            settings,
            begin: now,
            round_began: now,
            round_cpu: own_cpu(),
            target: 0.0,
            cleared: now,
            readings: Vec::new(),
            last: Vec::new(),
            maps: Vec::new(),
        };
        let pids: Vec<_> = members.refresh().keys().copied().collect();
        for pid in &pids {
            clear_referenced(*pid).map_err(|source| Error::Denied { pid: *pid, source })?;
        }
        coarse.read(members);
        Ok(coarse)
    }

    fn clear(&mut self, members: &mut Members) {
        for pid in members.refresh().keys() {
            // One that has ended meanwhile is no longer a member.
            let _ = clear_referenced(*pid);
        }
        self.target += self.readings.last().map_or(0, |last| last.1) as f64 / page_bytes() as f64 * TOUCH_SECONDS;
        self.last = std::mem::take(&mut self.readings);
        self.cleared = Instant::now();
    }

    fn read(&mut self, members: &mut Members) {
        let members = members.refresh();
        let read = members.keys().filter_map(|pid| Some((*pid, referenced(*pid).ok()?)));
        self.maps = read.flat_map(|(pid, maps)| maps.into_iter().map(move |map| (pid, map))).collect();
        let accessed = self.maps.iter().map(|(_, map)| map.referenced).sum();
        self.readings.push((self.cleared.elapsed().as_secs_f64(), accessed));
    }
}

impl Looks for Coarse {
    fn look(&mut self, members: &mut Members) -> Option<Duration> {
        let before = own_cpu();
        if members.refresh().is_empty() {
            return None;
        }
        self.read(members);
        if self.readings.len() >= READINGS as usize {
            self.clear(members);
        }
        let cost = own_cpu() - before;
        // The program pays about as much for a clearing as the clearing takes.
        let pause = (cost * 2).div_f64(self.settings.overhead.max(1e-4)).max(SHORTEST);
        Some(pause * 2u32.pow(self.readings.len() as u32) / 4)
    }

    fn round(&mut self) -> PagesRound {
        let seconds = self.round_began.elapsed().as_secs_f64();
        let cpu = own_cpu();
        let own = (cpu - self.round_cpu).as_secs_f64() / seconds;
        (self.round_began, self.round_cpu) = (Instant::now(), cpu);
        let target = std::mem::take(&mut self.target) / seconds;
        let readings = if self.last.is_empty() { &self.readings } else { &self.last };
        let page = page_bytes() as f64;
        // From reading to reading: pages that were not among those accessed before.
        let mut misses: Vec<MissPoint> = readings
            .windows(2)
            .map(|two| {
                let ((from, small), (to, large)) = (two[0], two[1]);
                let new = large.saturating_sub(small) as f64 / page;
                MissPoint { bytes: small.midpoint(large), misses_per_second: new / (to - from).max(1e-9) }
            })
            .collect();
        misses.sort_by_key(|point| point.bytes);
        let accessed = readings.last().map_or(0, |last| last.1);
        let tracked = self.maps.iter().map(|(_, map)| map.resident).sum();
        let young = AgeBytes { below: readings.last().map(|last| last.0), bytes: accessed };
        let heat = self.maps.iter().filter(|(_, map)| map.resident > 0).map(|(pid, map)| MappingHeat {
            pid: *pid,
            start: map.mapping.range.start,
            end: map.mapping.range.end,
            name: map.mapping.name.clone(),
            resident: map.resident,
            touched: map.referenced,
            blind: 0,
            parts: vec![Some(map.referenced as f32 / map.resident as f32)],
        });
        let mut round = PagesRound {
            t_ns: self.begin.elapsed().as_nanos() as u64,
            seconds,
            tracking: true,
            tracked_bytes: tracked,
            touched_bytes: accessed,
            wss_bytes: None,
            misses,
            first_touches_per_second: 0.0,
            blind_below: readings.first().map_or(0, |first| first.1),
            blind_bytes: 0,
            heat: heat.collect(),
            ages: vec![young, AgeBytes { below: None, bytes: tracked.saturating_sub(accessed) }],
            overhead: Overhead { own, target },
            one_in: 1,
            interval: readings.first().map_or(0.0, |first| first.0),
            rung: "clear_refs and smaps".into(),
            ..PagesRound::default()
        };
        round.wss_bytes = round.size_at(self.settings.misses_per_second);
        round
    }

    fn few_accessed(&mut self, _is_tracking: bool) -> Option<f64> {
        None
    }

    fn resume(&mut self, members: &mut Members) {
        self.clear(members);
        // It reaches back into the time without looks.
        self.last.clear();
    }
}

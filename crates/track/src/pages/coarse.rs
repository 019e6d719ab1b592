//! The lower rung: whole processes, by `clear_refs` and `smaps`.
//!
//! After the bits are cleared, accessed memory is read several times, at growing intervals ([`super::growth`]).

use std::time::{Duration, Instant};

use linux::pages::{Referenced, clear_referenced, referenced};
use model::{AgeBytes, MappingHeat, Overhead, PagesRound};

use super::growth::{Growth, Reading};
use super::scope::Members;
use super::small_sample::SmallSample;
use super::{Error, Scanner, Settings, own_cpu, page_bytes};

/// Time from a clear to the first reading. Each later reading comes after twice the time of the one before.
const MIN_FIRST_READING: Duration = Duration::from_millis(50);
/// Cost of a clear to the program, for each page that it touches again.
const TOUCH_SECONDS: f64 = 0.4e-6;

/// The rung.
pub struct Coarse {
    settings: Settings,
    begin: Instant,
    round_began: Instant,
    round_cpu: Duration,
    /// Estimated cost to the program in this round, seconds.
    target: f64,
    cleared: Instant,
    /// Time from the clear to the first reading.
    shortest: Duration,
    /// Readings since the last clear.
    growth: Growth,
    /// The complete readings after the clear before. `None` at the start and after a time without scans.
    last: Option<Growth>,
    /// Whether `last` shows a lower bound only: see [`Growth::is_lower_bound`].
    is_lower_bound: bool,
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
            shortest: MIN_FIRST_READING,
            growth: Growth::default(),
            last: None,
            is_lower_bound: false,
            maps: Vec::new(),
        };
        let pids: Vec<_> = members.refresh().keys().copied().collect();
        for pid in &pids {
            clear_referenced(*pid).map_err(|source| Error::Denied { pid: *pid, source })?;
        }
        coarse.cleared = Instant::now();
        coarse.read(members);
        Ok(coarse)
    }

    fn clear(&mut self, members: &mut Members) -> Growth {
        for pid in members.refresh().keys() {
            // A process that has ended meanwhile is no longer a member.
            let _ = clear_referenced(*pid);
        }
        self.target += self.growth.accessed() as f64 / page_bytes() as f64 * TOUCH_SECONDS;
        self.cleared = Instant::now();
        std::mem::take(&mut self.growth)
    }

    fn read(&mut self, members: &mut Members) -> Reading {
        let members = members.refresh();
        let read = members.keys().filter_map(|pid| Some((*pid, referenced(*pid).ok()?)));
        self.maps = read.flat_map(|(pid, maps)| maps.into_iter().map(move |map| (pid, map))).collect();
        Reading {
            seconds: self.cleared.elapsed().as_secs_f64(),
            accessed: self.maps.iter().map(|(_, map)| map.referenced).sum(),
            resident: self.maps.iter().map(|(_, map)| map.resident).sum(),
        }
    }

    /// The working set: from the last complete readings, or more if the current readings already show more.
    fn working_set(&self) -> Option<u64> {
        let of = |growth: &Growth| growth.working_set(self.settings.misses_per_second, page_bytes());
        let last = self.last.as_ref().filter(|_| !self.is_lower_bound);
        last.and_then(of).map(|last| of(&self.growth).map_or(last, |now| last.max(now)))
    }
}

impl Scanner for Coarse {
    fn scan(&mut self, members: &mut Members) -> Option<Duration> {
        let before = own_cpu();
        if members.refresh().is_empty() {
            return None;
        }
        let early = self.shortest.saturating_sub(self.cleared.elapsed());
        if self.growth.readings().is_empty() && !early.is_zero() {
            return Some(early);
        }
        let reading = self.read(members);
        self.growth.add(reading);
        // Readings of a program of many GiB cost so much that they must be fewer and further apart.
        let cost = (own_cpu() - before).div_f64(2.0 * self.settings.overhead.max(1e-4));
        if self.growth.is_complete(self.settings.misses_per_second, page_bytes()) {
            let came_before = self.last.as_ref().map_or(0, Growth::came);
            self.is_lower_bound = self.growth.is_lower_bound(came_before);
            self.last = Some(self.clear(members));
            self.shortest = cost.max(MIN_FIRST_READING);
        } else if self.growth.readings().len() == 1 {
            self.shortest = self.shortest.max(cost);
        }
        let due = self.shortest * 2u32.pow(self.growth.readings().len().min(20) as u32);
        Some(due.saturating_sub(self.cleared.elapsed()).max(MIN_FIRST_READING / 2))
    }

    fn round(&mut self) -> PagesRound {
        let seconds = self.round_began.elapsed().as_secs_f64();
        let cpu = own_cpu();
        let own = (cpu - self.round_cpu).as_secs_f64() / seconds;
        (self.round_began, self.round_cpu) = (Instant::now(), cpu);
        let target = std::mem::take(&mut self.target) / seconds;
        let growth = self.last.as_ref().unwrap_or(&self.growth);
        let readings = growth.readings();
        let first = readings.first().copied().unwrap_or(Reading { seconds: 0.0, accessed: 0, resident: 0 });
        let within = readings.iter().take_while(|reading| reading.seconds <= seconds * 1.05).last().unwrap_or(&first);
        let tracked = self.maps.iter().map(|(_, map)| map.resident).sum::<u64>();
        let young = AgeBytes { below: Some(growth.seconds()), bytes: growth.accessed().min(tracked) };
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
        let wss_bytes = self.working_set();
        let least = self.last.as_ref().map_or(0, Growth::accessed).max(self.growth.accessed());
        PagesRound {
            t_ns: self.begin.elapsed().as_nanos() as u64,
            seconds,
            tracking: true,
            tracked_bytes: tracked,
            touched_bytes: within.accessed,
            // An upper bound: smaps does not show which pages of a mapping were accessed.
            huge_touched_bytes: self
                .maps
                .iter()
                .map(|(_, map)| map.huge.min(map.referenced))
                .sum::<u64>()
                .min(within.accessed),
            wss_bytes,
            accessed_at_least: wss_bytes.is_none().then_some(least),
            misses: growth.misses(page_bytes()),
            blind_below: first.accessed.min(wss_bytes.unwrap_or(u64::MAX)),
            heat: heat.collect(),
            ages: vec![young, AgeBytes { below: None, bytes: tracked.saturating_sub(young.bytes) }],
            overhead: Overhead { own, target },
            one_in: 1,
            interval: first.seconds,
            rung: "clear_refs and smaps".into(),
            ..PagesRound::default()
        }
    }

    fn sample_accessed(&mut self, _is_tracking: bool) -> Option<SmallSample> {
        None
    }

    fn resume(&mut self, members: &mut Members) {
        self.clear(members);
        // The last readings reach back into the time without scans.
        self.last = None;
    }
}

//! The result of a round.

use std::time::Instant;

use model::{AgeBytes, MappingHeat, Overhead, PagesRound, told_apart};

use super::Fine;
use crate::pages::ages::Ages;
use crate::pages::heat::Heat;
use crate::pages::misses::Misses;
use crate::pages::page_bytes;
use crate::pages::page_cache::PageCache;
use crate::pages::process::Place;

/// Sums since the last round.
#[derive(Default)]
pub struct Sums {
    pub misses: Misses,
    pub first_touches: u64,
    pub scans: u64,
    /// Pages accessed again whose distance is unknown, because the previous access was before this round while tracking
    /// was off, or before the first scan.
    pub unknown: u64,
    /// Pages found accessed, or taken to be accessed, summed over all scans.
    pub accessed: u64,
    /// Distinct pages of files.
    pub files: u64,
    /// `now` at the end of the round before.
    pub after: u64,
    pub own: f64,
    pub target: f64,
}

impl Fine {
    pub(super) fn finish_round(&mut self) -> PagesRound {
        self.add_up();
        let seconds = self.round_began.elapsed().as_secs_f64();
        self.round_began = Instant::now();
        self.first_again.settle(self.scanned_at, &mut self.round.misses);
        let sums = std::mem::replace(&mut self.round, Sums { after: self.now, ..Sums::default() });
        let page = page_bytes();
        let huge_touched_bytes = self.huge_touched_bytes();
        let heat = self.heat();
        let mut round = PagesRound {
            t_ns: self.begin.elapsed().as_nanos() as u64,
            seconds,
            tracking: true,
            tracked_bytes: heat.iter().map(|heat| heat.resident - heat.blind).sum(),
            touched_bytes: heat.iter().map(|heat| heat.touched).sum(),
            huge_touched_bytes,
            file_bytes: self.cache.as_ref().map(|cache| cache.pages() * page),
            file_touched_bytes: self.cache.as_ref().map(|_| sums.files * page),
            lost_events: self.returned.lost(&self.tables) + self.cache.as_mut().map_or(0, PageCache::lost),
            wss_bytes: None,
            accessed_at_least: Some(sums.unknown * page).filter(|bytes| *bytes > 0),
            misses: sums.misses.curve(seconds, page),
            first_touches_per_second: sums.first_touches as f64 / seconds,
            blind_below: sums.accessed / sums.scans.max(1) * page,
            blind_bytes: heat.iter().map(|heat| heat.blind).sum(),
            heat,
            ages: self.ages(),
            overhead: Overhead { own: sums.own / seconds, target: sums.target / seconds },
            one_in: 1 << self.pace.level,
            interval: self.pace.interval.as_secs_f64(),
            rung: self.rung(),
            ..PagesRound::default()
        };
        // Without a due scan, or without memory left, nothing is known.
        let is_seen = sums.scans > 0 && !round.heat.is_empty();
        let most = told_apart(self.settings.misses_per_second, round.one_in as f64 / seconds);
        round.wss_bytes = round.size_at(most).filter(|_| is_seen);
        if !is_seen {
            // Report it with the next working set.
            (self.round.unknown, round.accessed_at_least) = (sums.unknown, None);
        }
        round
    }

    fn rung(&self) -> String {
        let faults = if self.returned.is_listening() { ", and faults on what was swapped out" } else { "" };
        let guests = match self.without_guests() {
            Some(why) => format!(", but not what a guest of KVM accesses: {why}"),
            None if self.has_guests() => ", and DAMON on guests".into(),
            None => String::new(),
        };
        let files = self.cache.as_ref().map(|cache| format!("; {} for reads and writes", cache.rung()));
        format!("Accessed bits in page tables{faults}{guests}{}", files.unwrap_or_default())
    }

    /// Bytes in huge pages that were touched since the last round.
    fn huge_touched_bytes(&self) -> u64 {
        let samples = self.processes.iter().flat_map(|process| &process.samples);
        let seen = |place: Place| !matches!(place, Place::Absent | Place::Blind(_));
        let touched = samples.filter(|sample| sample.huge && sample.touched && seen(sample.place));
        touched.map(|sample| sample.pages * page_bytes()).sum()
    }

    fn heat(&mut self) -> Vec<MappingHeat> {
        let page = page_bytes();
        let mut all = Vec::new();
        for process in &mut self.processes {
            let mut heats: Vec<_> = process.mappings.iter().map(|mapping| Heat::of(process.pid, mapping)).collect();
            for sample in &mut process.samples {
                // Pages that the kernel has reclaimed are not resident.
                let is_gone = sample.away && !sample.touched;
                if let Some(heat) = heats.get_mut(sample.mapping as usize).filter(|_| !is_gone) {
                    heat.add(sample.address, sample.pages * page, sample.place, sample.touched);
                }
                sample.touched = false;
            }
            all.extend(heats.into_iter().filter_map(Heat::finish));
        }
        all
    }

    fn ages(&self) -> Vec<AgeBytes> {
        let now_ns = self.begin.elapsed().as_nanos() as u64;
        let mut ages = Ages::at(now_ns);
        for sample in self.processes.iter().flat_map(|process| &process.samples) {
            let seen_ns = match sample.place {
                Place::Absent | Place::Blind(_) => continue,
                Place::Resting { .. } => Some(now_ns),
                Place::Armed { .. } | Place::Spent { .. } | Place::Waking { .. } => sample.seen_ns,
            };
            ages.add(seen_ns, sample.pages * page_bytes());
        }
        if let Some(cache) = &self.cache {
            let bytes = cache.weight() * page_bytes();
            cache.seen().for_each(|seen| ages.add(Some(seen.ns), bytes));
        }
        ages.finish()
    }
}

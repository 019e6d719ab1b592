//! From reuse times to a curve (AET; Hu et al., USENIX ATC '16).

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::AddAssign;

use crate::engine::Engine;
use crate::histogram::Histogram;
use crate::item::Item;
use crate::miss_ratio::MissRatioCurve;
use crate::sample::{SIFTED, Sample};

/// A model instead of a stack. In an LRU cache of size c an item moves down by one with each reference to an item below
/// it or outside. Let P(t) be the share of references whose item was last referenced more than t references ago. An
/// item is evicted after the time T at which the integral of P from 0 to T is c, and P(T) is the miss ratio.
///
/// Only the reuse times of sampled items are needed; each reference stands for as many as its item does. A reference
/// takes O(1), a curve O(distinct reuse times). Memory is at most 100 bytes per sampled item plus 800 KiB. The result
/// is wrong where the program's behaviour changes within the trace, because the model assumes that it is the same at
/// all times.
pub struct Aet<I: Item> {
    sample: Sample,
    last: HashMap<u64, Last>,
    /// By reuse time; references since the curve began.
    reuses: Histogram<Weighted>,
    first: Weighted,
    /// References before the current batch since the engine's start, and since the start of the curve.
    now: u64,
    references: u64,
    /// Sequence number of the curve.
    curve: u32,
    items: PhantomData<I>,
}

/// The last reference of an item.
struct Last {
    time: u64,
    curve: u32,
}

/// Number of references, and their total weight.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Weighted {
    references: f64,
    weight: f64,
}

impl AddAssign for Weighted {
    fn add_assign(&mut self, other: Weighted) {
        self.references += other.references;
        self.weight += other.weight;
    }
}

impl<I: Item> Aet<I> {
    /// Samples at most `most` items (8 or more): first all items, then a share of them.
    pub fn with_size(most: usize) -> Aet<I> {
        Aet {
            sample: Sample::new(1.0, most),
            last: HashMap::new(),
            reuses: Histogram::default(),
            first: Weighted::default(),
            now: 0,
            references: 0,
            curve: 1,
            items: PhantomData,
        }
    }

    fn sampled(&mut self, item: &I, now: u64) {
        let stands_for = 1.0 / self.sample.share();
        let seen = Weighted { references: stands_for, weight: stands_for * item.weight() as f64 };
        match self.last.insert(item.key(), Last { time: now, curve: self.curve }) {
            Some(last) => self.reuses.add(now - last.time, seen),
            None => self.first += seen,
        }
        if self.sample.is_full(self.last.len()) {
            self.sample.thin_out(self.last.keys().copied());
            self.last.retain(|key, _| self.sample.has(*key));
        }
    }
}

impl<I: Item> Engine<I> for Aet<I> {
    fn reference(&mut self, items: &[I]) {
        self.references += items.len() as u64;
        let mut positions: Vec<u32> = Vec::new();
        for items in items.chunks(SIFTED) {
            positions.extend(self.sample.sift(items));
            for at in positions.drain(..).map(|at| at as usize) {
                // The threshold may have been raised meanwhile.
                if self.sample.has(items[at].key()) {
                    self.sampled(&items[at], self.now + at as u64);
                }
            }
            self.now += items.len() as u64;
        }
    }

    fn curve(&mut self) -> MissRatioCurve {
        let times: Vec<(u64, Weighted)> = self.reuses.needs().map(|(_, enough, seen)| (enough, seen)).collect();
        // For each time, the references reused later: summed from the end.
        let mut later = self.first;
        let mut longer: Vec<Weighted> = Vec::with_capacity(times.len());
        for (_, seen) in times.iter().rev() {
            longer.push(later);
            later += *seen;
        }
        // `later` now includes all references, all of which are older than 0.
        let mut weight = later.weight;
        let (mut size, mut before) = (0.0, 0);
        let mut needs: Vec<(u64, f64)> = Vec::with_capacity(times.len());
        for ((time, seen), longer) in times.into_iter().zip(longer.into_iter().rev()) {
            size += weight / self.references as f64 * (time - before) as f64;
            (weight, before) = (longer.weight, time);
            let size = (size.ceil() as u64).max(1);
            match needs.last_mut() {
                Some((at, references)) if *at == size => *references += seen.references,
                _ => needs.push((size, seen.references)),
            }
        }
        let sampled = self.last.values().filter(|last| last.curve == self.curve).count();
        let distinct = (sampled as f64 / self.sample.share()).round() as u64;
        MissRatioCurve::new(self.references, distinct, needs, self.first.references)
    }

    fn restart(&mut self) {
        (self.reuses, self.first, self.references) = (Histogram::default(), Weighted::default(), 0);
        self.curve += 1;
    }

    fn sampled_share(&self) -> f64 {
        self.sample.share()
    }
}

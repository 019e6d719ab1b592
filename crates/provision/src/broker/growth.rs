//! Growing and shrinking a served pool.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use linux::hugetlb;

use super::Broker;
use super::connections::Pending;
use crate::control::Answer;
use crate::ledger::Use;
use crate::state::{Adding, Backend, Segment};
use crate::worker::Job;
use crate::{Error, backing, dax, reserve};

/// Segments that are being added.
pub(super) struct Growth {
    since: Instant,
    segments: BTreeMap<u32, Segment>,
    /// Pages still to be added, by node.
    pages: VecDeque<(u32, u64)>,
    /// Segments that are not populated yet.
    open: BTreeSet<u32>,
    /// Segments that could not be populated, and why.
    failed: BTreeMap<u32, String>,
    /// Whether failed segments were retried.
    again: bool,
}

impl Broker<'_> {
    /// Begins to add memory: first the pages of each node, then the segments are populated.
    pub(super) fn grow(&mut self, bytes: u64) {
        let (segments, pages) = match self.pool.backend {
            Backend::Hugetlb => {
                let segments = self.pool.plan_segments(bytes);
                let pages = self.pool.pages_of(&segments).into_iter().collect();
                (segments, pages)
            }
            Backend::Dax => {
                match dax::plan_segments(&self.pool, &self.directory, bytes).and_then(|segments| self.divide(segments))
                {
                    Ok(segments) => (segments, VecDeque::new()),
                    Err(error) => return self.give_up(error.to_string()),
                }
            }
        };
        let open = segments.keys().copied().collect();
        self.growth =
            Some(Growth { since: Instant::now(), segments, pages, open, failed: BTreeMap::new(), again: false });
        self.add_next();
    }

    /// Empties the first devices of the regions of these segments, after recording them.
    fn divide(&mut self, segments: BTreeMap<u32, Segment>) -> Result<BTreeMap<u32, Segment>, Error> {
        let found: BTreeMap<String, u64> =
            linux::dax::devices().into_iter().map(|device| (device.name, device.bytes)).collect();
        let regions: BTreeSet<&String> = segments.values().filter_map(|segment| segment.region.as_ref()).collect();
        for region in regions {
            let found = found.get(region).copied().unwrap_or(0);
            self.pool.regions.entry(region.clone()).or_insert(found);
        }
        self.pool.save(&self.directory)?;
        dax::empty_first_devices(&self.pool)?;
        Ok(segments)
    }

    /// Adds the pages of the next node; after the last one, populates the segments.
    fn add_next(&mut self) {
        let Some(growth) = &mut self.growth else { return };
        if let Some((node, pages)) = growth.pages.pop_front() {
            let begun = hugetlb::pages(node, self.pool.page_bytes).map_err(Error::from).and_then(|now| {
                let adding = Adding { node, before: now.persistent, pages };
                self.pool.adding = Some(adding);
                self.pool.save(&self.directory).map(|()| adding)
            });
            match begun {
                Ok(adding) => self.worker.send(Job::Add { adding, page_bytes: self.pool.page_bytes }),
                Err(error) => self.give_up(error.to_string()),
            }
            return;
        }
        let (segments, open) = (growth.segments.clone(), growth.open.clone());
        self.pool.segments.extend(segments.clone());
        if let Err(error) = self.pool.save(&self.directory) {
            return self.give_up(error.to_string());
        }
        for (number, segment) in segments.into_iter().filter(|(number, _)| open.contains(number)) {
            self.ledger.add(number, segment, Use::New);
        }
        self.renew(&Vec::from_iter(open));
    }

    pub(super) fn added(&mut self, adding: Adding, result: Result<u64, Error>) {
        self.pool.adding = None;
        match result {
            Ok(added) => {
                *self.pool.reserved.entry(adding.node).or_default() += added;
                match self.pool.save(&self.directory) {
                    Ok(()) => self.add_next(),
                    Err(error) => self.give_up(error.to_string()),
                }
            }
            Err(error) => self.give_up(error.to_string()),
        }
    }

    /// Records that a segment was populated, or failed; after the last one, answers the request.
    pub(super) fn segment_done(&mut self, number: u32, failed: Option<String>) {
        let Some(growth) = &mut self.growth else { return };
        if !growth.open.remove(&number) {
            return;
        }
        growth.failed.extend(failed.map(|why| (number, why)));
        if !growth.open.is_empty() {
            return;
        }
        if let Some(why) = growth.failed.values().next().cloned() {
            if growth.again || self.pool.backend == Backend::Dax {
                return self.give_up(why);
            }
            // Another program took pages after they were added and before they were populated: retry these segments once.
            growth.again = true;
            growth.open = std::mem::take(&mut growth.failed).into_keys().collect();
            let missing = growth.segments.iter().filter(|(number, _)| growth.open.contains(number));
            growth.pages = self.pool.pages_of(missing).into_iter().collect();
            return self.add_next();
        }
        let bytes: u64 = growth.segments.values().map(|segment| segment.bytes).sum();
        let seconds = growth.since.elapsed().as_secs_f64();
        self.growth = None;
        if let Err(error) = reserve::release_excess(&mut self.pool, &self.directory) {
            (self.report)(&error.to_string());
        }
        self.answer_growth(&Answer::Grown { bytes, seconds });
    }

    /// Removes the added segments, except leased ones.
    fn give_up(&mut self, why: String) {
        let segments = self.growth.take().map(|growth| growth.segments).unwrap_or_default();
        let added: Vec<u32> = segments.into_keys().collect();
        if let Err(error) = self.drop_segments(&added) {
            (self.report)(&error.to_string());
        }
        (self.report)(&why);
        self.answer_growth(&Answer::No(why));
    }

    fn answer_growth(&mut self, answer: &Answer) {
        let waiting = self.connections.iter().find(|(_, one)| matches!(one.pending, Some(Pending::Growth)));
        if let Some(number) = waiting.map(|(number, _)| *number) {
            self.answer(number, answer);
        }
    }

    /// Removes free segments, the last ones first; returns their bytes.
    pub(super) fn shrink(&mut self, bytes: u64) -> Result<u64, Error> {
        let mut chosen = Vec::new();
        let mut less = 0;
        for number in self.ledger.numbers(|used| used == Use::Clean).into_iter().rev() {
            if less >= bytes {
                break;
            }
            less += self.ledger.bytes(number);
            chosen.push(number);
        }
        self.drop_segments(&chosen)?;
        Ok(less)
    }

    fn drop_segments(&mut self, numbers: &[u32]) -> Result<(), Error> {
        for number in numbers {
            if !matches!(self.ledger.used(*number), Some(Use::Leased(_))) {
                if self.pool.backend == Backend::Hugetlb {
                    let path = self.path(*number);
                    backing::remove(&path).map_err(Error::file("cannot remove", path))?;
                }
                self.ledger.remove(*number);
                self.pool.segments.remove(number);
            }
        }
        self.pool.save(&self.directory)?;
        reserve::release_excess(&mut self.pool, &self.directory)
    }
}

//! Memory of KVM guests. A guest uses its own page tables, so the Accessed bits of its process do not show its
//! accesses. DAMON does.

use std::ops::Range;
use std::time::{Duration, Instant};

use linux::damon::Watch;
use linux::pages::{Accesses, Mapping, Tables};

/// Minimum time between changes of the pages that DAMON watches: a change takes some milliseconds and restarts all its
/// regions.
const MIN_CHANGE_INTERVAL: Duration = Duration::from_secs(2);
/// The mapping of a guest's virtual processor.
const PROCESSOR: &str = "anon_inode:kvm-vcpu";

/// Listens to DAMON if there are guests.
#[derive(Default)]
pub struct Guests {
    accesses: Option<Accesses>,
    why_not: Option<String>,
}

/// A process that holds a guest's memory.
#[derive(Debug)]
pub struct Guest {
    watch: Watch,
    watched: Vec<u64>,
    since: Option<Instant>,
    /// CPU time of DAMON's thread so far.
    cpu: Duration,
}

impl Guests {
    /// Whether a process with these mappings runs a guest.
    pub fn is_one(mappings: &[Mapping]) -> bool {
        mappings.iter().any(|mapping| mapping.name.starts_with(PROCESSOR))
    }

    /// Starts to watch the process's guest. `None` if it cannot, see [`Guests::why_not`].
    pub fn watch(&mut self, tables: &Tables, pid: i32) -> Option<Guest> {
        let watch = || -> Result<(Watch, Option<Accesses>), String> {
            let watch = Watch::of(pid).map_err(|error| error.to_string())?;
            let accesses = match self.accesses {
                Some(_) => None,
                None => Some(Accesses::listen(tables).map_err(|error| error.to_string())?),
            };
            Ok((watch, accesses))
        };
        match watch() {
            Ok((watch, accesses)) => {
                self.accesses = self.accesses.take().or(accesses);
                Some(Guest { watch, watched: Vec::new(), since: None, cpu: Duration::ZERO })
            }
            Err(why) => {
                self.why_not = Some(why);
                None
            }
        }
    }

    /// Why a guest's accesses are not seen.
    pub fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// Address ranges that each of these guests has accessed since the last call, in rising order.
    pub fn take<'a>(
        &self,
        tables: &mut Tables,
        guests: impl Iterator<Item = Option<&'a Guest>>,
    ) -> Vec<Vec<Range<u64>>> {
        let numbers: Vec<_> = guests.map(|guest| guest.and_then(|guest| guest.watch.number())).collect();
        let mut accessed = vec![Vec::new(); numbers.len()];
        let Some(accesses) = &self.accesses else { return accessed };
        for access in accesses.take() {
            let of = |number: &Option<(i32, u64)>| number.is_some_and(|(_, target)| target == access.target);
            if let Some(at) = numbers.iter().position(of) {
                accessed[at].push(access.range);
            }
        }
        accessed.iter_mut().for_each(|ranges| ranges.sort_unstable_by_key(|range| range.start));
        let threads = numbers.iter().flatten();
        let (thread, targets) = threads.fold((0, 0), |(_, targets), (thread, target)| (*thread, targets | 1 << target));
        tables.tell_of(thread, targets);
        accessed
    }
}

impl Guest {
    /// Whether the watched pages may be changed again.
    pub fn is_settled(&self) -> bool {
        self.since.is_none_or(|since| since.elapsed() >= MIN_CHANGE_INTERVAL)
    }

    /// Watches these pages from now on; given in rising order.
    pub fn watch(&mut self, pages: &[u64]) {
        if self.watched == pages {
            return;
        }
        match self.watch.look_at(pages) {
            Ok(()) => self.watched = pages.to_vec(),
            // Its process may have ended. Otherwise the next call tries again.
            Err(error) => tracing::debug!("cannot change the pages that DAMON watches: {error}"),
        }
        self.since = Some(Instant::now());
    }

    /// CPU time that DAMON's thread has used for this guest since the last call.
    pub fn cpu(&mut self) -> Duration {
        let cpu = self.watch.cpu();
        cpu.saturating_sub(std::mem::replace(&mut self.cpu, cpu))
    }
}

/// Whether an address is in one of these ranges, given in rising order.
pub fn contains(ranges: &[Range<u64>], address: u64) -> bool {
    let after = ranges.partition_point(|range| range.start <= address);
    after > 0 && ranges[after - 1].contains(&address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_in_an_accessed_range_is_accessed() {
        let ranges = [4096..8192, 12288..20480];
        let accessed: Vec<u64> = (0..6).map(|page| page * 4096).filter(|at| contains(&ranges, *at)).collect();
        assert_eq!(accessed, [4096, 12288, 16384]);
        assert!(!contains(&[], 0));
    }
}

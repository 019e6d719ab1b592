//! Memory of guests of KVM. A guest goes by page tables of its own: what it accesses no Accessed bit of its process tells, but DAMON does.

use std::ops::Range;
use std::time::{Duration, Instant};

use linux::damon::Watch;
use linux::pages::{Accesses, Mapping, Tables};

/// Telling DAMON other pages takes some milliseconds, and it begins anew with all.
const SOONEST: Duration = Duration::from_secs(2);
/// What maps a processor of a guest.
const PROCESSOR: &str = "anon_inode:kvm-vcpu";

/// Listens to DAMON where there are guests.
#[derive(Default)]
pub struct Guests {
    accesses: Option<Accesses>,
    why_not: Option<String>,
}

/// A process that a guest's memory belongs to.
#[derive(Debug)]
pub struct Guest {
    watch: Watch,
    told: Vec<u64>,
    since: Option<Instant>,
    /// Of DAMON's thread, so far.
    cpu: Duration,
}

impl Guests {
    /// Whether a process with these mappings has a guest.
    pub fn is_one(mappings: &[Mapping]) -> bool {
        mappings.iter().any(|mapping| mapping.name.starts_with(PROCESSOR))
    }

    /// Begins to watch the process's guest. `None`: it cannot be, see [`Guests::why_not`].
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
                Some(Guest { watch, told: Vec::new(), since: None, cpu: Duration::ZERO })
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

    /// What each of these guests has accessed since the last call: ranges in rising order.
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
    /// Whether it may be told other pages again.
    pub fn is_settled(&self) -> bool {
        self.since.is_none_or(|since| since.elapsed() >= SOONEST)
    }

    /// These pages are looked at from now on, given in rising order.
    pub fn look_at(&mut self, pages: &[u64]) {
        if self.told == pages {
            return;
        }
        match self.watch.look_at(pages) {
            Ok(()) => self.told = pages.to_vec(),
            // Its process may have ended. Else it is tried again.
            Err(error) => tracing::debug!("DAMON was not told of other pages: {error}"),
        }
        self.since = Some(Instant::now());
    }

    /// What DAMON's thread has worked for it since the last call.
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
    fn a_page_is_accessed_if_its_range_is() {
        let ranges = [4096..8192, 12288..20480];
        let accessed: Vec<u64> = (0..6).map(|page| page * 4096).filter(|at| contains(&ranges, *at)).collect();
        assert_eq!(accessed, [4096, 12288, 16384]);
        assert!(!contains(&[], 0));
    }
}

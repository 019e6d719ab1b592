//! How much memory processes can have obtained and given back between two looks.

use model::ProcessKey;

/// How far a process has come. Its RSS alone would not show pages that were copied on write: they moved from shared to own.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub key: ProcessKey,
    pub parent: i32,
    /// Where its stack begins: the same in what forks of it and becomes no other program. 0: not known.
    pub stack_start: u64,
    /// Resident bytes, and what of them is heap and shared memory.
    pub rss: u64,
    pub heap: u64,
    pub shared: u64,
    /// Bytes of all pages that it faulted in, a huge page as one of them.
    pub faulted: u64,
}

/// Bytes at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub gained: u64,
    pub lost: u64,
    pub heap_gained: u64,
    pub shared_gained: u64,
}

/// Whether processes have come or gone, or more than one part in `parts` of their memory has changed.
pub fn has_moved(before: &[Level], now: &[Level], parts: u64) -> bool {
    let same = before.len() == now.len() && before.iter().zip(now).all(|(a, b)| a.key == b.key);
    let change = |(a, b): (&Level, &Level)| a.rss.abs_diff(b.rss).max(b.faulted.saturating_sub(a.faulted));
    let changed: u64 = before.iter().zip(now).map(change).sum();
    !same || changed > now.iter().map(|level| level.rss).sum::<u64>() / parts
}

/// What moved between two looks, both in order of their keys. Pages that were copied on write were obtained, and nobody may have the
/// old ones any more.
pub fn moved(before: &[Level], now: &[Level]) -> Moved {
    let find = |levels: &[Level], key: ProcessKey| levels.binary_search_by_key(&key, |level| level.key).ok();
    let gone = before.iter().filter(|level| find(now, level.key).is_none()).map(|level| level.rss);
    let mut moved = Moved { lost: gone.sum(), ..Moved::default() };
    for level in now {
        let known = find(before, level.key).map(|index| before[index]);
        let had = known.unwrap_or_else(|| born(*level, before.iter().chain(now)));
        let faulted = level.faulted.saturating_sub(had.faulted);
        let gained = |of: fn(&Level) -> u64| of(level).saturating_sub(of(&had)).max(faulted).min(of(level));
        moved.gained += gained(|level| level.rss);
        moved.heap_gained += gained(|level| level.heap);
        // It is not copied on write.
        moved.shared_gained += level.shared.saturating_sub(had.shared);
        moved.lost += known.map_or(0, |had| (had.rss + faulted).saturating_sub(level.rss));
    }
    moved
}

/// What a process began with: a fork has its parent's heap, and what it has mapped is mapped at its own faults.
fn born<'a>(child: Level, others: impl Iterator<Item = &'a Level>) -> Level {
    let is_parent = |level: &&Level| {
        level.key.pid == child.parent && level.stack_start == child.stack_start && child.stack_start != 0
    };
    let heap = others.filter(is_parent).map(|parent| parent.heap).max().unwrap_or(0);
    Level { rss: heap, heap, shared: 0, faulted: 0, ..child }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn level(pid: i32, parent: i32, stack_start: u64, heap_mib: u64, faulted_mib: u64) -> Level {
        let key = ProcessKey { pid, start_ticks: 1 };
        let heap = heap_mib * MIB;
        Level { key, parent, stack_start, rss: heap + MIB, heap, shared: 0, faulted: faulted_mib * MIB }
    }

    fn heap_gained_mib(before: &[Level], now: &[Level]) -> u64 {
        moved(before, now).heap_gained / MIB
    }

    #[test]
    fn a_fork_has_obtained_what_it_copied_and_another_program_all_that_it_has() {
        let parent = level(1, 0, 7, 60, 61);
        assert_eq!(heap_gained_mib(&[], &[parent]), 60);
        assert_eq!(heap_gained_mib(&[parent], &[parent, level(2, 1, 7, 60, 0), level(3, 1, 7, 60, 30)]), 30);
        assert_eq!(heap_gained_mib(&[parent], &[parent, level(2, 1, 8, 60, 0)]), 60, "another program");
        assert_eq!(heap_gained_mib(&[parent], &[parent, level(2, 9, 7, 60, 0)]), 60, "its parent has gone");
        let unknown = level(1, 0, 0, 60, 61);
        assert_eq!(heap_gained_mib(&[unknown], &[unknown, level(2, 1, 0, 60, 0)]), 60, "stacks are not known");
    }

    #[test]
    fn what_a_fork_has_more_than_its_parent_it_has_obtained_by_few_faults_in_huge_pages() {
        let parent = level(1, 0, 7, 10, 11);
        assert_eq!(heap_gained_mib(&[parent], &[parent, level(2, 1, 7, 50, 1)]), 40);
        // The parent grew, and then it forked.
        let grown = level(1, 0, 7, 50, 51);
        assert_eq!(heap_gained_mib(&[parent], &[grown, level(2, 1, 7, 50, 0)]), 40, "once");
    }

    #[test]
    fn copies_are_obtained_by_whoever_has_had_the_pages_for_long_too() {
        let (before, now) = (level(2, 1, 7, 60, 5), level(2, 1, 7, 60, 25));
        assert_eq!(
            moved(&[before], &[now]),
            Moved { gained: 20 * MIB, lost: 20 * MIB, heap_gained: 20 * MIB, shared_gained: 0 }
        );
        assert_eq!(moved(&[before], &[]).lost, 61 * MIB);
    }
}

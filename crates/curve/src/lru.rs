//! Exact LRU stack distances.

use crate::slots::Slots;
use crate::table::{Entry, FREE, Table};

/// How many keys are looked ahead, so that their cache misses overlap.
const AHEAD: usize = 16;

/// An exact LRU stack of any size. Memory grows with the distinct keys (at most 60 bytes each), never with the accesses.
/// It holds up to 2^28 distinct keys.
pub struct ExactLru {
    keys: Table,
    slots: Slots,
    /// The slot after that of the last key accessed, and that key's distance.
    follower: (u32, u64),
}

/// The slot of no key.
const NO_FOLLOWER: (u32, u64) = (FREE, 0);

impl Default for ExactLru {
    fn default() -> ExactLru {
        ExactLru::new()
    }
}

impl ExactLru {
    /// An empty stack.
    pub fn new() -> ExactLru {
        ExactLru::with_capacity(0)
    }

    /// An empty stack with room for so many distinct keys.
    pub fn with_capacity(keys: usize) -> ExactLru {
        ExactLru { keys: Table::with_capacity(keys), slots: Slots::compacted(0), follower: NO_FOLLOWER }
    }

    /// Accesses a key. `None`: for the first time. `Some(d)`: `d` distinct other keys were accessed since the last time,
    /// so an immediate second access has distance 0, and an LRU cache of `d + 1` entries would have had it.
    pub fn access(&mut self, key: u64) -> Option<u64> {
        self.touch(key).0
    }

    /// Accesses keys in order and tells each one's distance. Faster than one by one: the next keys' memory is on its way
    /// while one is looked at.
    pub fn access_all(&mut self, keys: &[u64], mut distance: impl FnMut(Option<u64>)) {
        for group in keys.chunks(AHEAD) {
            let ahead = group.iter().fold(0, |seen, key| seen ^ self.keys.peek(*key));
            std::hint::black_box(ahead);
            for key in group {
                distance(self.access(*key));
            }
        }
    }

    /// Distinct keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// No key yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As [`ExactLru::access`], with the key's tag (0 at first).
    pub(crate) fn touch(&mut self, key: u64) -> (Option<u64>, &mut u32) {
        if self.slots.is_full() {
            self.compact();
        }
        let (live, now) = (self.keys.len() as u64, self.slots.next());
        let entry = self.keys.place(key);
        let distance = match entry.slot {
            FREE => {
                self.follower = NO_FOLLOWER;
                None
            }
            last if last + 1 == now => return (Some(0), &mut entry.tag),
            last => {
                // A run that is accessed again in its order: what the key before this one went past, this one goes past, too.
                let distance = match self.follower {
                    (slot, distance) if slot == last => distance,
                    _ => live - 1 - self.slots.rank(last),
                };
                self.slots.clear(last);
                self.follower = (last + 1, distance);
                Some(distance)
            }
        };
        entry.slot = now;
        self.slots.push();
        (distance, &mut entry.tag)
    }

    /// Shows every key's tag with its depth in the stack (0: the last accessed).
    pub(crate) fn for_each_depth(&mut self, mut see: impl FnMut(u64, &mut u32)) {
        let top = self.keys.len() as u64;
        for entry in self.keys.entries_mut() {
            see(top - 1 - self.slots.rank(entry.slot), &mut entry.tag);
        }
    }

    /// All tags.
    pub(crate) fn tags(&self) -> impl Iterator<Item = u32> {
        self.keys.entries().map(|e| e.tag)
    }

    /// Forgets the keys that `keep` refuses.
    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        self.follower = NO_FOLLOWER;
        let slots = &mut self.slots;
        self.keys.retain(|entry: &Entry| {
            let kept = keep(entry.key);
            if !kept {
                slots.clear(entry.slot);
            }
            kept
        });
    }

    /// Moves the set slots together, in their order.
    fn compact(&mut self) {
        self.follower = NO_FOLLOWER;
        for entry in self.keys.entries_mut() {
            entry.slot = self.slots.rank(entry.slot) as u32;
        }
        self.slots = Slots::compacted(self.keys.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, word for word.
    #[derive(Default)]
    struct NaiveList(Vec<u64>);

    impl NaiveList {
        fn access(&mut self, key: u64) -> Option<u64> {
            let depth = self.0.iter().position(|k| *k == key);
            if let Some(depth) = depth {
                self.0.remove(depth);
            }
            self.0.insert(0, key);
            depth.map(|d| d as u64)
        }
    }

    /// The textbook: a hash map of last times and a Fenwick tree with one leaf per access.
    fn textbook(keys: &[u64]) -> Vec<Option<u64>> {
        let mut tree = vec![0i64; keys.len() + 1];
        let mut last = std::collections::HashMap::new();
        let add = |tree: &mut Vec<i64>, at: usize, by: i64| {
            let mut i = at + 1;
            while i < tree.len() {
                tree[i] += by;
                i += i & i.wrapping_neg();
            }
        };
        let sum = |tree: &[i64], end: usize| {
            let (mut i, mut sum) = (end, 0);
            while i > 0 {
                sum += tree[i];
                i &= i - 1;
            }
            sum
        };
        let mut distances = Vec::new();
        for (now, key) in keys.iter().enumerate() {
            let before: Option<usize> = last.insert(*key, now);
            distances.push(before.map(|before| (sum(&tree, now) - sum(&tree, before + 1)) as u64));
            if let Some(before) = before {
                add(&mut tree, before, -1);
            }
            add(&mut tree, now, 1);
        }
        distances
    }

    fn distances(keys: &[u64]) -> Vec<Option<u64>> {
        let mut lru = ExactLru::new();
        keys.iter().map(|key| lru.access(*key)).collect()
    }

    #[test]
    fn an_immediate_second_access_has_distance_0() {
        assert_eq!(distances(&[7, 7, 8, 7, 9, 8]), [None, Some(0), None, Some(1), None, Some(2)]);
    }

    #[test]
    fn every_key_can_be_used() {
        assert_eq!(distances(&[u64::MAX, 0, u64::MAX]), [None, None, Some(1)]);
    }

    #[test]
    fn a_loop_has_its_own_length_as_distance() {
        let keys: Vec<u64> = (0..5).flat_map(|_| 0..10_000).collect();
        let all = distances(&keys);
        assert!(all[..10_000].iter().all(Option::is_none));
        assert!(all[10_000..].iter().all(|d| *d == Some(9999)));
    }

    #[test]
    fn long_skewed_traces_agree_with_the_textbook_through_many_compactions() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let keys: Vec<u64> = (0..300_000).map(|_| (random() % 20_000).min(random() % 20_000) << 12).collect();
        assert_eq!(distances(&keys), textbook(&keys));
    }

    #[test]
    fn memory_follows_distinct_keys_not_accesses() {
        let mut lru = ExactLru::new();
        for i in 0..2_000_000u64 {
            lru.access(i * i % 5003);
        }
        assert!(lru.slots.next() as usize <= 16 * 5003 + 512);
        assert_eq!(lru.len(), 2502);
    }

    proptest! {
        #[test]
        fn distances_agree_with_a_naive_list(keys in prop::collection::vec(0u64..200, 0..3000)) {
            let mut naive = NaiveList::default();
            let expected: Vec<_> = keys.iter().map(|key| naive.access(*key)).collect();
            prop_assert_eq!(distances(&keys), expected);
        }

        #[test]
        fn all_at_once_is_the_same_as_one_by_one(keys in prop::collection::vec(0u64..5000, 0..9000)) {
            let mut lru = ExactLru::new();
            let mut all = Vec::new();
            lru.access_all(&keys, |d| all.push(d));
            prop_assert_eq!(&all, &textbook(&keys));
        }

        #[test]
        fn forgotten_keys_do_not_count(keys in prop::collection::vec(0u64..300, 1..2000), more in prop::collection::vec(0u64..300, 1..500)) {
            let mut lru = ExactLru::new();
            let mut naive = NaiveList::default();
            for key in &keys {
                lru.access(*key);
                naive.access(*key);
            }
            lru.retain(|key| key % 3 != 0);
            naive.0.retain(|key| key % 3 != 0);
            for key in &more {
                prop_assert_eq!(lru.access(*key), naive.access(*key));
            }
            let mut depths = vec![];
            lru.for_each_depth(|depth, _| depths.push(depth));
            depths.sort();
            prop_assert_eq!(depths, (0..lru.len() as u64).collect::<Vec<_>>());
        }
    }
}

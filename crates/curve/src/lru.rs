//! Exact LRU stack distances.

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::mpsc;

use crate::batch::{Batch, MAX_ACCESSES};
use crate::item::Item;
use crate::row::Row;
use crate::slots::Slots;
use crate::table::{Entry, FREE, Table};
use crate::weights::Weights;

/// Number of keys looked up together, so that their cache misses overlap.
const TOGETHER: usize = 64;

/// With fewer accesses, a second thread is not worth its cost.
const WORTH_A_THREAD: usize = 4 * MAX_ACCESSES;

/// An exact LRU stack of any size. An access takes O(log n) for n distinct keys. Memory grows with the keys, up to 2^30
/// of them, not with the accesses. Each key has a tag; that of a new key is `T::default()`.
pub struct Lru<R, T = ()> {
    keys: Table<T>,
    row: R,
    /// Slots of [removed](Lru::remove) keys, which stay filled, with those keys.
    holes: BinaryHeap<(u32, u64)>,
    /// The first slot since the [`mark`](Lru::mark).
    mark: u32,
    /// Buffers of [`touch_all`](Lru::touch_all).
    batch: Batch,
}

/// A stack of keys of weight 1; at most 36 bytes each, plus 12 KiB. Batches of many accesses take 4 MiB more.
pub type ExactLru = Lru<Slots>;

/// A stack of objects with sizes; at most 112 bytes each.
pub type ByteLru = Lru<Weights>;

impl<R: Row, T: Copy + Default + Send> Default for Lru<R, T> {
    fn default() -> Lru<R, T> {
        Lru::new()
    }
}

impl<R: Row, T: Copy + Default + Send> Lru<R, T> {
    /// An empty stack.
    pub fn new() -> Lru<R, T> {
        Lru { keys: Table::new(), row: R::with_capacity(0), holes: BinaryHeap::new(), mark: 0, batch: Batch::default() }
    }

    /// Number of distinct keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Accesses a key with a weight. Returns the weight of the distinct other keys accessed since its last access, and
    /// the key's tag.
    pub(crate) fn touch_weighing(&mut self, key: u64, weight: u64) -> (Option<u64>, &mut T) {
        self.keys.reserve(1);
        self.make_room();
        let entry = self.keys.place(self.keys.home(key), key);
        let last = std::mem::replace(&mut entry.slot, self.row.next());
        let distance = match self.holes.peek_mut() {
            // A new key takes the room of the removed key that was accessed last.
            Some(hole) if last == FREE => {
                self.row.clear(PeekMut::pop(hole).0);
                self.row.renew(last, weight)
            }
            // So does a key from below the hole in those caches that had lost it; the caches that still had it keep the
            // hole at its old place.
            Some(mut hole) if hole.0 > last => {
                let distance = self.row.behind(last);
                self.row.clear(std::mem::replace(&mut hole.0, last));
                self.row.push(weight);
                Some(distance)
            }
            _ => self.row.renew(last, weight),
        };
        (distance, &mut entry.tag)
    }

    /// Removes a key that has left the caches by itself, and returns its tag. The room that it leaves counts like a key
    /// until a new key takes it. Do not use together with [`touch_all`](Lru::touch_all).
    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        let removed = self.keys.remove(key)?;
        self.holes.push((removed.slot, key));
        Some(removed.tag)
    }

    /// Takes the room of up to `keys` removed keys. Returns how many there were.
    pub(crate) fn take_room(&mut self, keys: usize) -> usize {
        let taken = keys.min(self.holes.len());
        (0..taken).filter_map(|_| self.holes.pop()).for_each(|(slot, _)| self.row.clear(slot));
        taken
    }

    /// Accesses items in order and calls `see` for each with its distance. For many items, a second thread looks up the
    /// next ones while the first ranks those before.
    pub(crate) fn touch_all<I: Item>(&mut self, mut items: &[I], mut see: impl FnMut(&I, Option<u64>)) {
        while !items.is_empty() {
            self.make_room();
            let (now, later) = items.split_at(items.len().min(self.row.room()));
            let Lru { keys, row, batch, .. } = self;
            let batches = now.chunks(MAX_ACCESSES).zip((row.next()..).step_by(MAX_ACCESSES));
            let together = row.ranks_together(now.len().min(MAX_ACCESSES));
            let mut look_up = |items: &[I], first: u32, batch: &mut Batch| {
                batch.lasts.clear();
                look_up(keys, items, first, &mut batch.lasts);
                if together {
                    batch.sort(first);
                }
            };
            let mut rank = |items: &[I], batch: &mut Batch| {
                row.renew_all(batch, |at| items[at].weight(), |at, distance| see(&items[at], distance));
            };
            if now.len() < WORTH_A_THREAD {
                for (items, first) in batches {
                    look_up(items, first, batch);
                    rank(items, batch);
                }
            } else {
                let (done, looked_up) = mpsc::sync_channel(1);
                let (give_back, given_back) = mpsc::channel::<Batch>();
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        for (items, first) in batches {
                            let mut batch = given_back.try_recv().unwrap_or_default();
                            look_up(items, first, &mut batch);
                            if done.send(batch).is_err() {
                                break;
                            }
                        }
                    });
                    for (items, mut batch) in now.chunks(MAX_ACCESSES).zip(looked_up) {
                        rank(items, &mut batch);
                        give_back.send(batch).ok();
                    }
                });
            }
            items = later;
        }
    }

    /// Calls `see` for every key with its depth in the stack (0: the last accessed) and its tag.
    pub(crate) fn for_each_depth(&mut self, mut see: impl FnMut(u64, &mut T)) {
        for entry in self.keys.entries_mut() {
            see(self.row.behind(entry.slot), &mut entry.tag);
        }
    }

    /// Ensures that the row has room for [`TOGETHER`] accesses.
    fn make_room(&mut self) {
        if self.row.room() < TOGETHER {
            let marked = self.since_mark();
            let numbers = self.row.compact();
            self.keys.renumber(|slot| R::number(&numbers, slot));
            self.holes = self.holes.drain().map(|(slot, key)| (R::number(&numbers, slot), key)).collect();
            self.mark = self.row.next() - marked as u32;
        }
    }

    /// Starts a new count of accessed keys.
    pub(crate) fn mark(&mut self) {
        self.mark = self.row.next();
    }

    /// Number of keys accessed since the mark. O(n).
    pub(crate) fn since_mark(&self) -> usize {
        match self.mark {
            0 => self.keys.len(),
            mark => self.keys.entries().filter(|entry| entry.slot >= mark).count(),
        }
    }

    /// All keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = u64> {
        self.keys.entries().map(Entry::key)
    }

    /// All tags.
    pub(crate) fn tags(&self) -> impl Iterator<Item = T> {
        self.keys.entries().map(|e| e.tag)
    }

    /// Removes the keys that `keep` rejects.
    pub(crate) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        let row = &mut self.row;
        self.keys.retain(|entry| {
            let kept = keep(entry.key());
            if !kept {
                row.clear(entry.slot);
            }
            kept
        });
        self.holes.retain(|(slot, key)| {
            let kept = keep(*key);
            if !kept {
                row.clear(*slot);
            }
            kept
        });
    }
}

impl<T: Copy + Default + Send> Lru<Slots, T> {
    /// Accesses a key. `None`: for the first time. `Some(d)`: `d` distinct other keys were accessed since its last
    /// access, so an immediate second access has distance 0, and an LRU cache of `d + 1` entries would have had a hit.
    pub fn access(&mut self, key: u64) -> Option<u64> {
        self.touch(key).0
    }

    /// Accesses keys in order and passes each one's distance. Faster than one by one.
    pub fn access_all(&mut self, keys: &[u64], mut distance: impl FnMut(Option<u64>)) {
        self.touch_all(keys, |_, of| distance(of));
    }

    /// Like [`access`](Lru::access); also returns the key's tag.
    pub(crate) fn touch(&mut self, key: u64) -> (Option<u64>, &mut T) {
        self.touch_weighing(key, 1)
    }
}

impl ByteLru {
    /// Accesses an object whose size is now `bytes`. `None`: for the first time. `Some(d)`: the distinct other objects
    /// accessed since its last access have `d` bytes, so an LRU cache of `d` plus its own bytes would have had a hit.
    pub fn access(&mut self, key: u64, bytes: u64) -> Option<u64> {
        self.touch_weighing(key, bytes.max(1)).0
    }
}

/// Gives the accessed items consecutive slots from `first` on, and appends their previous slots to `lasts`.
fn look_up<T: Copy + Default + Send>(keys: &mut Table<T>, items: &[impl Item], first: u32, lasts: &mut Vec<u32>) {
    let (mut homes, mut slots) = ([0; TOGETHER], first..);
    for items in items.chunks(TOGETHER) {
        keys.reserve(items.len());
        let mut ahead = 0;
        for (home, item) in homes.iter_mut().zip(items) {
            *home = keys.home(item.key());
            ahead ^= keys.peek(*home);
        }
        std::hint::black_box(ahead);
        lasts.extend(
            homes
                .iter()
                .zip(items)
                .zip(&mut slots)
                .map(|((home, item), slot)| std::mem::replace(&mut keys.place(*home, item.key()).slot, slot)),
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits::Block;

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

    /// The textbook algorithm: a hash map of last times and a Fenwick tree with one leaf per access.
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
    fn long_skewed_traces_match_through_compactions() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let keys: Vec<u64> = (0..300_000).map(|_| (random() % 20_000).min(random() % 20_000) << 12).collect();
        assert_eq!(distances(&keys), textbook(&keys));
    }

    #[test]
    fn batches_match_single_accesses() {
        let mut state = 1u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % end
        };
        // Keys that are skewed, uniform, cyclic, and ever new; each pattern has its own pages.
        let kinds: [fn(u64, [u64; 2]) -> u64; 4] = [|_, [a, b]| a.min(b), |_, [a, _]| a, |i, _| i % 30_011, |i, _| i];
        let keys = (0..).zip(kinds).flat_map(|(number, kind)| (0..200_000u64).map(move |i| (number << 32, kind, i)));
        let keys: Vec<u64> = keys.map(|(first, kind, i)| first + kind(i, [below(40_000), below(40_000)])).collect();
        let expected = distances(&keys);
        let mut whole = Vec::new();
        ExactLru::new().access_all(&keys, |d| whole.push(d));
        assert!(whole == expected);
        let (mut lru, mut pieces, mut left) = (ExactLru::new(), Vec::new(), &keys[..]);
        while !left.is_empty() {
            let (piece, later) = left.split_at(left.len().min(1 + below(60_000) as usize));
            if let [first, rest @ ..] = piece {
                pieces.push(lru.access(*first));
                lru.access_all(rest, |d| pieces.push(d));
            }
            left = later;
        }
        assert!(pieces == expected);
        assert_eq!(&expected[..300_000], textbook(&keys[..300_000]));
    }

    #[test]
    fn memory_grows_with_distinct_keys_only() {
        let mut lru = ExactLru::new();
        for i in 0..2_000_000u64 {
            lru.access(i * i % 5003);
        }
        assert!(lru.row.next() as usize <= Block::BITS);
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
        fn runs_of_neighbours_agree_with_a_naive_list(
            runs in prop::collection::vec((0u64..300, 1u64..150, any::<bool>()), 0..60),
        ) {
            let (mut lru, mut naive) = (ExactLru::new(), NaiveList::default());
            for (first, length, forgets) in runs {
                for key in first..first + length {
                    prop_assert_eq!(lru.access(key), naive.access(key));
                }
                if forgets {
                    lru.retain(|key| key % 7 != first % 7);
                    naive.0.retain(|key| key % 7 != first % 7);
                }
            }
        }

        #[test]
        fn since_mark_counts_keys_accessed_since(pieces in prop::collection::vec((0u64..3000, 1u64..50_000), 1..8)) {
            let mut lru = ExactLru::new();
            for (first, length) in pieces {
                prop_assert_eq!(lru.since_mark(), 0);
                let keys: Vec<u64> = (0..length).map(|at| first + at % 2003).collect();
                lru.access_all(&keys, |_| {});
                prop_assert_eq!(lru.since_mark() as u64, length.min(2003));
                lru.mark();
            }
        }

        #[test]
        fn all_at_once_matches_one_by_one(keys in prop::collection::vec(0u64..5000, 0..9000)) {
            let mut lru = ExactLru::new();
            let mut all = Vec::new();
            lru.access_all(&keys, |d| all.push(d));
            prop_assert_eq!(&all, &textbook(&keys));
        }

        #[test]
        fn bytes_agree_with_a_naive_list(accesses in prop::collection::vec((0u64..100, 0u64..5000), 0..2000)) {
            let mut lru = ByteLru::new();
            let mut naive: Vec<(u64, u64)> = Vec::new();
            for (key, bytes) in accesses {
                let depth = naive.iter().position(|(k, _)| *k == key);
                let expected = depth.map(|depth| naive[..depth].iter().map(|(_, bytes)| bytes.max(&1)).sum::<u64>());
                prop_assert_eq!(lru.access(key, bytes), expected);
                naive.retain(|(k, _)| *k != key);
                naive.insert(0, (key, bytes));
            }
        }

        #[test]
        fn dropped_keys_do_not_count(keys in prop::collection::vec(0u64..300, 1..2000), more in prop::collection::vec(0u64..300, 1..500)) {
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

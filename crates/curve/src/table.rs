//! Maps keys to time slots: open addressing with linear probing in one array, so that a look-up costs one cache miss.

/// One key.
#[derive(Clone, Copy)]
pub struct Entry<T> {
    /// Two halves, so that an entry without a tag takes 12 bytes.
    key: [u32; 2],
    /// Slot of its last access; [`FREE`] if this place holds no key.
    pub slot: u32,
    /// The owner's data for this key.
    pub tag: T,
}

/// The slot of a place that holds no key.
pub const FREE: u32 = u32::MAX;

/// Load factor at which the table grows in place by GROWTH: at most 32 bytes per key without a tag.
const MAX_LOAD: (usize, usize) = (3, 4);
const GROWTH: usize = 2;

/// Pages of a file come in runs: keys that differ only in the lowest two bits share a cache line.
const LINE_BITS: u32 = 2;

const MIN_LINES: usize = 4;

/// With fewer places, a second thread is not worth its cost.
const WORTH_A_THREAD: usize = 1 << 18;

impl<T: Default> Entry<T> {
    fn of(key: u64) -> Entry<T> {
        Entry { key: [key as u32, (key >> 32) as u32], slot: FREE, tag: T::default() }
    }
}

impl<T> Entry<T> {
    #[inline]
    pub fn key(&self) -> u64 {
        u64::from(self.key[1]) << 32 | u64::from(self.key[0])
    }
}

/// A map from keys to slots and tags.
pub struct Table<T> {
    places: Vec<Entry<T>>,
    len: usize,
}

impl<T: Copy + Default + Send> Table<T> {
    /// An empty table.
    pub fn new() -> Table<T> {
        Table { places: vec![Entry::of(0); MIN_LINES << LINE_BITS], len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Ensures that `more` keys fit without a change of [`home`](Table::home)s.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        while (self.len + more) * MAX_LOAD.1 > self.places.len() * MAX_LOAD.0 {
            self.grow();
        }
    }

    /// Where the search for a key begins.
    #[inline]
    pub fn home(&self, key: u64) -> usize {
        let lines = self.places.len() >> LINE_BITS;
        let line = (spread(key >> LINE_BITS) as u128 * lines as u128) >> 64;
        (line as usize) << LINE_BITS | key as usize & ((1 << LINE_BITS) - 1)
    }

    /// Reads from the place where a search begins, so that the cache line is fetched. The caller must use the value.
    #[inline]
    pub fn peek(&self, home: usize) -> u32 {
        self.places[home].slot
    }

    /// The place of a key, created if the key is new: then its slot is [`FREE`] and must be filled. Room must have been
    /// [reserved](Table::reserve).
    #[inline]
    pub fn place(&mut self, home: usize, key: u64) -> &mut Entry<T> {
        let mut at = home;
        while self.places[at].key() != key || self.places[at].slot == FREE {
            if self.places[at].slot == FREE {
                self.len += 1;
                self.places[at] = Entry::of(key);
                break;
            }
            at = self.after(at);
        }
        &mut self.places[at]
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry<T>> {
        self.places.iter().filter(|e| e.slot != FREE)
    }

    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry<T>> {
        self.places.iter_mut().filter(|e| e.slot != FREE)
    }

    /// Gives every slot a new number; [`FREE`] stays.
    pub fn renumber(&mut self, number: impl Fn(u32) -> u32 + Sync) {
        let renumber = |places: &mut [Entry<T>]| places.iter_mut().for_each(|entry| entry.slot = number(entry.slot));
        if self.places.len() < WORTH_A_THREAD {
            renumber(&mut self.places);
        } else {
            let half = self.places.len() / 2;
            let (first, second) = self.places.split_at_mut(half);
            std::thread::scope(|scope| {
                scope.spawn(|| renumber(second));
                renumber(first);
            });
        }
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: u64) -> Option<Entry<T>> {
        let mut at = self.home(key);
        while self.places[at].key() != key || self.places[at].slot == FREE {
            if self.places[at].slot == FREE {
                return None;
            }
            at = self.after(at);
        }
        let removed = std::mem::replace(&mut self.places[at], Entry::of(0));
        self.len -= 1;
        // Later entries move up, unless their search begins after the free place (Knuth, volume 3, 6.4, algorithm R).
        let places = self.places.len();
        let way = |from: usize, to: usize| (to + places - from) % places;
        let mut next = self.after(at);
        while self.places[next].slot != FREE {
            let home = self.home(self.places[next].key());
            if way(home, next) >= way(at, next) {
                self.places.swap(at, next);
                at = next;
            }
            next = self.after(next);
        }
        Some(removed)
    }

    /// Keeps only the entries that `keep` accepts.
    pub fn retain(&mut self, mut keep: impl FnMut(&Entry<T>) -> bool) {
        let kept: Vec<Entry<T>> = self.entries().filter(|e| keep(e)).copied().collect();
        self.places.fill(Entry::of(0));
        self.len = kept.len();
        kept.into_iter().for_each(|entry| self.put(entry));
    }

    /// A key's home is now twice as far from the start. So entries move from the last to the first, and meet only
    /// entries that have already moved. The few that would not, near the start and around the end, are put aside
    /// meanwhile.
    #[cold]
    fn grow(&mut self) {
        let old = self.places.len();
        let new = old * GROWTH;
        self.places.reserve_exact(new - old);
        self.places.resize(new, Entry::of(0));
        let mut aside = Vec::new();
        for at in (0..old).rev() {
            let entry = std::mem::replace(&mut self.places[at], Entry::of(0));
            if entry.slot == FREE {
                continue;
            }
            let home = self.home(entry.key());
            match (home..new).find(|place| self.places[*place].slot == FREE) {
                Some(place) if home >= at => self.places[place] = entry,
                _ => aside.push(entry),
            }
        }
        aside.into_iter().for_each(|entry| self.put(entry));
    }

    /// Inserts an entry that is not in the table.
    fn put(&mut self, entry: Entry<T>) {
        let mut at = self.home(entry.key());
        while self.places[at].slot != FREE {
            at = self.after(at);
        }
        self.places[at] = entry;
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.places.len() { 0 } else { at + 1 }
    }
}

/// Spreads keys over 64 bits (both halves of a 128-bit product, folded).
#[inline]
fn spread(key: u64) -> u64 {
    let product = (key ^ 0x9e37_79b9_7f4a_7c15) as u128 * 0xd6e8_feb8_6659_fd93_u128;
    (product >> 64) as u64 ^ product as u64
}

/// Spreads keys over 64 bits, independently of the table's hash.
pub fn mix(key: u64) -> u64 {
    spread(key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(table: &mut Table<u32>, key: u64) -> &mut Entry<u32> {
        table.reserve(1);
        table.place(table.home(key), key)
    }

    #[test]
    fn keys_of_any_stride_are_found_again() {
        for stride in [1, 2, 4, 8, 4096, 1 << 40, u64::MAX / 3] {
            let mut table = Table::new();
            for i in 0..10_000u64 {
                let entry = place(&mut table, i.wrapping_mul(stride));
                assert_eq!(entry.slot, FREE);
                entry.slot = i as u32;
            }
            for i in 0..10_000u64 {
                assert_eq!(place(&mut table, i.wrapping_mul(stride)).slot, i as u32, "stride {stride}");
            }
            assert_eq!(table.len(), 10_000);
            for i in (1..10_000u64).step_by(2) {
                assert_eq!(table.remove(i.wrapping_mul(stride)).map(|entry| entry.slot), Some(i as u32));
                assert!(table.remove(i.wrapping_mul(stride)).is_none());
            }
            assert_eq!(table.len(), 5000);
            for i in (0..10_000u64).step_by(2) {
                assert_eq!(place(&mut table, i.wrapping_mul(stride)).slot, i as u32, "stride {stride}");
            }
            table.retain(|e| e.slot % 4 == 0);
            assert_eq!(table.len(), 2500);
            assert_eq!(place(&mut table, stride.wrapping_mul(4)).slot, 4);
            assert_eq!(place(&mut table, stride.wrapping_mul(3)).slot, FREE);
        }
    }
}

//! From key to time slot: open addressing with linear probing in one array, so that a look-up costs one cache miss.

/// One key.
#[derive(Clone, Copy)]
pub struct Entry {
    pub key: u64,
    /// When it was last accessed; [`FREE`] if this place holds no key.
    pub slot: u32,
    /// The owner's, carried along.
    pub tag: u32,
}

/// The slot of a place that holds no key.
pub const FREE: u32 = u32::MAX;

/// Full at three quarters, then a third larger: at most 21 + 29 bytes per key while it grows.
const FULL: (usize, usize) = (3, 4);
const GROWTH: (usize, usize) = (4, 3);

/// Pages of a file come in runs: keys that differ in the lowest two bits only share a cache line.
const LINE_BITS: u32 = 2;

/// A map from keys to slots and tags.
pub struct Table {
    places: Vec<Entry>,
    len: usize,
    /// How many keys it takes before it grows.
    room: usize,
    /// The line that was looked up last, and where it begins: pages of a file come one after the other.
    line: (u64, usize),
}

/// No key has this line.
const NO_LINE: (u64, usize) = (u64::MAX, 0);

impl Table {
    pub fn with_capacity(keys: usize) -> Table {
        let lines = (keys * FULL.1 / FULL.0 + 1).div_ceil(1 << LINE_BITS).max(4);
        let places = lines << LINE_BITS;
        let free = Entry { key: 0, slot: FREE, tag: 0 };
        Table { places: vec![free; places], len: 0, room: places * FULL.0 / FULL.1, line: NO_LINE }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// The place of a key, made if it was not there: then its slot is [`FREE`] and must be filled.
    pub fn place(&mut self, key: u64) -> &mut Entry {
        if key >> LINE_BITS != self.line.0 {
            self.line = (key >> LINE_BITS, self.line_of(key));
        }
        let mut at = self.line.1 | within_line(key);
        loop {
            let entry = &self.places[at];
            if entry.slot == FREE {
                break;
            }
            if entry.key == key {
                return &mut self.places[at];
            }
            at = self.after(at);
        }
        if self.len == self.room {
            self.rebuild(self.room * GROWTH.0 / GROWTH.1 + 1, |_| true);
            at = self.free_place(key);
        }
        self.len += 1;
        self.places[at] = Entry { key, slot: FREE, tag: 0 };
        &mut self.places[at]
    }

    /// A value that depends on what a look-up of the key reads first, so that reading it brings the key's cache line in.
    pub fn peek(&self, key: u64) -> u32 {
        self.places[self.home(key)].slot
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.places.iter().filter(|e| e.slot != FREE)
    }

    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.places.iter_mut().filter(|e| e.slot != FREE)
    }

    /// Keeps only the entries that `keep` says.
    pub fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.rebuild(self.room, keep);
    }

    fn rebuild(&mut self, keys: usize, mut keep: impl FnMut(&Entry) -> bool) {
        let old = std::mem::replace(self, Table::with_capacity(keys));
        for entry in old.entries().filter(|e| keep(e)) {
            let at = self.free_place(entry.key);
            self.places[at] = *entry;
            self.len += 1;
        }
    }

    fn free_place(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.places[at].slot != FREE {
            at = self.after(at);
        }
        at
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.places.len() { 0 } else { at + 1 }
    }

    fn home(&self, key: u64) -> usize {
        self.line_of(key) | within_line(key)
    }

    fn line_of(&self, key: u64) -> usize {
        let lines = self.places.len() >> LINE_BITS;
        let line = (mix(key >> LINE_BITS) as u128 * lines as u128) >> 64;
        (line as usize) << LINE_BITS
    }
}

fn within_line(key: u64) -> usize {
    key as usize & ((1 << LINE_BITS) - 1)
}

/// Spreads keys over 64 bits (both halves of a 128-bit product, folded).
pub fn mix(key: u64) -> u64 {
    let product = (key ^ 0x9e37_79b9_7f4a_7c15) as u128 * 0xd6e8_feb8_6659_fd93_u128;
    let folded = (product >> 64) as u64 ^ product as u64;
    folded.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_again_whatever_the_stride() {
        for stride in [1, 2, 4, 8, 4096, 1 << 40, u64::MAX / 3] {
            let mut table = Table::with_capacity(0);
            for i in 0..10_000u64 {
                let entry = table.place(i.wrapping_mul(stride));
                assert_eq!(entry.slot, FREE);
                entry.slot = i as u32;
            }
            for i in 0..10_000u64 {
                assert_eq!(table.place(i.wrapping_mul(stride)).slot, i as u32, "stride {stride}");
            }
            assert_eq!(table.len(), 10_000);
            table.retain(|e| e.slot % 2 == 0);
            assert_eq!(table.len(), 5000);
            assert_eq!(table.place(stride.wrapping_mul(2)).slot, 2);
            assert_eq!(table.place(stride.wrapping_mul(3)).slot, FREE);
        }
    }
}

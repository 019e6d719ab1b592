//! Prefix sums of changing numbers.

/// A Fenwick tree: element i covers the `i & -i` places that end with place i - 1. A change and a sum take O(log n).
pub struct Fenwick(Vec<u64>);

impl Fenwick {
    /// This many places, all 0.
    pub fn new(places: usize) -> Fenwick {
        Fenwick(vec![0; places + 1])
    }

    /// Adds to a place.
    pub fn add(&mut self, place: usize, by: u64) {
        self.change(place, by);
    }

    /// Subtracts from a place.
    pub fn subtract(&mut self, place: usize, by: u64) {
        self.change(place, by.wrapping_neg());
    }

    /// The sum of the places before this one.
    pub fn before(&self, place: usize) -> u64 {
        let (mut i, mut sum) = (place, 0u64);
        while i > 0 {
            sum = sum.wrapping_add(self.0[i]);
            i &= i - 1;
        }
        sum
    }

    fn change(&mut self, place: usize, by: u64) {
        let mut i = place + 1;
        while i < self.0.len() {
            self.0[i] = self.0[i].wrapping_add(by);
            i += i & i.wrapping_neg();
        }
    }
}

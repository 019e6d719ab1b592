//! Memory by the time since its last access.

use model::AgeBytes;

/// Upper bounds of the age classes, seconds.
const BOUNDS: [f64; 14] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Bytes by age at one moment.
pub struct Ages {
    now_ns: u64,
    bytes: [u64; BOUNDS.len() + 1],
}

impl Ages {
    /// Starts empty.
    pub fn at(now_ns: u64) -> Ages {
        Ages { now_ns, bytes: [0; BOUNDS.len() + 1] }
    }

    /// Adds bytes last found accessed at `seen_ns`; `None`: never.
    pub fn add(&mut self, seen_ns: Option<u64>, bytes: u64) {
        let age = seen_ns.map(|seen| self.now_ns.saturating_sub(seen) as f64 / 1e9);
        self.bytes[age.map_or(BOUNDS.len(), |age| BOUNDS.partition_point(|bound| *bound <= age))] += bytes;
    }

    /// All classes, youngest first.
    pub fn finish(self) -> Vec<AgeBytes> {
        let bounds = BOUNDS.into_iter().map(Some).chain([None]);
        bounds.zip(self.bytes).map(|(below, bytes)| AgeBytes { below, bytes }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_in_the_older_class_never_seen_in_the_last() {
        let mut ages = Ages::at(2_000_000_000);
        for seen_ns in [Some(2_000_000_000), Some(1_000_000_000), Some(0), None] {
            ages.add(seen_ns, 7);
        }
        let found: Vec<_> = ages.finish().into_iter().filter(|age| age.bytes > 0).map(|age| age.below).collect();
        assert_eq!(found, [Some(0.125), Some(2.0), Some(4.0), None]);
    }
}

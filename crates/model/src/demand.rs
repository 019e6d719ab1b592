//! The page cache's part of the demand, from one run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes read again at one limit.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DemandPoint {
    /// A limit on the job's whole charge, in bytes.
    pub limit_bytes: u64,
    /// Bytes that would have been read again because they had been reclaimed.
    pub refault_bytes: u64,
}

/// A file that was in the page cache before the job asked for it, so that somebody else is charged for it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct ForeignFile {
    /// Its path, where it could be found out.
    pub path: Option<String>,
    /// Device number (as `stat` gives it) and inode.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Bytes the job referenced that it did not itself bring in.
    pub cached_bytes: u64,
}

/// The references to mapped files that bursar cannot see; it knows which pages they are.
pub const LATER_THROUGH_MAPPINGS: &str = "references through mappings after the first, so the curve may be too low";

/// Refaults below both of these are negligible: this many bytes, and this share of the distinct bytes. Almost every
/// program refers to some small file twice, such as its locale or its libraries' headers, at its begin and at its end.
const NEGLIGIBLE_BYTES: u64 = 1 << 20;
const NEGLIGIBLE_SHARE: f64 = 0.01;

/// The file demand curve of a run without a limit.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FileDemand {
    /// References to the page cache, in bytes (a page read twice counts twice).
    pub referenced_bytes: u64,
    /// Distinct bytes referenced. Pages that were removed and made anew count anew.
    pub distinct_bytes: u64,
    /// Distinct bytes referenced only by writing.
    pub written_only_bytes: u64,
    /// Refaults by limit, limits rising; the first point is the floor, the last has no refaults. Corners included: between
    /// two points the curve is the line between them.
    pub points: Vec<DemandPoint>,
    /// Share of the pages that the curve was made from; 1 is exact.
    pub sampled_share: f64,
    /// Files that were cached before and are charged elsewhere, largest first.
    pub foreign: Vec<ForeignFile>,
    /// References the tracker cannot see, named: `O_DIRECT`, `tmpfs`, `dax`, `nfs` …, with bytes where known.
    pub not_visible: Vec<(String, Option<u64>)>,
    /// Bytes of mapped files whose Accessed bits were scanned, at most at one time: later references through these mappings are in the
    /// curve. 0: none are.
    #[serde(default)]
    pub mapped_scanned_bytes: u64,
    /// Below this limit the curve is a lower bound: the floor and the mapped file pages that were not scanned do not fit
    /// together, and how often the program accesses such pages is not known. In records 0.
    #[serde(default)]
    pub known_from_bytes: u64,
    /// Events that the tracker lost; with any, the curve is a lower bound.
    pub lost_events: u64,
    /// The rung it came from.
    pub rung: String,
}

impl FileDemand {
    /// The point from which on more memory saves no reads worth mentioning: the smallest limit whose refaults are at
    /// most 1 MiB, or 1 % of the distinct bytes if that is more, and at which the curve is known. `None` without points.
    pub fn knee(&self) -> Option<DemandPoint> {
        let negligible = NEGLIGIBLE_BYTES.max((self.distinct_bytes as f64 * NEGLIGIBLE_SHARE) as u64);
        let knee = self.points.iter().find(|point| point.refault_bytes <= negligible)?;
        let limit_bytes = knee.limit_bytes.max(self.known_from_bytes);
        Some(DemandPoint { limit_bytes, refault_bytes: self.refault_bytes_at(limit_bytes)? })
    }

    /// Bytes read again at a limit, interpolated. Below the first point: the first point's.
    pub fn refault_bytes_at(&self, limit_bytes: u64) -> Option<u64> {
        let after = self.points.partition_point(|p| p.limit_bytes < limit_bytes);
        let right = match self.points.get(after) {
            Some(right) => right,
            None => return self.points.last().map(|p| p.refault_bytes),
        };
        let Some(left) = after.checked_sub(1).map(|i| &self.points[i]) else { return Some(right.refault_bytes) };
        let share = (limit_bytes - left.limit_bytes) as f64 / (right.limit_bytes - left.limit_bytes) as f64;
        Some((left.refault_bytes as f64 + share * (right.refault_bytes as f64 - left.refault_bytes as f64)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_read_twice_moves_no_knee() {
        const MIB: u64 = 1 << 20;
        let point = |limit: u64, refault_bytes| DemandPoint { limit_bytes: limit * MIB, refault_bytes };
        let demand =
            |distinct: u64, points| FileDemand { distinct_bytes: distinct * MIB, points, ..Default::default() };
        let limit = |demand: &FileDemand| demand.knee().map(|point| point.limit_bytes / MIB);
        let cliff = vec![point(10, 300 * MIB), point(299, 300 * MIB), point(300, 2 * MIB), point(400, 0)];
        assert_eq!(limit(&demand(300, cliff.clone())), Some(300), "2 of 300 MiB are less than 1 %");
        assert_eq!(limit(&demand(100, cliff)), Some(400), "of 100 MiB they are more");
        assert_eq!(limit(&demand(5, vec![point(3, MIB / 2), point(290, 0)])), Some(3), "less than 1 MiB");
        assert_eq!(limit(&demand(5, Vec::new())), None);
        let unknown = FileDemand { known_from_bytes: 20 * MIB, ..demand(5, vec![point(3, MIB / 2), point(290, 0)]) };
        assert_eq!(limit(&unknown), Some(20), "mapped files that were not scanned");
    }

    #[test]
    fn between_two_points_the_curve_is_a_line_and_beyond_them_flat() {
        let point = |limit_bytes, refault_bytes| DemandPoint { limit_bytes, refault_bytes };
        let demand =
            FileDemand { points: vec![point(100, 1000), point(200, 1000), point(300, 0)], ..Default::default() };
        for (limit, refaults) in [(50, 1000), (100, 1000), (150, 1000), (250, 500), (300, 0), (999, 0)] {
            assert_eq!(demand.refault_bytes_at(limit), Some(refaults), "{limit}");
        }
        assert_eq!(FileDemand::default().refault_bytes_at(1), None);
    }
}

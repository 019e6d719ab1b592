//! How much each further huge page saves a program.

use crate::profile::{Profile, ProfiledRange};
use crate::range::HUGE_BYTES;

/// The number of huge pages of a range, and the page walk time that each saves, in ns. `None` for a range without an
/// end, whose size is unknown.
fn saved(range: &ProfiledRange) -> Option<(u64, f64)> {
    let huge_pages = range.to?.saturating_sub(range.from) / HUGE_BYTES;
    range.huge_ns.map(|ns| (huge_pages, ns as f64 * range.confidence))
}

impl Profile {
    /// The fewest huge pages that save this share (0 to 1) of the page walk time that huge pages for all ranges would
    /// save.
    ///
    /// ```
    /// let lines = "heap - - 0..20M huge=900\nmmap 26 0 0..80M huge=100\n";
    /// let profile = advise::Profile::parse(&format!("bursar profile 1\nprogram a -\n{lines}"))?;
    /// assert_eq!([0.0, 0.5, 1.0].map(|share| profile.huge_pages_that_save(share)), [0, 8, 50]);
    /// # Ok::<(), advise::Malformed>(())
    /// ```
    pub fn huge_pages_that_save(&self, share: f64) -> u64 {
        let ranges = self.programs.iter().flat_map(|program| &program.ranges);
        let mut best_first: Vec<(u64, f64)> = ranges.filter_map(saved).filter(|(_, ns)| *ns > 0.0).collect();
        best_first.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let mut wanted = share * best_first.iter().map(|(huge_pages, ns)| *huge_pages as f64 * ns).sum::<f64>();
        let mut needed = 0;
        for (huge_pages, ns) in best_first {
            let taken = ((wanted / ns).ceil() as u64).min(huge_pages);
            needed += taken;
            wanted -= taken as f64 * ns;
            if taken < huge_pages {
                break;
            }
        }
        needed
    }
}

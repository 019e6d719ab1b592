//! What a run has shown of its regions, and the profile made from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::profile::{Mapping, Profile, ProfiledRange, Program};
use crate::range::{HUGE_BYTES, PAGES_PER_HUGE};

/// Neighbouring regions whose savings differ by less than this factor become one range,
const SIMILAR_FACTOR: f64 = 2.0;
/// unless its parts differ by at least this factor,
const SPLIT_FACTOR: f64 = 1.25;
/// and by this many standard errors. The number is high because every possible split is tried.
const SPLIT_ERRORS: f64 = 5.0;
/// Minimum number of regions of such a part: with fewer, the difference may be chance.
const MIN_PART_REGIONS: usize = 4;
/// Savings below this, in ns, do not pay for a huge page, so differences between them do not matter.
const NEGLIGIBLE_NS: f64 = 20_000.0;
/// Ranges also need shares of touched pages that differ by less than this.
const SIMILAR_TOUCHED: f64 = 0.25;
/// If a program makes more mappings of a size class than this, the profile has one entry for all of them.
const MAX_ORDINALS: usize = 8;
/// Number of scans after which the figures of a region have a confidence of one half.
const HALF_CONFIDENCE_SCANS: f64 = 3.0;

/// What was seen of a region between two scans.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RegionSample {
    /// Page walk time that huge pages would have saved, in ns.
    pub walks_ns: f64,
    /// Present pages of 4 KiB.
    pub present_pages: u64,
    /// Whether the pages were counted, not estimated from a sample. Counts replace all samples.
    pub is_counted: bool,
}

/// What was seen in a run, by process, mapping and region.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    processes: BTreeMap<u64, Process>,
    /// Page walk time of all processes, as counted by the processor.
    counted_ns: Option<f64>,
}

#[derive(Clone, Debug)]
struct Process {
    name: String,
    build_id: Option<String>,
    /// By mapping, and number of the region in it.
    regions: BTreeMap<Mapping, BTreeMap<u64, Region>>,
}

/// A region of one process.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    walks_ns: f64,
    /// The factor that a trial has found for `walks_ns`.
    factor: Option<f64>,
    /// The highest count of present pages.
    counted: Option<u64>,
    /// The last estimate of present pages.
    sampled: u64,
    scans: u32,
}

/// Sums over the same region of all processes of a program, or over several similar regions.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Number of regions, over processes and mappings.
    count: f64,
    walks_ns: f64,
    squares: f64,
    present_pages: f64,
    scans: f64,
}

/// By mapping, and number of the region in it.
type Sums = BTreeMap<Mapping, BTreeMap<u64, Sum>>;

impl Observed {
    /// Adds what was seen of the region that begins `offset` bytes after the start of the mapping (negative: before
    /// it), in the process with this number, which runs this program. O(log regions).
    pub fn add(
        &mut self,
        process: u64,
        program: (&str, Option<&str>),
        mapping: &Mapping,
        offset: i64,
        sample: RegionSample,
    ) {
        let region = self.region(process, program, mapping, offset);
        region.walks_ns += sample.walks_ns;
        region.scans += 1;
        region.sampled = sample.present_pages;
        if sample.is_counted {
            region.counted = region.counted.max(Some(sample.present_pages));
        }
    }

    /// Notes the present pages of a region when it was freed or the process ended; the region may never have been
    /// scanned. O(log regions).
    pub fn touched(
        &mut self,
        process: u64,
        program: (&str, Option<&str>),
        mapping: &Mapping,
        offset: i64,
        present_pages: u64,
    ) {
        let region = self.region(process, program, mapping, offset);
        region.counted = region.counted.max(Some(present_pages));
    }

    /// A region of a process; both are created if they are new.
    fn region(&mut self, process: u64, program: (&str, Option<&str>), mapping: &Mapping, offset: i64) -> &mut Region {
        let new = || Process { name: program.0.into(), build_id: program.1.map(Into::into), regions: BTreeMap::new() };
        let process = self.processes.entry(process).or_insert_with(new);
        process.regions.entry(mapping.clone()).or_default().entry(number(offset)).or_default()
    }

    /// Sets the page walk time of all processes as the processor counted it. Estimates for untried regions are scaled
    /// to it: accesses show how regions compare, the processor shows their sum.
    pub fn counted(&mut self, walks_ns: f64) {
        self.counted_ns = Some(walks_ns);
    }

    /// Notes the result of a trial: the region's page walks cost `factor` times the estimate, see
    /// [`Trial::factor`](crate::Trial::factor). This does not change other regions: if the page tables of one are in a
    /// cache and those of another are not, one saves little and the other much. Ignored for a region that was not
    /// scanned.
    pub fn tried(&mut self, process: u64, mapping: &Mapping, offset: i64, factor: f64) {
        let regions = self.processes.get_mut(&process).and_then(|process| process.regions.get_mut(mapping));
        if let Some(region) = regions.and_then(|regions| regions.get_mut(&number(offset))) {
            region.factor = Some(factor);
        }
    }

    /// The profile of the run: for each program, the average savings over its processes. O(regions log regions).
    pub fn profile(&self, command: Option<&str>) -> Profile {
        let mut programs: BTreeMap<(&str, Option<&str>), Sums> = BTreeMap::new();
        let regions =
            || self.processes.values().flat_map(|process| process.regions.values().flat_map(BTreeMap::values));
        let estimated: f64 = regions().map(|region| region.walks_ns).sum();
        let counted = self.counted_ns.filter(|_| estimated > 0.0).map_or(1.0, |counted| counted / estimated);
        for process in self.processes.values() {
            let program = programs.entry((&process.name, process.build_id.as_deref())).or_default();
            let many = process.classes_of_many();
            for (mapping, regions) in &process.regions {
                let mapping = match mapping {
                    Mapping::Mmap { class, .. } if many.contains(class) => {
                        Mapping::Mmap { class: *class, ordinal: None }
                    }
                    mapping => mapping.clone(),
                };
                let sums = program.entry(mapping).or_default();
                regions.iter().for_each(|(number, region)| sums.entry(*number).or_default().add(region, counted));
            }
        }
        let programs = programs.into_iter().map(|((name, build_id), mappings)| Program {
            name: name.into(),
            build_id: build_id.map(Into::into),
            command: command.map(Into::into),
            ranges: mappings.iter().flat_map(|(mapping, sums)| ranges(mapping, sums)).collect(),
        });
        Profile { programs: programs.collect() }
    }
}

impl Process {
    /// Size classes with more mappings than profiles list one by one.
    fn classes_of_many(&self) -> BTreeSet<Option<u32>> {
        let mut made: BTreeMap<Option<u32>, usize> = BTreeMap::new();
        for mapping in self.regions.keys() {
            if let Mapping::Mmap { class, .. } = mapping {
                *made.entry(*class).or_default() += 1;
            }
        }
        made.into_iter().filter(|(_, count)| *count > MAX_ORDINALS).map(|(class, _)| class).collect()
    }
}

impl Sum {
    fn add(&mut self, region: &Region, untried: f64) {
        let walks_ns = region.walks_ns * region.factor.unwrap_or(untried);
        self.count += 1.0;
        self.walks_ns += walks_ns;
        self.squares += walks_ns * walks_ns;
        self.present_pages += region.counted.unwrap_or(region.sampled).min(PAGES_PER_HUGE) as f64;
        self.scans += f64::from(region.scans);
    }

    fn join(&mut self, other: &Sum) {
        self.count += other.count;
        self.walks_ns += other.walks_ns;
        self.squares += other.squares;
        self.present_pages += other.present_pages;
        self.scans += other.scans;
    }

    fn mean(&self, of: f64) -> f64 {
        of / self.count.max(1.0)
    }

    fn touched(&self) -> f64 {
        self.mean(self.present_pages) / PAGES_PER_HUGE as f64
    }

    /// Whether it was scanned while it ran, so that the savings of huge pages are known.
    fn was_scanned(&self) -> bool {
        self.scans > 0.0
    }

    /// Confidence: rises with the number of scans and with the agreement between regions.
    fn confidence(&self) -> f64 {
        let (mean, scans) = (self.mean(self.walks_ns), self.mean(self.scans));
        let deviation = (self.mean(self.squares) - mean * mean).max(0.0).sqrt();
        let agreement = if mean > 0.0 { mean / (mean + deviation) } else { 1.0 };
        agreement * scans / (scans + HALF_CONFIDENCE_SCANS)
    }
}

/// Rounds a share to its precision.
fn percent(share: f64) -> f64 {
    (share * 100.0).round() / 100.0
}

/// The region nearest to the offset, as the runtime applies rules (`preload/advise.c`), because mappings begin anywhere
/// in a region.
fn number(offset: i64) -> u64 {
    let half = HUGE_BYTES as i64 / 2;
    (offset.saturating_add(half).max(0) as u64) / HUGE_BYTES
}

/// Joins similar neighbours to ranges. Gaps were never present.
fn ranges(mapping: &Mapping, sums: &BTreeMap<u64, Sum>) -> Vec<ProfiledRange> {
    let mut regions: Vec<(u64, Sum)> = Vec::with_capacity(sums.len());
    let mut runs: Vec<(usize, Sum)> = Vec::new();
    for (number, sum) in sums {
        let follows = regions.last().is_some_and(|(before, _)| before + 1 == *number);
        match runs.last_mut() {
            Some((_, last)) if follows && are_alike(last, sum) => last.join(sum),
            _ => runs.push((regions.len(), *sum)),
        }
        regions.push((*number, *sum));
    }
    let ends = runs.iter().skip(1).map(|(from, _)| *from).chain([regions.len()]);
    let parts = runs.iter().zip(ends).flat_map(|((from, _), end)| parted(&regions[*from..end]));
    let range = |part: &[(u64, Sum)]| {
        let mut sum = Sum::default();
        part.iter().for_each(|(_, region)| sum.join(region));
        let (from, to) = (part[0].0, part[0].0 + part.len() as u64);
        ProfiledRange {
            huge_ns: sum.was_scanned().then(|| sum.mean(sum.walks_ns).round() as u64),
            touched: Some(percent(sum.touched())),
            confidence: if sum.was_scanned() { percent(sum.confidence()) } else { 1.0 },
            ..ProfiledRange::of(mapping.clone(), from * HUGE_BYTES, Some(to * HUGE_BYTES))
        }
    };
    parts.map(range).collect()
}

fn are_alike(one: &Sum, other: &Sum) -> bool {
    one.was_scanned() == other.was_scanned()
        && factor(one.mean(one.walks_ns), other.mean(other.walks_ns)) < SIMILAR_FACTOR
        && (one.touched() - other.touched()).abs() < SIMILAR_TOUCHED
}

/// The ratio of two savings.
fn factor(one_ns: f64, other_ns: f64) -> f64 {
    (one_ns.max(other_ns) + NEGLIGIBLE_NS) / (one_ns.min(other_ns) + NEGLIGIBLE_NS)
}

/// Splits neighbours into parts within which regions differ only by chance. Without this, small changes from one region
/// to the next could add up within a range (binary segmentation; Scott and Knott, 1974). O(regions log regions) in most
/// cases.
fn parted(regions: &[(u64, Sum)]) -> Vec<&[(u64, Sum)]> {
    let mut parts = Vec::new();
    let mut left = vec![regions];
    while let Some(part) = left.pop() {
        match border(part) {
            Some(border) => {
                let (before, behind) = part.split_at(border);
                left.extend([behind, before]);
            }
            None => parts.push(part),
        }
    }
    parts
}

/// The split at which both sides differ most significantly; `None` if there is none.
fn border(regions: &[(u64, Sum)]) -> Option<usize> {
    let each: Vec<f64> = regions.iter().map(|(_, sum)| sum.mean(sum.walks_ns)).collect();
    let (count, all) = (each.len() as f64, each.iter().sum::<f64>());
    let squares: f64 = each.iter().map(|ns| (ns - all / count).powi(2)).sum();
    let (mut first, mut found) = (0.0, (0.0, None));
    for (before, ns) in each.iter().enumerate() {
        let (one, other) = (before as f64, count - before as f64);
        if before >= MIN_PART_REGIONS && each.len() - before >= MIN_PART_REGIONS {
            let (one_ns, other_ns) = (first / one, (all - first) / other);
            // The part of the sum of squares that lies between the two sides.
            let between = (one_ns - other_ns).powi(2) * one * other / count;
            let errors = between / ((squares - between).max(0.0) / (count - 2.0)).max(1.0);
            if factor(one_ns, other_ns) >= SPLIT_FACTOR && errors > found.0 {
                found = (errors, Some(before));
            }
        }
        first += ns;
    }
    found.1.filter(|_| found.0 >= SPLIT_ERRORS.powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const XZ: (&str, Option<&str>) = ("xz", Some("5f3e"));

    fn mmap(ordinal: u64) -> Mapping {
        Mapping::Mmap { class: Some(27), ordinal: Some(ordinal) }
    }

    fn region(number: u64) -> i64 {
        (number * HUGE_BYTES) as i64
    }

    fn sample(walks_ns: f64) -> RegionSample {
        RegionSample { walks_ns, present_pages: 512, is_counted: true }
    }

    /// Lines of the only program.
    fn lines(observed: &Observed) -> Vec<String> {
        let profile = observed.profile(None);
        assert_eq!(Profile::parse(&profile.to_string()).as_ref(), Ok(&profile), "the printed profile reads back");
        profile.programs[0].ranges.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn similar_neighbours_become_one_range() {
        let mut observed = Observed::default();
        for _look in 0..27 {
            for number in 0..96 {
                let ns = if (32..64).contains(&number) { 200_000.0 } else { 60.0 };
                observed.add(1, XZ, &mmap(0), region(number), sample(ns));
            }
        }
        let expected = [
            "mmap 27 0 0..64M huge=1620 touched=100% sure=90%",
            "mmap 27 0 64M..128M huge=5400000 touched=100% sure=90%",
            "mmap 27 0 128M..192M huge=1620 touched=100% sure=90%",
        ];
        assert_eq!(lines(&observed), expected);
    }

    /// First regions of the ranges found for regions with these savings in ms, plus or minus noise, and the savings of
    /// each range.
    fn found(ms: impl Iterator<Item = f64>) -> Vec<(u64, f64)> {
        let mut observed = Observed::default();
        for (number, ms) in (0..).zip(ms) {
            let chance = 0.7 + 0.6 * ((number * 7919) % 101) as f64 / 100.0;
            observed.add(1, XZ, &mmap(0), region(number), sample(ms * 1e6 * chance));
        }
        let profile = observed.profile(None);
        let ranges = profile.programs[0].ranges.iter();
        ranges.map(|range| (range.from / HUGE_BYTES, range.huge_ns.unwrap() as f64 / 1e6)).collect()
    }

    #[test]
    fn gradually_falling_savings_become_several_ranges() {
        let tiers = [2.0, 1.5, 1.1, 0.8];
        let found = found((0..128).map(|number| tiers[number / 32]));
        assert_eq!(found.len(), 4, "{found:?}");
        for (tier, (from, ms)) in found.into_iter().enumerate() {
            assert!(from.abs_diff(tier as u64 * 32) <= MIN_PART_REGIONS as u64 + 1, "{tier}: {from}");
            assert!((0.9..1.1).contains(&(ms / tiers[tier])), "{tier}: {ms}");
        }
    }

    #[test]
    fn differences_by_chance_do_not_split_a_range() {
        assert_eq!(found((0..1000).map(|_| 1.0)).len(), 1);
        assert_eq!(found((0..1000).map(|number| 0.001 + f64::from(number) / 1e6)).len(), 1, "it saves hardly anything");
    }

    #[test]
    fn a_region_belongs_to_the_nearest_offset_of_its_mapping() {
        let numbers = [-1_000_000, 0, 1_000_000, 1_050_000, 2_000_000, 3_140_000, 3_150_000].map(number);
        assert_eq!(numbers, [0, 0, 0, 1, 1, 1, 2]);
    }

    #[test]
    fn regions_never_present_are_not_in_the_profile() {
        let mut observed = Observed::default();
        let sparse = RegionSample { walks_ns: 0.0, present_pages: 51, is_counted: false };
        observed.add(1, XZ, &Mapping::Heap, region(0), sparse);
        observed.add(1, XZ, &Mapping::Heap, region(5), sparse);
        let expected = ["heap - - 0..2M huge=0 touched=10% sure=25%", "heap - - 10M..12M huge=0 touched=10% sure=25%"];
        assert_eq!(lines(&observed), expected);
    }

    #[test]
    fn counted_pages_replace_sampled_ones() {
        let touched = |sights: &[(u64, bool)]| {
            let mut observed = Observed::default();
            for (present_pages, is_counted) in sights.iter().copied() {
                observed.add(1, XZ, &Mapping::Heap, 0, RegionSample { walks_ns: 0.0, present_pages, is_counted });
            }
            observed.profile(None).programs[0].ranges[0].touched
        };
        assert_eq!(touched(&[(128, false), (256, false)]), Some(0.5));
        assert_eq!(touched(&[(512, false), (128, true), (64, true), (512, false)]), Some(0.25));
    }

    #[test]
    fn pages_at_the_end_count_without_scans() {
        let mut observed = Observed::default();
        observed.add(1, XZ, &Mapping::Heap, region(0), RegionSample { present_pages: 100, ..sample(400_000.0) });
        for (number, present_pages) in [(0, 512), (1, 512), (1, 128), (2, 512), (3, 51)] {
            observed.touched(1, XZ, &Mapping::Heap, region(number), present_pages);
        }
        let expected = [
            "heap - - 0..2M huge=400000 touched=100% sure=25%",
            "heap - - 2M..6M touched=100%",
            "heap - - 6M..8M touched=10%",
        ];
        assert_eq!(lines(&observed), expected);
    }

    #[test]
    fn processes_are_averaged_and_differences_lower_trust() {
        let mut observed = Observed::default();
        for _look in 0..9 {
            observed.add(1, XZ, &Mapping::Heap, 0, sample(400_000.0));
            observed.add(2, XZ, &Mapping::Heap, 0, sample(400_000.0));
            observed.add(3, ("sh", None), &Mapping::Heap, 0, sample(400_000.0));
            observed.add(4, ("sh", None), &Mapping::Heap, 0, sample(0.0));
        }
        let profile = observed.profile(Some("sh -c xz"));
        let printed: Vec<_> = profile.programs.iter().map(|program| program.ranges[0].to_string()).collect();
        assert_eq!(
            printed,
            ["heap - - 0..2M huge=1800000 touched=100% sure=38%", "heap - - 0..2M huge=3600000 touched=100% sure=75%"]
        );
        assert_eq!(profile.programs[0].command.as_deref(), Some("sh -c xz"));
    }

    #[test]
    fn a_trial_scales_only_its_regions() {
        let mut observed = Observed::default();
        for number in 0..64 {
            observed.add(1, XZ, &mmap(0), region(number), sample(if number < 32 { 1e6 } else { 1e5 }));
        }
        for (number, factor) in (0..32).map(|number| (number, 0.5)).chain([(99, 7.0)]) {
            observed.tried(1, &mmap(0), region(number), factor);
        }
        let expected = [
            "mmap 27 0 0..64M huge=500000 touched=100% sure=25%",
            "mmap 27 0 64M..128M huge=100000 touched=100% sure=25%",
        ];
        assert_eq!(lines(&observed), expected);
    }

    #[test]
    fn the_processors_count_scales_untried_regions() {
        let mut observed = Observed::default();
        observed.add(1, XZ, &mmap(0), region(0), sample(3e6));
        observed.add(1, XZ, &mmap(1), region(0), sample(1e6));
        observed.add(2, ("sh", None), &Mapping::Heap, 0, sample(1e6));
        observed.counted(1e7);
        observed.tried(2, &Mapping::Heap, 0, 0.1);
        let printed: Vec<_> =
            observed.profile(None).programs.iter().flat_map(|program| program.ranges.clone()).collect();
        assert_eq!(
            printed.iter().map(|range| range.huge_ns).collect::<Vec<_>>(),
            [Some(100_000), Some(6_000_000), Some(2_000_000)]
        );
    }

    #[test]
    fn many_mappings_of_a_class_become_one_entry() {
        let mut observed = Observed::default();
        (0..100).for_each(|ordinal| observed.add(1, XZ, &mmap(ordinal), 0, sample(600_000.0)));
        assert_eq!(lines(&observed), ["mmap 27 * 0..2M huge=600000 touched=100% sure=25%"]);
    }
}

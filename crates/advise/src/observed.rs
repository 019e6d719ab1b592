//! What a run has shown of its regions, and the profile that it makes.

use std::collections::{BTreeMap, BTreeSet};

use crate::profile::{Mapping, Profile, ProfiledRange, Program};
use crate::range::{HUGE_BYTES, PAGES_PER_HUGE};

/// Regions are alike that differ by less than this factor; a range of them is one line,
const ALIKE: f64 = 2.0;
/// unless its parts differ by this factor at least,
const PARTED: f64 = 1.25;
/// and by so many standard errors: each place where one could end is tried.
const PARTED_ERRORS: f64 = 5.0;
/// Regions of such a part: of fewer chance is not told.
const LEAST_PART: usize = 4;
/// So much, in ns, as pays for no huge page is nothing: what hardly saves anything does not differ.
const NONE: f64 = 20_000.0;
/// And in the share of pages touched by less than this.
const ALIKE_TOUCHED: f64 = 0.25;
/// Where a program makes more mappings of a class, they are taken together.
const MOST_ORDINALS: usize = 8;
/// After so many looks, what is told of a region is half sure.
const HALF_SURE: f64 = 3.0;

/// What was seen of a region between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sight {
    /// What huge pages would have saved of page walks, in ns.
    pub walks_ns: f64,
    /// Pages of 4 KiB that are there.
    pub present_pages: u64,
    /// Whether these were counted, and not told by a sample: then samples do not matter any more.
    pub is_counted: bool,
}

/// What was seen in a run, by process, mapping and region.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    processes: BTreeMap<u64, Process>,
    /// What page walks took all of them, as the processor counts it.
    counted_ns: Option<f64>,
}

#[derive(Clone, Debug)]
struct Process {
    name: String,
    build_id: Option<String>,
    /// By mapping, and the number of the region in it.
    regions: BTreeMap<Mapping, BTreeMap<u64, Region>>,
}

/// A region of one process.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    walks_ns: f64,
    /// How many times that a trial has shown it to be.
    factor: Option<f64>,
    /// At most.
    counted: Option<u64>,
    /// At last.
    sampled: u64,
    looks: u32,
}

/// The same region of all processes of a program, or several that are alike.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Regions, by process and by mapping.
    count: f64,
    walks_ns: f64,
    squares: f64,
    present_pages: f64,
    looks: f64,
}

/// By mapping, and the number of the region in it.
type Sums = BTreeMap<Mapping, BTreeMap<u64, Sum>>;

impl Observed {
    /// Takes in what was seen of the region that begins `offset` bytes behind the beginning of the mapping, or before it, in
    /// the process of this number, that runs this program. O(log regions).
    pub fn add(&mut self, process: u64, program: (&str, Option<&str>), mapping: &Mapping, offset: i64, sight: Sight) {
        let region = self.region(process, program, mapping, offset);
        region.walks_ns += sight.walks_ns;
        region.looks += 1;
        region.sampled = sight.present_pages;
        if sight.is_counted {
            region.counted = region.counted.max(Some(sight.present_pages));
        }
    }

    /// So many of this region's pages of 4 KiB were there when it was given back, or when the process ended: also where nobody looked.
    /// O(log regions).
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

    /// A region of a process; of neither anything may be known yet.
    fn region(&mut self, process: u64, program: (&str, Option<&str>), mapping: &Mapping, offset: i64) -> &mut Region {
        let new = || Process { name: program.0.into(), build_id: program.1.map(Into::into), regions: BTreeMap::new() };
        let process = self.processes.entry(process).or_insert_with(new);
        process.regions.entry(mapping.clone()).or_default().entry(number(offset)).or_default()
    }

    /// The processor has counted that page walks took all processes so long. Where nothing was tried, what was told of regions is scaled to
    /// that: by accesses it is known which regions have more than others, and by the processor how much all have together.
    pub fn counted(&mut self, walks_ns: f64) {
        self.counted_ns = Some(walks_ns);
    }

    /// A trial has shown that this region's page walks cost so many times what was told, see [`Trial::factor`](crate::Trial::factor). That
    /// says nothing of others: where one finds its page tables in a cache, and another not, one saves much and the other nothing. Nothing
    /// of a region that was not seen.
    pub fn tried(&mut self, process: u64, mapping: &Mapping, offset: i64, factor: f64) {
        let regions = self.processes.get_mut(&process).and_then(|process| process.regions.get_mut(mapping));
        if let Some(region) = regions.and_then(|regions| regions.get_mut(&number(offset))) {
            region.factor = Some(factor);
        }
    }

    /// The profile of the run: of each program, what a huge page saves on average over its processes. O(regions log regions).
    pub fn profile(&self, command: Option<&str>) -> Profile {
        let mut programs: BTreeMap<(&str, Option<&str>), Sums> = BTreeMap::new();
        let regions =
            || self.processes.values().flat_map(|process| process.regions.values().flat_map(BTreeMap::values));
        let told: f64 = regions().map(|region| region.walks_ns).sum();
        let counted = self.counted_ns.filter(|_| told > 0.0).map_or(1.0, |counted| counted / told);
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
    /// Size classes of which it has made more mappings than are told one by one.
    fn classes_of_many(&self) -> BTreeSet<Option<u32>> {
        let mut made: BTreeMap<Option<u32>, usize> = BTreeMap::new();
        for mapping in self.regions.keys() {
            if let Mapping::Mmap { class, .. } = mapping {
                *made.entry(*class).or_default() += 1;
            }
        }
        made.into_iter().filter(|(_, count)| *count > MOST_ORDINALS).map(|(class, _)| class).collect()
    }
}

impl Sum {
    fn add(&mut self, region: &Region, untried: f64) {
        let walks_ns = region.walks_ns * region.factor.unwrap_or(untried);
        self.count += 1.0;
        self.walks_ns += walks_ns;
        self.squares += walks_ns * walks_ns;
        self.present_pages += region.counted.unwrap_or(region.sampled).min(PAGES_PER_HUGE) as f64;
        self.looks += f64::from(region.looks);
    }

    fn join(&mut self, other: &Sum) {
        self.count += other.count;
        self.walks_ns += other.walks_ns;
        self.squares += other.squares;
        self.present_pages += other.present_pages;
        self.looks += other.looks;
    }

    fn mean(&self, of: f64) -> f64 {
        of / self.count.max(1.0)
    }

    fn touched(&self) -> f64 {
        self.mean(self.present_pages) / PAGES_PER_HUGE as f64
    }

    /// Whether it was looked at while it ran, by which is known what huge pages save.
    fn was_seen(&self) -> bool {
        self.looks > 0.0
    }

    /// By how often it was looked at, and how far what was seen in several agrees.
    fn sure(&self) -> f64 {
        let (mean, looks) = (self.mean(self.walks_ns), self.mean(self.looks));
        let deviation = (self.mean(self.squares) - mean * mean).max(0.0).sqrt();
        let agreement = if mean > 0.0 { mean / (mean + deviation) } else { 1.0 };
        agreement * looks / (looks + HALF_SURE)
    }
}

/// No finer than it is known.
fn percent(share: f64) -> f64 {
    (share * 100.0).round() / 100.0
}

/// Where a rule holds, the runtime takes the nearest region (`preload/advise.c`): mappings begin anywhere in one.
fn number(offset: i64) -> u64 {
    let half = HUGE_BYTES as i64 / 2;
    (offset.saturating_add(half).max(0) as u64) / HUGE_BYTES
}

/// Neighbours that are alike are one range. What lies between was never there.
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
            huge_ns: sum.was_seen().then(|| sum.mean(sum.walks_ns).round() as u64),
            touched: Some(percent(sum.touched())),
            sure: if sum.was_seen() { percent(sum.sure()) } else { 1.0 },
            ..ProfiledRange::of(mapping.clone(), from * HUGE_BYTES, Some(to * HUGE_BYTES))
        }
    };
    parts.map(range).collect()
}

fn are_alike(one: &Sum, other: &Sum) -> bool {
    one.was_seen() == other.was_seen()
        && factor(one.mean(one.walks_ns), other.mean(other.walks_ns)) < ALIKE
        && (one.touched() - other.touched()).abs() < ALIKE_TOUCHED
}

/// Of what two of them save.
fn factor(one_ns: f64, other_ns: f64) -> f64 {
    (one_ns.max(other_ns) + NONE) / (one_ns.min(other_ns) + NONE)
}

/// The parts of neighbours, in each of which none differs from the others but by chance: what changes slowly from one to the next comes
/// far in the end (binary segmentation; Scott and Knott, 1974). O(regions log regions), mostly.
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

/// Where what is before differs most surely from what is behind, if it does.
fn border(regions: &[(u64, Sum)]) -> Option<usize> {
    let each: Vec<f64> = regions.iter().map(|(_, sum)| sum.mean(sum.walks_ns)).collect();
    let (count, all) = (each.len() as f64, each.iter().sum::<f64>());
    let squares: f64 = each.iter().map(|ns| (ns - all / count).powi(2)).sum();
    let (mut first, mut found) = (0.0, (0.0, None));
    for (before, ns) in each.iter().enumerate() {
        let (one, other) = (before as f64, count - before as f64);
        if before >= LEAST_PART && each.len() - before >= LEAST_PART {
            let (one_ns, other_ns) = (first / one, (all - first) / other);
            // Of the squares that much is between the two.
            let between = (one_ns - other_ns).powi(2) * one * other / count;
            let errors = between / ((squares - between).max(0.0) / (count - 2.0)).max(1.0);
            if factor(one_ns, other_ns) >= PARTED && errors > found.0 {
                found = (errors, Some(before));
            }
        }
        first += ns;
    }
    found.1.filter(|_| found.0 >= PARTED_ERRORS.powi(2))
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

    fn sight(walks_ns: f64) -> Sight {
        Sight { walks_ns, present_pages: 512, is_counted: true }
    }

    /// Lines of the only program.
    fn lines(observed: &Observed) -> Vec<String> {
        let profile = observed.profile(None);
        assert_eq!(Profile::parse(&profile.to_string()).as_ref(), Ok(&profile), "it reads what it prints");
        profile.programs[0].ranges.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn neighbours_that_are_alike_are_one_range_and_what_was_seen_adds_up() {
        let mut observed = Observed::default();
        for _look in 0..27 {
            for number in 0..96 {
                let ns = if (32..64).contains(&number) { 200_000.0 } else { 60.0 };
                observed.add(1, XZ, &mmap(0), region(number), sight(ns));
            }
        }
        let expected = [
            "mmap 27 0 0..64M huge=1620 touched=100% sure=90%",
            "mmap 27 0 64M..128M huge=5400000 touched=100% sure=90%",
            "mmap 27 0 128M..192M huge=1620 touched=100% sure=90%",
        ];
        assert_eq!(lines(&observed), expected);
    }

    /// First regions of the ranges that are found where regions save so much, in ms, each by some more or less; and what is told of them.
    fn found(ms: impl Iterator<Item = f64>) -> Vec<(u64, f64)> {
        let mut observed = Observed::default();
        for (number, ms) in (0..).zip(ms) {
            let chance = 0.7 + 0.6 * ((number * 7919) % 101) as f64 / 100.0;
            observed.add(1, XZ, &mmap(0), region(number), sight(ms * 1e6 * chance));
        }
        let profile = observed.profile(None);
        let ranges = profile.programs[0].ranges.iter();
        ranges.map(|range| (range.from / HUGE_BYTES, range.huge_ns.unwrap() as f64 / 1e6)).collect()
    }

    #[test]
    fn what_falls_by_little_each_time_comes_to_several_ranges() {
        let tiers = [2.0, 1.5, 1.1, 0.8];
        let found = found((0..128).map(|number| tiers[number / 32]));
        assert_eq!(found.len(), 4, "{found:?}");
        for (tier, (from, ms)) in found.into_iter().enumerate() {
            assert!(from.abs_diff(tier as u64 * 32) <= LEAST_PART as u64 + 1, "{tier}: {from}");
            assert!((0.9..1.1).contains(&(ms / tiers[tier])), "{tier}: {ms}");
        }
    }

    #[test]
    fn what_differs_by_chance_is_one_range() {
        assert_eq!(found((0..1000).map(|_| 1.0)).len(), 1);
        assert_eq!(found((0..1000).map(|number| 0.001 + f64::from(number) / 1e6)).len(), 1, "it saves hardly anything");
    }

    #[test]
    fn a_region_belongs_to_the_nearest_offset_of_its_mapping() {
        let numbers = [-1_000_000, 0, 1_000_000, 1_050_000, 2_000_000, 3_140_000, 3_150_000].map(number);
        assert_eq!(numbers, [0, 0, 0, 1, 1, 1, 2]);
    }

    #[test]
    fn what_was_never_there_is_not_told() {
        let mut observed = Observed::default();
        let sparse = Sight { walks_ns: 0.0, present_pages: 51, is_counted: false };
        observed.add(1, XZ, &Mapping::Heap, region(0), sparse);
        observed.add(1, XZ, &Mapping::Heap, region(5), sparse);
        let expected = ["heap - - 0..2M huge=0 touched=10% sure=25%", "heap - - 10M..12M huge=0 touched=10% sure=25%"];
        assert_eq!(lines(&observed), expected);
    }

    #[test]
    fn pages_that_were_counted_are_believed_and_a_sample_only_until_then() {
        let touched = |sights: &[(u64, bool)]| {
            let mut observed = Observed::default();
            for (present_pages, is_counted) in sights.iter().copied() {
                observed.add(1, XZ, &Mapping::Heap, 0, Sight { walks_ns: 0.0, present_pages, is_counted });
            }
            observed.profile(None).programs[0].ranges[0].touched
        };
        assert_eq!(touched(&[(128, false), (256, false)]), Some(0.5));
        assert_eq!(touched(&[(512, false), (128, true), (64, true), (512, false)]), Some(0.25));
    }

    #[test]
    fn what_was_there_in_the_end_is_told_also_where_nobody_looked() {
        let mut observed = Observed::default();
        observed.add(1, XZ, &Mapping::Heap, region(0), Sight { present_pages: 100, ..sight(400_000.0) });
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
    fn processes_of_a_program_are_averaged_and_where_they_differ_it_is_less_sure() {
        let mut observed = Observed::default();
        for _look in 0..9 {
            observed.add(1, XZ, &Mapping::Heap, 0, sight(400_000.0));
            observed.add(2, XZ, &Mapping::Heap, 0, sight(400_000.0));
            observed.add(3, ("sh", None), &Mapping::Heap, 0, sight(400_000.0));
            observed.add(4, ("sh", None), &Mapping::Heap, 0, sight(0.0));
        }
        let profile = observed.profile(Some("sh -c xz"));
        let told: Vec<_> = profile.programs.iter().map(|program| program.ranges[0].to_string()).collect();
        assert_eq!(
            told,
            ["heap - - 0..2M huge=1800000 touched=100% sure=38%", "heap - - 0..2M huge=3600000 touched=100% sure=75%"]
        );
        assert_eq!(profile.programs[0].command.as_deref(), Some("sh -c xz"));
    }

    #[test]
    fn a_trial_scales_what_was_tried_alone() {
        let mut observed = Observed::default();
        for number in 0..64 {
            observed.add(1, XZ, &mmap(0), region(number), sight(if number < 32 { 1e6 } else { 1e5 }));
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
    fn what_the_processor_counts_scales_what_was_not_tried() {
        let mut observed = Observed::default();
        observed.add(1, XZ, &mmap(0), region(0), sight(3e6));
        observed.add(1, XZ, &mmap(1), region(0), sight(1e6));
        observed.add(2, ("sh", None), &Mapping::Heap, 0, sight(1e6));
        observed.counted(1e7);
        observed.tried(2, &Mapping::Heap, 0, 0.1);
        let told: Vec<_> = observed.profile(None).programs.iter().flat_map(|program| program.ranges.clone()).collect();
        assert_eq!(
            told.iter().map(|range| range.huge_ns).collect::<Vec<_>>(),
            [Some(100_000), Some(6_000_000), Some(2_000_000)]
        );
    }

    #[test]
    fn many_mappings_of_a_class_are_taken_together() {
        let mut observed = Observed::default();
        (0..100).for_each(|ordinal| observed.add(1, XZ, &mmap(ordinal), 0, sight(600_000.0)));
        assert_eq!(lines(&observed), ["mmap 27 * 0..2M huge=600000 touched=100% sure=25%"]);
    }
}

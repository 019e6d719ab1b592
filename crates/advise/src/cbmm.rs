//! Reads CBMM's own profiles: one rule per line, `policy,section,benefit[,quantity,comparator,value]*`. Benefits are in
//! cycles; addresses are absolute, from a run without address randomisation.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::maps::Area;
use crate::profile::{Mapping, ProfiledRange, Section as ObjectSection};
use crate::wrong::{Wrong, shown};

/// Confidence of a converted range: the files do not have one, and mappings are matched by the order of their addresses
/// only.
const CONFIDENCE: f64 = 0.5;

/// A rule: what a policy is worth where all conditions hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its line, from 1.
    pub line: usize,
    /// The policy.
    pub policy: Policy,
    /// The kind of memory.
    pub section: Section,
    /// Cycles. For `huge`, per huge page; for `eager`, any value above 0 means yes.
    pub benefit: u64,
    /// Where it applies.
    pub conditions: Vec<Condition>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Huge pages.
    Huge,
    /// Populating ahead of the first touch.
    Eager,
}

/// Kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// Code.
    Code,
    /// Data.
    Data,
    /// Heap.
    Heap,
    /// Mappings.
    Mmap,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Left side.
    pub quantity: Quantity,
    /// Comparator.
    pub comparator: Comparator,
    /// Right side.
    pub value: u64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// The address.
    Addr,
    /// The offset in the section.
    SectionOff,
    /// The length passed to `mmap`; the following are its other arguments.
    Len,
    /// Its protection.
    Prot,
    /// Its flags.
    Flags,
    /// Its file descriptor.
    Fd,
    /// Its offset in the file.
    Off,
}

/// How it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparator {
    /// `=`
    Equal,
    /// `<`
    Below,
    /// `>`
    Above,
}

const POLICIES: [(&str, Policy); 2] = [("huge", Policy::Huge), ("eager", Policy::Eager)];
const SECTIONS: [(&str, Section); 4] =
    [("code", Section::Code), ("data", Section::Data), ("heap", Section::Heap), ("mmap", Section::Mmap)];
const QUANTITIES: [(&str, Quantity); 7] = [
    ("addr", Quantity::Addr),
    ("section_off", Quantity::SectionOff),
    ("len", Quantity::Len),
    ("prot", Quantity::Prot),
    ("flags", Quantity::Flags),
    ("fd", Quantity::Fd),
    ("off", Quantity::Off),
];
const COMPARATORS: [(&str, Comparator); 3] =
    [("=", Comparator::Equal), ("<", Comparator::Below), (">", Comparator::Above)];

/// Reads the rules of a file. Returns the rules, and an error for each line that is not a rule.
pub fn read(text: &str) -> (Vec<Rule>, Vec<Wrong>) {
    let (mut rules, mut wrong) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match rule(index + 1, line) {
            Ok(rule) => rules.push(rule),
            Err((column, what)) => wrong.push(Wrong { line: index + 1, column, what }),
        }
    }
    (rules, wrong)
}

/// Converts rules to ranges of a profile, for a program with these mappings on a processor of `ghz` cycles per
/// nanosecond. Also returns, for each rule without an effect, the reason. Without a snapshot of the mappings, rules
/// with addresses cannot be resolved.
///
/// An `eager` range becomes a fully touched range: what that is worth depends on the machine.
pub fn convert(rules: &[Rule], areas: &[Area], ghz: f64) -> (Vec<ProfiledRange>, Vec<Wrong>) {
    let mut worth: BTreeMap<Mapping, Vec<Part>> = BTreeMap::new();
    let mut resolved = HashSet::new();
    let mut unresolved = Vec::new();
    for rule in rules {
        match parts(rule, areas) {
            Ok(found) => {
                resolved.insert((rule.policy, &rule.conditions));
                for (mapping, from, to) in found {
                    worth.entry(mapping).or_default().push(Part {
                        from,
                        to,
                        policy: rule.policy,
                        benefit: rule.benefit,
                    });
                }
            }
            Err(what) => unresolved.push((rule, what)),
        }
    }
    // CBMM has each range twice, as heap and as mapping; one of them can be resolved.
    unresolved.retain(|(rule, _)| !resolved.contains(&(rule.policy, &rule.conditions)));
    let errors = unresolved.into_iter().map(|(rule, what)| Wrong { line: rule.line, column: 1, what }).collect();
    // Rules for any mapping come last, because the first match counts.
    (worth.into_iter().rev().flat_map(|(mapping, parts)| ranges(&mapping, &parts, ghz)).collect(), errors)
}

/// The effect of one rule on a part of a mapping.
struct Part {
    from: u64,
    to: Option<u64>,
    policy: Policy,
    benefit: u64,
}

fn parts(rule: &Rule, areas: &[Area]) -> Result<Vec<(Mapping, u64, Option<u64>)>, String> {
    let odd = rule.conditions.iter().find(|of| !matches!(of.quantity, Quantity::Addr | Quantity::SectionOff));
    if let Some(odd) = odd {
        return Err(format!(
            "'{}' does not identify a range in a profile; leave it out or write the range",
            odd.quantity.name()
        ));
    }
    let (low, high) = bounds(&rule.conditions, Quantity::Addr)?;
    let (first, last) = bounds(&rule.conditions, Quantity::SectionOff)?;
    let has_addresses = rule.conditions.iter().any(|of| of.quantity == Quantity::Addr);
    let has_offsets = rule.conditions.iter().any(|of| of.quantity == Quantity::SectionOff);
    match (has_addresses, rule.section) {
        (true, _) if areas.is_empty() => Err("its addresses need a snapshot of /proc/PID/maps".into()),
        (true, _) if has_offsets => Err("it has both addresses and offsets; profiles have one of them".into()),
        (true, section) => {
            let held = areas.iter().filter(|area| section.has(&area.mapping) && area.begin < high && area.end > low);
            let part = |area: &Area| {
                let end = (area.end > high).then(|| high - area.begin);
                (area.mapping.clone(), low.saturating_sub(area.begin), end.or(Some(area.end - area.begin)))
            };
            let found: Vec<_> = held.map(part).collect();
            if found.is_empty() {
                return Err(format!("nothing of the kind was mapped between {low:#x} and {high:#x}"));
            }
            Ok(found)
        }
        (false, Section::Mmap) if has_offsets => Err("an offset does not identify the mapping that it is in".into()),
        (false, section) => Ok(vec![(section.any(), first, (last < u64::MAX).then_some(last))]),
    }
}

/// The values for which all conditions on a quantity hold: from the first, to before the second. Pages are meant, so a
/// bound belongs to the page above it.
fn bounds(conditions: &[Condition], quantity: Quantity) -> Result<(u64, u64), String> {
    let (mut low, mut high) = (0, u64::MAX);
    for Condition { comparator, value, .. } in conditions.iter().filter(|of| of.quantity == quantity) {
        match comparator {
            Comparator::Above => low = low.max(*value),
            Comparator::Below => high = high.min(*value),
            Comparator::Equal => (low, high) = (low.max(*value), high.min(value.saturating_add(1))),
        }
    }
    if low < high {
        Ok((low, high))
    } else {
        Err(format!("no {} is both above {low:#x} and below {high:#x}", quantity.name()))
    }
}

/// The combined effect of overlapping parts, as disjoint ranges. Adjacent ranges with the same effect are joined.
fn ranges(mapping: &Mapping, parts: &[Part], ghz: f64) -> Vec<ProfiledRange> {
    let ends = parts.iter().filter_map(|part| part.to);
    let bounds: BTreeSet<u64> = parts.iter().map(|part| part.from).chain(ends).collect();
    let mut found: Vec<ProfiledRange> = Vec::new();
    for from in &bounds {
        let to = bounds.range(from + 1..).next().copied();
        let here = |policy| {
            let covers =
                |part: &&Part| part.policy == policy && part.from <= *from && part.to.is_none_or(|end| end > *from);
            parts.iter().filter(covers).map(|part| part.benefit).max()
        };
        let huge_ns = here(Policy::Huge).map(|cycles| (cycles as f64 / ghz).round() as u64);
        let touched = here(Policy::Eager).filter(|benefit| *benefit > 0).map(|_| 1.0);
        if huge_ns.is_none() && touched.is_none() {
            continue;
        }
        let range =
            ProfiledRange { huge_ns, touched, confidence: CONFIDENCE, ..ProfiledRange::of(mapping.clone(), *from, to) };
        match found.last_mut() {
            Some(last) if last.to == Some(*from) && last.huge_ns == huge_ns && last.touched == touched => last.to = to,
            _ => found.push(range),
        }
    }
    found
}

fn rule(line: usize, text: &str) -> Result<Rule, (usize, String)> {
    let mut column = 1;
    let mut fields = text.split(',').map(|field| {
        let at = column;
        column += field.chars().count() + 1;
        (at, field.trim())
    });
    let end = text.chars().count() + 1;
    let mut next = |what: &str| fields.next().ok_or_else(|| (end, format!("{what} is missing at the end of the line")));
    let policy = one_of(&POLICIES, next("the policy")?, "policy")?;
    let section = one_of(&SECTIONS, next("the section")?, "section")?;
    let benefit = number(next("the benefit")?)?;
    let mut conditions = Vec::new();
    while let Ok(quantity) = next("") {
        conditions.push(Condition {
            quantity: one_of(&QUANTITIES, quantity, "quantity")?,
            comparator: one_of(&COMPARATORS, next("the comparator")?, "comparator")?,
            value: number(next("the value")?)?,
        });
    }
    Ok(Rule { line, policy, section, benefit, conditions })
}

fn one_of<T: Copy>(known: &[(&str, T)], (column, word): (usize, &str), what: &str) -> Result<T, (usize, String)> {
    let names = || known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = known.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    found.ok_or_else(|| (column, format!("{} is no {what}; there are {}", shown(word), names())))
}

fn number((column, word): (usize, &str)) -> Result<u64, (usize, String)> {
    let read = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    read.map_err(|_| (column, format!("{} is no number; write digits, or 0x and hexadecimal digits", shown(word))))
}

impl Quantity {
    fn name(self) -> &'static str {
        QUANTITIES.iter().find(|(_, quantity)| *quantity == self).map_or("", |(name, _)| name)
    }
}

impl Section {
    /// Whether it includes this memory. For CBMM everything that is not heap, data or code is a mapping.
    fn has(self, mapping: &Mapping) -> bool {
        match mapping {
            Mapping::Heap => self == Section::Heap,
            Mapping::Object { section: ObjectSection::Code, .. } => self == Section::Code,
            Mapping::Object { object: None, .. } => self == Section::Data,
            Mapping::Stack | Mapping::Mmap { .. } | Mapping::Object { .. } => self == Section::Mmap,
        }
    }

    /// All memory of this kind.
    fn any(self) -> Mapping {
        match self {
            Section::Heap => Mapping::Heap,
            Section::Mmap => Mapping::Mmap { class: None, ordinal: None },
            Section::Data => Mapping::Object { section: ObjectSection::Data, object: None },
            Section::Code => Mapping::Object { section: ObjectSection::Code, object: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, Program, maps};

    /// CBMM's own rules for any program.
    const GENERAL: &str = "huge,heap,41534456\nhuge,mmap,41534456\n";

    /// CBMM's rules for one program: each range appears as heap and as mapping.
    const XZ: &str = "\
        huge,heap,243632025,addr,>,0x7fcb00000000,addr,<,0x7fcc76400000\n\
        huge,mmap,243632025,addr,>,0x7fcb00000000,addr,<,0x7fcc76400000\n\
        huge,heap,229284,addr,>,0x7fcd83400000,addr,<,0x7fce09c00000\n\
        huge,mmap,229284,addr,>,0x7fcd83400000,addr,<,0x7fce09c00000\n\
        eager,heap,1,addr,>,0x555555800000,addr,<,0x555555900000\n\
        eager,mmap,1,addr,>,0x555555800000,addr,<,0x555555900000\n";

    fn converted(csv: &str, snapshot: &str) -> (String, Vec<String>) {
        let (rules, wrong) = read(csv);
        assert_eq!(wrong, []);
        let areas = maps::read(snapshot, "/usr/bin/xz", |_| None).unwrap();
        let (ranges, errors) = convert(&rules, &areas, 2.0);
        let lines: Vec<String> = ranges.iter().map(ToString::to_string).collect();
        // The result must be a valid profile.
        let profile = Profile { programs: vec![Program { name: "xz".into(), ranges, ..Program::default() }] };
        assert_eq!(Profile::parse(&profile.to_string()), Ok(profile));
        (lines.join("\n"), errors.iter().map(Wrong::to_string).collect())
    }

    #[test]
    fn a_rule_without_conditions_holds_for_all_of_its_kind() {
        let (lines, errors) = converted(GENERAL, "");
        assert_eq!(lines, "mmap * * 0..end huge=20767228 sure=50%\nheap - - 0..end huge=20767228 sure=50%");
        assert!(errors.is_empty());
    }

    #[test]
    fn addresses_become_offsets_in_the_mappings_that_were_there() {
        let snapshot = "\
            555555700000-555555a00000 rw-p 00000000 00:00 0 [heap]\n\
            7fcc00000000-7fcc80000000 rw-p 00000000 00:00 0 \n";
        let (lines, errors) = converted(XZ, snapshot);
        let expected = "mmap 31 0 0..1892M huge=121816013 sure=50%\nheap - - 1M..2M touched=100% sure=50%";
        assert_eq!(lines, expected);
        assert_eq!(errors.len(), 2);
        assert!(
            errors[0].starts_with("line 3, column 1: nothing of the kind was mapped between 0x7fcd83400000"),
            "{errors:?}"
        );
        let (_, without) = converted(XZ, "");
        assert_eq!(without.len(), 6);
        assert!(without[0].contains("need a snapshot of /proc/PID/maps"));
    }

    #[test]
    fn overlapping_rules_are_combined() {
        let csv = "huge,heap,200,section_off,<,4194304\neager,heap,1,section_off,>,2097151,section_off,<,8388608\nhuge,heap,100,section_off,=,0\n";
        let (lines, errors) = converted(csv, "");
        assert_eq!(errors, [""; 0]);
        let expected = "heap - - 0..2097151 huge=100 sure=50%\nheap - - 2097151..4M huge=100 touched=100% sure=50%\nheap - - 4M..8M touched=100% sure=50%";
        assert_eq!(lines, expected);
    }

    #[test]
    fn rules_that_cannot_be_converted_are_reported() {
        let csv =
            "huge,mmap,5,len,>,0x1000\nhuge,mmap,5,section_off,>,1\nhuge,heap,5,section_off,>,9,section_off,<,3\n";
        let (lines, errors) = converted(csv, "");
        assert_eq!(lines, "");
        assert!(errors[0].contains("line 1") && errors[0].contains("'len' does not identify a range"));
        assert!(errors[1].contains("line 2") && errors[1].contains("identify the mapping"));
        assert!(errors[2].contains("line 3") && errors[2].contains("both above 0x9 and below 0x3"));
    }

    #[test]
    fn every_invalid_line_is_reported() {
        let csv = "huge,heap\nhug,heap,1\nhuge,hoop,1\nhuge,heap,-1\nhuge,heap,1,addr\nhuge,heap,1,addr,~,0x0\nhuge,heap,1,addr,>,zero\n\nhuge,heap,1\n";
        let (rules, wrong) = read(csv);
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].line, 9);
        let places: Vec<_> = wrong.iter().map(|wrong| (wrong.line, wrong.column)).collect();
        assert_eq!(places, [(1, 10), (2, 1), (3, 6), (4, 11), (5, 17), (6, 18), (7, 20)]);
        assert!(wrong[1].what.contains("'hug' is no policy; there are huge, eager"));
        assert!(wrong[6].what.contains("'zero' is no number"));
    }
}

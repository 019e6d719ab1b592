//! Instructions for the runtime within a program, for each range.

use std::fmt;

use model::Costs;
use runtime_abi::{AdviceAction, PLAN_VERSION};

use crate::decide::best;
use crate::estimate::{Action, Estimate, estimate};
use crate::profile::{Mapping, Profile, ProfiledRange};
use crate::range::{HUGE_BYTES, PAGES_PER_HUGE, Range};
use crate::state::State;

/// Distance that a helper stays ahead of a growing range: more than a program touches while the helper wakes up.
const AHEAD_BYTES: u64 = 32 << 20;

/// A smaller range may hold no whole region.
const MIN_BYTES: u64 = 2 * HUGE_BYTES;

/// Minimum for observed mappings: rules may apply to smaller ones, because the kernel merges neighbours, as with an
/// allocator's arenas.
const MIN_OBSERVED_BYTES: u64 = HUGE_BYTES / 2;

/// Larger than any mapping.
const MAX_MAPPING_BYTES: u64 = 1 << 47;

/// Without a profile, huge pages take at most this multiple of the memory of 4 KiB pages, however expensive faults are.
const MAX_MEMORY_FACTOR: f64 = 1.1;

/// More pages than a region has.
const NEVER_DENSE: u64 = PAGES_PER_HUGE + 1;

/// The plan of a run. Its text is what the runtime reads; sizes are bytes, times are ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Maximum bytes populated ahead of a growing range; 0: none.
    pub ahead_bytes: u64,
    /// From this many touched pages of a region's 512 on, a huge page pays by its faults alone; 513: never.
    pub dense: u64,
    /// Smaller ranges are left alone.
    pub least_bytes: u64,
    /// A fault of 4 KiB, in ns; for the runtime's own statistics, as the next.
    pub base_fault_ns: f64,
    /// Populating a huge page, in ns.
    pub populate_huge_ns: f64,
    /// Whether the runtime only reports its mappings, and what the program touches of them.
    pub observes: bool,
    /// Rules by program.
    pub programs: Vec<PlannedProgram>,
}

/// What to do in one program.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedProgram {
    /// Build ID of the executable, or `*` for any; `None`: it has none.
    pub build_id: Option<String>,
    /// In the order of the profile: the first rule that applies to an address counts.
    pub rules: Vec<Rule>,
}

/// What to do about a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The mapping.
    pub mapping: Mapping,
    /// Start offset within the mapping.
    pub from: u64,
    /// End offset; `None`: the end of the mapping.
    pub to: Option<u64>,
    /// What to do.
    pub action: RuleAction,
    /// Cost of a huge page there, in ns, even if the range is not made huge.
    pub cost_ns: f64,
    /// Its benefit, in ns.
    pub benefit_ns: f64,
}

/// Actions of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleAction {
    /// Huge pages at first touch.
    Huge,
    /// Huge pages, populated ahead.
    Eager,
    /// Huge pages of a pool.
    Pool,
    /// No huge pages, even if the machine gives them to all.
    Base,
    /// Leave it to the kernel.
    Leave,
}

impl Plan {
    /// The best plan for what is known of the program, and for ranges of which nothing is known. If fewer huge pages
    /// are free than are worth their cost, in a pool or in the kernel, they go to the ranges with the highest gain per
    /// huge page.
    pub fn of(profile: &Profile, costs: &Costs, state: &State) -> Plan {
        let mut left = Left { pre_zeroed: state.pre_zeroed, free_huge: state.free_huge, is_allowance: false };
        Plan::with(&mut left, profile, costs, state)
    }

    /// The best plan with at most `huge_pages` huge pages: nothing else becomes huge. A range of unknown size (to the
    /// end, or of all mappings of a class) takes all that are left, and may take more.
    pub fn within(huge_pages: u64, profile: &Profile, costs: &Costs, state: &State) -> Plan {
        let mut left = Left { pre_zeroed: 0, free_huge: state.free_huge.min(huge_pages), is_allowance: true };
        let mut plan = Plan { dense: NEVER_DENSE, ..Plan::with(&mut left, profile, costs, state) };
        let rules = plan.programs.iter_mut().flat_map(|program| &mut program.rules);
        for rule in rules.filter(|rule| rule.action == RuleAction::Leave) {
            rule.action = RuleAction::Base;
        }
        plan
    }

    fn with(left: &mut Left, profile: &Profile, costs: &Costs, state: &State) -> Plan {
        let ranges = profile.programs.iter().flat_map(|program| &program.ranges);
        let mut planned: Vec<(Worth, Vec<Rule>)> =
            ranges.map(|range| (Worth::of(range, costs, state), vec![])).collect();
        let mut by_gain: Vec<&mut (Worth, Vec<Rule>)> = planned.iter_mut().collect();
        by_gain.sort_by(|(a, _), (b, _)| b.estimate.net_ns().total_cmp(&a.estimate.net_ns()));
        for (worth, rules) in by_gain {
            *rules = worth.rules(left);
        }
        let mut rules = planned.into_iter().map(|(_, rules)| rules);
        let programs = profile.programs.iter().map(|program| PlannedProgram {
            build_id: program.build_id.clone(),
            rules: rules.by_ref().take(program.ranges.len()).flatten().collect(),
        });
        Plan {
            programs: programs.collect(),
            ahead_bytes: ahead_bytes(costs, state),
            dense: dense(costs, state),
            least_bytes: MIN_BYTES,
            base_fault_ns: costs.base_fault_ns,
            populate_huge_ns: costs.populate_huge_ns,
            observes: false,
        }
    }

    /// A plan that changes nothing. The runtime reports each anonymous mapping that rules could apply to, and, when a
    /// range is freed or the program ends, how much of it was present.
    pub fn observing(costs: &Costs) -> Plan {
        let classes = Mapping::class(MIN_OBSERVED_BYTES)..Mapping::class(MAX_MAPPING_BYTES);
        let leave = |class| Rule {
            mapping: Mapping::Mmap { class: Some(class), ordinal: None },
            from: 0,
            to: None,
            action: RuleAction::Leave,
            cost_ns: 0.0,
            benefit_ns: 0.0,
        };
        Plan {
            ahead_bytes: 0,
            dense: NEVER_DENSE,
            least_bytes: MIN_OBSERVED_BYTES,
            base_fault_ns: costs.base_fault_ns,
            populate_huge_ns: costs.populate_huge_ns,
            observes: true,
            programs: vec![PlannedProgram { build_id: Some("*".into()), rules: classes.map(leave).collect() }],
        }
    }
}

/// Huge pages that are not planned yet.
struct Left {
    pre_zeroed: u64,
    free_huge: u64,
    /// Whether this is an upper limit, not only the number of free ones.
    is_allowance: bool,
}

/// A range of a profile, with the best action for it.
struct Worth<'a> {
    range: &'a ProfiledRange,
    /// Action by the kernel, with its cost and benefit.
    action: RuleAction,
    estimate: Estimate,
    /// Cost and benefit of pool pages, if they are worth it.
    pooled: Option<Estimate>,
}

impl<'a> Worth<'a> {
    /// Estimates for one region of the range, assuming enough free huge pages.
    fn of(range: &'a ProfiledRange, costs: &Costs, state: &State) -> Worth<'a> {
        let enough = State { free_huge: state.free_huge.max(1), ..state.clone() };
        let region = region(range);
        let of_kernel = best(&[Action::HugeAtTouch, Action::PopulateAhead], &region, &enough, costs);
        let huge = || estimate(Action::HugeAtTouch, &region, &enough, costs);
        let (action, estimate) = match of_kernel.action {
            Action::HugeAtTouch => (RuleAction::Huge, of_kernel.estimate),
            Action::PopulateAhead => (RuleAction::Eager, of_kernel.estimate),
            // Known to be sparse or cold.
            _ if range.touched.is_some() => (RuleAction::Base, huge()),
            _ => (RuleAction::Leave, huge()),
        };
        // Pool pages need no helper, which might come too late.
        let of_pool = best(&[Action::HugeAtTouch, Action::PoolPage], &region, &enough, costs);
        let pooled = (of_pool.action == Action::PoolPage).then_some(of_pool.estimate);
        Worth { range, action, estimate, pooled }
    }

    /// First pool pages and then huge pages, as far as huge pages are left.
    fn rules(&self, left: &mut Left) -> Vec<Rule> {
        let ProfiledRange { mut from, to, .. } = *self.range;
        let are_many = matches!(self.range.mapping, Mapping::Mmap { ordinal: None, .. });
        let mut rules = Vec::new();
        let mut rule = |from, to, action, estimate: &Estimate| {
            let (cost_ns, benefit_ns) = (estimate.cost_ns, estimate.benefit_ns);
            if Some(from) != to {
                rules.push(Rule { mapping: self.range.mapping.clone(), from, to, action, cost_ns, benefit_ns });
            }
            to
        };
        if let Some(estimate) = &self.pooled {
            match rule(from, reach(from, to, &mut left.pre_zeroed), RuleAction::Pool, estimate) {
                middle if middle == to => return rules,
                middle => from = middle.unwrap_or(from),
            }
        }
        if !matches!(self.action, RuleAction::Huge | RuleAction::Eager) {
            rule(from, to, self.action, &self.estimate);
        } else {
            let middle = rule(from, reach(from, to, &mut left.free_huge), self.action, &self.estimate);
            if middle != to {
                rule(middle.unwrap_or(from), to, RuleAction::Leave, &self.estimate);
            }
            if left.is_allowance && (to.is_none() || are_many) {
                left.free_huge = 0;
            }
        }
        rules
    }
}

/// Takes huge pages for a range. Returns the end of the part that gets them; `None`: the whole range.
fn reach(from: u64, to: Option<u64>, free: &mut u64) -> Option<u64> {
    let wanted = to.map(|to| (to - from).div_ceil(HUGE_BYTES));
    let served = wanted.unwrap_or(u64::MAX).min(*free);
    // The size of a range without an end is unknown, and so is what it leaves for others.
    *free -= if wanted.is_some() { served } else { served.min(1) };
    if served > 0 && wanted.is_none_or(|wanted| served == wanted) { to } else { Some(from + served * HUGE_BYTES) }
}

/// One region of a range, before its first touch.
fn region(range: &ProfiledRange) -> Range {
    Range {
        touched_pages: range.touched.map(|share| (share * PAGES_PER_HUGE as f64).round() as u64),
        saved_ns: range.huge_ns.map(|ns| ns as f64 * range.confidence),
        eager_ns_per_mib: range.eager_ns_per_mib.map(|ns| ns as f64 * range.confidence),
        ..Range::of_bytes(HUGE_BYTES)
    }
}

/// A region of which only the pages that will be touched are known.
fn touched(pages: u64) -> Range {
    Range { touched_pages: Some(pages), ..Range::of_bytes(HUGE_BYTES) }
}

/// Populating ahead is worth it if helpers have a processor to themselves.
fn ahead_bytes(costs: &Costs, state: &State) -> u64 {
    let actions = [Action::HugeAtTouch, Action::PopulateAhead];
    let is_worth_it = best(&actions, &touched(PAGES_PER_HUGE), state, costs).action == Action::PopulateAhead;
    if is_worth_it { AHEAD_BYTES.min(state.free_huge.saturating_mul(HUGE_BYTES)) } else { 0 }
}

fn dense(costs: &Costs, state: &State) -> u64 {
    let least = (PAGES_PER_HUGE as f64 / MAX_MEMORY_FACTOR).ceil() as u64;
    let pays = |pages: &u64| estimate(Action::HugeAtTouch, &touched(*pages), state, costs).net_ns() > 0.0;
    (least..=PAGES_PER_HUGE).find(pays).unwrap_or(NEVER_DENSE)
}

impl RuleAction {
    /// Its name in the runtime's format.
    pub fn name(self) -> &'static str {
        match self {
            RuleAction::Huge => AdviceAction::Huge.name(),
            RuleAction::Eager => AdviceAction::Eager.name(),
            RuleAction::Pool => AdviceAction::Pool.name(),
            RuleAction::Base => AdviceAction::Base.name(),
            RuleAction::Leave => AdviceAction::Leave.name(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "plan {PLAN_VERSION}\nahead {}\ndense {}\nleast {}",
            self.ahead_bytes, self.dense, self.least_bytes
        )?;
        writeln!(f, "costs {:.0} {:.0}", self.base_fault_ns, self.populate_huge_ns)?;
        if self.observes {
            writeln!(f, "observe 1")?;
        }
        self.programs.iter().try_for_each(|program| {
            writeln!(f, "program {}", program.build_id.as_deref().unwrap_or("-"))?;
            program.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = self.to.map_or("end".to_string(), |to| to.to_string());
        let (action, cost, benefit) = (self.action.name(), self.cost_ns, self.benefit_ns);
        write!(f, "rule {} {} {to} {action} {cost:.0} {benefit:.0}", self.mapping, self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plenty() -> State {
        State { free_huge: 10_000, idle_cores: 1.0, ..State::default() }
    }

    fn profile(lines: &str) -> Profile {
        Profile::parse(&format!("bursar profile 1\nprogram xz 5f3e\n{lines}")).unwrap()
    }

    fn plan(lines: &str, state: &State) -> Plan {
        Plan::of(&profile(lines), &Costs::reference(), state)
    }

    /// Action, start and end of each rule.
    fn rules(plan: &Plan) -> Vec<(RuleAction, u64, Option<u64>)> {
        plan.programs.iter().flat_map(|program| &program.rules).map(|rule| (rule.action, rule.from, rule.to)).collect()
    }

    #[test]
    fn a_plan_prints_the_runtimes_format() {
        let lines = "mmap 27 0 0..192M huge=2100000 touched=100%\nheap - - 0..end touched=12%\nbss libfoo.so:77ab - 16M..24M huge=90000\n";
        let text = plan(lines, &State { idle_cores: 0.0, ..plenty() }).to_string();
        let expected = "plan 1\nahead 0\ndense 474\nleast 4194304\ncosts 1340 91000\nprogram 5f3e\n\
            rule mmap 27 0 0 201326592 huge 89000 2786080\n\
            rule heap - - 0 end base 6540607 81740\n\
            rule bss libfoo.so:77ab - 16777216 25165824 leave 7413219 90000\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_observing_plan_lists_mappings_and_advises_nothing() {
        let text = Plan::observing(&Costs::reference()).to_string();
        assert!(text.starts_with("plan 1\nahead 0\ndense 513\nleast 1048576\ncosts 1340 91000\nobserve 1\n"), "{text}");
        let rules: Vec<&str> = text.lines().skip(7).collect();
        assert_eq!((rules[0], rules.len()), ("rule mmap 20 * 0 end leave 0 0", 47 - 20));
    }

    #[test]
    fn without_a_profile_only_nearly_full_ranges_are_huge() {
        let plan = Plan::of(&Profile::default(), &Costs::reference(), &plenty());
        assert_eq!((plan.ahead_bytes, plan.dense, plan.programs.len()), (32 << 20, 474, 0));
        // Even faults ten times as expensive make a sparse heap at most a tenth larger.
        let dear = Costs { base_fault_ns: 13_400.0, ..Costs::reference() };
        assert_eq!(Plan::of(&Profile::default(), &dear, &plenty()).dense, 466);
    }

    #[test]
    fn populating_ahead_needs_a_processor_and_huge_pages() {
        let ahead = |state| Plan::of(&Profile::default(), &Costs::reference(), &state).ahead_bytes;
        assert_eq!(ahead(State { idle_cores: 0.0, ..plenty() }), 0);
        assert_eq!(ahead(State { free_huge: 0, ..plenty() }), 0);
        assert_eq!(ahead(State { free_huge: 3, ..plenty() }), 6 << 20);
        assert_eq!(Plan::of(&Profile::default(), &Costs::reference(), &State::default()).dense, 513);
    }

    #[test]
    fn few_free_huge_pages_go_to_the_highest_gains() {
        let lines = "heap - - 0..8M huge=1000000 touched=100%\nmmap 25 0 0..32M huge=9000000 touched=100%\n";
        let few = State { free_huge: 17, idle_cores: 0.0, ..State::default() };
        let (huge, leave) = (RuleAction::Huge, RuleAction::Leave);
        let expected = [(huge, 0, Some(2 << 20)), (leave, 2 << 20, Some(8 << 20)), (huge, 0, Some(32 << 20))];
        assert_eq!(rules(&plan(lines, &few)), expected);
        let none = State { free_huge: 0, ..few };
        assert_eq!(rules(&plan(lines, &none)), [(leave, 0, Some(8 << 20)), (leave, 0, Some(32 << 20))]);
    }

    #[test]
    fn a_limit_gives_huge_pages_to_the_highest_gains_only() {
        let lines = "heap - - 0..8M huge=1000000 touched=100%\nmmap 25 0 0..32M huge=9000000 touched=100%\nmmap 26 0 0..end huge=10\n";
        let few = State { idle_cores: 0.0, ..plenty() };
        let within = |pages| Plan::within(pages, &profile(lines), &Costs::reference(), &few);
        let (huge, base) = (RuleAction::Huge, RuleAction::Base);
        let expected =
            [(base, 0, Some(8 << 20)), (huge, 0, Some(20 << 20)), (base, 20 << 20, Some(32 << 20)), (base, 0, None)];
        assert_eq!(rules(&within(10)), expected);
        assert_eq!(within(10).dense, 513);
        assert_eq!(rules(&within(1000))[..2], [(huge, 0, Some(8 << 20)), (huge, 0, Some(32 << 20))]);
        let none_free = Plan::within(10, &profile(lines), &Costs::reference(), &State { free_huge: 0, ..few.clone() });
        assert_eq!(rules(&none_free), [(base, 0, Some(8 << 20)), (base, 0, Some(32 << 20)), (base, 0, None)]);
    }

    #[test]
    fn pool_pages_go_to_ranges_worth_them_while_available() {
        let lines = "heap - - 0..8M huge=1000000 touched=100%\nmmap 25 0 0..32M huge=9000000 touched=100%\nmmap 26 0 0..end touched=2%\n";
        let of_pool = |pre_zeroed, free_huge| {
            rules(&plan(lines, &State { pre_zeroed, free_huge, idle_cores: 1.0, ..State::default() }))
        };
        let (pool, eager, leave) = (RuleAction::Pool, RuleAction::Eager, RuleAction::Leave);
        let sparse = (RuleAction::Base, 0, None);
        assert_eq!(of_pool(20, 0), [(pool, 0, Some(8 << 20)), (pool, 0, Some(32 << 20)), sparse]);
        let parted = [(pool, 0, Some(2 << 20)), (eager, 2 << 20, Some(8 << 20)), (pool, 0, Some(32 << 20)), sparse];
        assert_eq!(of_pool(17, 3), parted);
        let far_too_few = [
            (leave, 0, Some(8 << 20)),
            (pool, 0, Some(4 << 20)),
            (eager, 4 << 20, Some(6 << 20)),
            (leave, 6 << 20, Some(32 << 20)),
            sparse,
        ];
        assert_eq!(of_pool(2, 1), far_too_few);
    }

    #[test]
    fn a_benefit_counts_by_its_confidence() {
        let action = |sure| rules(&plan(&format!("heap - - 0..end huge=8000000 sure={sure}%"), &plenty()))[0].0;
        assert_eq!(action(100), RuleAction::Eager);
        assert_eq!(action(50), RuleAction::Leave);
    }

    #[test]
    fn every_program_has_the_rules_of_its_own_ranges() {
        let text = "bursar profile 1\nprogram a 11\nheap - - 0..end touched=1%\nprogram b -\nprogram c 33\nheap - - 0..end touched=100%\n";
        let plan = Plan::of(&Profile::parse(text).unwrap(), &Costs::reference(), &plenty());
        let rules: Vec<_> =
            plan.programs.iter().map(|program| (program.build_id.as_deref(), program.rules.len())).collect();
        assert_eq!(rules, [(Some("11"), 1), (None, 0), (Some("33"), 1)]);
        assert_eq!(plan.programs[2].rules[0].action, RuleAction::Eager);
    }
}

//! Properties that hold for any figures, and for any text.

use advise::{
    Action, Costs, Estimate, HUGE_BYTES, Malformed, Mapping, Object, PAGES_PER_HUGE, Plan, Profile, ProfiledRange,
    Program, Range, Rule, RuleAction, Section, State, Walks, cbmm, decide, estimate, maps,
};
use proptest::option;
use proptest::prelude::*;

fn costs() -> impl Strategy<Value = Costs> {
    // Each up to ten times lower or higher than measured.
    prop::collection::vec(0.1..10.0, 20).prop_map(|times| {
        let Costs {
            base_fault_ns,
            huge_fault_ns,
            zero_ns,
            collapse_base_ns,
            collapse_page_ns,
            collapse_stall_ns,
            split_ns,
            populate_huge_ns,
            cow_ns,
            walk_dependent_ns,
            walk_independent_ns,
            walk_near_dependent_ns,
            walk_near_independent_ns,
            walk_memory_dependent_ns,
            walk_memory_independent_ns,
            access_dependent_ns,
            access_independent_ns,
            last_cache_bytes,
            pool_page_ns,
            page_out_ns,
            page_in_ns,
        } = Costs::reference();
        Costs {
            base_fault_ns: base_fault_ns * times[0],
            huge_fault_ns: huge_fault_ns * times[1],
            zero_ns: zero_ns * times[2],
            collapse_base_ns: collapse_base_ns * times[3],
            collapse_page_ns: collapse_page_ns * times[4],
            collapse_stall_ns: collapse_stall_ns * times[5],
            split_ns: split_ns * times[6],
            populate_huge_ns: populate_huge_ns * times[7],
            cow_ns: cow_ns * times[8],
            walk_dependent_ns: walk_dependent_ns * times[9],
            walk_independent_ns: walk_independent_ns * times[10],
            pool_page_ns: pool_page_ns * times[11],
            page_out_ns: page_out_ns * times[12],
            page_in_ns: page_in_ns * times[13],
            access_dependent_ns: access_dependent_ns * times[14],
            access_independent_ns: access_independent_ns * times[15],
            walk_near_dependent_ns: walk_near_dependent_ns * times[16],
            walk_near_independent_ns: walk_near_independent_ns * times[17],
            walk_memory_dependent_ns: walk_memory_dependent_ns * times[18],
            walk_memory_independent_ns: walk_memory_independent_ns * times[19],
            last_cache_bytes,
        }
    })
}

fn state() -> impl Strategy<Value = State> {
    let figures = (0..4096u64, any::<u64>(), 0..64u64, 0.0..8.0, 0.0..5000.0, 0.0..100.0);
    figures.prop_map(|(free_huge, free_bytes, pre_zeroed, idle_cores, price_ns_per_page_second, horizon_seconds)| {
        State { free_huge, free_bytes, pre_zeroed, idle_cores, price_ns_per_page_second, horizon_seconds }
    })
}

/// Need not be consistent: figures may come from different sources at different times.
fn range() -> impl Strategy<Value = Range> {
    let pages = || 0..20_000u64;
    let sizes = (0..64u64 << 20, pages(), 0..40u64, pages(), option::of(pages()), pages());
    let rates = (option::of(0.0..1e9), -1.0..2.0, option::of(0.0..1e9), option::of(0.0..1e6));
    (sizes, rates).prop_map(|((bytes, present, huge, zero, touched, shared), (misses, waits, saved, eager))| Range {
        bytes,
        present_pages: present,
        huge_pages: huge,
        zero_pages: zero,
        touched_pages: touched,
        misses_per_second: misses,
        walks: Walks {
            near: 1.0 - waits,
            memory: waits / 2.0,
            ns_per_miss: 100.0 * waits,
            ns_per_memory_miss: 1e6 * waits,
        },
        saved_ns: saved,
        eager_ns_per_mib: eager,
        shared_pages: shared,
    })
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9._+ #\\\\:ö-]{1,12}"
}

fn build_id() -> impl Strategy<Value = Option<String>> {
    option::of("[0-9a-f]{2,40}")
}

fn mapping() -> impl Strategy<Value = Mapping> {
    let section = prop_oneof![Just(Section::Bss), Just(Section::Data), Just(Section::Code)];
    let object = option::of((name(), build_id()).prop_map(|(name, build_id)| Object { name, build_id }));
    prop_oneof![
        Just(Mapping::Heap),
        Just(Mapping::Stack),
        (option::of(0..64u32), option::of(0..1000u64)).prop_map(|(class, ordinal)| Mapping::Mmap { class, ordinal }),
        (section, object).prop_map(|(section, object)| Mapping::Object { section, object }),
    ]
}

/// One range for each mapping, so that none overlap.
fn program() -> impl Strategy<Value = Program> {
    let share = || (0..=10_000u32).prop_map(|share| f64::from(share) / 1e4);
    let known = (option::of(any::<u64>()), option::of(any::<u64>()), option::of(share()), share());
    let extent = (0..1u64 << 40, option::of(1..1u64 << 40));
    let ranges = prop::collection::btree_map(mapping(), (extent, known), 0..8).prop_map(|ranges| {
        let of = |(mapping, (extent, known)): (Mapping, ((u64, Option<u64>), _))| -> ProfiledRange {
            let (from, bytes) = extent;
            let (huge_ns, eager_ns_per_mib, touched, sure): (Option<u64>, _, _, _) = known;
            let range = ProfiledRange::of(mapping, from, bytes.map(|bytes| from + bytes));
            ProfiledRange { huge_ns: huge_ns.or(Some(0)), eager_ns_per_mib, touched, confidence: sure, ..range }
        };
        ranges.into_iter().map(of).collect()
    });
    let command = option::of("[a-z][a-z0-9 ./-]{0,30}[a-z]");
    (name(), build_id(), command, ranges).prop_map(|(name, build_id, command, ranges)| Program {
        name,
        build_id,
        command,
        ranges,
    })
}

fn profile() -> impl Strategy<Value = Profile> {
    prop::collection::btree_map(name(), program(), 0..4).prop_map(|programs| Profile {
        programs: programs.into_iter().map(|(name, program)| Program { name, ..program }).collect(),
    })
}

fn net(action: Action, range: &Range, state: &State, costs: &Costs) -> f64 {
    estimate(action, range, state, costs).net_ns()
}

/// Not less, except by rounding.
fn at_least(more: f64, less: f64) -> bool {
    more >= less - 1e-9 * more.abs().max(less.abs()) - 1e-6
}

proptest! {
    #[test]
    fn costs_and_benefits_are_the_sums_of_their_parts(
        range in range(), state in state(), costs in costs(),
    ) {
        for action in Action::ALL {
            let Estimate { cost_ns, benefit_ns, parts } = estimate(action, &range, &state, &costs);
            prop_assert!(benefit_ns >= 0.0 && cost_ns >= 0.0 && benefit_ns.is_finite() && cost_ns.is_finite());
            let sum: f64 = parts.iter().map(|(_, ns)| ns).sum();
            prop_assert!(at_least(sum, benefit_ns - cost_ns) && at_least(benefit_ns - cost_ns, sum));
        }
    }

    #[test]
    fn no_action_costs_as_much_as_it_brings(range in range(), state in state(), costs in costs()) {
        let decision = decide(&range, &state, &costs);
        let is_worth_it = decision.estimate.benefit_ns > decision.estimate.cost_ns;
        prop_assert_eq!(is_worth_it, decision.action != Action::Leave);
        let best = Action::ALL.into_iter().map(|action| net(action, &range, &state, &costs)).fold(0.0, f64::max);
        prop_assert_eq!(decision.estimate.net_ns(), best);
    }

    #[test]
    fn huge_pages_are_worth_more_the_more_references_miss(
        range in range(), state in state(), costs in costs(), more in 1.0..100.0,
    ) {
        let range = Range { saved_ns: None, misses_per_second: range.misses_per_second.or(Some(1.0)), ..range };
        let busier = Range { misses_per_second: range.misses_per_second.map(|misses| misses * more), ..range.clone() };
        for action in [Action::HugeAtTouch, Action::Promote, Action::PopulateAhead, Action::PoolPage] {
            prop_assert!(at_least(net(action, &busier, &state, &costs), net(action, &range, &state, &costs)));
        }
        prop_assert!(at_least(
            net(Action::Demote, &range, &state, &costs), net(Action::Demote, &busier, &state, &costs)
        ));
    }

    #[test]
    fn huge_pages_are_worth_more_the_more_pages_are_touched(
        range in range(), state in state(), costs in costs(), touched in 0..20_000u64, more in 0..20_000u64,
    ) {
        let few = Range { touched_pages: Some(touched), ..range };
        let many = Range { touched_pages: Some(touched + more), ..few.clone() };
        for action in [Action::HugeAtTouch, Action::Promote, Action::PopulateAhead, Action::PoolPage, Action::BreakCow] {
            prop_assert!(at_least(net(action, &many, &state, &costs), net(action, &few, &state, &costs)));
        }
        prop_assert!(at_least(net(Action::PageOut, &few, &state, &costs), net(Action::PageOut, &many, &state, &costs)));
    }

    #[test]
    fn unknown_ranges_are_left_alone(bytes in any::<u64>(), state in state(), costs in costs()) {
        prop_assert_eq!(decide(&Range::of_bytes(bytes), &state, &costs).action, Action::Leave);
    }

    /// However expensive faults are, a heap of which less than nine tenths are touched keeps small pages.
    #[test]
    fn a_sparse_range_is_never_made_huge_for_its_faults_alone(state in state(), costs in costs()) {
        let plan = Plan::of(&Profile::default(), &costs, &state);
        prop_assert!((466..=513).contains(&plan.dense), "{}", plan.dense);
        prop_assert!(PAGES_PER_HUGE as f64 / plan.dense as f64 <= 1.1);
    }

    #[test]
    fn sparse_ranges_stay_small_at_measured_costs(
        touched in 0..460u64, idle in 0.0..4.0,
    ) {
        let range = Range { touched_pages: Some(touched), ..Range::of_bytes(HUGE_BYTES) };
        let state = State { free_huge: 1000, idle_cores: idle, ..State::default() };
        prop_assert_eq!(decide(&range, &state, &Costs::reference()).action, Action::Leave);
    }

    #[test]
    fn a_profile_that_is_printed_reads_the_same(profile in profile()) {
        let text = profile.to_string();
        prop_assert_eq!(Profile::parse(&text), Ok(profile), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_place_in_it(text in "(?s).{0,400}") {
        refused_in_its_lines(&text)?;
    }

    #[test]
    fn any_words_are_read_or_refused_with_a_place_in_them(
        words in prop::collection::vec(
            prop_oneof![
                "[a-z]{1,6}", "[0-9]{1,21}", Just("\n".into()), Just("program a -\n".into()), Just("heap - -".into()),
                Just("0..64M".into()), Just("5M..end".into()), Just("huge=1".into()), Just("touched=50%".into()),
                Just("mmap * *".into()), Just("bss a:b -".into()), Just("\\".into()), Just("ö\u{2003}".into()),
            ],
            0..60,
        ),
    ) {
        refused_in_its_lines(&words.join(" "))?;
        refused_in_its_lines(&format!("bursar profile 1\n{}", words.join(" ")))?;
    }

    #[test]
    fn any_text_is_read_as_rules_and_mappings_or_refused(
        text in "([a-z,=<>0-9x -]{0,60}\n){0,8}", snapshot in "([0-9a-f-]{0,20} rw-p 0 0:0 0 [/a-z]{0,9}\n){0,8}",
    ) {
        let (rules, wrong) = cbmm::read(&text);
        prop_assert!(wrong.iter().all(|wrong| wrong.line <= text.lines().count()));
        let areas = maps::read(&snapshot, "/x", |_| None).unwrap_or_default();
        cbmm::convert(&rules, &areas, 2.2);
    }

    /// A wrong benefit only changes whether its own ranges are huge: not their bounds, and not the actions elsewhere. A
    /// lower benefit never gives more huge pages.
    #[test]
    fn a_tenfold_wrong_benefit_changes_only_its_ranges(
        profile in profile(), state in state(), costs in costs(), has_pool in any::<bool>(),
    ) {
        let pre_zeroed = if has_pool { u64::MAX } else { 0 };
        let scaled = |times: f64| {
            let mut profile = profile.clone();
            for range in profile.programs.iter_mut().flat_map(|program| &mut program.ranges) {
                range.huge_ns = range.huge_ns.map(|ns| (ns as f64 * times) as u64);
            }
            Plan::of(&profile, &costs, &State { free_huge: u64::MAX, pre_zeroed, ..state.clone() })
        };
        let (less, unchanged, more) = (scaled(0.1), scaled(1.0), scaled(10.0));
        let huge = |plan: &Plan| -> Vec<bool> {
            let rules = plan.programs.iter().flat_map(|program| &program.rules);
            rules.map(|rule| matches!(rule.action, RuleAction::Huge | RuleAction::Eager | RuleAction::Pool)).collect()
        };
        for (fewer, all) in [(&less, &unchanged), (&unchanged, &more)] {
            prop_assert_eq!((fewer.ahead_bytes, fewer.dense), (all.ahead_bytes, all.dense));
            prop_assert!(huge(fewer).into_iter().zip(huge(all)).all(|(fewer, all)| all || !fewer));
            let places = |plan: &Plan| -> Vec<_> {
                let rules = plan.programs.iter().flat_map(|program| &program.rules);
                rules.map(|rule| (rule.mapping.clone(), rule.from, rule.to)).collect()
            };
            prop_assert_eq!(places(fewer), places(all));
        }
    }

    #[test]
    fn no_more_huge_pages_are_planned_than_are_free(profile in profile(), state in state()) {
        let plan = Plan::of(&profile, &Costs::reference(), &state);
        let rules = plan.programs.iter().flat_map(|program| &program.rules);
        let huge = rules.filter(|rule| matches!(rule.action, RuleAction::Huge | RuleAction::Eager));
        let bounded = huge.filter_map(|rule| Some((rule.to? - rule.from).div_ceil(HUGE_BYTES)));
        prop_assert!(bounded.sum::<u64>() <= state.free_huge);
    }

    /// The limit is kept, and a lower limit gives a subset of the huge pages.
    #[test]
    fn a_lower_limit_gives_a_subset_of_huge_pages(profile in profile(), state in state(), few in 0..200u64, more in 0..200u64) {
        let huge = |allowed| -> Vec<_> {
            let plan = Plan::within(allowed, &profile, &Costs::reference(), &state);
            let rules = plan.programs.into_iter().flat_map(|program| program.rules);
            rules.filter(|rule| matches!(rule.action, RuleAction::Huge | RuleAction::Eager)).collect()
        };
        let (fewer, all) = (huge(few), huge(few + more));
        let bounded = all.iter().filter_map(|rule| Some((rule.to? - rule.from).div_ceil(HUGE_BYTES)));
        prop_assert!(bounded.sum::<u64>() <= few + more);
        for rule in fewer {
            let is_of = |other: &Rule| other.mapping == rule.mapping && other.from <= rule.from && other.to.is_none_or(|to| rule.to.is_some_and(|end| end <= to));
            prop_assert!(all.iter().any(is_of), "{rule}");
        }
    }
}

fn refused_in_its_lines(text: &str) -> Result<(), TestCaseError> {
    if let Err(Malformed(wrong)) = Profile::parse(text) {
        prop_assert!(!wrong.is_empty());
        for wrong in wrong {
            let line = text.lines().nth(wrong.line - 1).unwrap_or_default();
            prop_assert!((1..=line.chars().count() + 1).contains(&wrong.column), "{wrong} in {line:?}");
        }
    }
    Ok(())
}

//! Requests for jobs, compared with other ways to compute the same figures.

use budget::jobs::{LEAST_JOB_BYTES, Need, Recommended, enough_for, most_at_once, quantile, recommend};
use model::{ByNumber, Figures, JobEnd, MemoryPer, PastJob, PastStep};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn step(start: u64, end: u64, mib: u64) -> PastStep {
    PastStep {
        start_seconds: start,
        end_seconds: end,
        nodes: 1,
        tasks: 1,
        largest_task_bytes: Some(mib * MIB),
        ..PastStep::default()
    }
}

fn job(end: JobEnd, mib: u64) -> PastJob {
    PastJob {
        name: "solver".into(),
        kind: "solver".into(),
        is_kind_guessed: false,
        numbers: Vec::new(),
        figures: Figures::Needed,
        end,
        elapsed_seconds: Some(3600.0),
        nodes: 1,
        cpus: 4,
        per: MemoryPer::Node,
        reserved_bytes: Some(1024 * MIB),
        steps: vec![PastStep {
            allowed_bytes: Some(mib * MIB),
            out_of_memory: end == JobEnd::OutOfMemory,
            ..step(0, 3600, mib)
        }],
    }
}

fn completed(mib: u64) -> PastJob {
    job(JobEnd::Completed, mib)
}

/// The same estimator as described by Efron: runs have equal weights, and a run that was cut short passes its weight to those that needed
/// more.
fn redistributed(needs: &[Need]) -> Vec<(u64, f64)> {
    let mut sorted = needs.to_vec();
    sorted.sort_by_key(|need| (need.bytes, need.is_bound));
    let mut weights = vec![1.0 / sorted.len() as f64; sorted.len()];
    for at in 0..sorted.len() {
        let after = sorted.len() - at - 1;
        if sorted[at].is_bound && after > 0 {
            let share = weights[at] / after as f64;
            weights[at + 1..].iter_mut().for_each(|weight| *weight += share);
        }
    }
    let mut enough: Vec<(u64, f64)> = Vec::new();
    let mut sum = 0.0;
    for (need, weight) in sorted.iter().zip(weights).filter(|(need, _)| !need.is_bound) {
        sum += weight;
        match enough.last_mut() {
            Some(last) if last.0 == need.bytes => last.1 = sum,
            _ => enough.push((need.bytes, sum)),
        }
    }
    enough
}

fn needs() -> impl Strategy<Value = Vec<Need>> {
    prop::collection::vec(
        (1u64..40, prop::bool::weighted(0.3)).prop_map(|(bytes, is_bound)| Need { bytes, is_bound }),
        1..40,
    )
}

proptest! {
    #[test]
    fn shares_equal_those_of_redistributed_weights(needs in needs()) {
        let (ours, theirs) = (enough_for(&needs), redistributed(&needs));
        prop_assert_eq!(ours.len(), theirs.len());
        for (a, b) in ours.iter().zip(&theirs) {
            prop_assert_eq!(a.0, b.0);
            prop_assert!((a.1 - b.1).abs() < 1e-9, "{:?} {:?}", a, b);
        }
    }

    #[test]
    fn for_completed_runs_it_is_the_nearest_rank(bytes in prop::collection::vec(1u64..1000, 1..60), percent in 1usize..=100) {
        let needs: Vec<Need> = bytes.iter().map(|bytes| Need { bytes: *bytes, is_bound: false }).collect();
        let mut sorted = bytes;
        sorted.sort_unstable();
        let rank = (percent * sorted.len()).div_ceil(100);
        prop_assert_eq!(quantile(&needs, percent as f64 / 100.0), Some(sorted[rank - 1]));
    }

    #[test]
    fn simultaneous_steps_are_summed_second_by_second(steps in prop::collection::vec((0u64..20, 0u64..8, 1u64..100), 0..12)) {
        let steps: Vec<PastStep> = steps.iter().map(|(start, length, mib)| step(*start, start + length, *mib)).collect();
        let at = |second: u64| {
            let there = steps.iter().filter(|s| s.start_seconds <= second && second < s.end_seconds.max(s.start_seconds + 1));
            there.map(|s| s.largest_task_bytes.unwrap()).sum::<u64>()
        };
        let most = (0..40).map(at).max().filter(|_| !steps.is_empty());
        prop_assert_eq!(most_at_once(&steps, |step| step.largest_task_bytes), most);
    }

    #[test]
    fn any_accounting_gives_a_finite_answer(
        of in any::<[u64; 10]>(), per_cpu in any::<bool>(), out_of_memory in any::<bool>(), percentile in 0.01f64..=1.0,
    ) {
        let step = PastStep {
            start_seconds: of[0], end_seconds: of[1], nodes: of[2], tasks: of[3], largest_task_bytes: Some(of[4]),
            tasks_bytes: Some(of[5]), cache_bytes: Some(of[6]), allowed_bytes: Some(of[7]), out_of_memory,
        };
        let per = if per_cpu { MemoryPer::Cpu } else { MemoryPer::Node };
        let end = if out_of_memory { JobEnd::OutOfMemory } else { JobEnd::Completed };
        let reserved_bytes = Some(of[9]);
        let job = PastJob { end, nodes: of[2], cpus: of[8], per, reserved_bytes, steps: vec![step.clone(), step], ..completed(1) };
        let found = recommend(&[job.clone(), job], percentile).jobs;
        prop_assert!(found[0].mem_bytes.is_none_or(|mem| mem > 0) && found[0].saved_gib_hours.is_none_or(f64::is_finite));
    }

    #[test]
    fn kills_and_savings_equal_a_replay_of_the_runs(
        runs in prop::collection::vec((1u64..1000, 0u8..3), 1..30),
        percentile in 0.01f64..=1.0,
    ) {
        let end = |kind| [JobEnd::Completed, JobEnd::CutShort, JobEnd::OutOfMemory][kind as usize];
        let jobs: Vec<PastJob> = runs.iter().map(|(mib, kind)| job(end(*kind), *mib)).collect();
        let found = recommend(&jobs, percentile).jobs.remove(0);
        let (mut saved, mut killed, mut maybe) = (0.0, 0, 0);
        let Some(mem) = found.mem_bytes else {
            prop_assert!(runs.iter().all(|(_, kind)| end(*kind) != JobEnd::Completed));
            prop_assert_eq!((found.killed, found.maybe_killed, found.saved_gib_hours), (0, runs.len() as u64, None));
            return Ok(());
        };
        for (mib, kind) in runs {
            let need = mib * MIB;
            let dies = if end(kind) == JobEnd::OutOfMemory { need >= mem } else { need > mem };
            killed += u64::from(dies);
            maybe += u64::from(!dies && end(kind) != JobEnd::Completed);
            saved += if dies { -(mem as f64) } else { 1024.0 * MIB as f64 - mem as f64 } / (1u64 << 30) as f64;
        }
        prop_assert_eq!((found.killed, found.maybe_killed), (killed, maybe));
        prop_assert!((found.saved_gib_hours.unwrap() - saved).abs() < 1e-6);
        prop_assert_eq!(mem % MIB, 0);
        prop_assert!(found.next_needs_more > 0.0 && found.next_needs_more <= 1.0);
        prop_assert!(found.median_bytes.is_none_or(|median| found.min_bytes <= median && median <= found.max_bytes));
    }
}

#[test]
fn a_request_is_the_need_plus_a_margin() {
    let jobs: Vec<PastJob> = (1..=20).map(|run| completed(80 + run)).collect();
    let Recommended { jobs: found, unmeasured, .. } = recommend(&jobs, 0.95);
    let solver = &found[0];
    assert_eq!((found.len(), unmeasured, solver.runs, solver.cut_short), (1, 0, 20, 0));
    assert_eq!((solver.min_bytes, solver.median_bytes, solver.max_bytes), (81 * MIB, Some(90 * MIB), 100 * MIB));
    assert!(!solver.max_is_lower_bound);
    // 19 of 20 need at most 99 MiB.
    assert_eq!((solver.percentile_bytes, solver.mem_bytes, solver.killed), (99 * MIB, Some(109 * MIB), 0));
    assert_eq!(solver.asked_bytes, Some(1024 * MIB));
    assert!(
        (solver.reserved_gib_hours.unwrap() - 20.0).abs() < 1e-9
            && (solver.saved_gib_hours.unwrap() - 20.0 * 915.0 / 1024.0).abs() < 1e-9
    );
    assert!((solver.next_needs_more - 1.0 / 21.0).abs() < 1e-9);
}

#[test]
fn reserved_memory_of_jobs_without_a_duration_is_unknown() {
    let timeless = PastJob { elapsed_seconds: None, ..completed(80) };
    let of = |jobs: &[PastJob]| {
        let job = recommend(jobs, 0.95).jobs.remove(0);
        (job.asked_bytes, job.reserved_gib_hours, job.saved_gib_hours.is_some())
    };
    assert_eq!(of(std::slice::from_ref(&timeless)), (Some(1024 * MIB), None, false));
    // For several jobs it is the sum of the known figures.
    assert_eq!(of(&[timeless, completed(80)]), (Some(1024 * MIB), Some(1.0), true));
}

#[test]
fn a_run_that_was_killed_for_memory_needed_more_than_its_limit() {
    let refused =
        PastStep { largest_task_bytes: None, allowed_bytes: Some(60 * MIB), out_of_memory: true, ..step(0, 1, 0) };
    let dead = PastJob { reserved_bytes: Some(60 * MIB), steps: vec![refused], ..job(JobEnd::OutOfMemory, 0) };
    let alone = &recommend(std::slice::from_ref(&dead), 0.95).jobs[0];
    assert!(alone.is_lower_bound && alone.mem_bytes.is_none() && alone.max_bytes == 60 * MIB, "{alone:?}");
    assert_eq!((alone.out_of_memory, alone.maybe_killed, alone.saved_gib_hours), (1, 1, None));
    let with_others = &recommend(&[dead, completed(90), completed(100)], 0.95).jobs[0];
    assert!(!with_others.is_lower_bound && with_others.percentile_bytes == 100 * MIB, "{with_others:?}");
    assert_eq!((with_others.killed, with_others.maybe_killed), (0, 1));
}

#[test]
fn figures_are_per_node_or_per_cpu_as_requested() {
    // 8 tasks on 2 nodes of 8 CPUs: 4 on each, at most 100 MiB each, 720 MiB in all.
    let spread = PastStep { nodes: 2, tasks: 8, tasks_bytes: Some(720 * MIB), ..step(0, 60, 100) };
    let node = PastJob { nodes: 2, cpus: 16, reserved_bytes: Some(2048 * MIB), steps: vec![spread], ..completed(0) };
    let cpu = PastJob { per: MemoryPer::Cpu, ..node.clone() };
    let of = |job: &PastJob| recommend(std::slice::from_ref(job), 0.95).jobs.remove(0);
    assert_eq!((of(&node).max_bytes, of(&node).asked_bytes), (400 * MIB, Some(1024 * MIB)));
    assert_eq!((of(&cpu).max_bytes, of(&cpu).asked_bytes), (50 * MIB, Some(128 * MIB)));
    let reserved = |job| of(job).reserved_gib_hours.unwrap();
    assert!((reserved(&cpu) - reserved(&node)).abs() < 1e-9);
    // Jobs of one name that ask in different units cannot be compared.
    assert_eq!(recommend(&[node, cpu], 0.95).jobs.len(), 2);
}

#[test]
fn a_job_without_figures_is_counted_and_left_out() {
    let blind = PastJob { steps: vec![PastStep::default()], ..completed(0) };
    let Recommended { jobs: found, unmeasured, .. } = recommend(&[blind, completed(10)], 0.95);
    assert_eq!((found[0].runs, unmeasured), (1, 1));
    assert_eq!(recommend(&[], 0.95), Recommended::default());
}

/// A job of one node that had 10 MiB beside page cache or shared memory.
fn with_beside(mib: u64, beside: u64, asked: u64) -> PastJob {
    let mut job = PastJob { reserved_bytes: Some(asked * MIB), ..completed(mib) };
    job.steps[0].cache_bytes = Some(beside * MIB);
    job
}

#[test]
fn a_step_without_a_figure_makes_its_job_unknown() {
    let mut job = completed(4);
    job.steps.push(PastStep { largest_task_bytes: None, ..step(0, 3600, 0) });
    let found = recommend(&[job.clone()], 0.95);
    assert_eq!((found.jobs.len(), found.partly_measured, found.unmeasured), (0, 1, 0));
    // The limit at which it was killed is known all the same.
    job.end = JobEnd::OutOfMemory;
    job.steps[1].out_of_memory = true;
    job.steps[1].allowed_bytes = Some(512 * MIB);
    assert_eq!(recommend(&[job], 0.95).jobs[0].max_bytes, 512 * MIB);
}

#[test]
fn memory_that_may_be_shared_is_never_subtracted() {
    let found = recommend(&[with_beside(7, 100, 300)], 0.95).jobs.remove(0);
    assert_eq!((found.mem_bytes, found.max_bytes), (Some(118 * MIB), 7 * MIB));
    assert_eq!((found.mem_without_cache_bytes, found.is_upper_bound), (Some(30 * MIB), true));
    // Nor is more requested than before, though the cache fills all of it: heap alone can justify more.
    assert_eq!(recommend(&[with_beside(7, 293, 300)], 0.95).jobs[0].mem_bytes, Some(300 * MIB));
    assert_eq!(recommend(&[with_beside(290, 10, 300)], 0.95).jobs[0].mem_bytes, Some(319 * MIB));
}

#[test]
fn page_cache_does_not_raise_the_request() {
    let full = PastJob { figures: Figures::HoldCache, reserved_bytes: Some(200 * MIB), ..completed(199) };
    let found = recommend(&[full.clone(), full.clone()], 0.95).jobs.remove(0);
    assert_eq!((found.mem_bytes, found.is_upper_bound), (Some(200 * MIB), true));
    assert_eq!((found.killed, found.maybe_killed), (0, 0));
    // A job that was killed at its limit was not killed by its cache.
    let killed =
        PastJob { figures: Figures::HoldCache, reserved_bytes: Some(200 * MIB), ..job(JobEnd::OutOfMemory, 200) };
    assert!(recommend(&[full, killed], 0.95).jobs[0].mem_bytes > Some(200 * MIB));
}

#[test]
fn requests_are_large_enough_to_start_a_job() {
    assert_eq!(recommend(&[completed(2)], 0.95).jobs[0].mem_bytes, Some(LEAST_JOB_BYTES));
    // The minimum is divided over the four CPUs.
    let cpu = PastJob { per: MemoryPer::Cpu, ..completed(2) };
    assert_eq!(recommend(&[cpu], 0.95).jobs[0].mem_bytes, Some(8 * MIB));
    // It completed with less.
    let small = PastJob { reserved_bytes: Some(20 * MIB), ..completed(2) };
    assert_eq!(recommend(&[small], 0.95).jobs[0].mem_bytes, Some(20 * MIB));
}

#[test]
fn a_kind_without_completed_runs_has_only_a_lower_bound() {
    let ends = [JobEnd::OutOfMemory, JobEnd::CutShort];
    let cut: Vec<PastJob> = ends.iter().map(|end| PastJob { kind: "cut".into(), ..job(*end, 80) }).collect();
    let found = recommend(&[cut, vec![completed(80)]].concat(), 0.95).jobs;
    let of = |name: &str| found.iter().find(|job| job.name == name).unwrap();
    let bound = of("cut");
    assert_eq!((bound.mem_bytes, bound.max_bytes, bound.is_lower_bound), (None, 80 * MIB, true));
    assert_eq!((bound.mem_with_cache_bytes, bound.mem_without_cache_bytes, bound.is_upper_bound), (None, None, false));
    assert_eq!(of("solver").mem_bytes, Some(88 * MIB));
}

fn instance(number: u64, mib: u64) -> PastJob {
    let name = format!("sim_{number}");
    PastJob { name, kind: "sim_*".into(), is_kind_guessed: true, numbers: vec![number as f64], ..completed(mib) }
}

#[test]
fn names_that_differ_in_numbers_are_one_kind() {
    let alike: Vec<PastJob> = (1..=20).map(|number| instance(number, 400 + number * 7 % 20)).collect();
    let found = recommend(&alike, 0.95);
    assert_eq!((found.jobs.len(), found.jobs[0].name.as_str(), found.jobs[0].names), (1, "sim_*", 20));
    assert_eq!((found.jobs[0].by_number, found.jobs[0].mem_bytes), (None, Some(460 * MIB)), "19 of 20 need 418 MiB");
    // 3 of 100 names need 20 times as much. That is more than the share of runs that may be killed, because those names would be killed
    // each time.
    let some: Vec<PastJob> = (1..=100).map(|at| instance(at, if at * 37 % 100 < 3 { 4000 } else { 200 })).collect();
    let found = recommend(&some, 0.95);
    assert_eq!((found.jobs[0].by_number, found.jobs[0].mem_bytes), (Some(ByNumber::Differs), Some(4400 * MIB)));
    assert_eq!((found.jobs[0].killed, found.uneven), (0, vec![]));
    // For a known kind, its share is also known, and its spread is reported.
    let known = |mib| PastJob { is_kind_guessed: false, ..instance(mib, mib) };
    let found = recommend(&[known(40), known(41), known(4000)], 0.95);
    assert_eq!((found.jobs.len(), found.uneven), (1, vec!["sim_*".to_string()]));
}

#[test]
fn requests_fit_the_largest_of_numbered_names() {
    let ask = |jobs: &[PastJob]| {
        let found = recommend(jobs, 0.95);
        let ends = (found.numbered[0].least.0.clone(), found.numbered[0].most.0.clone());
        (found.jobs[0].by_number, found.jobs[0].mem_bytes.unwrap() / MIB, ends)
    };
    let ends = |least: &str, most: &str| (least.to_string(), most.to_string());
    // A parameter.
    assert_eq!(ask(&[3, 10, 30].map(|k| instance(k, 100 * k))), (Some(ByNumber::Grows), 3300, ends("sim_3", "sim_30")));
    // Chromosomes: the first is the largest. Of 40 runs each, a request for 95 % would kill chromosome 1 each time.
    let chromosomes: Vec<PastJob> =
        (1..=22).flat_map(|number| (0..40).map(move |run| instance(number, 1200 - 50 * number + run % 3))).collect();
    assert_eq!(ask(&chromosomes), (Some(ByNumber::Falls), 1268, ends("sim_22", "sim_1")));
    // Differences within the margin, or so few names that it may be chance.
    assert_eq!(ask(&(1..=30).map(|number| instance(number, 1000 + number)).collect::<Vec<_>>()).0, None);
    assert_eq!(ask(&[instance(1, 100), instance(2, 120), instance(3, 140)]).0, None);
    // Two names have no order, but the larger one is not a share of the runs, either.
    assert_eq!(ask(&[instance(264, 200), instance(265, 700)]).0, Some(ByNumber::Differs));
    assert_eq!(ask(&[instance(1, 200), instance(2, 210)]).0, None);
}

#[test]
fn an_upper_bound_of_numbered_names_holds_page_cache() {
    let chromosomes: Vec<PastJob> = (1..=22).map(|number| instance(number, 4400 - 190 * number)).collect();
    let found = recommend(&chromosomes, 0.5).jobs.remove(0);
    assert_eq!((found.mem_bytes, found.is_upper_bound), (Some(4631 * MIB), false));
    let with_cache = chromosomes.into_iter().map(|mut job| {
        job.steps[0].cache_bytes = Some(10 * MIB);
        PastJob { reserved_bytes: Some(8192 * MIB), ..job }
    });
    assert!(recommend(&with_cache.collect::<Vec<_>>(), 0.5).jobs[0].is_upper_bound);
}

#[test]
fn the_largest_of_numbered_names_that_was_cut_is_a_lower_bound() {
    let mut jobs: Vec<PastJob> = (1..=40).map(|number| instance(number, 100 * number)).collect();
    jobs[39].end = JobEnd::CutShort;
    let found = recommend(&jobs, 0.95).jobs.remove(0);
    // 38 of 40 are known to need 3800 MiB at most; the need of the largest is unknown.
    assert_eq!((found.percentile_bytes, found.max_bytes), (3800 * MIB, 4000 * MIB));
    assert!(found.is_lower_bound && found.max_is_lower_bound, "{found:?}");
}

/// A job of a name with several numbers.
fn grid_point(numbers: &[u64], mib: u64) -> PastJob {
    let name = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join("_");
    let numbers = numbers.iter().map(|number| *number as f64).collect();
    PastJob { name, kind: "grid".into(), is_kind_guessed: true, numbers, ..completed(mib) }
}

#[test]
fn each_varying_number_is_considered() {
    let of = |jobs: Vec<PastJob>| {
        let found = recommend(&jobs, 0.95);
        (found.jobs[0].by_number, found.jobs[0].by_number_positions.clone())
    };
    let grid = |first: &[u64], second: &[u64], mib: &dyn Fn(u64, u64) -> u64| -> Vec<PastJob> {
        first.iter().flat_map(|a| second.iter().map(|b| grid_point(&[*a, *b], mib(*a, *b)))).collect()
    };
    let samples: Vec<u64> = (1..=10).collect();
    let by_k = |_: u64, k: u64| match k {
        21 => 1000,
        33 => 3000,
        _ => 6000,
    };
    assert_eq!(of(grid(&[1, 2, 3], &[21, 33, 55], &by_k)), (Some(ByNumber::Grows), vec![2]));
    assert_eq!(of(grid(&samples, &[21, 33], &by_k)), (Some(ByNumber::Grows), vec![2]));
    // Noise of each sample, and few of the names with the number that needs more.
    let noisy = |s: u64, k: u64| by_k(s, k) + s * 37 % 11 * 20;
    assert_eq!(of(grid(&samples, &[21, 33], &noisy)), (Some(ByNumber::Grows), vec![2]));
    let mut few: Vec<PastJob> = (1..=18).map(|s| grid_point(&[s * 5 % 19, 21], noisy(s, 21))).collect();
    few.extend([4, 9].map(|s| grid_point(&[s, 33], noisy(s, 33))));
    assert_eq!(of(few), (Some(ByNumber::Grows), vec![2]));
    assert_eq!(of(grid(&[21, 33, 55], &[1, 2, 3], &|k, s| by_k(s, k))), (Some(ByNumber::Grows), vec![1]));
    assert_eq!(of(grid(&samples, &[1, 2, 4], &|_, parts| 4000 / parts)), (Some(ByNumber::Falls), vec![2]));
    // Both numbers together.
    assert_eq!(of(grid(&[1, 2, 3], &[1, 2, 3], &|a, b| 1000 * (a + b))), (Some(ByNumber::Grows), vec![1, 2]));
    // Neither.
    assert_eq!(of(grid(&samples, &[21, 33], &|s, k| 1000 + (s * 7 + k) * 37 % 101 * 5)), (None, vec![]));
}

//! Accounts of observations made by hand.

use std::collections::BTreeMap;

use model::{
    EmulatedLimit, Exit, Header, KeptPeaks, Method, Observation, ProcessKey, ProcessRecord, RecordKind, Resident,
    RunAccount, RunRole, Rusage, Series, Target, Unit, names,
};

use crate::{account, evidence, heap_together, method_memory, stall_seconds, unreclaimable_over_time};

const SECOND: u64 = 1_000_000_000;

pub(crate) fn header(swap: &str) -> Header {
    Header {
        kind: RecordKind::Run,
        bursar_version: "0.1.0".into(),
        host: "h".into(),
        boot_id: "b".into(),
        kernel: "6.18".into(),
        cpus: 2,
        memory_bytes: 1 << 34,
        page_bytes: 4096,
        command: vec!["true".into()],
        directory: "/".into(),
        started_unix_ns: 0,
        placement: "cgroup v1 memory controller".into(),
        swap: swap.into(),
        options: BTreeMap::new(),
    }
}

/// A run of three samples, at 0, 1 and 2 s.
fn run(lines: &[(&str, [f64; 3])]) -> Observation {
    let series = |(name, values): &(&str, [f64; 3])| Series {
        name: name.to_string(),
        process: None,
        unit: Unit::Bytes,
        rung: "cgroup v1 memory.stat".into(),
        points: values.iter().enumerate().map(|(i, v)| (i as u64 * SECOND, *v)).collect(),
    };
    Observation {
        run: 0,
        role: RunRole::Plain,
        target: Target::Command,
        limit_bytes: None,
        cache_state: "as found".into(),
        started_unix_ns: 0,
        exit: Exit::Status(0),
        wall_seconds: 2.0,
        rusage: None,
        kept: KeptPeaks::default(),
        series: lines.iter().map(series).collect(),
        processes: Vec::new(),
        file_demand: None,
        sources: BTreeMap::new(),
        notes: Vec::new(),
        evidence: Default::default(),
        origin: None,
    }
}

fn process(pid: i32, io_delay: Option<f64>, life: f64) -> ProcessRecord {
    ProcessRecord {
        key: ProcessKey { pid, start_ticks: 1 },
        parent: None,
        command: "p".into(),
        started_seconds: Some(0.0),
        lifetime_seconds: Some(life),
        max_rss_bytes: Some(pid as u64 * 1000),
        user_seconds: Some(1.0),
        system_seconds: None,
        minor_faults: None,
        major_faults: None,
        io_delay_seconds: io_delay,
        thread_seconds: Some(life),
        exit_status: Some(0),
        signal: None,
        largest_seen: None,
        own: None,
        source: "taskstats".into(),
    }
}

fn charged() -> Observation {
    run(&[
        (names::CHARGE, [100.0, 1000.0, 800.0]),
        (names::HEAP, [60.0, 400.0, 600.0]),
        (names::FILE, [30.0, 500.0, 90.0]),
        (names::SHARED, [0.0, 50.0, 50.0]),
    ])
}

#[test]
fn nothing_seen_is_nothing_said() {
    let seen = account(&run(&[]), &header("no swap"));
    assert_eq!((seen.peak_charge_bytes, seen.floor_bytes, seen.amplification), (None, None, None));
    assert_eq!((seen.app_max_rss_bytes, seen.tree_max_rss_bytes, seen.unlimited_bytes), (None, None, None));
    assert_eq!((seen.faults.minor, seen.flow.scanned, seen.io_wait_share, seen.processes), (None, None, None, None));
    assert_eq!((seen.user_seconds, seen.own_cpu_seconds, seen.swap_bytes), (None, None, None));
    assert!(seen.notes.is_empty());
}

#[test]
fn memory_that_came_after_the_last_sample_is_page_cache_if_the_references_show_so() {
    let mut observed = charged();
    observed.kept.charge_bytes = Some(1300);
    let parts = |observed: &Observation| account(observed, &header("no swap")).peak_breakdown;
    let heap = parts(&observed).heap.unwrap();
    assert!(heap > 500, "in proportion, as nothing bounds the page cache: {heap}");
    observed.kept.most_cached_bytes = Some(900);
    let bounded = parts(&observed);
    assert_eq!((bounded.heap, bounded.file, bounded.charge()), (Some(400), Some(800), Some(1300)));
}

#[test]
fn a_charge_that_was_never_more_than_bursars_own_is_not_known() {
    let none = [0.0, 0.0, 0.0];
    let seen = account(&run(&[(names::CHARGE, none), (names::HEAP, none), (names::FILE, none)]), &header("no swap"));
    assert_eq!(seen.peak_charge_bytes, None);
}

#[test]
fn the_kernel_line_is_what_the_others_leave_and_the_sum_is_the_charge() {
    let seen = account(&charged(), &header("no swap"));
    assert_eq!(seen.peak_charge_bytes, Some(1000));
    assert_eq!(seen.peak_breakdown.kernel, Some(50));
    assert_eq!(seen.peak_breakdown.charge(), Some(1000));
}

#[test]
fn the_floor_peaks_at_its_own_moment_and_leaves_out_what_can_be_reclaimed() {
    let mut observed = charged();
    assert_eq!(account(&observed, &header("no swap")).floor_bytes, Some(710));
    let line = |name: &str, v| run(&[(name, [v, v, v])]).series.remove(0);
    observed.series.push(line(names::SLAB_RECLAIMABLE, 20.0));
    assert_eq!(account(&observed, &header("no swap")).floor_bytes, Some(690));
    assert_eq!(account(&observed, &header("no swap")).amplification, Some(1000.0 / 690.0));
}

#[test]
fn what_cannot_be_reclaimed_is_told_over_time() {
    assert_eq!(unreclaimable_over_time(&charged()), [(0, 70), (SECOND, 500), (2 * SECOND, 710)]);
    assert_eq!(unreclaimable_over_time(&run(&[])), []);
}

#[test]
fn what_is_charged_but_held_by_nobody_is_in_the_breakdown_and_not_in_the_floor() {
    let mut observed = charged();
    observed.series.extend(run(&[(names::KERNEL, [10.0; 3])]).series);
    let seen = account(&observed, &header("no swap"));
    assert_eq!((seen.peak_breakdown.kernel, seen.floor_bytes), (Some(50), Some(660)));
}

#[test]
fn file_pages_locked_in_belong_to_the_floor_and_locked_heap_is_not_counted_twice() {
    let observed = run(&[
        (names::HEAP, [100.0; 3]),
        (names::FILE, [200.0; 3]),
        (names::SHARED, [0.0; 3]),
        (names::KERNEL, [0.0; 3]),
        (names::ACTIVE_ANON, [30.0; 3]),
        (names::INACTIVE_ANON, [30.0; 3]),
        (names::UNEVICTABLE, [90.0; 3]), // 40 of heap, 50 of file
    ]);
    assert_eq!(account(&observed, &header("no swap")).floor_bytes, Some(150));
}

#[test]
fn a_job_that_swapped_has_the_floor_it_would_have_had_without() {
    let observed = run(&[(names::HEAP, [100.0; 3]), (names::KERNEL, [0.0; 3]), (names::SWAP, [0.0, 70.0, 0.0])]);
    let seen = account(&observed, &header("swap allowed"));
    assert_eq!(seen.floor_bytes, Some(170));
    assert_eq!(seen.swap_bytes, Some(70));
    assert!(seen.notes.iter().any(|note| note.contains("with swap it goes on below")));
}

#[test]
fn a_kept_peak_beats_the_samples_and_says_how_far_off_they_were() {
    let mut observed = charged();
    observed.kept.charge_bytes = Some(2000);
    let seen = account(&observed, &header("no swap"));
    assert_eq!(seen.peak_charge_bytes, Some(2000));
    assert_eq!(seen.peak_breakdown.charge(), Some(2000));
    assert_eq!(seen.peak_breakdown.heap, Some(800));
    assert!(seen.notes[0].contains("50 % less"), "{:?}", seen.notes);

    observed.kept.charge_bytes = Some(1010);
    assert!(account(&observed, &header("no swap")).notes.is_empty(), "1 % apart is not worth a word");
}

#[test]
fn huge_pages_that_a_broker_lends_are_the_jobs_though_they_are_charged_to_the_broker() {
    let lent = run(&[(names::HUGETLB, [0.0; 3]), (names::TREE_HUGETLB, [0.0, 4096.0, 2048.0])]);
    let account = account(&lent, &header("no swap"));
    assert_eq!(account.peak_breakdown.hugetlb, Some(4096));
}

#[test]
fn huge_pages_that_are_charged_are_in_the_charge_once_and_in_the_floor() {
    const HUGE: f64 = 64.0 * 1024.0 * 1024.0;
    let mut observed = run(&[
        (names::CHARGE, [0.0, HUGE + 1000.0, 1000.0]),
        (names::HEAP, [0.0, 600.0, 600.0]),
        (names::FILE, [0.0, 300.0, 300.0]),
        (names::SHARED, [0.0; 3]),
        (names::KERNEL, [0.0, 100.0, 100.0]),
        (names::HUGETLB, [0.0, HUGE, 0.0]),
    ]);
    let beside = account(&observed, &header("no swap"));
    assert!(beside.peak_breakdown.kernel > Some(1000), "beside the charge it explains nothing of it");
    let hugetlb = observed.series.iter_mut().find(|series| series.name == names::HUGETLB).unwrap();
    hugetlb.rung = model::HUGETLB_CHARGED.into();
    let seen = account(&observed, &header("no swap"));
    let parts = seen.peak_breakdown;
    assert_eq!((parts.heap, parts.file, parts.kernel), (Some(600), Some(300), Some(100)));
    assert_eq!(parts.charge().zip(parts.hugetlb).map(|(charge, huge)| charge + huge), seen.peak_charge_bytes);
    assert_eq!(seen.floor_bytes, Some(HUGE as u64 + 700));
}

#[test]
fn a_peak_from_before_the_attachment_says_so() {
    let mut observed = charged();
    observed.target = Target::Cgroup("/x".into());
    observed.kept.charge_bytes = Some(2000);
    let seen = account(&observed, &header("no swap"));
    assert!(seen.notes[0].contains("from before bursar started"), "{:?}", seen.notes);
}

#[test]
fn app_max_rss_is_what_wait4_says_and_the_tree_is_never_less() {
    let mut observed = run(&[
        (names::TREE_RSS, [0.0, 300.0, 100.0]),
        (names::TREE_RSS_ANON, [0.0, 200.0, 0.0]),
        (names::TREE_RSS_FILE, [0.0, 100.0, 0.0]),
        (names::TREE_RSS_SHARED, [0.0, 0.0, 0.0]),
    ]);
    observed.processes = vec![process(9, None, 1.0)];
    assert_eq!(account(&observed, &header("")).app_max_rss_bytes, Some(9000), "an attachment takes what it saw");
    observed.rusage = Some(Rusage { max_rss_bytes: 600, ..Default::default() });
    let seen = account(&observed, &header(""));
    assert_eq!((seen.app_max_rss_bytes, seen.tree_max_rss_bytes), (Some(600), Some(9000)), "nobody waited for it");
    observed.processes.clear();
    let seen = account(&observed, &header(""));
    assert_eq!((seen.app_max_rss_bytes, seen.tree_max_rss_bytes), (Some(600), Some(600)));
    assert_eq!(seen.app_max_rss_breakdown.heap, None, "half of it was never sampled: its parts are not known");
    observed.rusage = Some(Rusage { max_rss_bytes: 315, ..Default::default() });
    let seen = account(&observed, &header(""));
    assert_eq!((seen.app_max_rss_breakdown.heap, seen.app_max_rss_breakdown.file), (Some(210), Some(105)));
    observed.rusage = Some(Rusage { max_rss_bytes: 150, ..Default::default() });
    let seen = account(&observed, &header(""));
    assert_eq!((seen.app_max_rss_bytes, seen.tree_max_rss_bytes), (Some(150), Some(300)));
    let (bytes, made_of) = method_memory(&seen, Method::AppMaxRssLargest).unwrap();
    assert_eq!((bytes, made_of.heap, made_of.file), (150, Some(100), Some(50)));
}

#[test]
fn the_four_lists_are_summed_at_one_moment() {
    let observed = run(&[
        (names::ACTIVE_ANON, [10.0, 20.0, 90.0]),
        (names::INACTIVE_ANON, [10.0, 20.0, 0.0]),
        (names::ACTIVE_FILE, [0.0, 30.0, 5.0]),
        (names::INACTIVE_FILE, [90.0, 40.0, 5.0]),
        (names::SHARED, [0.0, 15.0, 15.0]),
    ]);
    let seen = account(&observed, &header(""));
    assert_eq!(seen.sys_max_rss_bytes, Some(110));
    assert_eq!(seen.sys_max_rss_lists.inactive_file, Some(90));
    assert_eq!(seen.sys_max_rss_breakdown.charge(), Some(110));
    assert_eq!(seen.sys_max_rss_breakdown.heap, Some(20));
}

#[test]
fn unlimited_is_growth_and_only_means_something_without_a_limit() {
    let mut observed = run(&[(names::SYSTEM_USED, [500.0, 1800.0, 600.0])]);
    assert_eq!(account(&observed, &header("")).unlimited_bytes, Some(1300));
    observed.limit_bytes = Some(1);
    assert_eq!(account(&observed, &header("")).unlimited_bytes, None);
    observed.limit_bytes = None;
    observed.target = Target::Tree(1);
    assert_eq!(account(&observed, &header("")).unlimited_bytes, None);
}

#[test]
fn growth_beyond_the_charge_is_the_kernels() {
    let mut observed = charged();
    observed.series.extend(run(&[(names::SYSTEM_USED, [500.0, 1700.0, 600.0])]).series);
    let (bytes, made_of) = method_memory(&account(&observed, &header("")), Method::Unlimited).unwrap();
    assert_eq!((bytes, made_of.charge(), made_of.kernel), (1200, Some(1200), Some(250)));
}

#[test]
fn counters_are_what_they_grew_by() {
    let mut observed = run(&[(names::REFAULTS_FILE, [5.0, 7.0, 25.0]), (names::MINOR_FAULTS, [0.0, 1.0, 2.0])]);
    observed.rusage = Some(Rusage { minor_faults: 9, major_faults: 1, ..Default::default() });
    let seen = account(&observed, &header(""));
    assert_eq!(seen.flow.refaults_file, Some(20));
    assert_eq!((seen.faults.minor, seen.faults.major), (Some(9), Some(1)));
}

#[test]
fn the_io_wait_share_comes_from_the_rung_that_is_valid() {
    let mut observed = run(&[(names::TASKS, [2.0, 4.0, 4.0]), (names::TASKS_WAITING, [1.0, 2.0, 0.0])]);
    observed.processes = vec![process(1, Some(1.0), 8.0), process(2, Some(1.0), 2.0), process(3, None, 90.0)];
    assert_eq!(account(&observed, &header("")).io_wait_share, None, "no source, no figure");
    observed.sources.insert("io_wait_share".into(), "delay accounting".into());
    assert_eq!(account(&observed, &header("")).io_wait_share, Some(0.2));
    assert_eq!(stall_seconds(&account(&observed, &header(""))), Some(0.4));
    observed.sources.insert("io_wait_share".into(), "sampled D state".into());
    assert_eq!(account(&observed, &header("")).io_wait_share, Some(0.5));
    observed.processes.clear();
    observed.series.extend(run(&[(names::IO_DELAY, [0.0, 1.0, 1.5])]).series);
    observed.sources.insert("io_wait_share".into(), "delay accounting".into());
    assert_eq!(account(&observed, &header("")).io_wait_share, Some(0.25));
}

#[test]
fn pressure_says_whose_it_is() {
    let mut observed = run(&[(names::PSI_MEMORY_SOME, [1.0, 2.0, 4.0])]);
    let seen = account(&observed, &header(""));
    assert_eq!((seen.pressure.scope.as_deref(), seen.pressure.memory_some_seconds), (Some("job"), Some(3.0)));
    observed.series[0].rung = "/proc/pressure/memory".into();
    assert_eq!(account(&observed, &header("")).pressure.scope.as_deref(), Some("system"));
}

#[test]
fn the_floor_holds_what_the_kernels_peaks_prove_and_samples_missed() {
    const MIB: u64 = 1 << 20;
    /// 64 pages of each of 2 processors.
    const STOCKS: u64 = 512 << 10;
    let mib = |values: [u64; 3]| values.map(|value| (value * MIB) as f64);
    // 20 MiB at each sample, then 500 MiB at the end; 30 MiB of files read.
    let mut spike = run(&[
        (names::CHARGE, mib([20, 51, 51])),
        (names::HEAP, mib([20, 20, 20])),
        (names::FILE, mib([0, 30, 30])),
        (names::SHARED, mib([0, 0, 0])),
        (names::TREE_RSS_FILE, mib([1, 1, 1])),
    ]);
    spike.kept.charge_bytes = Some(551 * MIB);
    let floor = |run: &Observation| account(run, &header("no swap")).floor_bytes.unwrap();
    assert!(floor(&spike) < 25 * MIB, "no bound on the page cache is known, so only the samples count");
    spike.kept.most_cached_bytes = Some(30 * MIB);
    assert!((510 * MIB..=521 * MIB).contains(&floor(&spike)), "{}", floor(&spike) / MIB);
    // Of a job that was there before, or with others in its cgroup, the peak may be older or theirs.
    let attached = Observation { target: Target::Process(1), ..spike.clone() };
    assert!(floor(&attached) < 25 * MIB);
    let mut beside = spike.clone();
    beside.sources.insert("charge".into(), "cgroup v1 memory.stat, with all else that is in it".into());
    assert!(floor(&beside) < 25 * MIB);

    // The charge could be all page cache, but one process had more memory than all files it referenced.
    spike.kept.most_cached_bytes = Some(600 * MIB);
    spike.processes = [400 * MIB, 300 * MIB]
        .map(|bytes| ProcessRecord { max_rss_bytes: Some(bytes), ..process(1, None, 1.0) })
        .to_vec();
    spike.file_demand = Some(model::FileDemand { distinct_bytes: 600 * MIB, ..Default::default() });
    assert!(floor(&spike) < 25 * MIB);
    spike.kept.most_cached_bytes = Some(10 * MIB);
    spike.kept.charge_bytes = Some(320 * MIB);
    spike.file_demand = Some(model::FileDemand { distinct_bytes: 100 * MIB, ..Default::default() });
    let point = |limit: u64, again: u64| model::DemandPoint { limit_bytes: limit * MIB, refault_bytes: again * MIB };
    let points = vec![point(20, 80), point(400, 42), point(500, 0)];
    spike.file_demand = Some(model::FileDemand { points, ..spike.file_demand.unwrap() });
    let demand = account(&spike, &header("no swap")).file_demand.unwrap();
    assert_eq!(
        (demand.points[0].limit_bytes, demand.points[1]),
        (310 * MIB - STOCKS, point(400, 42)),
        "no limit is below the floor"
    );
    // A file whose references through large folios are not seen is mapped all the same.
    let mut mapped = spike.clone();
    mapped.kept.charge_bytes = Some(110 * MIB);
    mapped.kept.most_cached_bytes = Some(100 * MIB);
    let file = mapped.series.iter_mut().find(|series| series.name == names::TREE_RSS_FILE).unwrap();
    file.points.iter_mut().for_each(|(_, bytes)| *bytes = (390 * MIB) as f64);
    assert!(floor(&mapped) < 25 * MIB, "{}", floor(&mapped) / MIB);
    assert_eq!(floor(&spike), 310 * MIB - STOCKS, "two processes need not have had their peaks at the same time");
    // Nor is shared memory the job's that was there before and is charged elsewhere.
    let shared = |charged: u64| {
        let mut run = spike.clone();
        (run.kept.charge_bytes, run.kept.most_cached_bytes) = (Some(110 * MIB), Some(100 * MIB));
        let points = |bytes: u64| run.series[0].points.iter().map(|(t_ns, _)| (*t_ns, (bytes * MIB) as f64)).collect();
        let (mapped, charged) = (points(290), points(charged));
        let of_charge = run.series.iter_mut().find(|series| series.name == names::SHARED).unwrap();
        of_charge.points = charged;
        let name = names::TREE_RSS_SHARED.into();
        run.series.push(model::Series { name, points: mapped, ..run.series[0].clone() });
        floor(&run)
    };
    assert!(shared(0) < 25 * MIB, "{}", shared(0) / MIB);
    assert!(shared(290) >= 110 * MIB, "{}", shared(290) / MIB);
}

/// A run whose last sample has 255 MiB that are charged and in no line, but on the kernel's lists.
fn run_with_unmapped_heap() -> Observation {
    const MIB: u64 = 1 << 20;
    let mib = |values: [u64; 3]| values.map(|value| (value * MIB) as f64);
    run(&[
        (names::CHARGE, mib([10, 100, 257])),
        (names::HEAP, mib([9, 98, 1])),
        (names::FILE, mib([0, 0, 0])),
        (names::SHARED, mib([0, 0, 0])),
        (names::KERNEL, mib([1, 1, 1])),
        (names::ACTIVE_ANON, mib([0, 0, 0])),
        (names::INACTIVE_ANON, mib([9, 98, 256])),
        (names::HUGE_PAGES, mib([0, 0, 0])),
    ])
}

#[test]
fn parts_of_huge_pages_that_were_given_back_are_heap_and_not_the_kernels() {
    const MIB: u64 = 1 << 20;
    let account_of = |run: &Observation| account(run, &header("no swap"));
    let parted = |mib: [u64; 3]| {
        let mut run = run_with_unmapped_heap();
        let points = (0..3).map(|at| (at as u64 * SECOND, (mib[at] * MIB) as f64)).collect();
        let name = names::SYSTEM_PARTED_HUGE_PAGES.into();
        run.series.push(Series { name, points, ..run.series[0].clone() });
        run
    };
    // No sample need have seen one whole.
    let parts = account_of(&parted([300, 300, 600]));
    assert_eq!((parts.peak_breakdown.heap, parts.peak_breakdown.kernel), (Some(256 * MIB), Some(MIB)));
    assert_eq!(parts.peak_detail.given_back, Some(255 * MIB));
    assert_eq!(parts.floor_bytes, Some(99 * MIB), "what was given back can be reclaimed");
    assert!(parts.notes.iter().any(|note| note.contains("255 MiB of the heap")), "{:?}", parts.notes);
    let before_it_was_attached_to = Observation { target: Target::Process(1), ..parted([300, 300, 300]) };
    assert_eq!(account_of(&before_it_was_attached_to).floor_bytes, Some(99 * MIB));
    // A record without the count.
    let mut old = run_with_unmapped_heap();
    assert_eq!(account_of(&old).floor_bytes, Some(99 * MIB));
    // Beyond the lists it is the kernel's.
    old.series
        .iter_mut()
        .filter(|series| series.name == names::INACTIVE_ANON)
        .for_each(|lists| lists.points[2].1 = MIB as f64);
    assert_eq!(account_of(&old).peak_breakdown.kernel, Some(256 * MIB));
}

#[test]
fn heap_that_a_process_is_freeing_is_in_the_floor_and_no_part_of_a_huge_page() {
    const MIB: u64 = 1 << 20;
    let mut run = run_with_unmapped_heap();
    let points = vec![(0, (300 * MIB) as f64), (2 * SECOND, (304 * MIB) as f64)];
    let name = names::SYSTEM_PARTED_HUGE_PAGES.into();
    run.series.push(Series { name, points, ..run.series[0].clone() });
    let parts = account(&run, &header("no swap"));
    assert_eq!((parts.peak_breakdown.heap, parts.peak_breakdown.kernel), (Some(256 * MIB), Some(MIB)));
    assert_eq!(parts.floor_bytes, Some(257 * MIB), "two huge pages of another program are no 255 MiB");
    assert!(parts.notes.iter().all(|note| !note.contains("huge pages")), "{:?}", parts.notes);
}

#[test]
fn kernel_objects_that_outlive_the_job_on_cgroup_v1_are_no_floor() {
    const MIB: u64 = 1 << 20;
    let mib = |values: [u64; 3]| values.map(|value| (value * MIB) as f64);
    let of = |processes: [f64; 3], machine: [u64; 3]| {
        let run = run(&[
            (names::CHARGE, mib([0, 33, 25])),
            (names::HEAP, mib([0, 3, 0])),
            (names::FILE, mib([0, 0, 0])),
            (names::SHARED, mib([0, 0, 0])),
            (names::KERNEL, mib([0, 30, 25])),
            (names::PAGE_TABLES, mib([0, 1, 0])),
            (names::PROCESSES, processes),
            (names::SYSTEM_SLAB_RECLAIMABLE, mib(machine)),
        ]);
        account(&run, &header("no swap")).floor_bytes.map(|bytes| bytes / MIB)
    };
    assert_eq!(of([1.0, 1.0, 0.0], [100, 130, 130]), Some(8), "all but what is left is a process's");
    assert_eq!(of([1.0, 1.0, 0.0], [100, 110, 130]), Some(23), "no more than the machine had grown by then");
    assert_eq!(of([1.0, 1.0, 1.0], [100, 130, 130]), Some(33), "a process that lives may hold it");
}

#[test]
fn kernel_objects_of_removed_files_on_cgroup_v1_are_no_floor() {
    const MIB: u64 = 1 << 20;
    let of = |machine: [u64; 3]| {
        let mib = |values: [u64; 3]| values.map(|value| (value * MIB) as f64);
        let run = run(&[
            (names::CHARGE, mib([0, 415, 4])),
            (names::HEAP, mib([0, 3, 0])),
            (names::FILE, mib([0, 400, 2])),
            (names::SHARED, mib([0, 0, 0])),
            (names::KERNEL, mib([0, 12, 2])),
            (names::PAGE_TABLES, mib([0, 1, 0])),
            (names::PROCESSES, [1.0, 1.0, 0.0]),
            (names::SYSTEM_SLAB_RECLAIMABLE, mib(machine)),
        ]);
        account(&run, &header("no swap")).floor_bytes.map(|bytes| bytes / MIB)
    };
    assert_eq!(of([40, 51, 41]), Some(4), "11 MiB went with 400 MiB of page cache");
    assert_eq!(of([60, 65, 40]), Some(10), "no more than the machine had grown");
}

#[test]
fn a_peak_between_two_samples_is_in_the_floor_without_a_cgroup() {
    const MIB: u64 = 1 << 20;
    let mib = |values: [u64; 3]| values.map(|value| (value * MIB) as f64);
    let mut run = run(&[
        (names::HEAP, mib([0, 1, 1])),
        (names::TREE_RSS, mib([0, 2, 2])),
        (names::TREE_RSS_ANON, mib([0, 1, 1])),
        (names::TREE_RSS_FILE, mib([0, 1, 1])),
        (names::TREE_RSS_SHARED, mib([0, 0, 0])),
    ]);
    run.rusage = Some(Rusage { max_rss_bytes: 301 * MIB, ..Default::default() });
    let of = |run: &Observation| {
        let account = account(run, &header("no swap"));
        (
            account.floor_bytes.map(|bytes| bytes / MIB),
            account.doubts.iter().any(|doubt| doubt.sentence.contains("no sample")),
        )
    };
    assert_eq!(of(&run), (Some(300), true));
    // Samples saw what it was, but the proportional sets were read before.
    let mut set = |name: &str, peak: u64| {
        let series = run.series.iter_mut().find(|series| series.name == name).unwrap();
        series.points[1].1 = (peak * MIB) as f64;
    };
    set(names::TREE_RSS, 301);
    set(names::TREE_RSS_ANON, 300);
    let heap = run.series.iter_mut().find(|series| series.name == names::HEAP).unwrap();
    heap.points.remove(1);
    assert_eq!(of(&run), (Some(300), false));
}

/// Samples of a tree: the sum of RSS, the largest share that nobody else can have, a reading, and what was obtained and given back.
fn tree(lines: &[(&str, [u64; 3])], reading: Option<(u64, u64)>) -> Observation {
    const MIB: u64 = 1 << 20;
    let lines: Vec<_> = lines.iter().map(|(name, values)| (*name, values.map(|value| (value * MIB) as f64))).collect();
    let mut run = run(&lines);
    run.series.extend(reading.map(|(second, mib)| Series {
        name: names::TREE_HELD.into(),
        process: None,
        unit: Unit::Bytes,
        rung: "smaps_rollup".into(),
        points: vec![(second * SECOND, (mib * MIB) as f64)],
    }));
    run
}

#[test]
fn a_burst_that_no_sample_saw_is_beyond_an_emulated_limit() {
    const MIB: u64 = 1 << 20;
    let lines = [
        (names::TREE_RSS, [10, 12, 10]),
        (names::TREE_RSS_ANON, [4, 6, 4]),
        (names::TREE_RSS_FILE, [6, 6, 6]),
        (names::TREE_RSS_SHARED, [0, 0, 0]),
        (names::PAGE_TABLES, [0, 0, 0]),
    ];
    let mut run = tree(&lines, None);
    run.processes = vec![ProcessRecord { max_rss_bytes: Some(60 * MIB), ..process(1, None, 1.0) }];
    // The references bound the page cache, and no cgroup has a charge.
    run.kept.most_cached_bytes = Some(6 * MIB);
    run.limit_bytes = Some(20 * MIB);
    let emulated = EmulatedLimit { peak_bytes: 12 * MIB, peak_cached_bytes: 6 * MIB, ..EmulatedLimit::default() };
    run.evidence.emulated = Some(emulated);
    let found = account(&run, &header("no swap"));
    assert_eq!((found.floor_bytes, found.peak_charge_bytes), (Some(54 * MIB), Some(54 * MIB)));
    assert_eq!(found.peak_breakdown.shared, Some(0), "nobody saw any");
    let told = evidence::limit_not_held(&run, 4096).unwrap().sentence;
    assert!(told.starts_with("a process held up to 54.0 MiB that cannot be reclaimed"), "{told}");
    run.limit_bytes = Some(64 * MIB);
    assert_eq!(evidence::limit_not_held(&run, 4096), None);
    // While it ran, what processes share was counted for each until it was read.
    run.processes.clear();
    let counted = EmulatedLimit { peak_bytes: 90 * MIB, most_cached_bytes: Some(8 * MIB), ..emulated };
    run.evidence.emulated = Some(counted);
    assert_eq!(account(&run, &header("no swap")).peak_charge_bytes, Some((6 + 8) * MIB));
}

#[test]
fn what_samples_missed_of_processes_that_lived_at_once_is_in_the_upper_bound() {
    const MIB: u64 = 1 << 20;
    let lines = [(names::TREE_RSS, [10, 50, 20]), (names::TREE_HELD_LEAST, [10, 40, 20])];
    let mut run = tree(&lines, None);
    let kept = |pid, start, mib: u64| ProcessRecord {
        started_seconds: Some(start),
        max_rss_bytes: Some(mib * MIB),
        ..process(pid, None, 1.0)
    };
    let of = |run: &Observation| account(run, &header("no swap")).tree_held_at_most_bytes.map(|bytes| bytes / MIB);
    run.processes = vec![kept(1, 0.0, 30), kept(2, 0.5, 40)];
    assert_eq!(of(&run), Some(70), "both were there from half a second on");
    run.processes = vec![kept(1, 0.0, 30), kept(2, 1.0, 40)];
    assert_eq!(of(&run), Some(50), "one came after the other");
}

#[test]
fn what_a_process_told_of_its_memory_takes_the_place_of_samples() {
    const MIB: u64 = 1 << 20;
    let lines = [
        (names::TREE_RSS, [2, 2, 2]),
        (names::TREE_RSS_ANON, [1, 1, 1]),
        (names::TREE_RSS_FILE, [1, 1, 1]),
        (names::TREE_RSS_SHARED, [0, 0, 0]),
        (names::PAGE_TABLES, [0, 0, 0]),
    ];
    let told = |pid, start, peak_mib: u64, seen_mib: u64, heap_mib: u64, may_share| ProcessRecord {
        started_seconds: Some(start),
        max_rss_bytes: Some(peak_mib * MIB),
        largest_seen: Some(Resident {
            heap_bytes: heap_mib * MIB,
            all_bytes: seen_mib * MIB,
            may_share,
            most_heap_bytes: heap_mib * MIB,
            inherited_bytes: 0,
            uncopied_bytes: 0,
        }),
        ..process(pid, None, 1.0)
    };
    let of = |processes: Vec<ProcessRecord>| {
        let run = Observation { processes, ..tree(&lines, None) };
        account(&run, &header("no swap"))
    };
    let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes / MIB);
    let heap = |account: &RunAccount| (mib(account.peak_breakdown_at_least.heap), mib(account.peak_breakdown.heap));
    let file = |account: &RunAccount| (mib(account.peak_breakdown_at_least.file), mib(account.peak_breakdown.file));

    let short = of(vec![told(1, 0.0, 40, 40, 33, false)]);
    assert_eq!((heap(&short), file(&short)), ((Some(33), Some(33)), (Some(7), Some(7))));
    assert_eq!(
        (short.peak_breakdown.shared, mib(short.floor_bytes), short.floor_at_most_bytes),
        (Some(0), Some(33), None)
    );
    assert!(short.doubts.is_empty(), "{:?}", short.doubts);

    let sharing = of(vec![told(1, 0.0, 40, 40, 33, true)]);
    assert_eq!((file(&sharing), mib(sharing.peak_breakdown.shared)), ((Some(1), Some(7)), Some(7)), "of either kind");
    assert_eq!((mib(sharing.floor_bytes), sharing.doubts.len()), (Some(39), 1), "shared memory cannot be reclaimed");

    let held_lines = [&lines[..], &[(names::TREE_HELD_LEAST, [2, 2, 2])]].concat();
    let filled = vec![told(1, 0.0, 40, 40, 5, true), told(2, 0.0, 50, 50, 5, true)];
    let filled = account(&Observation { processes: filled, ..tree(&held_lines, None) }, &header("no swap"));
    assert_eq!(mib(filled.tree_held_at_most_bytes), Some(90));
    assert_eq!(mib(filled.floor_at_most_bytes), Some(90), "each may have filled its own part of it");

    let given_back = of(vec![told(1, 0.0, 40, 20, 15, false)]);
    assert_eq!((heap(&given_back), mib(given_back.floor_bytes)), ((Some(15), Some(35)), Some(35)));
    assert_eq!(given_back.doubts.len(), 1, "what it gave back before it looked may have been heap or not");

    let together = of(vec![told(1, 0.0, 40, 40, 33, false), told(2, 0.5, 30, 30, 24, false)]);
    assert_eq!((heap(&together), mib(together.floor_bytes)), ((Some(33), Some(57)), Some(33)));
    assert_eq!(mib(together.floor_at_most_bytes), Some(57), "both were there from half a second on");

    let forks = |uncopied_mib: u64| {
        let forked = |pid| {
            let child = told(pid, 0.5, 40, 40, 33, false);
            let (inherited_bytes, uncopied_bytes) = (30 * MIB, uncopied_mib * MIB);
            let seen = child.largest_seen.map(|seen| Resident { inherited_bytes, uncopied_bytes, ..seen });
            ProcessRecord { largest_seen: seen, ..child }
        };
        Observation { processes: vec![told(1, 0.0, 40, 40, 33, false), forked(2), forked(3)], ..tree(&lines, None) }
    };
    assert_eq!(
        heap_together(&forks(0)),
        Some(99 * MIB),
        "they may have written to all that they have from their parent"
    );
    assert_eq!(heap_together(&forks(30)), Some(39 * MIB), "what they have not copied counts once");
    let at_most = |run: &Observation| mib(account(run, &header("no swap")).floor_at_most_bytes);
    assert_eq!(at_most(&forks(0)), Some(99), "they may have written to all of it");
    assert_eq!(at_most(&forks(25)), Some(49), "their page faults copied no more");

    let mut limited = tree(&lines, None);
    limited.evidence.emulated = Some(EmulatedLimit::default());
    limited.processes = vec![told(1, 0.0, 40, 40, 33, false), told(2, 0.5, 30, 30, 24, false)];
    let limited = account(&limited, &header("no swap"));
    assert_eq!(mib(limited.peak_charge_bytes), Some(57), "whoever sets a limit has to think of both");
    assert!(limited.doubts[0].sentence.contains("between 33.0 MiB and 57.0 MiB together"), "{:?}", limited.doubts);
}

#[test]
fn what_forks_share_counts_once_where_their_proportional_sets_were_read() {
    const MIB: u64 = 1 << 20;
    let of = |run: &Observation| {
        let account = account(run, &header("no swap"));
        (account.tree_held_at_least_bytes.map(|b| b / MIB), account.tree_held_at_most_bytes.map(|b| b / MIB))
    };
    // 100 MiB, and five forks that write nothing from the second sample on.
    let forked = [
        (names::TREE_RSS, [100, 600, 600]),
        (names::TREE_HELD_LEAST, [100, 100, 100]),
        (names::TREE_GAINED, [100, 600, 600]),
        (names::TREE_LOST, [0, 0, 0]),
    ];
    assert_eq!(of(&tree(&forked, None)), (Some(100), Some(600)), "anything between is possible");
    assert_eq!(of(&tree(&forked, Some((2, 100)))), (Some(100), Some(100)), "nothing was given back before it was read");
    assert_eq!(
        of(&tree(&forked, Some((0, 100)))),
        (Some(100), Some(600)),
        "the forks may have written since it was read"
    );
    // They write to all of it.
    let mut written = forked;
    written[2].1 = [100, 600, 1100];
    written[3].1 = [0, 0, 500];
    assert_eq!(of(&tree(&written, Some((2, 600)))), (Some(600), Some(600)));
    assert_eq!(of(&tree(&written, Some((1, 100)))), (Some(100), Some(600)));
    // They end before anybody reads them.
    let ended = [
        (names::TREE_RSS, [100, 600, 100]),
        (names::TREE_HELD_LEAST, [100, 100, 100]),
        (names::TREE_GAINED, [100, 600, 600]),
        (names::TREE_LOST, [0, 0, 500]),
    ];
    assert_eq!(of(&tree(&ended, Some((2, 100)))), (Some(100), Some(600)));
    // Records from before have no such lines.
    assert_eq!(of(&tree(&forked[..1], None)), (None, None));
}

#[test]
fn the_heap_of_forks_is_bounded_until_their_proportional_sets_are_read() {
    const MIB: u64 = 1 << 20;
    const LINES: [(&str, [u64; 3]); 9] = [
        (names::TREE_RSS, [100, 600, 600]),
        (names::TREE_RSS_ANON, [97, 582, 582]),
        (names::TREE_RSS_FILE, [2, 12, 12]),
        (names::TREE_RSS_SHARED, [1, 6, 6]),
        (names::TREE_HEAP_LEAST, [97, 97, 97]),
        (names::TREE_FILE_LEAST, [2, 2, 2]),
        (names::TREE_SHARED_LEAST, [1, 1, 1]),
        (names::TREE_GAINED, [100, 600, 600]),
        (names::TREE_LOST, [0, 0, 0]),
    ];
    let of = |lines: &[(&str, [u64; 3])], readings: &[(&str, u64)]| {
        let mut run = tree(lines, (!readings.is_empty()).then_some((2, 100)));
        run.series.extend(self::run(&[(names::PROCESSES, [6.0; 3])]).series);
        run.series.extend(readings.iter().map(|(name, mib)| Series {
            name: name.to_string(),
            process: None,
            unit: Unit::Bytes,
            rung: "process tree".into(),
            points: vec![(2 * SECOND, (mib * MIB) as f64)],
        }));
        let account = account(&run, &header("no swap"));
        let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes / MIB);
        let heap = (mib(account.peak_breakdown_at_least.heap), mib(account.peak_breakdown.heap));
        (heap, (mib(account.floor_bytes), mib(account.floor_at_most_bytes)))
    };
    assert_eq!(of(&LINES, &[]), ((Some(97), Some(582)), (Some(98), Some(588))), "anything between is possible");
    let readings = [(names::HEAP, 97), (names::FILE_MAPPED, 1), (names::SHARED, 1)];
    assert_eq!(of(&LINES, &readings), ((Some(97), Some(97)), (Some(98), None)));
    let old: Vec<_> = LINES.into_iter().filter(|(name, _)| !name.contains("_least_")).collect();
    assert_eq!(of(&old, &[]), ((Some(0), Some(582)), (Some(0), Some(588))), "a record without lower bounds");
    // Of the second sample 150 to 297 MiB are possible, and of the third 197 are known.
    let mut given_back = LINES;
    for (name, values) in &mut given_back {
        match *name {
            names::TREE_RSS => *values = [3, 300, 200],
            names::TREE_RSS_ANON => *values = [1, 297, 197],
            names::TREE_HEAP_LEAST => *values = [1, 150, 197],
            names::TREE_LOST => *values = [0, 0, 100],
            names::TREE_GAINED => *values = [3, 300, 300],
            _ => {}
        }
    }
    let readings = [(names::HEAP, 197), (names::FILE_MAPPED, 1), (names::SHARED, 1)];
    assert_eq!(of(&given_back, &readings).0, (Some(197), Some(297)), "the largest of each bound");
}

#[test]
fn page_tables_and_what_sockets_hold_are_in_the_floor_and_the_peak_of_a_tree() {
    let lines = [
        (names::TREE_RSS, [0.0, 300.0, 200.0]),
        (names::TREE_RSS_ANON, [0.0, 200.0, 100.0]),
        (names::TREE_RSS_FILE, [0.0, 100.0, 100.0]),
        (names::TREE_RSS_SHARED, [0.0; 3]),
        (names::TREE_HELD_LEAST, [0.0, 300.0, 200.0]),
        (names::PAGE_TABLES, [0.0, 8.0, 8.0]),
        (names::SOCKETS, [0.0, 0.0, 900.0]),
        (names::PROCESSES, [1.0; 3]),
    ];
    let seen = account(&run(&lines), &header("no swap"));
    assert_eq!((seen.floor_bytes, seen.floor_breakdown.kernel), (Some(1008), Some(908)));
    assert_eq!((seen.tree_held_at_least_bytes, seen.tree_held_at_most_bytes), (Some(1108), Some(1208)));
    assert_eq!((seen.peak_detail.page_tables, seen.peak_detail.sockets), (Some(8), Some(900)));
}

#[test]
fn the_floor_of_a_tree_counts_page_tables_swap_and_locked_files() {
    let mut run = run(&[
        (names::TREE_RSS, [0.0, 1000.0, 1000.0]),
        (names::TREE_RSS_ANON, [0.0, 500.0, 450.0]),
        (names::TREE_RSS_FILE, [0.0, 400.0, 400.0]),
        (names::TREE_RSS_SHARED, [0.0, 100.0, 100.0]),
        (names::PAGE_TABLES, [0.0, 8.0, 8.0]),
        (names::SWAP, [0.0, 0.0, 70.0]),
    ]);
    let floor = |run: &Observation| {
        let account = account(run, &header("no swap"));
        assert_eq!(account.peak_breakdown.charge(), Some(1008), "it is no part of what is in memory");
        (account.floor_bytes, account.floor_at_most_bytes, account.floor_breakdown.heap, account.floor_breakdown.file)
    };
    assert_eq!(floor(&run), (Some(628), None, Some(520), Some(0)));
    run.series.extend(self::run(&[(names::LOCKED, [0.0, 0.0, 900.0])]).series);
    assert_eq!(floor(&run), (Some(978), Some(1028), Some(520), Some(350)), "all but 550 are files, which have 400");
}

#[test]
fn a_command_is_cut_short_where_its_processes_show_it_and_not_by_its_status_alone() {
    let with = |status: i32, command: &[&str], source: &str, processes: &[(&str, Option<i32>, Option<i32>)]| {
        let mut run = run(&[]);
        run.exit = Exit::Status(status);
        run.sources.insert("processes".into(), source.into());
        let process = |(index, (name, status, signal)): (usize, &(&str, Option<i32>, Option<i32>))| ProcessRecord {
            command: name.to_string(),
            parent: Some(index as i32),
            exit_status: *status,
            signal: *signal,
            ..process(index as i32 + 1, None, 1.0)
        };
        run.processes = processes.iter().enumerate().map(process).collect();
        let header = Header { command: command.iter().map(|word| word.to_string()).collect(), ..header("") };
        account(&run, &header).cut_short
    };
    let (records, sampled) = ("exit tracepoint", "sampled; short-lived processes may be missing");
    let timeout = ["timeout", "5", "job"];
    let is = |found: Option<String>, what: &str| assert_eq!(found.as_deref(), Some(what));
    let killed = ("job", Some(143), Some(15));
    is(with(124, &timeout, records, &[("timeout", Some(124), None), killed]), "timeout ended it");
    let caught = ("job", Some(0), None);
    is(with(124, &timeout, records, &[("timeout", Some(124), None), caught]), "timeout ended it");
    is(
        with(1, &["sh", "script"], records, &[("sh", Some(1), None), ("timeout", Some(124), None), killed]),
        "timeout ended it",
    );
    is(with(124, &timeout, sampled, &[("timeout", None, None), ("job", None, None)]), "timeout ended it");
    is(with(143, &["sh", "-c", "job; exit $?"], records, &[("sh", Some(143), None), killed]), "signal 15 ended job");
    is(
        with(137, &["env", "sh", "script"], sampled, &[("sh", None, None)]),
        "signal 9 ended a program of it, as its status says",
    );

    let own = |status: i32| ("job", Some(status), None);
    assert_eq!(with(124, &timeout, records, &[("timeout", Some(124), None), own(124)]), None, "its own status");
    assert_eq!(with(124, &["job"], sampled, &[own(124)]), None);
    for status in [129, 137, 143, 200, 255] {
        assert_eq!(with(status, &["job"], sampled, &[own(status)]), None, "{status}");
        assert_eq!(
            with(status, &["sh", "-c", "job"], records, &[("sh", Some(status), None), own(status)]),
            None,
            "{status}"
        );
    }
    assert_eq!(with(0, &["sh", "script"], records, &[("sh", Some(0), None), killed]), None, "it went on after that");
    assert_eq!(with(141, &["sh", "script"], sampled, &[("sh", None, None)]), None, "its output was no longer wanted");

    let mut alone = run(&[]);
    alone.exit = Exit::Status(137);
    alone.evidence.waited_for_none = true;
    let shell = Header { command: ["sh", "-c", "exit 137"].map(String::from).into(), ..header("") };
    assert_eq!(account(&alone, &shell).cut_short, None, "a shell that waited for no program");

    let mut starved = run(&[]);
    starved.kept.oom_kills = Some(2);
    is(account(&starved, &header("")).cut_short, "the kernel killed 2 of its processes for lack of memory");
    let mut interrupted = run(&[]);
    interrupted.exit = Exit::Status(130);
    interrupted.evidence.interrupted = true;
    is(account(&interrupted, &header("")).cut_short, "a signal that was sent to bursar ended it");
}

#[test]
fn proportional_sets_that_were_read_only_before_the_peak_tell_no_peak() {
    let read_at = |times: &[u64]| {
        let mut run = run(&[(names::TREE_RSS, [40.0, 400.0, 400.0])]);
        let points = times.iter().map(|at| (at * SECOND, if *at == 0 { 40.0 } else { 200.0 })).collect();
        run.series.push(Series {
            name: names::TREE_PSS.into(),
            process: None,
            unit: Unit::Bytes,
            rung: "smaps_rollup".into(),
            points,
        });
        account(&run, &header("no swap (MemorySwapMax=0)")).tree_max_pss_bytes
    };
    assert_eq!((read_at(&[0]), read_at(&[0, 2])), (None, Some(200)));
}

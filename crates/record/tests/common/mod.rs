//! What the tests of the record share.
#![allow(dead_code)] // each test program uses a part

use std::collections::BTreeMap;
use std::path::Path;

use model::{
    Advice, AdviceFigures, AgeBytes, Answer, Attribution, Breakdown, BudgetReport, Exit, Explained, FaultFigures,
    FaultKind, Faults, FileDemand, FunctionUse, Header, Holding, InitGrowth, KeptPeaks, Latencies, LatencyHistogram,
    MappingHeat, MissPoint, NodeNeed, NodeRun, Observation, Outcome, PagesRound, RankHolding, RankInit, RankUse,
    RecordKind, RunAccount, RunRole, Series, Signal, Spread, Target, Trial, Unit,
};
use record::{Entry, Writer};

pub fn header() -> Header {
    Header {
        kind: RecordKind::Budget,
        bursar_version: "0.1.0".into(),
        host: "node1".into(),
        boot_id: "11111111-2222-3333-4444-555555555555".into(),
        kernel: "6.1.0".into(),
        cpus: 2,
        memory_bytes: 1 << 34,
        page_bytes: 4096,
        command: vec!["sort".into(), "it's \"quoted\"".into(), "zwei\nZeilen".into()],
        directory: "/home/user".into(),
        started_unix_ns: 1_700_000_000_123_456_789,
        placement: "cgroup v2".into(),
        swap: "no swap".into(),
        options: BTreeMap::from([("slowdown".into(), "0.05".into())]),
    }
}

pub fn observation(run: u32) -> Observation {
    let charge = Series {
        name: "charge_bytes".into(),
        process: None,
        unit: Unit::Bytes,
        rung: "cgroup v2 memory.current".into(),
        points: (0..5).map(|i| (i * 100_000_000, (i * 4096) as f64)).collect(),
    };
    Observation {
        run,
        role: RunRole::Reference,
        target: Target::Command,
        limit_bytes: Some(1 << 30),
        cache_state: "the job's files evicted".into(),
        started_unix_ns: 1_700_000_001_000_000_000,
        exit: Exit::Status(3),
        wall_seconds: 0.4375,
        rusage: None,
        kept: KeptPeaks { charge_bytes: Some(1 << 20), ..Default::default() },
        series: vec![charge],
        processes: Vec::new(),
        file_demand: None,
        sources: BTreeMap::from([("charge".into(), "memory.peak".into())]),
        notes: vec!["a note".into()],
        evidence: Default::default(),
        origin: None,
    }
}

pub fn trial(run: u32) -> Trial {
    Trial {
        run,
        method: None,
        limit_bytes: Some(1 << 30),
        outcome: Outcome::TooSlow,
        lower_bound: true,
        wall_seconds: 1.5,
        cpu_seconds: Some(0.1),
        system_seconds: None,
        stall_seconds: None,
        runtime_ratio: Some(1.5),
        predicted_ratio: Some(1.4),
        io_wait_share: None,
        refaults: Some(7),
        peak_charge_bytes: Some(1 << 30),
        breakdown: Breakdown { heap: Some(1), file: Some(2), shared: Some(3), kernel: Some(4), hugetlb: None },
        exit_status: None,
        why: "halfway".into(),
        nodes: vec![NodeRun { host: "north".into(), oom_kills: Some(1), ..NodeRun::default() }],
    }
}

pub fn budget() -> BudgetReport {
    BudgetReport {
        answer: Answer {
            budget_bytes: Some(1 << 30),
            smallest_passing_bytes: Some(1 << 29),
            largest_failing_bytes: None,
            margin_bytes: 12345,
            confident: true,
            reason: "because".into(),
        },
        slowdown_target: 0.05,
        reference_seconds: Some(1.25),
        reference_stddev_seconds: None,
        run_times_used: Some(4.5),
        compare_run_times: None,
        floor_bytes: Some(1 << 28),
        placement: "cgroup v2".into(),
        swap: "no swap".into(),
        limit_source: None,
        fast_tier: None,
        setting: Some("NODE_OPTIONS=--max-old-space-size=64".into()),
        cache_state: "evicted".into(),
        methods: Vec::new(),
        trials: vec![trial(1)],
        nodes: vec![NodeNeed { host: "north".into(), floor_bytes: Some(5), ..NodeNeed::default() }],
        doubts: Vec::new(),
        file_demand: Some(FileDemand { rung: "filemap tracepoints".into(), ..Default::default() }),
        notes: Vec::new(),
    }
}

/// An interval with tracking, and one without.
pub fn pages() -> [PagesRound; 2] {
    let tracked = PagesRound {
        t_ns: 1_000_000_007,
        seconds: 1.000000007,
        tracking: true,
        new_phase: true,
        wss_bytes: Some(1 << 26),
        misses: vec![MissPoint { bytes: 0, misses_per_second: 0.1 }],
        heat: vec![MappingHeat {
            pid: 7,
            start: 0x7fff_ffff_0000,
            end: 0x7fff_ffff_f000,
            name: "[anon]".into(),
            resident: 4096,
            touched: 4096,
            blind: 0,
            parts: vec![Some(0.1), None],
        }],
        ages: vec![AgeBytes { below: Some(0.125), bytes: 1 }, AgeBytes { below: None, bytes: 2 }],
        signals: vec![Signal { name: "DTLB misses".into(), value: 17.5, unit: 0.25 }],
        rung: "Accessed bits".into(),
        ..PagesRound::default()
    };
    [tracked, PagesRound { t_ns: 2_000_000_000, ..PagesRound::default() }]
}

/// Of the first run.
pub fn attribution() -> Attribution {
    let held = Holding { peak_bytes: 7, rank_peaks: Spread { mean: 0.1, ..Default::default() }, ..Default::default() };
    let of_rank = RankHolding { peak_bytes: 7, peak_pss_bytes: 5, at_end_bytes: 1, ..Default::default() };
    let rank = RankUse {
        rank: Some(3),
        pid: 7,
        start_ticks: u64::MAX,
        host: "node1".into(),
        components: BTreeMap::from([("mpi".into(), of_rank)]),
        init: Some(RankInit { begin_seconds: 0.1, end_seconds: 0.2, grew_bytes: -1 }),
        ..RankUse::default()
    };
    let function = FunctionUse { name: "MPI_Send".into(), component: "mpi".into(), calls: 9, ..Default::default() };
    Attribution {
        ranks: 1,
        total_peak_bytes: 9,
        components: BTreeMap::from([("mpi".into(), held)]),
        per_rank: vec![rank],
        functions: vec![function],
        init: Some(InitGrowth { function: "MPI_Init".into(), ..Default::default() }),
        notes: vec!["a note".into()],
        ..Attribution::default()
    }
}

pub fn faults() -> Faults {
    let mut histogram = LatencyHistogram::default();
    histogram.add(LatencyHistogram::bucket_of(1300), 7);
    let latency = Latencies::of(&histogram, 7 * 1300, 1300);
    let base = FaultFigures { count: 7, latency, histogram, ..FaultFigures::default() };
    Faults { kinds: BTreeMap::from([(FaultKind::Base, base.clone())]), overall: base, ..Faults::default() }
}

pub fn advice() -> Advice {
    let decided = Explained {
        pid: 7,
        seconds: 0.5,
        kind: "mmap".into(),
        which: "27".into(),
        ordinal: Some(1),
        from: 1 << 21,
        bytes: 1 << 24,
        action: "huge".into(),
        why: "by the profile".into(),
        cost_ns: 89e3,
        benefit_ns: 2.1e6,
    };
    let figures = AdviceFigures { huge_share: Some(0.5), promoted: 8, decisions: 1, ..AdviceFigures::default() };
    Advice { run: 0, figures, explained: vec![decided] }
}

/// One entry of every kind, runs aside.
pub fn others() -> Vec<Entry> {
    let peak_breakdown = Breakdown { heap: Some(7), ..Default::default() };
    let account = RunAccount { peak_charge_bytes: Some(1 << 20), peak_breakdown, ..Default::default() };
    vec![
        Entry::Account { run: 0, account: Box::new(account) },
        Entry::Trial(Box::new(trial(1))),
        Entry::Note("a sentence".into()),
        Entry::Budget(Box::new(budget())),
        Entry::Attribution(Box::new(attribution())),
        Entry::Faults(Box::new(faults())),
        Entry::Advice(Box::new(advice())),
        Entry::Pages(Box::new(pages()[0].clone())),
        Entry::Pages(Box::new(pages()[1].clone())),
    ]
}

/// A framed record at `path`, not sealed.
pub fn write(path: &Path, entries: &[Entry]) -> Writer {
    let mut writer = Writer::create(path, &header()).unwrap();
    entries.iter().for_each(|entry| writer.append(entry).unwrap());
    writer
}

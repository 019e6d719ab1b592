//! The book names every option and every field that scripts may rely on.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use model::{
    ArmFigures, ArmSetting, ArmsReport, Attribution, BudgetReport, CommMatrix, CurveFigures, CurvePoint, DemandPoint,
    FaultCauses, FaultFigures, FaultShare, FileDemand, ForeignFile, FunctionUse, Holding, InitGrowth, JobMemory,
    JobsMemory, LeftOut, LibraryGrowth, LibraryUse, MemoryPer, Method, MethodRow, NodeNeed, NodeRun, OrderFaults,
    OtherProcess, Outcome, PagesRound, PhaseReplay, PhaseUse, RankHolding, RankInit, RankUse, ReplayedArm,
    ReplayedRecord, RunAccount, SizeUnit, SlowFaults, TenantCurve, ToleranceOf, TraceCurve, TracerCost, Trial,
    WatchInterval, WindowCurve, WorkingSet,
};
use provision::control::LeaseStatus;
use provision::manage::{NodeStatus, Parts, PoolStatus};
use provision::state::Backend;
use serde_json::Value;
use support::bursar;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn book() -> String {
    let chapters = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let chapters = chapters.filter(|path| path.extension().is_some_and(|end| end == "md"));
    chapters.map(|path| std::fs::read_to_string(path).unwrap()).collect::<String>() + &read("README.md")
}

/// Names of object members, at any depth.
fn names(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            into.insert(name.clone());
            names(value, into);
        }),
        Value::Array(values) => values.iter().for_each(|value| names(value, into)),
        _ => {}
    }
}

fn demand() -> FileDemand {
    FileDemand {
        points: vec![DemandPoint { limit_bytes: 1, refault_bytes: 1 }],
        foreign: vec![ForeignFile { path: None, device: 1, inode: 1, cached_bytes: 1 }],
        ..FileDemand::default()
    }
}

fn report() -> BudgetReport {
    BudgetReport {
        methods: vec![MethodRow {
            name: Method::Bursar,
            memory_bytes: None,
            breakdown: Default::default(),
            amplification: None,
            runs: 0,
            runtime_ratio: None,
            runtime_stddev_seconds: None,
            predicted_ratio: None,
            io_wait_share: None,
            performance: None,
            performance_per_gb: None,
            outcome: None,
            enough: None,
            lower_bound: false,
        }],
        trials: vec![Trial {
            run: 0,
            method: None,
            limit_bytes: None,
            outcome: Outcome::Ok,
            lower_bound: false,
            wall_seconds: 0.0,
            cpu_seconds: None,
            system_seconds: None,
            stall_seconds: None,
            runtime_ratio: None,
            predicted_ratio: None,
            io_wait_share: None,
            refaults: None,
            peak_charge_bytes: None,
            breakdown: Default::default(),
            exit_status: None,
            why: String::new(),
            nodes: vec![NodeRun::default()],
        }],
        nodes: vec![NodeNeed::default()],
        ..BudgetReport::default()
    }
}

fn trace_curve() -> TraceCurve {
    let figures = || CurveFigures {
        references: 1,
        distinct: 1,
        points: vec![CurvePoint { size: 1, miss_ratio: 1.0 }],
        first_share: Some(1.0),
        working_set: WorkingSet { tolerance: 0.01, size: None, of: ToleranceOf::FirstReferences },
    };
    TraceCurve {
        trace: String::new(),
        format: String::new(),
        engine: String::new(),
        sampled_share: 1.0,
        unit: SizeUnit::Objects,
        page_bytes: None,
        warm_up: 0,
        skipped: 0,
        first_skipped: Some(String::new()),
        left_out: 0,
        implies: Some(String::new()),
        whole: figures(),
        tenants: vec![TenantCurve { tenant: String::new(), figures: figures() }],
        windows: vec![WindowCurve { start_seconds: 0.0, end_seconds: 1.0, figures: figures() }],
    }
}

fn attribution() -> Attribution {
    let init = InitGrowth { libraries: vec![LibraryGrowth::default()], ..InitGrowth::default() };
    let rank = RankUse {
        components: [("mpi".to_string(), RankHolding::default())].into(),
        init: Some(RankInit::default()),
        ..RankUse::default()
    };
    Attribution {
        components: [("application".to_string(), Holding::default())].into(),
        per_rank: vec![rank],
        functions: vec![FunctionUse::default()],
        init: Some(init),
        phases: vec![PhaseUse::default()],
        libraries: vec![LibraryUse::default()],
        comm_matrix: Some(CommMatrix::default()),
        other_processes: vec![OtherProcess::default()],
        ..Attribution::default()
    }
}

fn fault_figures() -> FaultFigures {
    let share = Some(FaultShare::default());
    FaultFigures {
        over_50us: Some(SlowFaults::default()),
        causes: FaultCauses { compaction: share, reclaim: share, collapse: share, off_cpu: share },
        by_order: vec![OrderFaults::default()],
        ..FaultFigures::default()
    }
}

fn jobs_memory() -> JobsMemory {
    let job = JobMemory {
        name: String::new(),
        names: 1,
        per: MemoryPer::Node,
        runs: 1,
        cut_short: 0,
        out_of_memory: 0,
        min_bytes: 1,
        median_bytes: Some(1),
        percentile_bytes: 1,
        max_bytes: 1,
        max_is_lower_bound: false,
        is_lower_bound: false,
        cache_bytes: None,
        asked_bytes: None,
        mem_bytes: Some(1),
        by_number: None,
        by_number_positions: Vec::new(),
        is_upper_bound: false,
        mem_with_cache_bytes: None,
        mem_without_cache_bytes: None,
        reserved_gib_hours: None,
        saved_gib_hours: None,
        killed: 0,
        maybe_killed: 0,
        next_needs_more: 0.5,
    };
    JobsMemory {
        percentile: 0.95,
        gatherer: None,
        slurm_version: None,
        doubts: Vec::new(),
        left_out: 0,
        jobs: vec![job],
        notes: Vec::new(),
    }
}

fn pool_status() -> PoolStatus {
    let lease = LeaseStatus { pid: 1, uid: 0, command: String::new(), bytes: 1, nodes: Vec::new(), lingering: false };
    PoolStatus {
        name: String::new(),
        backend: Backend::Hugetlb,
        socket: String::new(),
        page_bytes: 1,
        segment_bytes: 1,
        interleaved: false,
        owner: 0,
        group: 0,
        mode: String::new(),
        per_user_bytes: None,
        alive: None,
        broker_pid: None,
        whole: Parts::default(),
        surplus_bytes: 0,
        nodes: vec![NodeStatus { node: None, parts: Parts::default() }],
        leases: Some(vec![lease]),
    }
}

fn compared() -> ArmsReport {
    ArmsReport {
        arms: vec![ArmFigures::default()],
        left_out: vec![LeftOut::default()],
        settings: vec![ArmSetting::default()],
        ..ArmsReport::default()
    }
}

#[test]
fn every_field_of_the_json_is_in_the_contract() {
    let mut fields = BTreeSet::new();
    names(&serde_json::to_value(pool_status()).unwrap(), &mut fields);
    names(&serde_json::to_value(compared()).unwrap(), &mut fields);
    let account = RunAccount { file_demand: Some(demand()), ..RunAccount::default() };
    names(&serde_json::to_value(account).unwrap(), &mut fields);
    names(&serde_json::to_value(report()).unwrap(), &mut fields);
    names(&serde_json::to_value(attribution()).unwrap(), &mut fields);
    names(&serde_json::to_value(trace_curve()).unwrap(), &mut fields);
    names(&serde_json::to_value(WatchInterval::of(&PagesRound::default(), None)).unwrap(), &mut fields);
    let replayed = ReplayedRecord { arms: vec![ReplayedArm::default()], ..ReplayedRecord::default() };
    names(&serde_json::to_value(PhaseReplay::of(vec![replayed])).unwrap(), &mut fields);
    names(&serde_json::to_value(fault_figures()).unwrap(), &mut fields);
    names(&serde_json::to_value(jobs_memory()).unwrap(), &mut fields);
    names(&serde_json::to_value(TracerCost::default()).unwrap(), &mut fields);
    assert!(fields.len() > 100, "{fields:?}");
    let contract = read("docs/json.md");
    let missing: Vec<_> = fields.iter().filter(|name| !contract.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/json.md does not name {missing:?}");
}

#[test]
fn every_outcome_and_method_is_in_the_contract() {
    let contract = read("docs/json.md");
    let outcomes = [Outcome::Ok, Outcome::TooSlow, Outcome::Oom, Outcome::Timeout, Outcome::Failed];
    let methods = [Method::AppMaxRss, Method::AppMaxRssLargest, Method::SysMaxRss, Method::Unlimited, Method::Bursar];
    let words = outcomes.iter().map(|o| serde_json::to_value(o).unwrap());
    for word in words.chain(methods.iter().map(|m| serde_json::to_value(m).unwrap())) {
        assert!(contract.contains(&format!("`{}`", word.as_str().unwrap())), "docs/json.md does not name {word}");
    }
}

#[test]
fn every_option_is_in_the_book() {
    let book = book();
    let words: BTreeSet<&str> = book.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    for action in [
        "run",
        "budget",
        "balance",
        "attribute",
        "faults",
        "watch",
        "check",
        "diff",
        "serve",
        "report",
        "curve trace",
        "advise try",
        "advise costs",
        "advise convert",
        "pool create",
        "pool size",
        "pool status",
        "pool grow",
        "pool destroy",
        "doctor",
    ] {
        let help = bursar().args(action.split(' ')).arg("--help").output().unwrap().stdout;
        let help = String::from_utf8(help).unwrap();
        let options: BTreeSet<&str> = help
            .lines()
            .filter(|line| line.trim_start().starts_with('-'))
            .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
            .filter(|option| *option != "--help")
            .collect();
        assert!(!options.is_empty(), "{help}");
        for option in options {
            assert!(words.contains(option), "the book does not name bursar {action} {option}");
        }
    }
}

/// The pages of the book, in subfolders too.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
    files.chain(folders.iter().flat_map(|folder| pages(folder))).collect()
}

/// Targets of the links of a page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The anchor that GitHub and mdBook give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[test]
fn every_link_leads_to_a_page_and_its_heading() {
    let others = [root().join("README.md"), root().join("CHANGELOG.md")];
    for page in pages(&root().join("docs")).into_iter().chain(others) {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link}", page.display());
            if !heading.is_empty() {
                let text = std::fs::read_to_string(&target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let found = headings.any(|line| anchor(line.trim_start_matches('#')) == heading);
                assert!(found, "{}: no heading {link}", page.display());
            }
        }
    }
}

#[test]
fn navigation_lists_every_page() {
    let docs = root().join("docs");
    let summary = read("docs/SUMMARY.md");
    let listed: BTreeSet<PathBuf> = links(&summary).map(|link| docs.join(link)).collect();
    let mut expected: BTreeSet<PathBuf> = pages(&docs).into_iter().collect();
    expected.remove(&docs.join("SUMMARY.md"));
    assert_eq!(listed, expected);
}

/// All files beneath a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { BTreeSet::from([path]) }).collect()
}

#[test]
fn each_command_has_a_man_page_that_is_installed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (built, installed) = (folder.path().join("built"), folder.path().join("installed"));
    std::fs::create_dir_all(built.join("release")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_bursar"), built.join("release/bursar")).unwrap();
    let mut pages = std::process::Command::new(root().join("scripts/pages"));
    assert!(pages.arg(env!("CARGO_BIN_EXE_bursar")).arg(built.join("built")).status().unwrap().success());
    let make = |target: &str| {
        let mut make = std::process::Command::new("make");
        make.arg("-C").arg(root()).args([target, "PREFIX=/usr"]);
        make.arg(format!("TARGET={}", built.display())).arg(format!("DESTDIR={}", installed.display()));
        let output = make.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    make("install");
    let pages = installed.join("usr/share/man/man1");
    for (page, option) in [("bursar", "budget"), ("bursar-run", "limit"), ("bursar-pool-create", "owner")] {
        let text = std::fs::read_to_string(pages.join(format!("{page}.1"))).unwrap();
        assert!(text.contains(option) && text.contains(".TH"), "{page}: {text}");
    }
    let commands = ["attribute", "watch", "report", "advise-run", "curve-trace", "pool-size"];
    assert!(commands.iter().all(|command| pages.join(format!("bursar-{command}.1")).exists()), "{:?}", files(&pages));
    assert!(files(&pages).iter().all(|page| !page.to_string_lossy().contains("node")), "nothing hidden");
    make("uninstall");
    assert_eq!(files(&installed), BTreeSet::new());
}

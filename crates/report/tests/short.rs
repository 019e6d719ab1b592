//! The short reports, one file per case in `golden/`. Where they shall look otherwise, write the files anew and read what changed:
//!
//! ```text
//! BURSAR_WRITE_GOLDEN=1 cargo test -p report --test short && git diff --word-diff crates/report/tests/golden
//! ```

#[allow(unused_imports, reason = "each test binary uses its part")]
mod fixture;
mod golden;

use std::path::Path;

use fixture::{MIB, Parts, breakdown, file_demand};
use model::{
    Answer, Breakdown, BudgetReport, DemandPoint, Doubt, DoubtKind, Exit, FileDemand, FlowCounts, Method, Origin,
    Outcome, RunAccount, RunRole, Target,
};
use report::View;
use report::terminal::Style;
use report::terminal::short::{Aside, MOST_BUDGET_LINES, MOST_RUN_LINES, budget, run};

const STYLE: Style = Style { width: 100, color: false };

fn view(parts: &Parts) -> View<'_> {
    View {
        header: &parts.header,
        runs: parts.runs.iter().map(|(observation, account)| (observation, account)).collect(),
        budget: parts.budget.as_ref(),
        trials: parts.budget.as_ref().map_or(&[], |report| &report.trials),
        notes: &[],
        complete: true,
    }
}

fn shown(parts: &Parts, notes: &[String], style: Style) -> String {
    let aside = Aside { warnings: &[], notes, record: Some(Path::new("job.bursar")) };
    match parts.budget {
        Some(_) => budget(&view(parts), &aside, style),
        None => run(&view(parts), &aside, style),
    }
}

/// One run whose account is changed so.
fn one_run(change: impl FnOnce(&mut RunAccount)) -> Parts {
    let mut parts = Parts::of_runs(&[12.3]);
    let account = &mut parts.runs[0].1;
    account.notes.clear();
    account.file_demand = Some(FileDemand { foreign: Vec::new(), not_visible: Vec::new(), ..file_demand() });
    change(account);
    parts
}

/// A program of 400 MiB of heap, of which the page cache is no part.
fn heap(account: &mut RunAccount) {
    account.peak_breakdown = breakdown(398, 2, 0, 2);
    account.floor_bytes = Some(400 * MIB);
    account.app_max_rss_bytes = Some(400 * MIB);
    account.tree_max_rss_bytes = Some(400 * MIB);
}

/// A program that no sample saw.
fn tiny(account: &mut RunAccount) {
    account.peak_charge_bytes = Some(508 << 10);
    account.peak_breakdown = Default::default();
    account.floor_bytes = None;
    account.app_max_rss_bytes = Some(980 << 10);
    account.tree_max_rss_bytes = Some(980 << 10);
    account.wall_seconds = 0.015;
    account.file_demand = None;
    account.notes =
        vec!["No sample saw the job at more than half of its peak, so what the peak was made of is not known.".into()];
}

fn without_cgroup(account: &mut RunAccount) {
    account.peak_charge_bytes = None;
    account.peak_breakdown =
        Breakdown { heap: Some(100 * MIB), file: Some(7 * MIB), shared: Some(0), kernel: Some(MIB / 4), hugetlb: None };
    account.peak_breakdown_at_least = account.peak_breakdown;
    account.floor_bytes = Some(100 * MIB);
    account.file_demand = None;
    account.doubts = vec![doubt(
        DoubtKind::NotSeen,
        "it read 290 MiB by calls (290 MiB from storage): the page cache that this takes is not seen, and not in that figure",
    )];
}

/// A program that maps a large file.
fn mapped_without_cgroup(account: &mut RunAccount) {
    without_cgroup(account);
    account.peak_breakdown.file = Some(290 * MIB);
    account.peak_breakdown_at_least = account.peak_breakdown;
    (account.tree_held_at_least_bytes, account.tree_held_at_most_bytes) = (Some(390 * MIB), Some(390 * MIB));
    account.doubts.clear();
}

/// Four forks, of which nobody knows how much they share.
fn shared_without_cgroup(account: &mut RunAccount) {
    without_cgroup(account);
    let least = account.peak_breakdown_at_least;
    account.peak_breakdown = Breakdown { heap: Some(400 * MIB), file: Some(28 * MIB), ..least };
    (account.tree_held_at_least_bytes, account.tree_held_at_most_bytes) = (Some(107 * MIB), Some(428 * MIB));
    account.floor_at_most_bytes = Some(400 * MIB);
}

/// A small program: what the kernel counted between two samples may be of any kind.
fn small_without_cgroup(account: &mut RunAccount) {
    without_cgroup(account);
    const KIB: u64 = 1 << 10;
    let parts = |heap, file, shared| Breakdown {
        heap: Some(heap * KIB),
        file: Some(file * KIB),
        shared: Some(shared * KIB),
        kernel: Some(56 * KIB),
        hugetlb: None,
    };
    (account.peak_breakdown_at_least, account.peak_breakdown) = (parts(700, 1384, 0), parts(920, 1604, 220));
    (account.tree_held_at_least_bytes, account.tree_held_at_most_bytes) = (Some(2132 * KIB), Some(2132 * KIB));
    account.tree_max_rss_bytes = Some(2132 * KIB);
    account.floor_bytes = Some(756 * KIB);
    account.doubts.clear();
}

fn doubt(kind: DoubtKind, sentence: &str) -> Doubt {
    Doubt {
        kind,
        bytes: None,
        voids: false,
        missing_from_peak: kind != DoubtKind::LimitNotHeld,
        sentence: sentence.into(),
    }
}

fn cached_before() -> Doubt {
    let sentence = "87.9 MiB of the files that it read or mapped was in the page cache before and is charged elsewhere: it is missing \
                    from that figure (largest: /data/readings.db with 83.9 MiB)";
    doubt(DoubtKind::CachedBefore, sentence)
}

fn attached() -> Parts {
    let mut parts = one_run(|account| account.exit_status = None);
    parts.header.command.clear();
    let (observation, _) = &mut parts.runs[0];
    (observation.target, observation.exit) = (Target::Tree(4711), Exit::StillRunning);
    parts
}

fn merged() -> Parts {
    let mut parts = one_run(|account| {
        account.notes = vec!["Peaks are of the sum, as sampled; the hosts' clocks are taken to agree.".into()]
    });
    for (rank, peak, status) in [(0, 150, 0), (1, 130, 0), (2, 122, 3)] {
        let mut observation = fixture::observation(rank + 1, RunRole::Part, None, 12.3);
        observation.origin = Some(Origin { host: "node18".into(), boot_id: String::new(), rank: Some(rank) });
        let account =
            RunAccount { peak_charge_bytes: Some(peak * MIB), exit_status: Some(status), ..fixture::account(12.3) };
        parts.runs.push((observation, account));
    }
    parts
}

fn killed() -> Parts {
    let mut parts = one_run(|account| {
        heap(account);
        account.peak_charge_bytes = Some(200 * MIB);
        account.peak_breakdown = breakdown(196, 1, 0, 3);
        account.limit_bytes = Some(200 * MIB);
        account.oom_kills = Some(1);
        account.exit_status = Some(137);
    });
    parts.runs[0].0.exit = Exit::Signal(9);
    parts
}

fn a_budget(change: impl FnOnce(&mut BudgetReport)) -> Parts {
    let mut parts = Parts::of_a_budget();
    let report = parts.budget.as_mut().unwrap();
    report.file_demand = Some(FileDemand { foreign: Vec::new(), not_visible: Vec::new(), ..file_demand() });
    change(report);
    parts
}

fn not_sure(report: &mut BudgetReport) {
    report.answer.confident = false;
    report.answer.reason =
        "At 402 MiB it kept within the slow-down; at 390 MiB it was too slow. A margin of 10.0 MiB is added. But so \
                            few runs cannot tell a slow-down of 5 % from noise: use --runs 17, or a quieter machine."
            .into();
    report.doubts = vec![cached_before()];
}

fn not_sure_for_many_reasons(report: &mut BudgetReport) {
    not_sure(report);
    report.doubts.clear();
    let reason = report.answer.reason.trim_end_matches('.');
    report.answer.reason = format!(
        "{reason}; and run times vary so much that another run under that limit may be slower than allowed; and less may be enough: no \
         limit close below is known to be too little."
    );
}

fn no_answer(report: &mut BudgetReport) {
    report.answer = Answer {
        largest_failing_bytes: Some(390 * MIB),
        reason: "No limit was found under which the job keeps within the slow-down: it was interrupted.".into(),
        ..Answer::default()
    };
}

fn memory_missing(report: &mut BudgetReport) {
    let sentence =
        "at least 900 MiB in files in memory (largest: /dev/shm/x with 900 MiB) are missing from that figure";
    report.answer.confident = false;
    report.doubts = vec![Doubt { bytes: Some(900 * MIB), ..doubt(DoubtKind::FilesInMemory, sentence) }];
}

fn void(report: &mut BudgetReport) {
    let sentence = "the command left its cgroup: nothing is known of what it needs (daemon, with at least 64.0 MiB, is in another)";
    report.answer = Answer { reason: "What was measured is not the command.".into(), ..Answer::default() };
    report.doubts = vec![Doubt { voids: true, ..doubt(DoubtKind::LeftCgroup, sentence) }];
    report.methods.clear();
}

fn killed_below(report: &mut BudgetReport) {
    for trial in report.trials.iter_mut().filter(|trial| trial.limit_bytes == Some(390 * MIB)) {
        (trial.outcome, trial.runtime_ratio, trial.refaults) = (Outcome::Oom, None, Some(0));
    }
    // One process: its RSS is that of the tree.
    let tree = report.methods.iter().find(|row| row.name == Method::AppMaxRss).unwrap().memory_bytes;
    report.methods.iter_mut().find(|row| row.name == Method::AppMaxRssLargest).unwrap().memory_bytes = tree;
}

/// All of its trials came to their end in time.
fn ended_in_time(report: &mut BudgetReport) {
    for trial in report.trials.iter_mut().filter(|trial| trial.limit_bytes == Some(390 * MIB)) {
        (trial.outcome, trial.lower_bound, trial.runtime_ratio) = (Outcome::Ok, false, Some(0.99));
    }
}

/// The answer is what the runs without a limit used, and free showed less.
fn never_used_more(report: &mut BudgetReport) {
    report.trials.retain(|trial| trial.limit_bytes != Some(402 * MIB));
    let free = report.methods.iter_mut().find(|row| row.name == Method::Unlimited).unwrap();
    free.memory_bytes = Some(390 * MIB);
}

fn client(account: &mut RunAccount) {
    let sentence = "docker sends its work to processes that bursar has not started: run the program itself, or measure what it starts by --name";
    account.doubts = vec![Doubt { voids: true, ..doubt(DoubtKind::Client, sentence) }];
    (account.peak_charge_bytes, account.floor_bytes, account.file_demand) = (None, None, None);
    account.peak_breakdown = Default::default();
    account.notes = vec!["The kernel kept a peak charge of 35.7 MiB.".into()];
}

/// Each with the notes that it is shown with.
fn cases() -> Vec<(&'static str, Parts, Vec<String>)> {
    let java = |report: &mut BudgetReport| report.setting = Some("JAVA_TOOL_OPTIONS=-Xmx301m".into());
    let advice = "DuckDB sizes itself by the limit that it sees (memory_limit, 80 % of the limit by default): the answer holds for that \
                  setting only, and it uses more where it gets more. A fixed size makes it certain.";
    let not_root = "Not run as root: short-lived processes may be missing, and of files only what is mapped is seen, not what is read and written by calls; `bursar doctor` \
                    names what would enable them.";
    let mut beside_huge_pages = a_budget(|_| ());
    beside_huge_pages.runs[0].1.peak_breakdown.hugetlb = Some(60 * MIB);
    let used_once = vec![DemandPoint { limit_bytes: 112 * MIB, refault_bytes: 0 }];
    let slope = [(112, 1024), (254, 506), (279, 262), (280, 37), (285, 0)];
    let cliff = [(278 * MIB + (3 << 18), 262), (279 * MIB + (1 << 18), 0)];
    let cliff = cliff.map(|(limit_bytes, again)| DemandPoint { limit_bytes, refault_bytes: again * MIB });
    let slope = slope.map(|(limit, again)| DemandPoint { limit_bytes: limit * MIB, refault_bytes: again * MIB });
    let mut timed_out = one_run(|account| {
        account.cut_short = Some("the time-out ended it".into());
        account.exit_status = Some(124);
    });
    timed_out.runs[0].0.exit = Exit::TimedOut;
    let mut several = Parts::of_runs(&[12.0, 12.6, 12.3]);
    several.runs[1].1.peak_charge_bytes = Some(410 * MIB);
    let limited = |account: &mut RunAccount| {
        account.limit_bytes = Some(300 * MIB);
        account.peak_charge_bytes = Some(300 * MIB);
        account.peak_breakdown = breakdown(100, 188, 4, 8);
        account.io_wait_share = Some(0.41);
        account.flow = FlowCounts { refaults_file: Some(1_113_600), ..FlowCounts::default() };
    };
    vec![
        ("run-cached-file", one_run(|_| ()), vec![]),
        (
            "run-cached-file-slope",
            one_run(|account| account.file_demand.as_mut().unwrap().points = slope.to_vec()),
            vec![],
        ),
        ("run-file-used-once", one_run(|account| account.file_demand.as_mut().unwrap().points = used_once), vec![]),
        ("run-cached-before", one_run(|account| account.doubts = vec![cached_before()]), vec![]),
        (
            "run-cached-before-under-a-limit",
            one_run(|account| (limited(account), account.doubts = vec![cached_before()]).1),
            vec![],
        ),
        (
            "run-cached-file-cliff",
            one_run(|account| account.file_demand.as_mut().unwrap().points = cliff.to_vec()),
            vec![],
        ),
        ("run-heap", one_run(heap), vec![]),
        ("run-tiny", one_run(tiny), vec![]),
        ("run-failed", one_run(|account| (heap(account), account.exit_status = Some(3)).1), vec![]),
        ("run-timed-out", timed_out, vec![]),
        ("run-under-a-limit", one_run(limited), vec![]),
        ("run-killed-for-memory", killed(), vec![]),
        ("run-without-cgroup", one_run(without_cgroup), vec![not_root.into()]),
        ("run-without-cgroup-mapped", one_run(mapped_without_cgroup), vec![not_root.into()]),
        ("run-without-cgroup-shared", one_run(shared_without_cgroup), vec![not_root.into()]),
        ("run-without-cgroup-small", one_run(small_without_cgroup), vec![not_root.into()]),
        ("run-not-the-command", one_run(client), vec![]),
        ("run-several", several, vec![]),
        ("run-attached", attached(), vec![]),
        ("run-merged-ranks", merged(), vec!["1 of 4 ranks have no record here and are in no figure.".into()]),
        ("budget-confident", a_budget(|_| ()), vec![]),
        ("budget-killed-below", a_budget(killed_below), vec![]),
        ("budget-ended-in-time", a_budget(ended_in_time), vec![]),
        ("budget-never-used-more", a_budget(never_used_more), vec![]),
        ("budget-not-sure", a_budget(not_sure), vec![]),
        ("budget-not-sure-for-many-reasons", a_budget(not_sure_for_many_reasons), vec![]),
        ("budget-runtime-setting", a_budget(java), vec![]),
        ("budget-runtime-reads-limit", a_budget(|_| ()), vec![advice.into()]),
        ("budget-no-answer", a_budget(no_answer), vec![]),
        ("budget-not-the-command", a_budget(void), vec![]),
        ("budget-memory-missing", a_budget(memory_missing), vec![]),
        ("budget-huge-pages", beside_huge_pages, vec![]),
    ]
}

#[test]
fn short_reports_are_the_recorded_ones() {
    let reports = cases().into_iter().map(|(name, parts, notes)| (name, shown(&parts, &notes, STYLE)));
    golden::check(&["run", "budget"], reports);
}

/// As many doubts and notes as there are kinds, each longer than a line.
fn doubtful(mut parts: Parts) -> (Parts, Vec<String>) {
    let long = |number: usize| {
        format!("number {number} of many sentences that are so long that a terminal of 80 columns has to wrap each")
    };
    let doubts: Vec<Doubt> = (0..11).map(|number| doubt(DoubtKind::NotSeen, &long(number))).collect();
    parts.runs[0].1.doubts.clone_from(&doubts);
    if let Some(report) = &mut parts.budget {
        report.doubts = doubts;
    }
    (parts, (0..9).map(long).collect())
}

#[test]
fn short_reports_keep_their_number_of_lines() {
    let plain = cases().into_iter().map(|(_, parts, notes)| (parts, notes));
    let doubtful = cases().into_iter().map(|(_, parts, _)| doubtful(parts));
    for (parts, notes) in plain.chain(doubtful) {
        let most = if parts.budget.is_some() { MOST_BUDGET_LINES } else { MOST_RUN_LINES };
        for width in [80, 100, 200] {
            let text = shown(&parts, &notes, Style { width, color: false });
            assert!(text.lines().count() <= most, "{width}\n{text}");
        }
    }
}

#[test]
fn the_last_line_counts_the_doubts_and_notes_that_are_left_out() {
    let (parts, notes) = doubtful(one_run(|_| ()));
    let text = shown(&parts, &notes, STYLE);
    assert!(text.lines().nth(1).unwrap().starts_with("number 0 of many"), "{text}");
    let shown_doubts = text.matches("beside that").count();
    let last = text.lines().last().unwrap();
    let expected = format!("details and {} more doubts and 9 more notes: bursar report job.bursar", 10 - shown_doubts);
    assert!(shown_doubts > 2 && last.ends_with(&expected), "{text}");
    let without_record = run(&view(&parts), &Aside { warnings: &[], notes: &notes, record: None }, STYLE);
    assert!(without_record.lines().last().unwrap().ends_with("more notes: give -v"), "{without_record}");
}

#[test]
fn a_record_whose_path_is_long_is_named_once() {
    let parts = one_run(|_| ());
    let path = format!("/home/user/.local/state/bursar/{}.bursar", "x".repeat(60));
    let text = run(&view(&parts), &Aside { warnings: &[], notes: &[], record: Some(Path::new(&path)) }, STYLE);
    assert_eq!(text.matches(&path).count(), 1, "{text}");
    assert!(text.ends_with(&format!("details: bursar report {path}\n")), "{text}");
}

#[test]
fn a_record_cannot_steer_the_terminal() {
    let mut parts = one_run(|account| {
        account.notes = vec!["\u{1b}[2Jnote".into()];
        account.doubts = vec![doubt(DoubtKind::NotSeen, "\u{1b}[2Jdoubt")];
        account.cut_short = Some("\u{1b}[2J".into());
    });
    parts.runs[0].0.target = Target::Cgroup("/\u{1b}[2J".into());
    assert!(!shown(&parts, &["\u{1b}[2J".into()], STYLE).contains('\u{1b}'));
}

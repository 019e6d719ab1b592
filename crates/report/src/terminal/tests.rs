use model::{Breakdown, Doubt, DoubtKind, Exit, Header, RecordKind, RunAccount, Target};
use unicode_width::UnicodeWidthStr;

use super::{Style, budget, run, short};
use crate::fixture::{self, MIB, Parts};
use crate::{View, paste_lines};

const WIDE: Style = Style { width: 120, color: false };

/// The line that starts so, with its runs of blanks as one.
fn line(text: &str, start: &str) -> String {
    let found = text.lines().find(|line| line.trim_start().starts_with(start));
    found.unwrap_or_else(|| panic!("no line '{start}' in\n{text}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_line_of_a_run_is_its_need() {
    let text = run(&Parts::of_runs(&[12.3]).view(), WIDE);
    assert_eq!(text.lines().next().unwrap(), "needs 402 MiB at peak (floor 112 MiB; file cache 290 MiB of it)");
    assert_eq!(text.lines().nth(1).unwrap(), r"./looper --note 'a<b> & '\''c'\''' data.bin");
}

#[test]
fn every_memory_figure_is_split_and_the_unknown_is_a_dash() {
    let text = run(&Parts::of_runs(&[12.3]).view(), WIDE);
    assert_eq!(line(&text, "App-MaxRSS largest"), "App-MaxRSS largest 104 MiB - - - -");
    assert_eq!(line(&text, "App-MaxRSS tree"), "App-MaxRSS tree 107 MiB 100 MiB 7.00 MiB - -");
    assert_eq!(line(&text, "PSS tree"), "PSS tree - - - - -");
    assert_eq!(line(&text, "Sys-MaxRSS"), "Sys-MaxRSS 390 MiB 100 MiB 290 MiB 0 B 0 B");
    assert_eq!(line(&text, "peak charge"), "peak charge 402 MiB 100 MiB 290 MiB 4.00 MiB 8.00 MiB");
    assert_eq!(
        line(&text, "within the peak"),
        "within the peak: file clean 289 MiB, file dirty 1.00 MiB, slab 5.00 MiB"
    );
    assert_eq!(
        line(&text, "faults"),
        "faults minor 30,210, major 12 refaults file 0, anonymous - reclaim scanned 0, taken 0"
    );
    assert_eq!(
        line(&text, "pressure"),
        "pressure (of the whole system) memory some 0 s, full 0 s I/O some 620 ms, full -"
    );
    assert!(line(&text, "wall").contains("I/O wait 4.1 %"), "{text}");
    assert_eq!(line(&text, "looper 100"), "looper 100 104 MiB 12.3 s 14.8 s 500 ms");
}

#[test]
fn the_page_caches_part_is_a_few_lines_with_an_estimate_from_the_runs_own_reads() {
    let text = run(&Parts::of_runs(&[12.3]).view(), WIDE);
    // 1 s of block I/O delay for 290 MiB read: 4350 MiB again are 15 s.
    assert_eq!(line(&text, "112 MiB"), "112 MiB 4.25 GiB 9.30 s");
    assert_eq!(line(&text, "402 MiB"), "402 MiB 0 B 0 s");
    assert!(text.contains("24.0 MiB of file cache was there before and is charged elsewhere"), "{text}");
    assert!(
        text.contains("not visible to the page cache's tracker: O_DIRECT (3.00 MiB of reads and writes, each counted)"),
        "{text}"
    );
}

#[test]
fn several_runs_show_their_variability() {
    let text = run(&Parts::of_runs(&[12.0, 12.6, 12.3]).view(), WIDE);
    assert!(text.lines().next().unwrap().ends_with("max of 3 runs)"), "{text}");
    assert_eq!(line(&text, "wall"), "wall 12.3 s 300 ms 12.0 s 12.6 s");
    assert_eq!(line(&text, "peak charge"), "peak charge 402 MiB 0 B 402 MiB 402 MiB");
    assert!(!text.contains("PSS tree 0"), "{text}");
}

#[test]
fn an_attachment_says_what_is_observed_and_where_older_peaks_come_from() {
    let mut parts = Parts::of_runs(&[12.3]);
    parts.header = Header { kind: RecordKind::Attach, command: Vec::new(), ..parts.header };
    parts.runs[0].0.target = Target::Tree(77);
    parts.runs[0].0.exit = Exit::StillRunning;
    let text = run(&parts.view(), WIDE);
    assert!(text.starts_with("process tree of 77 used 402 MiB at peak"), "{text}");
    assert!(text.contains("VmHWM") && text.contains("memory.peak") && text.contains("still running"), "{text}");
}

#[test]
fn without_a_cgroup_the_need_is_the_trees_and_says_so() {
    let mut parts = Parts::of_runs(&[12.3]);
    parts.runs[0].1 = RunAccount { peak_charge_bytes: None, floor_bytes: None, ..parts.runs[0].1.clone() };
    let text = run(&parts.view(), WIDE);
    assert_eq!(
        text.lines().next().unwrap(),
        "needs 107 MiB at peak (of the process tree, without its page cache, which no cgroup counted)"
    );
}

#[test]
fn memory_that_processes_may_share_is_shown_between_bounds() {
    let mut parts = Parts::of_runs(&[12.3]);
    let account = RunAccount { peak_charge_bytes: None, floor_bytes: Some(100 * MIB), ..parts.runs[0].1.clone() };
    let bounds = |least: u64, most: u64| RunAccount {
        tree_held_at_least_bytes: Some(least * MIB),
        tree_held_at_most_bytes: Some(most * MIB),
        ..account.clone()
    };
    parts.runs[0].1 = bounds(101, 603);
    let text = run(&parts.view(), WIDE);
    assert!(text.starts_with("needs between 101 MiB and 603 MiB at peak (floor at least 100 MiB;"), "{text}");
    let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("its processes may share memory, and how much is not known"), "{text}");
    parts.runs[0].1 = bounds(101, 103);
    let text = run(&parts.view(), WIDE);
    assert!(text.starts_with("needs 103 MiB at peak (floor 100 MiB;"), "{text}");
}

#[test]
fn bounds_that_are_close_are_one_value_in_the_first_line_and_in_the_table() {
    let mut parts = Parts::of_runs(&[12.3]);
    let heap = |mib: u64| Breakdown { heap: Some(mib * MIB), ..Breakdown::default() };
    let account = &mut parts.runs[0].1;
    (account.peak_charge_bytes, account.peak_breakdown_at_least, account.peak_breakdown) = (None, heap(97), heap(98));
    (account.tree_held_at_least_bytes, account.tree_held_at_most_bytes) = (Some(102 * MIB), Some(103 * MIB));
    (account.floor_bytes, account.floor_at_most_bytes) = (Some(100 * MIB), Some(101 * MIB));
    let text = run(&parts.view(), WIDE);
    assert!(text.starts_with("needs 103 MiB at peak (floor 100 MiB;"), "{text}");
    assert!(line(&text, "peak of processes").starts_with("peak of processes 103 MiB 97.0 MiB "), "{text}");
    assert!(line(&text, "floor").starts_with("floor 100 MiB "), "{text}");
}

#[test]
fn a_peak_that_memory_is_missing_from_is_a_lower_bound() {
    let mut parts = Parts::of_runs(&[12.3]);
    let aside = short::Aside { warnings: &[], notes: &[], record: None };
    let mut of = |kind, missing_from_peak| {
        let doubt = Doubt { kind, bytes: Some(64 * MIB), voids: false, missing_from_peak, sentence: "x".into() };
        parts.runs[0].1.doubts = vec![doubt];
        [run(&parts.view(), WIDE), short::run(&parts.view(), &aside, WIDE)]
            .map(|text| text.lines().next().unwrap_or_default().to_string())
    };
    let [whole, brief] = of(DoubtKind::FilesInMemory, true);
    assert!(whole.starts_with("needs at least 402 MiB at peak (floor at least 112 MiB;"), "{whole}");
    assert!(brief.starts_with("peak at least 402 MiB"), "{brief}");
    let [whole, brief] = of(DoubtKind::CachedBefore, true);
    assert!(whole.starts_with("needs at least 402 MiB at peak (floor 112 MiB;"), "{whole}");
    assert!(brief.starts_with("peak at least 402 MiB"), "{brief}");
    let [whole, brief] = of(DoubtKind::BetweenBounds, false);
    assert!(whole.starts_with("needs 402 MiB at peak (floor 112 MiB;"), "{whole}");
    assert!(brief.starts_with("peak 402 MiB"), "{brief}");
}

#[test]
fn a_killed_run_under_a_limit_is_not_called_a_need() {
    let mut parts = Parts::of_runs(&[12.3]);
    let account = parts.runs[0].1.clone();
    parts.runs[0].1 = RunAccount { limit_bytes: Some(200 * MIB), oom_kills: Some(1), ..account };
    let text = run(&parts.view(), WIDE);
    assert!(text.starts_with("was killed for lack of memory under a limit of 200 MiB"), "{text}");
    assert!(text.contains("(floor at least 112 MiB;"), "{text}");
}

#[test]
fn a_run_that_was_cut_short_is_not_called_a_need() {
    for what in ["the time-out", "signal 2"] {
        let mut parts = Parts::of_runs(&[12.3]);
        parts.runs[0].1.cut_short = Some(format!("{what} ended it"));
        let text = run(&parts.view(), WIDE);
        let expected = format!("used at least 402 MiB at peak until {what} ended it (floor at least 112 MiB;");
        assert!(text.starts_with(&expected), "{text}");
        parts.runs[0].1.limit_bytes = Some(500 * MIB);
        let text = run(&parts.view(), WIDE);
        assert!(text.starts_with(&format!("ran under a limit of 500 MiB and {}", &expected[..40])), "{text}");
    }
}

#[test]
fn a_record_without_runs_is_not_a_panic() {
    let header = fixture::header(RecordKind::Run);
    let view = View { header: &header, runs: vec![], budget: None, trials: &[], notes: &[], complete: false };
    assert!(run(&view, WIDE).starts_with("no run was recorded"));
    assert!(budget(&view, WIDE).starts_with("no answer yet"));
}

#[test]
fn the_first_line_of_a_budget_is_the_answer_with_its_confidence() {
    let text = budget(&Parts::of_a_budget().view(), WIDE);
    assert_eq!(
        text.lines().next().unwrap(),
        "needs 412 MiB to stay within 5 % of its 12.3 s (confident: at 402 MiB it was fast enough, at 390 MiB not)"
    );
    let narrow = budget(&Parts::of_a_budget().view(), Style { width: 66, color: false });
    assert_eq!(narrow.lines().next().unwrap(), "needs 412 MiB to stay within 5 % of its 12.3 s (confident)");
}

#[test]
fn a_note_of_the_record_that_the_answer_has_too_is_told_once() {
    let mut parts = Parts::of_a_budget();
    let note = "a note of both";
    parts.budget.as_mut().unwrap().notes = vec![note.into(), "of the answer alone".into()];
    let both = [note.to_string()];
    let text = budget(&View { notes: &both, ..parts.view() }, WIDE);
    assert_eq!(text.matches(note).count(), 1, "{text}");
    assert!(text.contains("of the answer alone"), "{text}");
}

#[test]
fn the_methods_are_compared_measured_beside_predicted_and_bounds_are_marked() {
    let text = budget(&Parts::of_a_budget().view(), WIDE);
    assert_eq!(
        line(&text, "Unlimited"),
        "Unlimited 1.21 GiB 104 MiB 1.09 GiB 4.00 MiB 8.00 MiB 11.0x",
        "the memory table comes first"
    );
    let costs = text.split("what each costs").nth(1).unwrap();
    assert_eq!(line(costs, "App-MaxRSS tree"), "App-MaxRSS tree > 1.50x 3.40x - 1 31 % < 0.67 < 0.67 too slow");
    assert_eq!(line(costs, "App-MaxRSS largest"), "App-MaxRSS largest - 24.0x - 1 - - - OOM kill");
    assert_eq!(line(costs, "bursar"), "bursar 1.01x 1.00x 110 ms 3 4.1 % 0.99 0.26 ok");
    let judged = text.split("what to think of each").nth(1).unwrap();
    assert_eq!(line(judged, "Unlimited"), "Unlimited high low low too much: 3.0x the answer");
}

#[test]
fn trials_are_listed_with_why_they_were_made() {
    let text = budget(&Parts::of_a_budget().view(), WIDE);
    let trials = text.split("trials, in their order").nth(1).unwrap();
    assert_eq!(line(trials, "3"), "3 390 MiB 18.5 s > 1.50x 3.40x 31 % 74,240 390 MiB too slow");
    assert_eq!(line(trials, "0"), "0 none 12.3 s 1.00x - 4 % - 402 MiB ok");
    assert!(text.contains("3: just below it"), "{text}");
}

#[test]
fn a_cut_short_search_keeps_its_trials() {
    let parts = Parts::of_a_budget();
    let trials = fixture::trials();
    let view = View { budget: None, trials: &trials[..3], complete: false, ..parts.view() };
    let text = budget(&view, WIDE);
    assert!(text.contains("--resume") && text.contains("the prediction's knee"), "{text}");
    assert!(text.contains("needs 402 MiB at peak"), "what the reference showed: {text}");
}

#[test]
fn lines_to_paste_carry_the_swap_setting_that_was_measured() {
    let lines =
        |report: &model::BudgetReport| paste_lines(report).into_iter().map(|(_, line)| line).collect::<Vec<_>>();
    let mut report = fixture::budget();
    report.answer.budget_bytes = Some(412 * MIB + 1);
    assert_eq!(
        lines(&report),
        [
            "#SBATCH --mem=413M",
            "resources: {limits: {memory: 413Mi}}",
            "systemd-run --scope -p MemoryMax=413M -p MemorySwapMax=0",
            "MemoryMax=413M",
            "MemorySwapMax=0",
            "docker run --memory 413m --memory-swap 413m",
        ]
    );
    report.swap = "swap allowed".to_string();
    assert!(lines(&report).contains(&"docker run --memory 413m --memory-swap -1".to_string()));
    report.answer.budget_bytes = None;
    assert_eq!(paste_lines(&report), []);
}

#[test]
fn every_width_from_60_to_200_is_kept_except_by_what_is_to_be_pasted() {
    for width in [60, 80, 100, 132, 200] {
        let style = Style { width, color: false };
        let parts = Parts::of_a_budget();
        let text = run(&Parts::of_runs(&[12.0, 12.6]).view(), style) + &budget(&parts.view(), style);
        for line in text.lines().filter(|line| !line.contains("systemd-run:") && !line.contains("Docker:")) {
            assert!(line.width() <= width, "{width} < {}: {line}", line.width());
        }
    }
}

#[test]
fn colours_come_only_when_asked_and_the_record_cannot_bring_its_own() {
    let mut parts = Parts::of_a_budget();
    parts.header.command.push("\u{1b}[2J".to_string());
    assert!(!budget(&parts.view(), WIDE).contains('\u{1b}'));
    assert!(budget(&parts.view(), Style { color: true, ..WIDE }).starts_with("\u{1b}[1mneeds"));
}

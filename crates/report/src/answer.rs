//! The answer of a budget search in sentences and in lines to paste.

use model::{BudgetReport, Bytes, Doubt, DoubtKind, LimitSource};

use crate::format::{bytes, percent, printable, seconds};

/// The answer in one sentence, without its reason.
pub fn headline(report: &BudgetReport) -> String {
    let time = report.reference_seconds.map_or_else(|| "unlimited run time".to_string(), seconds);
    let within = format!("within {} of its {time}", percent(Some(report.slowdown_target)));
    if let Some(doubt) = report.doubts.iter().find(|doubt| doubt.voids) {
        return printable(&doubt.sentence);
    }
    let doubt = report.doubts.first().map(|doubt| format!("; {}", printable(&doubt.sentence))).unwrap_or_default();
    match report.answer.budget_bytes {
        Some(budget) => {
            let mib = Bytes(budget).mib_ceil();
            if is_lower_bound_alone(report) {
                return match at_most_mib(report) {
                    Some(most) => format!("needs between {mib} MiB and about {most} MiB{doubt}"),
                    None => format!("needs more than {mib} MiB, and how much more is not known{doubt}"),
                };
            }
            format!("needs {mib} MiB{}{} to stay {within}{doubt}", of_tier(report), of_nodes(report))
        }
        None => why_none(report).unwrap_or_else(|| format!("no limit was found that keeps it {within}")),
    }
}

/// Where no limit was tried, the reason is all there is to say.
pub fn why_none(report: &BudgetReport) -> Option<String> {
    let has_tried = report.trials.iter().any(|trial| trial.limit_bytes.is_some());
    let reason = printable(report.answer.reason.trim_end_matches('.'));
    let is_all = report.answer.budget_bytes.is_none() && !has_tried && !reason.is_empty();
    is_all.then(|| reason.chars().take(1).flat_map(char::to_lowercase).chain(reason.chars().skip(1)).collect())
}

/// The answer as a limit and what it keeps, without doubts.
pub fn keeps_within(report: &BudgetReport) -> String {
    let time = report.reference_seconds.map_or_else(|| "run time".to_string(), seconds);
    let within = format!("keeps it within {} of its unlimited {time}", percent(Some(report.slowdown_target)));
    match report.answer.budget_bytes {
        Some(budget) if is_lower_bound_alone(report) => {
            let mib = Bytes(budget).mib_ceil();
            match at_most_mib(report) {
                Some(most) => format!("between {mib} MiB and about {most} MiB"),
                None => format!("more than {mib} MiB, how much more is not known"),
            }
        }
        Some(budget) => format!("{} MiB{}{} {within}", Bytes(budget).mib_ceil(), of_tier(report), of_nodes(report)),
        None => why_none(report).unwrap_or_else(|| format!("no limit was found that {within}")),
    }
}

/// Which memory the budget is of, where there is slower beside it.
fn of_tier(report: &BudgetReport) -> String {
    match report.fast_tier.as_deref() {
        None => String::new(),
        Some("ram") => " of RAM beside its swap".into(),
        Some(node) => format!(" of node {node}'s memory"),
    }
}

/// A limit is of one node.
fn of_nodes(report: &BudgetReport) -> String {
    match report.nodes.len() {
        0 => String::new(),
        nodes => format!(" on each of {nodes} nodes"),
    }
}

/// How sure the answer is, in a few words.
pub fn confidence(report: &BudgetReport) -> &'static str {
    match (report.answer.confident, report.limit_source) {
        (true, None) => "confident",
        (false, None) => "not sure",
        (true, Some(LimitSource::Emulated)) => "confident, limits emulated",
        (false, Some(LimitSource::Emulated)) => "not sure, limits emulated",
    }
}

/// Whether memory that cannot be reclaimed, half as much as the answer or more, is missing from it: then it is no more than a lower bound,
/// and other methods cannot be held to it.
pub fn is_lower_bound_alone(report: &BudgetReport) -> bool {
    let is_much = |bytes: u64| report.answer.budget_bytes.is_some_and(|budget| bytes >= budget / 2);
    report.doubts.iter().any(|doubt| doubt.may_kill() && doubt.bytes.is_some_and(is_much))
}

/// Up to how much may be needed where the answer is a lower bound alone; `None`: not known of all that is missing from it.
fn at_most_mib(report: &BudgetReport) -> Option<u64> {
    let budget = report.answer.budget_bytes?;
    let missing = report.doubts.iter().filter(|doubt| doubt.may_kill()).map(|doubt| match doubt.kind {
        DoubtKind::LimitNotHeld => most_page_cache(report),
        DoubtKind::FilesInMemory => None,
        _ => doubt.missing_bytes(),
    });
    let most = missing.into_iter().try_fold(budget, |most, bytes| Some(most.saturating_add(bytes?)))?;
    Some(Bytes(most).mib_ceil()).filter(|most| *most > Bytes(budget).mib_ceil())
}

/// The page cache that would hold all of its files at once, which no limit has to hold.
fn most_page_cache(report: &BudgetReport) -> Option<u64> {
    let demand = report.file_demand.as_ref().filter(|demand| demand.lost_events == 0)?;
    let hidden = demand.not_visible.iter().map(|(_, bytes)| *bytes);
    let cached = hidden.into_iter().try_fold(demand.distinct_bytes, |sum, bytes| Some(sum.saturating_add(bytes?)))?;
    // Some of it may be among the references.
    let unseen = report.doubts.iter().filter(|doubt| doubt.kind == DoubtKind::NotSeen).map(|doubt| doubt.bytes);
    unseen.into_iter().try_fold(cached, |most, bytes| Some(most.max(bytes?)))
}

/// Instead of lines to paste: a limit that memory of the job is missing from is not to be used.
pub fn why_nothing_to_paste(report: &BudgetReport) -> Option<&'static str> {
    let may_kill = report.answer.budget_bytes.is_some() && report.doubts.iter().any(Doubt::may_kill);
    may_kill.then_some(
        "no lines to paste: memory of the job may be missing from this limit, and the kernel may kill the job under it",
    )
}

/// What to paste where, as (tool, line), each with the swap setting that was measured where the tool has one. Empty
/// without an answer, and where the job may be killed under it.
pub fn paste_lines(report: &BudgetReport) -> Vec<(String, String)> {
    // No scheduler knows of a limit for a node.
    let is_of_all = report.fast_tier.as_deref().is_none_or(|tier| tier == "ram");
    let is_safe = is_of_all && why_nothing_to_paste(report).is_none();
    let Some(budget) = report.answer.budget_bytes.filter(|_| is_safe) else { return Vec::new() };
    let setting = report.setting.iter().map(|setting| ("environment, with each", setting.clone()));
    let lines = setting.chain(limit_lines(Bytes(budget), swap_allowed(report)));
    lines.map(|(tool, line)| (tool.to_string(), line)).collect()
}

/// Docker refuses lower limits.
const DOCKER_MIN_MIB: u64 = 6;

/// What to paste where for a limit, as (tool, line), rounded up to a MiB, with or without swap where the tool has a setting for it.
pub fn limit_lines(limit: Bytes, has_swap: bool) -> [(&'static str, String); 6] {
    let mib = limit.mib_ceil();
    let docker_mib = mib.max(DOCKER_MIN_MIB);
    let no_swap = || ("0", format!("{docker_mib}m"));
    let (systemd_swap, docker_swap) = if has_swap { ("infinity", "-1".to_string()) } else { no_swap() };
    [
        ("Slurm", format!("#SBATCH --mem={mib}M")),
        ("Kubernetes", format!("resources: {{limits: {{memory: {mib}Mi}}}}")),
        ("systemd-run", format!("systemd-run --scope -p MemoryMax={mib}M -p MemorySwapMax={systemd_swap}")),
        ("systemd unit", format!("MemoryMax={mib}M")),
        ("systemd unit", format!("MemorySwapMax={systemd_swap}")),
        ("Docker", format!("docker run --memory {docker_mib}m --memory-swap {docker_swap}")),
    ]
}

/// The limits around the answer and the margin; the answer's reason says what happened at them.
pub fn bracket(report: &BudgetReport) -> Option<String> {
    let answer = &report.answer;
    Some(format!(
        "smallest limit known to be enough: {}; largest known to be too little: {}; margin added: {}",
        bytes(Some(answer.smallest_passing_bytes?)),
        answer.largest_failing_bytes.map_or_else(|| "none was tried".into(), |limit| bytes(Some(limit))),
        bytes(Some(answer.margin_bytes)),
    ))
}

/// Whether the limits left the job its swap.
fn swap_allowed(report: &BudgetReport) -> bool {
    !["no swap", "MemorySwapMax=0"].iter().any(|forbidden| report.swap.contains(forbidden))
}

#[cfg(test)]
mod tests {
    use model::{Answer, FileDemand, NodeNeed};

    use super::*;
    use crate::fixture;

    #[test]
    fn a_budget_of_several_nodes_is_of_each() {
        let nodes = vec![NodeNeed::default(), NodeNeed::default()];
        let told = headline(&BudgetReport { nodes, ..fixture::budget() });
        assert!(told.contains(" MiB on each of 2 nodes to stay"), "{told}");
    }

    #[test]
    fn a_limit_that_was_never_too_little_is_not_a_dash() {
        let mut report = fixture::budget();
        report.answer.smallest_passing_bytes = Some(255 << 20);
        report.answer.margin_bytes = 3 << 20;
        report.answer.largest_failing_bytes = None;
        let none = "smallest limit known to be enough: 255 MiB; largest known to be too little: none was tried; margin added: 3.00 MiB";
        assert_eq!(bracket(&report).as_deref(), Some(none));
        report.answer.largest_failing_bytes = Some(230 << 20);
        assert!(bracket(&report).unwrap().contains("too little: 230 MiB;"));
    }

    #[test]
    fn where_no_limit_was_tried_the_reason_is_all_there_is() {
        let reason = "Interrupted before any limit was tried.";
        let mut report = fixture::budget();
        report.answer = Answer { reason: reason.into(), ..Answer::default() };
        assert!(keeps_within(&report).starts_with("no limit was found"), "{}", keeps_within(&report));
        report.trials.clear();
        assert_eq!([keeps_within(&report), headline(&report)], ["interrupted before any limit was tried"; 2]);
    }

    /// The fixture's answer is 412 MiB, and its program used files of 290 MiB.
    fn lacking(kind: DoubtKind, bytes: u64) -> BudgetReport {
        let doubt =
            Doubt { kind, bytes: Some(bytes << 20), voids: false, missing_from_peak: false, sentence: "x".into() };
        BudgetReport { doubts: vec![doubt], ..fixture::budget() }
    }

    #[test]
    fn an_answer_that_much_is_missing_from_is_a_lower_bound_with_an_upper_one() {
        let told = |kind, bytes| keeps_within(&lacking(kind, bytes));
        assert!(told(DoubtKind::NotCounted, 100).contains("keeps it within"));
        assert!(told(DoubtKind::BetweenBounds, 500).contains("keeps it within"), "it holds the upper bound");
        assert_eq!(told(DoubtKind::NotCounted, 500), "between 412 MiB and about 912 MiB");
        let report = lacking(DoubtKind::NotCounted, 500);
        assert_eq!(headline(&report), "needs between 412 MiB and about 912 MiB; x");
        // How much more it had under a limit that did not hold is not what it needs.
        let mut report = lacking(DoubtKind::LimitNotHeld, 9000);
        report.file_demand = Some(FileDemand { not_visible: Vec::new(), ..fixture::file_demand() });
        assert_eq!(keeps_within(&report), "between 412 MiB and about 702 MiB");
    }

    #[test]
    fn where_nothing_is_known_of_what_is_missing_there_is_no_upper_bound() {
        for kind in [DoubtKind::WorkDiffers, DoubtKind::WentOn, DoubtKind::FilesInMemory] {
            let told = keeps_within(&lacking(kind, 500));
            assert_eq!(told, "more than 412 MiB, how much more is not known");
        }
        let mut report = lacking(DoubtKind::LimitNotHeld, 500);
        let not_visible = vec![("what was killed".to_string(), None)];
        report.file_demand = Some(FileDemand { not_visible, ..fixture::file_demand() });
        assert!(keeps_within(&report).ends_with("how much more is not known"));
    }

    #[test]
    fn a_limit_that_memory_is_missing_from_is_not_to_be_pasted() {
        let with = |kind| {
            let doubt =
                Doubt { kind, bytes: Some(64 << 20), voids: false, missing_from_peak: false, sentence: "x".into() };
            BudgetReport { doubts: vec![doubt], ..fixture::budget() }
        };
        for kind in [
            DoubtKind::LeftCgroup,
            DoubtKind::Client,
            DoubtKind::InputMissing,
            DoubtKind::SharedBefore,
            DoubtKind::NotCounted,
            DoubtKind::FilesInMemory,
            DoubtKind::WentOn,
            DoubtKind::WorkDiffers,
            DoubtKind::LimitNotHeld,
        ] {
            assert_eq!(paste_lines(&with(kind)), [], "{kind:?}");
            assert!(why_nothing_to_paste(&with(kind)).is_some(), "{kind:?}");
        }
        // With less page cache a job is slower, and a limit that is too large kills nobody.
        for kind in [DoubtKind::BetweenBounds, DoubtKind::CachedBefore, DoubtKind::NotSeen, DoubtKind::OthersInCgroup] {
            assert_eq!(paste_lines(&with(kind)), paste_lines(&fixture::budget()), "{kind:?}");
            assert_eq!(why_nothing_to_paste(&with(kind)), None, "{kind:?}");
        }
        let without_answer = BudgetReport { answer: Default::default(), ..with(DoubtKind::SharedBefore) };
        assert_eq!(why_nothing_to_paste(&without_answer), None);
    }

    #[test]
    fn a_setting_without_which_the_limit_is_no_answer_is_pasted_with_it() {
        let of_java = BudgetReport { setting: Some("JAVA_TOOL_OPTIONS=-Xmx111m".into()), ..fixture::budget() };
        assert_eq!(paste_lines(&of_java)[0].1, "JAVA_TOOL_OPTIONS=-Xmx111m");
        assert_eq!(paste_lines(&of_java)[1..], paste_lines(&fixture::budget()));
    }

    #[test]
    fn a_budget_of_fast_memory_is_told_as_that() {
        let of = |tier: &str| BudgetReport { fast_tier: Some(tier.into()), ..fixture::budget() };
        assert!(headline(&of("ram")).contains(" MiB of RAM beside its swap to stay"), "{}", headline(&of("ram")));
        assert!(headline(&of("1")).contains(" MiB of node 1's memory to stay"), "{}", headline(&of("1")));
        assert!(!paste_lines(&of("ram")).is_empty());
        assert_eq!(paste_lines(&of("1")), []);
    }
}

//! The answer of a budget search in sentences and in lines to paste.

use model::{BudgetReport, Bytes};

use crate::format::{bytes, percent, seconds};

/// The answer in one sentence, without its reason.
pub fn headline(report: &BudgetReport) -> String {
    let within = format!(
        "within {} of its {}",
        percent(Some(report.slowdown_target)),
        report.reference_seconds.map_or_else(|| "unlimited run time".to_string(), seconds)
    );
    match report.answer.budget_bytes {
        Some(budget) => format!("needs {} MiB to stay {within}", Bytes(budget).mib_ceil()),
        None => format!("no limit was found that keeps it {within}"),
    }
}

/// How sure the answer is, in a word or two.
pub fn confidence(report: &BudgetReport) -> &'static str {
    if report.answer.confident { "confident" } else { "not sure" }
}

/// What to paste where, as (tool, line), each with the swap setting that was measured where the tool has one. Empty
/// without an answer.
pub fn paste_lines(report: &BudgetReport) -> Vec<(String, String)> {
    let Some(budget) = report.answer.budget_bytes else { return Vec::new() };
    let mib = Bytes(budget).mib_ceil();
    let (systemd_swap, docker_swap) =
        if swap_allowed(report) { ("infinity", "-1".to_string()) } else { ("0", format!("{mib}m")) };
    [
        ("Slurm", format!("#SBATCH --mem={mib}M")),
        ("Kubernetes", format!("resources: {{limits: {{memory: {mib}Mi}}}}")),
        ("systemd-run", format!("systemd-run --scope -p MemoryMax={mib}M -p MemorySwapMax={systemd_swap}")),
        ("systemd unit", format!("MemoryMax={mib}M")),
        ("systemd unit", format!("MemorySwapMax={systemd_swap}")),
        ("Docker", format!("docker run --memory {mib}m --memory-swap {docker_swap}")),
    ]
    .into_iter()
    .map(|(tool, line)| (tool.to_string(), line))
    .collect()
}

/// What the margin is and why, and what the limits around the answer did.
pub fn margin_sentence(report: &BudgetReport) -> Option<String> {
    let answer = &report.answer;
    let passing = answer.smallest_passing_bytes?;
    let failing = match answer.largest_failing_bytes {
        Some(failing) => format!("{} did not", bytes(Some(failing))),
        None => "no smaller limit was seen to fail".to_string(),
    };
    let margin = match answer.margin_bytes {
        0 => "no margin was added".to_string(),
        margin => format!("margin {} for the spread of the peaks seen", bytes(Some(margin))),
    };
    Some(format!("{} passed, {failing}; {margin}", bytes(Some(passing))))
}

/// Whether the limits left the job its swap; bursar says `swap allowed` where they did.
fn swap_allowed(report: &BudgetReport) -> bool {
    report.swap.contains("allowed")
}

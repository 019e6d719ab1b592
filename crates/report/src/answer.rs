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

/// The limits around the answer and the margin; the answer's reason says what happened at them.
pub fn bracket(report: &BudgetReport) -> Option<String> {
    let answer = &report.answer;
    Some(format!(
        "smallest limit that does {}, largest that does not {}, margin {}",
        bytes(Some(answer.smallest_passing_bytes?)),
        bytes(answer.largest_failing_bytes),
        bytes(Some(answer.margin_bytes)),
    ))
}

/// Whether the limits left the job its swap.
fn swap_allowed(report: &BudgetReport) -> bool {
    !["no swap", "MemorySwapMax=0"].iter().any(|forbidden| report.swap.contains(forbidden))
}

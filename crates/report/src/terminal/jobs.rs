//! What jobs should ask for.

use model::JobsMemory;

use super::Style;
use super::table::Page;
use crate::format::printable;
use crate::jobs;
use crate::tables::Tone;

/// What jobs should ask for: why that is not sure, if it is not, then what it would have brought.
pub fn jobs(found: &JobsMemory, style: Style) -> String {
    let mut page = Page::new(style);
    for doubt in &found.doubts {
        page.paragraph(Tone::Warning, &printable(doubt));
    }
    page.paragraph(Tone::Strong, &jobs::headline(found));
    page.gap();
    page.table(&jobs::table(found));
    page.gap();
    for note in &found.notes {
        page.paragraph(Tone::Plain, &format!("note: {}", printable(note)));
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use model::{JobMemory, MemoryPer};

    use super::*;

    fn solver() -> JobMemory {
        JobMemory {
            name: "solver".into(),
            names: 1,
            per: MemoryPer::Node,
            runs: 6,
            cut_short: 2,
            out_of_memory: 1,
            min_bytes: 60 << 20,
            median_bytes: Some(95 << 20),
            percentile_bytes: 116 << 20,
            max_bytes: 116 << 20,
            max_is_lower_bound: false,
            is_lower_bound: false,
            cache_bytes: None,
            asked_bytes: Some(400 << 20),
            mem_bytes: Some(128 << 20),
            by_number: None,
            by_number_positions: Vec::new(),
            is_upper_bound: false,
            mem_with_cache_bytes: None,
            mem_without_cache_bytes: None,
            reserved_gib_hours: Some(20.0),
            saved_gib_hours: Some(12.34),
            killed: 0,
            maybe_killed: 1,
            next_needs_more: 1.0 / 6.0,
        }
    }

    fn report(jobs: &[JobMemory]) -> String {
        with_doubts(jobs, &[])
    }

    fn with_doubts(jobs: &[JobMemory], doubts: &[&str]) -> String {
        let found = JobsMemory {
            percentile: 0.95,
            gatherer: None,
            slurm_version: None,
            doubts: doubts.iter().map(|doubt| (*doubt).to_string()).collect(),
            left_out: 0,
            jobs: jobs.to_vec(),
            notes: vec!["a note".into()],
        };
        super::jobs(&found, Style { width: 100, color: false })
    }

    #[test]
    fn the_answer_comes_first_then_a_row_for_each_name() {
        let text = report(&[solver()]);
        let first = "6 past jobs: asking for --mem would have saved 12.3 of the 20.0 GiB·h that they reserved, and killed 0 of them, and \
                     perhaps 1 that were cut short";
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").starts_with(first), "{text}");
        let row = text.lines().find(|line| line.starts_with("solver")).unwrap();
        for cell in ["6 (2 cut)", " 95M ", " 116M ", " - ", " 400M ", " 128M ", " 12.3 ", "0 to 1", "17 %"] {
            assert!(row.contains(cell), "{cell}: {row}");
        }
        assert!(text.contains("95 % need") && text.contains("note: a note"), "{text}");
    }

    #[test]
    fn kinds_of_single_runs_are_no_evidence() {
        let single = |name: &str| JobMemory { name: name.into(), runs: 1, ..solver() };
        let text = report(&[single("a1"), single("b2")]);
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(
            words.join(" ").contains("no evidence: 2 of them are each the only run of its kind. --by groups"),
            "{text}"
        );
        assert!(!report(&[single("a1"), solver()]).contains("no evidence"));
    }

    #[test]
    fn a_doubt_comes_before_the_answer_and_an_upper_bound_says_so() {
        let text = with_doubts(&[JobMemory { is_upper_bound: true, ..solver() }], &["upper bound: a reason"]);
        assert!(text.starts_with("upper bound: a reason\n6 past jobs") && text.contains("\u{2264}128M"), "{text}");
    }

    #[test]
    fn what_is_a_lower_bound_what_is_per_cpu_and_what_costs_more_says_so() {
        let larger = JobMemory {
            name: "a\u{1b}[31m".into(),
            per: MemoryPer::Cpu,
            is_lower_bound: true,
            saved_gib_hours: Some(-2.0),
            ..solver()
        };
        let text = report(&[larger]);
        assert!(
            text.contains("(per CPU)")
                && text.contains("> 116M")
                && text.contains(" \u{2265}128M ")
                && !text.contains('\u{1b}'),
            "{text}"
        );
        assert!(text.contains("cost 2.0 GiB·h beyond the 20.0"), "{text}");
        let timeless = JobMemory { reserved_gib_hours: None, saved_gib_hours: None, ..solver() };
        let text = report(std::slice::from_ref(&timeless));
        assert!(text.contains("how long they ran is unknown") && !text.contains("requests are unknown"), "{text}");
        let unknown = JobMemory { asked_bytes: None, ..timeless };
        assert!(report(&[unknown]).contains("their requests are unknown"));
    }

    #[test]
    fn a_kind_that_never_ended_well_has_no_mem_and_no_figures_of_it() {
        let unknown = JobMemory {
            name: String::new(),
            runs: 3,
            cut_short: 3,
            median_bytes: None,
            max_bytes: 1000 << 20,
            max_is_lower_bound: true,
            percentile_bytes: 1000 << 20,
            mem_bytes: None,
            saved_gib_hours: None,
            is_lower_bound: true,
            ..solver()
        };
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = report(&[solver(), unknown.clone()]);
        assert!(
            words(&text).contains("perhaps 1 that were cut short. 3 more are of kinds that never ended well"),
            "{text}"
        );
        let row = text.lines().find(|line| line.starts_with("(no name)")).unwrap();
        assert_eq!(words(row), "(no name) 3 (3 cut) - > 1000M > 1000M - 400M > 1000M - - -");
        assert!(report(&[unknown]).starts_with("3 past jobs: none of a kind that ended well, so no --mem is known"));
    }
}

//! How long page faults took.

use super::Style;
use super::table::Page;
use crate::faults::{
    Faulted, arm, calls_table, headline, kinds_table, on_cpu_table, orders_table, sentences, slowest_table,
};
use crate::format::printable;
use crate::tables::Tone;

/// How long page faults took; its first line is the answer.
pub fn faults(faulted: &Faulted, style: Style) -> String {
    report(faulted, style, true)
}

/// The same without the tables of single faults, of system calls and of time on the processor.
pub fn short_faults(faulted: &Faulted, style: Style) -> String {
    report(faulted, style, false)
}

fn report(faulted: &Faulted, style: Style, is_full: bool) -> String {
    let mut page = Page::new(style);
    for (number, faults) in faulted.runs.iter().enumerate() {
        if number == 0 {
            page.paragraph(Tone::Strong, &headline(faults));
            page.paragraph(Tone::Plain, &printable(&faulted.command()));
        } else {
            page.gap();
            page.paragraph(Tone::Strong, &printable(&format!("{}: {}", arm(faults), headline(faults))));
        }
        let page_bytes = faulted.header.page_bytes;
        let details =
            [on_cpu_table(faults), orders_table(faults, page_bytes), calls_table(faults), slowest_table(faults)];
        let details = details.into_iter().filter(|_| is_full);
        for table in std::iter::once(kinds_table(faults)).chain(details) {
            if !table.rows.is_empty() {
                page.gap();
                page.table(&table);
            }
        }
        page.gap();
        for sentence in sentences(faults) {
            page.paragraph(Tone::Plain, &sentence);
        }
        page.paragraph(Tone::Dim, &format!("seen by {}", printable(&faults.rung)));
        for note in &faults.notes {
            page.paragraph(Tone::Plain, &format!("note: {}", printable(note)));
        }
    }
    if faulted.runs.is_empty() {
        page.paragraph(Tone::Strong, "no run was recorded");
    }
    for note in faulted.notes {
        page.paragraph(Tone::Plain, &format!("note: {}", printable(note)));
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use model::{Faults, RecordKind};

    use super::*;
    use crate::faults::tests::{counted, faults as by_bpf};
    use crate::fixture;

    fn report(runs: &[Faults], width: usize) -> String {
        let header = fixture::header(RecordKind::Faults);
        faults(&Faulted { header: &header, runs, notes: &[] }, Style { width, color: false })
    }

    #[test]
    fn a_short_report_has_the_kinds_and_what_was_found_and_no_single_fault() {
        let header = fixture::header(RecordKind::Faults);
        let runs = [by_bpf()];
        let text =
            short_faults(&Faulted { header: &header, runs: &runs, notes: &[] }, Style { width: 110, color: false });
        assert!(text.contains("\nbase") && text.contains("Longer than 50 µs: 7, "), "{text}");
        assert!(!text.contains("slowest") && !text.contains("on the processor  "), "{text}");
        assert!(text.lines().count() < report(&runs, 110).lines().count());
    }

    #[test]
    fn the_distribution_of_every_kind_is_a_line() {
        let text = report(&[by_bpf()], 110);
        for part in [
            "512 page faults took 46 ms: half of them up to 89.6 µs",
            "\nbase",
            "\nhuge",
            "p99.999",
            "2.00 MiB (order 9)",
            "huge (collapse)",
            "Longer than 50 µs: 7, ",
            "with compaction in 3, ",
            "taken again: 1 more",
            "Following them cost 700 ns a fault",
            "seen by told by hand",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    }

    #[test]
    fn a_second_run_says_beside_what() {
        let beside = Faults { run: 1, beside: Some("make -j2".into()), ..by_bpf() };
        assert!(report(&[by_bpf(), beside], 100).contains("\nbeside make -j2: 512 page faults"));
    }

    #[test]
    fn counts_alone_are_a_few_lines() {
        let text = report(&[counted()], 100);
        assert!(text.contains("seen by counted") && text.lines().count() < 7, "{text}");
        assert!(report(&[], 100).contains("no run was recorded"));
    }
}

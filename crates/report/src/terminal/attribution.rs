//! Who held the memory.

use super::Style;
use super::table::Page;
use crate::attribution::{
    Attributed, beside, components_table, functions_table, has_ranks, headline, init_sentence, libraries_table,
    own_sentence, peaks_table, phases_table, ranks_table, scaling_table, times_table,
};
use crate::comm::{comm_table, sent_sentence};
use crate::format::printable;
use crate::tables::Tone;

/// Processes of a run without ranks that are listed.
const MOST_PROCESSES: usize = 6;

/// Who held the memory; its first line is the answer.
pub fn attribution(attributed: &Attributed, style: Style) -> String {
    let mut page = Page::new(style);
    let Some(shown) = attributed.shown() else {
        page.paragraph(Tone::Strong, "no run was recorded");
        return page.finish();
    };
    page.paragraph(Tone::Strong, &headline(shown, attributed.went_on(), attributed.files_in_memory()));
    page.paragraph(Tone::Plain, &printable(&attributed.command()));
    if attributed.attributions.len() > 1 {
        page.gap();
        page.table(&scaling_table(&attributed.scale()));
    }
    if shown.ranks > 0 {
        page.gap();
        page.table(&components_table(shown));
    }
    if shown.ranks > 1 {
        page.gap();
        page.table(&if has_ranks(shown) { peaks_table(shown) } else { ranks_table(shown, MOST_PROCESSES) });
    }
    for table in [phases_table(shown), functions_table(shown), times_table(shown)] {
        if !table.rows.is_empty() {
            page.gap();
            page.table(&table);
        }
    }
    if attributed.by_library() {
        page.gap();
        page.table(&libraries_table(shown));
    }
    if let Some(matrix) = &shown.comm_matrix {
        page.gap();
        page.paragraph(Tone::Plain, &sent_sentence(matrix));
        page.table(&comm_table(matrix));
    }
    page.gap();
    for sentence in init_sentence(shown).into_iter().chain([own_sentence(shown)]).chain(beside(shown)) {
        page.paragraph(Tone::Plain, &sentence);
    }
    for note in attributed.notes.iter().chain(&shown.notes) {
        page.paragraph(Tone::Plain, &format!("note: {}", printable(note)));
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use model::{
        Attribution, Axis, CommMatrix, LibraryUse, Messages, Named, Observation, RunRole, Series, Target, Unit,
    };

    use super::*;
    use crate::attribution::{BY_LIBRARY, FilesInMemory, files_in_memory};
    use crate::fixture;

    fn report(attributions: &[Attribution], by_library: bool) -> String {
        let mut header = fixture::header(model::RecordKind::Attribute);
        header.options = by_library.then(|| (BY_LIBRARY.to_string(), "yes".to_string())).into_iter().collect();
        let notes = ["the record's own".to_string()];
        let attributed = Attributed { header: &header, attributions, runs: &[], notes: &notes };
        attribution(&attributed, Style { width: 100, color: false })
    }

    #[test]
    fn what_one_wants_to_know_is_in_few_lines_that_fit() {
        let text = report(&[Attribution { comm_matrix: None, ..fixture::attribution(4) }], false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("held 620 MiB at peak (4 ranks)"), "{text}");
        for part in [
            "allocator-retained",
            "100 MiB ± 3.27 MiB",
            "MPI_Alltoall",
            "MPI_Init brought 49.0 MiB per rank in 300 ms, of which 41.0 MiB libLLVM-15.so.1\n",
            "in no figure: sh 99 (2.00 MiB)",
            "bursar's own memory, in no other figure: 3.00 MiB at peak of a rank, 12.0 MiB of all",
            "solve<p>",
            "note: calls of mremap",
            "note: the record's own",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("MPI_Wtime") && !text.contains("hugetlb"), "nothing that says nothing: {text}");
        assert!(lines.len() <= 35 && lines.iter().all(|line| line.chars().count() <= 100), "{text}");
        let unexplained = Attribution { unattributed_peak_bytes: 62 << 20, ..fixture::attribution(4) };
        assert!(
            !text.contains("of the peak:")
                && report(&[unexplained], false).contains("unattributed is 10 % of the peak:")
        );
        assert!(!text.contains("library ") && report(&[fixture::attribution(4)], true).contains("library "));
    }

    #[test]
    fn what_took_most_time_comes_first_if_it_was_measured() {
        let mut timed = fixture::attribution(4);
        for (function, seconds) in timed.functions.iter_mut().zip([0.3, 2.5]) {
            (function.calls, function.seconds) = (100, Some(seconds));
        }
        let text = report(&[timed], false);
        let at = text.lines().position(|line| line.starts_with("function") && line.contains("each")).unwrap();
        let listed: Vec<&str> = text.lines().skip(at + 1).take_while(|line| !line.is_empty()).collect();
        assert!(listed.len() == 2 && listed[0].contains("2.50 s") && listed[1].contains("3.00 ms"), "{text}");
        assert!(!report(&[fixture::attribution(4)], false).contains("each"));
    }

    #[test]
    fn runs_of_several_numbers_of_ranks_are_a_table() {
        let runs = [1, 2, 4].map(|ranks| Attribution { run: ranks as u32, ..fixture::attribution(ranks) });
        let text = report(&runs, false);
        assert!(text.contains("(4 ranks)") && text.contains("\npeak of a rank       ranks"), "{text}");
        let at = text.lines().position(|line| line.starts_with("mpi ")).unwrap();
        let ranks: Vec<&str> = text.lines().skip(at).take(3).map(|line| line[..28].trim_end()).collect();
        assert_eq!(ranks.iter().map(|line| &line[line.len() - 1..]).collect::<Vec<_>>(), ["1", "2", "4"], "{text}");
        assert!(ranks[1].trim_start() == "2", "{text}");
    }

    #[test]
    fn without_mpi_the_largest_processes_are_listed() {
        let mut several = fixture::attribution(4);
        several.per_rank.iter_mut().for_each(|rank| rank.rank = None);
        several.per_rank.extend(vec![several.per_rank[0].clone(); 4]);
        if let Some(mpi) = several.components.get_mut("mpi") {
            *mpi = Default::default();
        }
        let text = report(&[several], false);
        assert!(
            text.starts_with("held 620 MiB at peak (8 processes)") && text.contains("at peak of a process"),
            "{text}"
        );
        let at =
            text.lines().position(|line| line.contains("  unattributed  ") && line.ends_with("  components")).unwrap();
        let listed: Vec<&str> = text.lines().skip(at + 1).take(7).collect();
        assert!(listed[0].starts_with("solve<r> 101   159 MiB") && listed[6] == "and 2 more", "{text}");
        assert!(!text.lines().any(|line| line.starts_with("mpi ")), "nothing to say of it: {text}");
    }

    #[test]
    fn by_touch_the_headline_and_the_rung_say_so() {
        let mut touched = Attribution { by: Axis::Touch, rung: "page-fault events".into(), ..fixture::attribution(4) };
        touched.allocator_retained = None;
        let text = report(&[touched.clone()], false);
        assert!(text.starts_with("held 620 MiB at peak (4 ranks); by touch, at their own peaks application"), "{text}");
        assert!(text.contains("seen by page-fault events\n") && !text.contains("allocator-retained"), "{text}");
        touched.total_peak_bytes = 0;
        assert!(report(&[touched], false).starts_with("nothing is known by touch: page-fault events\n"));
    }

    #[test]
    fn messages_of_few_ranks_are_a_matrix_and_of_many_the_busiest_pairs() {
        let sent = |ranks: usize| CommMatrix {
            ranks: (0..ranks).map(|rank| rank.to_string()).collect(),
            messages: (0..ranks).map(|from| (0..ranks).map(|to| u64::from(from != to)).collect()).collect(),
            bytes: (0..ranks).map(|from| (0..ranks).map(|to| ((from * to) as u64) << 20).collect()).collect(),
            to_other_worlds: Messages { messages: 2, bytes: 1 << 10 },
        };
        let text = |ranks| report(&[Attribution { comm_matrix: Some(sent(ranks)), ..fixture::attribution(4) }], false);
        let few = text(16);
        assert!(
            few.contains("sent point to point: 240 messages, 14.1 GiB; to ranks of another world: 2 messages, 1.00")
        );
        let at = few.lines().position(|line| line.starts_with("bytes from, to")).unwrap();
        let last = few.lines().nth(at + 16).unwrap();
        assert!(last.starts_with("15 ") && last.ends_with("210M 225M") && last.len() <= 100, "{few}");
        let many = text(17);
        let at = many.lines().position(|line| line.starts_with("sent from")).unwrap();
        let listed: Vec<&str> = many.lines().skip(at + 1).take_while(|line| !line.is_empty()).collect();
        assert_eq!(listed.len(), 10, "{many}");
        assert!(listed[0].starts_with("15") && listed[0].ends_with("240 MiB"), "nothing to itself: {many}");
    }

    #[test]
    fn the_rest_of_many_libraries_is_one_line_that_counts_them() {
        let mut many = fixture::attribution(4);
        let library = many.libraries[0].clone();
        many.libraries =
            (0..300).map(|n| LibraryUse { library: format!("{n}.so"), bytes: 1 << 20, ..library.clone() }).collect();
        many.libraries[299].component = "application".into();
        let text = report(&[many], true);
        let last = text.lines().find(|line| line.starts_with("and 280 more")).unwrap();
        assert!(last.contains(" 280 MiB ") && last.ends_with("mpi, application"), "{text}");
    }

    #[test]
    fn what_went_on_is_in_the_first_line() {
        let shown = fixture::attribution(4);
        let said = |went_on: &[Named]| headline(&shown, went_on, FilesInMemory::AtMost(0));
        let named = |name: &str, bytes| Named { name: name.into(), bytes };
        assert!(!said(&[]).contains("went on"));
        let one = said(&[named("redis", Some(3 << 20))]);
        assert!(one.contains("(4 ranks), until the command ended: redis (3.00 MiB) went on, and what it did"), "{one}");
        let two = said(&[named("a", None), named("redis", Some(3 << 20))]);
        assert!(two.contains("redis (3.00 MiB) and 1 more went on, and what they did"), "{two}");
    }

    #[test]
    fn files_in_memory_that_no_process_mapped_are_in_the_first_line() {
        let mut shown = fixture::attribution(4);
        shown.without_library.clear();
        let series = |name: &str, rung: &str, points: &[(u64, u64)]| Series {
            name: name.into(),
            process: None,
            unit: Unit::Bytes,
            rung: rung.into(),
            points: points.iter().map(|(t, mib)| (t * 100_000_000, (mib << 20) as f64)).collect(),
        };
        let charged = [(1, 0), (2, 64), (3, 184), (40, 64)];
        let mapped = series("attribute.total.shared_bytes", "smaps", &[(1, 0), (5, 64)]);
        let of = |rung| {
            let mut run = Observation::begun(0, RunRole::Plain, Target::Command, "as found".into(), 0);
            run.series = vec![series("shared_bytes", rung, &charged), mapped.clone()];
            run.evidence.files_in_memory = Some(Named { name: "/memfd:x".into(), bytes: Some(30 << 20) });
            files_in_memory(&shown, &run)
        };
        assert_eq!(of("cgroup v2"), FilesInMemory::AtMost(120 << 20));
        assert_eq!(of("process tree"), FilesInMemory::AtLeast(30 << 20));
        assert!(headline(&shown, &[], of("process tree")).contains(", and at least 30.0 MiB in files in memory"));
        assert!(headline(&shown, &[], of("cgroup v2")).contains(
            "(4 ranks), and up to 120 MiB in files in memory (tmpfs, memfds) that no process had mapped, which are not attributed"
        ));
        assert!(!headline(&shown, &[], FilesInMemory::AtMost(1 << 20)).contains("files in memory"));
    }

    #[test]
    fn without_logs_that_is_said() {
        assert!(report(&[Attribution::default()], false).starts_with("no process of the command left a log"));
        assert!(report(&[], false).starts_with("no run was recorded"));
    }
}

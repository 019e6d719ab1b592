//! Tables that others wrote, or damaged: each line is used or left out with a reason, and nothing panics.

use predict::{Evidence, Need, read_table};
use proptest::prelude::*;

const HEADS: [&str; 6] = [
    "task_id\tname\tstatus\texit\trealtime\tmemory\tpeak_rss\trchar\tcomplete",
    "process\tpeak_rss",
    "s\th:m:s\tmax_rss\tmax_vms\tio_in\tinput_size_mb",
    "task,input_bytes,peak_bytes,seconds,completed,failed,requested_bytes,threads",
    "peak_bytes",
    "peak_rss,s,max_rss,peak_bytes,peak_rss",
];
const CELLS: [&str; 28] = [
    "",
    "-",
    "NA",
    "0",
    "1",
    "-1",
    "12.5",
    "1e18",
    "1e400",
    "-1e400",
    "nan",
    "inf",
    "1.5 GB",
    "-2 GB",
    "1e30 TB",
    "999999999999 TB",
    "COMPLETED",
    "CACHED",
    "FAILED",
    "137",
    "1h 2m 3.5s",
    "250ms",
    "5 parsecs",
    "s",
    "\"a\nb\"",
    "\"a\tb",
    "é",
    "NF:ALIGN (x)",
];

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![8 => prop::sample::select(&CELLS[..]).prop_map(String::from), 1 => "\\PC{0,12}", 1 => "[0-9]{1,30}(\\.[0-9]{1,3})?( [KMGTPE]?B)?"]
}

/// A head, or a damaged one, and rows of any length.
fn table() -> impl Strategy<Value = String> {
    let head = prop_oneof![9 => prop::sample::select(&HEADS[..]).prop_map(String::from), 1 => "\\PC{0,60}"];
    let rows = prop::collection::vec(prop::collection::vec(cell(), 0..10), 0..12);
    (head, rows, prop::sample::select(&["\n", "\r\n", "\r"][..])).prop_map(|(head, rows, end)| {
        let separator = if head.contains('\t') { "\t" } else { "," };
        let lines = std::iter::once(head.clone()).chain(rows.iter().map(|row| row.join(separator)));
        lines.collect::<Vec<_>>().join(end)
    })
}

/// Reads it; what is read are sizes and times, whatever the cells were.
fn assert_reads(text: &str) -> Result<(), TestCaseError> {
    let mut evidence = Evidence::default();
    if let Err(error) = read_table(text, "history", &mut evidence) {
        let sentence = error.to_string();
        prop_assert!(sentence.starts_with("history is no history: ") && !sentence.contains('\n'), "{sentence:?}");
        prop_assert!(evidence.runs.is_empty() && evidence.left_out.is_empty());
        return Ok(());
    }
    for run in &evidence.runs {
        let (Some(Need::Exactly(bytes)) | Some(Need::MoreThan(bytes))) = run.floor else {
            return Err(TestCaseError::fail(format!("a run without a need: {run:?}")));
        };
        prop_assert!(bytes > 0.0 && bytes.is_finite(), "{run:?}");
        prop_assert!(
            run.features.values().chain([&run.seconds]).all(|number| number.is_finite() && *number >= 0.0),
            "{run:?}"
        );
        prop_assert!(run.time.is_finite(), "{run:?}");
    }
    prop_assert!(
        evidence.left_out.iter().all(|left_out| !left_out.reason.is_empty() && !left_out.reason.contains('\n')),
        "{evidence:?}"
    );
    Ok(())
}

proptest! {
    #[test]
    fn tables_with_any_cells_are_read_or_refused(text in table()) {
        assert_reads(&text)?;
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(\\PC|[\t\n\r,|\"]){0,300}") {
        assert_reads(&text)?;
    }

    #[test]
    fn each_row_is_used_or_left_out(rows in prop::collection::vec((cell(), cell(), cell()), 1..20)) {
        let plain = |text: &String| text.replace(['\n', '\r', '\t', ',', '"'], "");
        let rows: Vec<String> = rows.iter().map(|(a, b, c)| format!("align,{},{},{}\n", plain(a), plain(b), plain(c))).collect();
        let mut evidence = Evidence::default();
        read_table(&format!("task,input_bytes,peak_bytes,seconds\n{}", rows.concat()), "history", &mut evidence).unwrap();
        prop_assert_eq!(evidence.runs.len() + evidence.left_out.len(), rows.len());
    }
}

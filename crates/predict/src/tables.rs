//! Trace files of Nextflow, benchmark files of Snakemake, and CSV.

use std::collections::BTreeMap;

use csv::{ReaderBuilder, StringRecord};
use model::INPUT_BYTES;

use crate::evidence::{Evidence, Past};
use crate::run::Need;

const MIB: f64 = (1u64 << 20) as f64;

/// Why a text is no history.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoHistory {
    /// Its first line names none of the columns that tell of memory.
    #[error(
        "{0} is no history: it has no column peak_rss (Nextflow's trace), none s and max_rss (Snakemake's benchmark), and none peak_bytes (CSV)"
    )]
    Columns(String),
    /// It is not text in columns.
    #[error("{0} is no history: {1}")]
    Malformed(String, csv::Error),
}

/// A table with named columns.
struct Table<'a> {
    head: StringRecord,
    /// Line number, cells.
    rows: Vec<(u64, StringRecord)>,
    source: &'a str,
}

impl Table<'_> {
    fn column(&self, name: &str) -> Option<usize> {
        self.head.iter().position(|column| column == name)
    }

    fn cell<'a>(&self, row: &'a StringRecord, name: &str) -> Option<&'a str> {
        row.get(self.column(name)?).filter(|cell| !cell.is_empty() && *cell != "-" && *cell != "NA")
    }
}

/// Adds the rows of a table, by what its first line has. `source` is where it is from.
///
/// # Errors
/// If it is none of the three.
pub fn read(text: &str, source: &str, evidence: &mut Evidence) -> Result<(), NoHistory> {
    let separator = if text.lines().next().is_some_and(|first| first.contains('\t')) { b'\t' } else { b',' };
    let mut reader =
        ReaderBuilder::new().delimiter(separator).flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let malformed = |error| NoHistory::Malformed(source.into(), error);
    let head = reader.headers().map_err(malformed)?.clone();
    let line = |row: &StringRecord| row.position().map_or(0, csv::Position::line);
    // A cell in quotation marks may hold several lines; reasons and kinds are printed in one.
    let in_one_line = |row: &StringRecord| row.iter().map(|cell| cell.replace(char::is_control, " ")).collect();
    let rows = reader.records().map(|row| row.map(|row| (line(&row), in_one_line(&row)))).collect::<Result<_, _>>();
    let table = Table { head, rows: rows.map_err(malformed)?, source };
    let has = |names: &[&str]| names.iter().all(|name| table.column(name).is_some());
    match () {
        () if has(&["peak_rss"]) => nextflow(&table, evidence),
        () if has(&["s", "max_rss"]) => snakemake(&table, evidence),
        () if has(&["peak_bytes"]) => csv(&table, evidence),
        () => return Err(NoHistory::Columns(source.into())),
    }
    Ok(())
}

fn nextflow(table: &Table, evidence: &mut Evidence) {
    for (line, row) in &table.rows {
        let cell = |name| table.cell(row, name);
        let source = format!("{}:{line}", table.source);
        let process = cell("process").or_else(|| cell("name")).unwrap_or("task");
        let process = process.split(" (").next().unwrap_or(process);
        let status = cell("status").unwrap_or("COMPLETED");
        let limit = cell("memory").and_then(size);
        let is_killed = matches!(cell("exit"), Some("137" | "140"));
        let floor = match (status, cell("peak_rss").and_then(size)) {
            ("COMPLETED" | "CACHED", Some(peak)) => Need::Exactly(peak),
            ("COMPLETED" | "CACHED", None) => {
                evidence.leave_out(source, "no peak_rss");
                continue;
            }
            _ if is_killed && limit.is_some() => Need::MoreThan(limit.unwrap_or_default()),
            _ => {
                evidence.leave_out(source, format!("the task ended as {status}"));
                continue;
            }
        };
        let read = cell("rchar").and_then(size).map(|bytes| (INPUT_BYTES.to_string(), bytes));
        evidence.add(Past {
            source,
            kind: process.into(),
            program: process.rsplit(':').next().unwrap_or(process).into(),
            features: read.into_iter().collect(),
            floor: Some(floor),
            has_only_bounds: false,
            knee: None,
            seconds: cell("realtime").and_then(time).unwrap_or(1.0),
            time: cell("complete").and_then(|text| text.parse().ok()).unwrap_or(*line as f64),
        });
    }
}

fn snakemake(table: &Table, evidence: &mut Evidence) {
    let file = table.source.rsplit('/').next().unwrap_or_default();
    let name = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    for (line, row) in &table.rows {
        let number = |name| table.cell(row, name).and_then(|cell| cell.parse::<f64>().ok());
        let source = format!("{}:{line}", table.source);
        let rule = table.cell(row, "rule_name").unwrap_or(name).to_string();
        let Some(peak) = number("max_rss") else {
            evidence.leave_out(source, "no max_rss");
            continue;
        };
        let input = number("input_size_mb").or_else(|| number("io_in"));
        evidence.add(Past {
            source,
            kind: rule.clone(),
            program: rule,
            features: input.map(|mib| (INPUT_BYTES.to_string(), mib * MIB)).into_iter().collect(),
            floor: Some(Need::Exactly(peak * MIB)),
            has_only_bounds: false,
            knee: None,
            seconds: number("s").unwrap_or(1.0),
            time: *line as f64,
        });
    }
}

/// Columns: task, peak_bytes, seconds, completed, failed (not 0: killed at requested_bytes); all other numbers are features.
fn csv(table: &Table, evidence: &mut Evidence) {
    const FIGURES: [&str; 7] = ["task", "peak_bytes", "seconds", "submitted", "completed", "failed", "requested_bytes"];
    for (line, row) in &table.rows {
        let number = |name| table.cell(row, name).and_then(|cell| cell.parse::<f64>().ok());
        let source = format!("{}:{line}", table.source);
        let task = table.cell(row, "task").unwrap_or("task").to_string();
        let is_killed = number("failed").is_some_and(|failed| failed != 0.0);
        let floor = match (number("peak_bytes"), number("requested_bytes")) {
            (_, Some(limit)) if is_killed => Need::MoreThan(limit),
            (Some(peak), _) if !is_killed => Need::Exactly(peak),
            _ => {
                evidence.leave_out(source, "no peak_bytes");
                continue;
            }
        };
        let features: BTreeMap<String, f64> = table
            .head
            .iter()
            .filter(|name| !FIGURES.contains(name))
            .filter_map(|name| Some((name.to_string(), number(name)?)))
            .collect();
        evidence.add(Past {
            source,
            kind: task.clone(),
            program: task,
            features,
            floor: Some(floor),
            has_only_bounds: false,
            knee: None,
            seconds: number("seconds").unwrap_or(1.0),
            time: number("completed").unwrap_or(*line as f64),
        });
    }
}

/// `1.5 GB`, `1024`: Nextflow's units are binary.
fn size(text: &str) -> Option<f64> {
    text.replace(' ', "").parse::<model::Bytes>().ok().map(|bytes| bytes.0 as f64)
}

/// `1h 2m 3.5s`, `250ms`, or milliseconds, as Nextflow prints them.
fn time(text: &str) -> Option<f64> {
    if let Ok(milliseconds) = text.parse::<f64>() {
        return Some(milliseconds / 1e3);
    }
    text.split_whitespace().try_fold(0.0, |seconds, part| {
        let at = part.find(|c: char| c.is_ascii_alphabetic())?;
        let number: f64 = part[..at].parse().ok()?;
        let unit = match &part[at..] {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        Some(seconds + number * unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(text: &str) -> Evidence {
        let mut evidence = Evidence::default();
        read(text, "history", &mut evidence).unwrap();
        evidence
    }

    #[test]
    fn reads_the_trace_of_nextflow() {
        let trace = "task_id\tname\tstatus\texit\trealtime\tmemory\tpeak_rss\trchar\n\
            1\tNF:FASTQC (a)\tCOMPLETED\t0\t1m 2s\t2 GB\t512 MB\t1.5 GB\n\
            2\tNF:FASTQC (b)\tFAILED\t137\t5s\t2 GB\t-\t-\n\
            3\tNF:FASTQC (c)\tFAILED\t1\t5s\t2 GB\t1 MB\t-\n";
        let found = evidence(trace);
        assert_eq!(found.runs[0].floor, Some(Need::Exactly(512.0 * MIB)));
        assert_eq!((found.runs[0].kind.as_str(), found.runs[0].seconds), ("NF:FASTQC", 62.0));
        assert_eq!(found.runs[0].features[INPUT_BYTES], 1536.0 * MIB);
        assert_eq!(found.runs[1].floor, Some(Need::MoreThan(2048.0 * MIB)));
        assert_eq!(found.left_out[0].record, "history:4");
    }

    #[test]
    fn reads_the_benchmark_of_snakemake() {
        let found = evidence("s\th:m:s\tmax_rss\tmax_vms\tio_in\n12.5\t0:00:12\t100.5\t200\t30\nNA\tNA\tNA\tNA\tNA\n");
        assert_eq!((found.runs[0].floor, found.runs[0].seconds), (Some(Need::Exactly(100.5 * MIB)), 12.5));
        assert_eq!(found.left_out.len(), 1);
    }

    #[test]
    fn reads_csv_with_any_features() {
        let found =
            evidence("task,input_bytes,threads,peak_bytes,failed,requested_bytes\na,100,8,200,0,400\na,100,8,,1,400\n");
        assert_eq!(
            found.runs[0].features,
            BTreeMap::from([(INPUT_BYTES.to_string(), 100.0), ("threads".to_string(), 8.0)])
        );
        assert_eq!(found.runs[1].floor, Some(Need::MoreThan(400.0)));
    }

    #[test]
    fn a_separator_within_quotation_marks_is_a_part_of_the_cell() {
        let found = evidence("task,peak_bytes\n\"align, sorted\",200\n");
        assert_eq!((found.runs[0].kind.as_str(), found.runs[0].floor), ("align, sorted", Some(Need::Exactly(200.0))));
    }

    #[test]
    fn names_the_columns_that_are_missing() {
        let error = read("a,b\n1,2\n", "x.csv", &mut Evidence::default()).unwrap_err();
        assert!(error.to_string().contains("no column peak_rss"), "{error}");
    }
}

//! Whole records: what is read is rendered in every form. It ends, with text or an error, and never panics.

mod frames;

use export::Format;
use fuzz::{changed, corpus, run_cases};
use record::{Record, Writer};
use report::View;
use report::terminal::Style;

fn render(record: &Record) {
    let accounts: Vec<_> = record.runs.iter().map(|run| account::account(run, &record.header)).collect();
    let view = View {
        header: &record.header,
        runs: record.runs.iter().zip(&accounts).collect(),
        budget: record.budget.as_ref(),
        trials: &record.trials,
        notes: &record.notes,
        complete: record.complete,
    };
    let style = Style { width: 80, color: false };
    for text in [report::terminal::run(&view, style), report::terminal::budget(&view, style)] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
    }
    report::html::page(&view);
    for format in [Format::Json, Format::Csv, Format::Perfetto, Format::Memnesia, Format::Vpa] {
        let _ = export::export(std::slice::from_ref(record), format, &mut Vec::new());
    }
}

#[test]
fn fuzz_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bursar");
    let corpus = corpus("record");
    run_cases("record", 60, |random| {
        std::fs::write(&path, changed(random, &corpus)).unwrap();
        if let Ok(record) = Record::open(&path) {
            render(&record);
        }
    });
}

#[test]
fn fuzz_framed_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bursar");
    let framed: Vec<Vec<u8>> = corpus("record")
        .iter()
        .map(|sealed| {
            std::fs::write(&path, sealed).unwrap();
            drop(Writer::resume(&path).unwrap());
            std::fs::read(&path).unwrap()
        })
        .collect();
    run_cases("framed-record", 60, |random| {
        std::fs::write(&path, frames::reframed(random, &framed)).unwrap();
        if let Ok(record) = Record::open(&path) {
            render(&record);
        }
    });
}

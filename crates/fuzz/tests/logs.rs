//! Logs of the in-process runtime, as a process that is observed may have written them: they are read, and brought together.

mod frames;

use attribute::{Options, ProcessLog, Reader, add_kernel_peaks, attribute, unmatched};
use fuzz::{changed, corpus, run_cases};
use model::Axis;
use record::{Frames, HEADER_BYTES};

fn read(bytes: &[u8]) -> Option<ProcessLog> {
    let (header, rest) = bytes.split_at(bytes.len().min(HEADER_BYTES as usize));
    let mut reader = Reader::begin(header).ok()?;
    let mut frames = Frames::new(rest);
    while let Ok(Some(payload)) = frames.next() {
        if !reader.take(payload) {
            break;
        }
    }
    reader.end(frames.good_bytes() == bytes.len() as u64).ok()
}

#[test]
fn fuzz_log() {
    let corpus = corpus("log");
    run_cases("log", 300, |random| {
        let bytes = if random.below(4) == 0 { changed(random, &corpus) } else { frames::reframed(random, &corpus) };
        let others = corpus.iter().filter_map(|log| read(log));
        let mut logs: Vec<ProcessLog> = read(&bytes).into_iter().chain(others).collect();
        let components = [];
        unmatched(&logs, &components);
        add_kernel_peaks(&mut logs, &[]);
        for by in [Axis::Owner, Axis::Touch] {
            attribute(&logs, Options { run: 0, started_unix_ns: 0, by, comm_matrix: true });
        }
    });
}

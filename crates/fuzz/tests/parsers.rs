//! Every parser of foreign input that a library has: it ends, with a value or an error, and never panics.

use std::io::Cursor;

use curve::trace::{Format, Needs, Reading, Trace};
use fuzz::{corpus, run};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn fuzz_cbmm() {
    run("cbmm", &corpus("cbmm"), |bytes| drop(advise::cbmm::read(&text(bytes))));
}

#[test]
fn fuzz_profile() {
    run("profile", &corpus("profile"), |bytes| {
        if let Ok(profile) = advise::Profile::parse(&text(bytes)) {
            let printed = profile.to_string();
            assert!(advise::Profile::parse(&printed).is_ok(), "{printed}");
        }
    });
}

#[test]
fn fuzz_maps() {
    run("maps", &corpus("maps"), |bytes| drop(advise::maps::read(&text(bytes), "/bin/x", |_| None)));
}

#[test]
fn fuzz_told() {
    let seeds = corpus("told");
    // A seed of another layout would be refused at once, and so would all that is made of it.
    assert!(seeds.iter().all(|seed| provision::stats::ProcessStats::read(seed).is_ok()));
    run("told", &seeds, |bytes| drop(provision::stats::ProcessStats::read(bytes)));
}

#[test]
fn fuzz_trace() {
    let needs = Needs { bytes: true, time: true, tenant: true };
    let reading = Reading { page_bytes: None, skips_bad: true, time_unit: None, needs };
    run("trace", &corpus("trace"), |bytes| {
        let Ok(mut trace) = Trace::open(Cursor::new(bytes.to_vec()), &Format::Auto, &reading) else { return };
        // what is unpacked may be much larger than what came
        for _ in 0..100_000 {
            if !matches!(trace.read(), Ok(Some(_))) {
                break;
            }
        }
    });
}

//! What sacct printed, changed at random: an answer or an error.

use ::fuzz::{changed, corpus, run_cases};

use crate::{By, Gathering, parse, recommend};

fn answer(bytes: &[u8]) {
    for by in [None, Some("Comment"), Some("[a-z]+")] {
        let by = By::of(by).unwrap();
        let Ok(printed) = parse(bytes, &by) else { continue };
        let _ = recommend(printed, 0.95, &Gathering::default(), &by);
    }
}

#[test]
fn fuzz_sacct() {
    let corpus = corpus("sacct");
    run_cases("sacct", 200, |random| answer(&changed(random, &corpus)));
}

#[test]
fn fuzz_sacct_json() {
    let corpus = corpus("sacct_json");
    run_cases("sacct_json", 200, |random| answer(&changed(random, &corpus)));
}

//! What sacct printed, changed at random: an answer or an error, and no control characters to the terminal.

use ::fuzz::{changed, corpus, run_cases};
use clap::Parser;

use super::kind::By;
use super::meaning::Gathering;
use super::{advice, parse};
use crate::cli::slurm::Recommend;

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    recommend: Recommend,
}

fn answer(bytes: &[u8]) {
    for by in [None, Some("Comment"), Some("[a-z]+")] {
        let options = Options::parse_from(["x"]).recommend;
        let by = By::of(by).unwrap();
        let Ok(printed) = parse(bytes, &by) else { continue };
        if let Ok(found) = advice(printed, &options, &Gathering::default(), &by) {
            report::terminal::jobs(&found, report::terminal::Style { width: 80, color: false });
        }
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

//! The short reports of attribution, recorded as those of [`short.rs`](short.rs) are.

#[allow(unused_imports, reason = "each test binary uses its part")]
mod fixture;
mod golden;

use std::path::Path;

use fixture::{MIB, attributed_run, attribution};
use model::{Attribution, Axis, LibraryUse, Named, OtherProcess, RecordKind};
use report::terminal::Style;
use report::terminal::short::{self, MOST_ATTRIBUTION_LINES};
use report::{Attributed, BY_LIBRARY, SCALING};

#[derive(Clone)]
struct Case {
    name: &'static str,
    attributions: Vec<Attribution>,
    options: &'static [(&'static str, &'static str)],
    notes: Vec<String>,
    went_on: Vec<Named>,
}

fn case(name: &'static str, change: impl FnOnce(&mut Attribution)) -> Case {
    let mut of_four =
        Attribution { comm_matrix: None, other_processes: Vec::new(), notes: Vec::new(), ..attribution(4) };
    change(&mut of_four);
    Case { name, attributions: vec![of_four], options: &[], notes: Vec::new(), went_on: Vec::new() }
}

fn without_mpi(shown: &mut Attribution) {
    shown.per_rank.iter_mut().for_each(|rank| rank.rank = None);
    shown.components.remove("mpi");
    shown.init = None;
}

fn timed(shown: &mut Attribution) {
    shown.functions.iter_mut().for_each(|function| (function.calls, function.seconds) = (100, Some(0.3)));
}

fn many_components(shown: &mut Attribution) {
    let of_mpi = shown.components["mpi"];
    shown.components.extend((1..=14).map(|number| (format!("library{number}"), of_mpi)));
}

fn many_libraries(shown: &mut Attribution) {
    let library = shown.libraries[0].clone();
    shown.libraries = (1..=300u64)
        .map(|number| LibraryUse { library: format!("lib{number}.so"), bytes: (301 - number) * MIB, ..library.clone() })
        .collect();
}

fn others(shown: &mut Attribution) {
    let other =
        |pid, mib: u64| OtherProcess { pid, host: "node17".into(), command: "static".into(), peak_bytes: mib * MIB };
    (shown.without_library, shown.other_processes) = (vec![other(71, 90), other(72, 8)], vec![other(70, 2)]);
    shown.unattributed_peak_bytes = 62 * MIB;
}

/// As many notes and others as there may be.
fn doubtful(shown: &mut Attribution) {
    others(shown);
    many_components(shown);
    many_libraries(shown);
    timed(shown);
    shown.comm_matrix = attribution(4).comm_matrix;
    shown.notes = (0..9)
        .map(|number| {
            format!("number {number} of many sentences that are so long that a terminal of 80 columns wraps each")
        })
        .collect();
}

fn cases() -> Vec<Case> {
    let scaling = Case {
        attributions: (0u32..).zip([1, 2, 4]).map(|(run, ranks)| Attribution { run, ..attribution(ranks) }).collect(),
        options: &[(SCALING, "1, 2, 4")],
        ..case("attribute-scaling", |_| ())
    };
    let threads = Case {
        attributions: (0u32..3).map(|run| Attribution { run, ..attribution(1) }).collect(),
        ..Case { name: "attribute-scaling-threads", ..scaling.clone() }
    };
    let noted = "calls of mremap are not seen: the program has its own";
    vec![
        case("attribute-ranks", |shown| shown.notes = vec![noted.into()]),
        case("attribute-processes", without_mpi),
        case("attribute-many-components", many_components),
        Case { options: &[(BY_LIBRARY, "yes")], ..case("attribute-by-library", many_libraries) },
        case("attribute-times", timed),
        case("attribute-by-touch", |shown| {
            (shown.by, shown.rung, shown.allocator_retained) = (Axis::Touch, "page-fault events".into(), None);
        }),
        case("attribute-messages", |shown| shown.comm_matrix = attribution(4).comm_matrix),
        case("attribute-others", others),
        Case {
            went_on: vec![Named { name: "redis".into(), bytes: Some(3 * MIB) }],
            ..case("attribute-went-on", without_mpi)
        },
        scaling,
        threads,
        case("attribute-no-logs", |shown| *shown = Attribution::default()),
        Case { options: &[(BY_LIBRARY, "yes")], ..case("attribute-doubtful", doubtful) },
    ]
}

fn shown(case: &Case, width: usize) -> String {
    let mut header = fixture::header(RecordKind::Attribute);
    header.options = case.options.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let mut run = attributed_run(&case.attributions[0]);
    run.evidence.went_on.clone_from(&case.went_on);
    let attributed = Attributed { header: &header, attributions: &case.attributions, runs: &[run], notes: &case.notes };
    short::attribution(&attributed, Some(Path::new("job.bursar")), Style { width, color: false })
}

#[test]
fn short_reports_are_the_recorded_ones() {
    golden::check(&["attribute"], cases().iter().map(|case| (case.name, shown(case, 100))));
}

#[test]
fn short_reports_keep_their_number_of_lines() {
    for case in cases() {
        for width in [80, 100, 200] {
            let text = shown(&case, width);
            assert!(text.lines().count() <= MOST_ATTRIBUTION_LINES, "{width}\n{text}");
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
        }
    }
}

#[test]
fn a_pattern_that_matches_nothing_is_shown_before_other_notes() {
    let pattern = |name: &str| {
        format!(
            "--component {name}=*{name}* matches no shared object that the command loaded (the pattern is of the whole file name, \
             without folders); near it are _multiarray_umath.cpython-312-x86_64-linux-gnu.so, \
             _simd.cpython-312-x86_64-linux-gnu.so, mtrand.cpython-312-x86_64-linux-gnu.so"
        )
    };
    let long = case("", doubtful).attributions[0].notes[0].clone();
    let notes = vec![pattern("numpy"), pattern("b"), long.clone(), long.clone(), long];
    let text = shown(&Case { notes, ..case("", doubtful) }, 80);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for name in ["numpy", "b"] {
        assert!(words.contains(&format!("note: --component {name}=*{name}* matches no shared object")), "{text}");
    }
    assert!(text.lines().count() <= MOST_ATTRIBUTION_LINES, "{text}");
}

#[test]
fn a_record_cannot_steer_the_terminal() {
    let mut case = case("", |shown| shown.notes = vec!["\u{1b}[2J".into()]);
    case.notes = vec!["\u{1b}[2J".into()];
    case.attributions[0].per_rank[0].command = "\u{1b}[2J".into();
    case.attributions[0].components.insert("\u{1b}[2J".into(), attribution(1).total);
    assert!(!shown(&case, 100).contains('\u{1b}'));
}

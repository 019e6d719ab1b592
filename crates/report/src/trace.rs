//! The curve of a trace in sentences and tables.

use model::{CurveFigures, SizeUnit, ToleranceOf, TraceCurve};

use crate::figures;
use crate::format::{UNKNOWN, count, percent};
use crate::tables::{Table, Tone};

/// The answer: the working set, or why there is none.
pub fn headline(curve: &TraceCurve) -> String {
    let set = &curve.whole.working_set;
    let tolerance = percent(Some(set.tolerance));
    match set.size {
        Some(needed) if set.of == ToleranceOf::FirstReferences => format!(
            "needs {} to fetch at most {tolerance} of its {}s again",
            size_with_bytes(curve, needed),
            thing(curve)
        ),
        Some(needed) => format!("needs {} for at most {tolerance} misses", size_with_bytes(curve, needed)),
        None => {
            let first = lowest(&curve.whole);
            format!(
                "no size has at most {tolerance} misses: {} of the references are to something for the first time; see \
                 --tolerance and --warm-up",
                percent(first)
            )
        }
    }
}

/// What it was made from, in a sentence.
pub fn made_from(curve: &TraceCurve) -> String {
    let thing = thing(curve);
    let about = if curve.sampled_share < 1.0 { "about " } else { "" };
    let mut sentence = format!(
        "{}: {} to {about}{}",
        curve.trace,
        counted(curve.whole.references, "reference"),
        counted(curve.whole.distinct, thing),
    );
    if curve.warm_up > 0 {
        sentence += &format!(" after a warm-up of {}", count(Some(curve.warm_up)));
    }
    sentence += &format!("; engine {}", curve.engine);
    if curve.sampled_share < 1.0 {
        sentence += &format!(", from a sample of {} of the {thing}s", percent(Some(curve.sampled_share)));
    }
    sentence
}

/// What it was read as, in a sentence.
pub fn read_as(curve: &TraceCurve) -> Option<String> {
    let pages =
        curve.page_bytes.map_or_else(String::new, |page| format!("; cut into pages of {}", figures::size(page)));
    curve.implies.as_ref().map(|implies| format!("read as {}: {implies}{pages}", curve.format))
}

/// What is to be known about malformed records, and about those that are no references.
pub fn warning(curve: &TraceCurve) -> Option<String> {
    let first = curve.first_skipped.as_ref().map_or_else(String::new, |first| format!(" (the first, {first})"));
    let skipped = || format!("{} malformed records were skipped{first}", count(Some(curve.skipped)));
    let left_out = || format!("{} requests to delete an object are left out", count(Some(curve.left_out)));
    let sentences: Vec<String> =
        (curve.skipped > 0).then(skipped).into_iter().chain((curve.left_out > 0).then(left_out)).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// The share of the references that miss at any size. Older results have it only where their largest size is large enough.
fn lowest(figures: &CurveFigures) -> Option<f64> {
    figures.first_share.or(figures.points.last().map(|point| point.miss_ratio))
}

/// The curve's points.
pub fn points_table(curve: &TraceCurve) -> Table {
    let mut table = Table::new(&["size", "miss ratio"]);
    for point in &curve.whole.points {
        table.row(Tone::Plain, vec![size(curve, point.size), percent(Some(point.miss_ratio))]);
    }
    table
}

/// One line per tenant.
pub fn tenants_table(curve: &TraceCurve) -> Table {
    let mut table = Table::new(&["tenant", "references", "distinct", "working set", "lowest miss ratio"]);
    for tenant in &curve.tenants {
        table.row(Tone::Plain, figures_row(curve, tenant.tenant.clone(), &tenant.figures));
    }
    table
}

/// One line per window.
pub fn windows_table(curve: &TraceCurve) -> Table {
    let mut table = Table::new(&["from second", "references", "distinct", "working set", "lowest miss ratio"]);
    for window in &curve.windows {
        table.row(Tone::Plain, figures_row(curve, window.start_seconds.to_string(), &window.figures));
    }
    table
}

/// What the axis of sizes counts.
pub fn axis_name(curve: &TraceCurve) -> String {
    match (curve.unit, curve.page_bytes) {
        (SizeUnit::Bytes, _) => "cache size, MiB".to_string(),
        (SizeUnit::Objects, Some(page)) => format!("cache size, pages of {}", figures::size(page)),
        (SizeUnit::Objects, None) => "cache size, objects".to_string(),
    }
}

fn figures_row(curve: &TraceCurve, name: String, figures: &CurveFigures) -> Vec<String> {
    let working_set = figures.working_set.size.map_or_else(|| UNKNOWN.to_string(), |needed| size(curve, needed));
    let lowest = percent(lowest(figures));
    vec![name, count(Some(figures.references)), count(Some(figures.distinct)), working_set, lowest]
}

fn thing(curve: &TraceCurve) -> &'static str {
    if curve.page_bytes.is_some() { "page" } else { "object" }
}

fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(Some(number)), if number == 1 { "" } else { "s" })
}

fn size(curve: &TraceCurve, size: u64) -> String {
    match curve.unit {
        SizeUnit::Bytes => figures::size(size),
        SizeUnit::Objects => count(Some(size)),
    }
}

fn size_with_bytes(curve: &TraceCurve, needed: u64) -> String {
    match (curve.unit, curve.page_bytes) {
        (SizeUnit::Bytes, _) => figures::size(needed),
        (SizeUnit::Objects, Some(page)) => {
            format!("{} ({})", counted(needed, "page"), figures::size(needed.saturating_mul(page)))
        }
        (SizeUnit::Objects, None) => counted(needed, "object"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use model::{CurvePoint, TenantCurve, WindowCurve, WorkingSet};

    use super::*;

    /// A loop over a hundred pages of two tenants in two windows.
    pub(crate) fn curve() -> TraceCurve {
        let figures = |needed| CurveFigures {
            references: 12_000,
            distinct: 100,
            points: vec![CurvePoint { size: 50, miss_ratio: 1.0 }, CurvePoint { size: 100, miss_ratio: 0.0083 }],
            working_set: WorkingSet { tolerance: 0.01, size: needed, of: ToleranceOf::References },
            first_share: None,
        };
        TraceCurve {
            trace: "loop.lackey".to_string(),
            format: "lackey".to_string(),
            engine: "exact".to_string(),
            sampled_share: 1.0,
            unit: SizeUnit::Objects,
            page_bytes: Some(4096),
            warm_up: 0,
            skipped: 0,
            first_skipped: None,
            left_out: 0,
            implies: None,
            whole: figures(Some(100)),
            tenants: vec![TenantCurve { tenant: "<north>".to_string(), figures: figures(Some(100)) }],
            windows: vec![
                WindowCurve { start_seconds: 0.0, end_seconds: 60.0, figures: figures(None) },
                WindowCurve { start_seconds: 60.0, end_seconds: 120.0, figures: figures(Some(100)) },
            ],
        }
    }

    #[test]
    fn the_answer_is_the_working_set() {
        assert_eq!(headline(&curve()), "needs 100 pages (400 KiB) for at most 1 % misses");
        let bytes = TraceCurve { unit: SizeUnit::Bytes, page_bytes: None, ..curve() };
        assert_eq!(headline(&bytes), "needs 100 B for at most 1 % misses");
    }

    #[test]
    fn first_references_are_no_misses_of_a_listed_size() {
        let mut none = curve();
        none.whole.working_set.size = None;
        (none.whole.points[1].miss_ratio, none.whole.first_share) = (0.945, Some(0.43));
        assert!(headline(&none).contains("43 % of the references are to something for the first time"));
        assert_eq!(figures_row(&none, String::new(), &none.whole)[4], "43 %");
    }

    #[test]
    fn the_report_says_what_was_left_out_and_how_it_was_read() {
        let skipped = TraceCurve { skipped: 2, first_skipped: Some("line 5: no".to_string()), ..curve() };
        assert_eq!(warning(&skipped).unwrap(), "2 malformed records were skipped (the first, line 5: no)");
        let deletes = TraceCurve { left_out: 3, implies: Some("keys in column 3".to_string()), ..curve() };
        assert_eq!(warning(&deletes).unwrap(), "3 requests to delete an object are left out");
        assert_eq!(read_as(&deletes).unwrap(), "read as lackey: keys in column 3; cut into pages of 4.00 KiB");
        assert_eq!(warning(&curve()), None);
    }

    #[test]
    fn where_there_is_no_answer_it_says_why() {
        let mut none = curve();
        none.whole.working_set.size = None;
        none.whole.points[1].miss_ratio = 0.25;
        assert!(headline(&none).contains("25 % of the references are to something for the first time"));
    }

    #[test]
    fn an_estimate_is_marked_as_one() {
        assert_eq!(made_from(&curve()), "loop.lackey: 12,000 references to 100 pages; engine exact");
        let sampled = TraceCurve { sampled_share: 0.01, engine: "shards-rate".to_string(), warm_up: 50, ..curve() };
        assert_eq!(
            made_from(&sampled),
            "loop.lackey: 12,000 references to about 100 pages after a warm-up of 50; engine shards-rate, from a sample of 1 % \
             of the pages"
        );
    }

    #[test]
    fn one_reference_to_one_object_is_in_the_singular() {
        let mut one = TraceCurve { page_bytes: None, ..curve() };
        (one.whole.references, one.whole.distinct) = (1, 1);
        assert_eq!(made_from(&one), "loop.lackey: 1 reference to 1 object; engine exact");
    }
}

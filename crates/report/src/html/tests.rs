use super::page;
use crate::fixture::Parts;

/// The text of the cells of the table's row whose first cell is this.
fn row(html: &str, table: &str, first: &str) -> String {
    let table = html.split(&format!("<table id=\"{table}\">")).nth(1).unwrap_or_else(|| panic!("no table {table}"));
    let table = table.split("</table>").next().unwrap();
    let row =
        table.split("<tr").find(|row| row.contains(&format!(">{first}</td>"))).unwrap_or_else(|| panic!("{table}"));
    row.split("</td>")
        .filter_map(|cell| cell.rsplit('>').next())
        .collect::<Vec<_>>()
        .join("|")
        .trim_end_matches('|')
        .to_string()
}

fn without_library(html: &str) -> String {
    let library = super::plots::library();
    assert!(library.len() > 1 << 20 && html.contains(&library));
    html.replace(&library, "")
}

#[test]
fn the_page_holds_the_numbers_as_text() {
    let html = page(&Parts::of_a_budget().view());
    assert!(html.contains("<h1>needs 412 MiB to stay within 5 % of its 12.3 s</h1>"));
    assert_eq!(
        row(&html, "methods-memory", "Unlimited"),
        "Unlimited|1.21 GiB|104 MiB|1.09 GiB|4.00 MiB|8.00 MiB|11.0x"
    );
    assert_eq!(
        row(&html, "methods-time", "App-MaxRSS tree"),
        "App-MaxRSS tree|&gt; 1.50x|3.40x|-|1|31 %|&lt; 0.67|&lt; 0.67|too slow"
    );
    assert_eq!(row(&html, "methods-judgement", "bursar"), "bursar|high|high|low|enough");
    assert_eq!(row(&html, "trials", "3"), "3|390 MiB|18.5 s|&gt; 1.50x|3.40x|31 %|74,240|390 MiB|too slow");
    assert_eq!(row(&html, "memory", "peak charge"), "peak charge|402 MiB|100 MiB|290 MiB|4.00 MiB|8.00 MiB");
    assert_eq!(row(&html, "demand", "112 MiB"), "112 MiB|4.25 GiB|9.30 s");
    assert!(html.contains("#SBATCH --mem=412M") && html.contains("memory: 412Mi"));
}

#[test]
fn nothing_of_the_record_becomes_markup() {
    let mut parts = Parts::of_a_budget();
    let evil = "</script><script>alert(1)</script>";
    parts.header.command.push(evil.to_string());
    parts.runs[0].0.processes[0].command = evil.to_string();
    parts.runs[0].1.notes.push(evil.to_string());
    parts.budget.as_mut().unwrap().trials[0].why = evil.to_string();
    let html = without_library(&page(&parts.view()));
    assert!(!html.contains("<script>alert") && html.contains("&lt;script&gt;alert(1)"));
    assert!(html.contains("/data/&lt;shared&gt;.idx") && html.contains("&lt;helper&gt;"));
}

#[test]
fn the_page_names_no_address_outside_itself() {
    let html = without_library(&page(&Parts::of_a_budget().view()));
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn the_library_is_whole_and_a_page_with_it_is_small() {
    let library = super::plots::library();
    assert!(library.starts_with("<script>/**\n* plotly.js (cartesian - minified) v3.0.1\n"), "{}", &library[..80]);
    assert_eq!(library.len(), "<script>".len() + 1_333_701 + "</script>".len());
    assert_eq!(library.matches("</script").count(), 1);
    let page = page(&Parts::of_a_budget().view()).len();
    assert!(page < 1_600_000, "{page}");
}

#[test]
fn a_run_without_series_or_budget_is_still_a_page() {
    let mut parts = Parts::of_runs(&[12.0, 12.6]);
    parts.runs.iter_mut().for_each(|(observation, _)| observation.series.clear());
    let html = page(&parts.view());
    assert!(html.contains("<h1>needs 402 MiB at peak"));
    assert_eq!(row(&html, "variability", "wall"), "wall|12.3 s|424 ms|12.0 s|12.6 s");
    assert_eq!(row(&html, "memory", "PSS tree"), "PSS tree|-|-|-|-|-");
}

#[test]
fn long_series_are_thinned_out() {
    let html = without_library(&page(&Parts::of_a_budget().view()));
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
}

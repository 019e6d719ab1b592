//! The page in a real browser: plots are drawn, in light, dark and on a narrow screen, without a network.

mod fixture;

use std::fs::File;
use std::path::Path;
use std::process::Command;

use fixture::{Parts, attributed_run, attribution};
use model::{AgeBytes, Attribution, MappingHeat, MissPoint, Observation, PagesRound};
use report::{Attributed, View, Watched};

/// What the page's copy found out about itself.
struct Finding {
    errors: String,
    plots: usize,
    traces: usize,
    fetched: usize,
    width: f64,
    widest: f64,
    tick_color: String,
}

const WATCH: &str = "<script>var found = [];
addEventListener('error', function (e) { found.push(e.message); });
addEventListener('securitypolicyviolation', function (e) { found.push('refused ' + e.blockedURI); });</script>";

const TELL: &str = "<script>setTimeout(function () {
  var all = function (what) { return Array.from(document.querySelectorAll(what)); };
  var right = function (e) { return e.getBoundingClientRect().right; };
  var drawn = all('.js-plotly-plot').filter(function (p) { return p.querySelector('svg .trace, svg .bars .point, svg .hm image'); });
  var tick = all('.xtick text')[0];
  var text = [found.join(' '), drawn.length, all('svg .trace').length, performance.getEntriesByType('resource').length,
    document.documentElement.clientWidth,
    Math.max.apply(null, all('.main-svg').map(right).concat(document.documentElement.scrollWidth)),
    tick ? getComputedStyle(tick).fill : 'none'].join('|');
  if (parent === window) { document.title = text; } else { parent.postMessage(text, '*'); }
}, 3000);</script></body>";

/// Widths of telephones, in CSS pixels.
const NARROW: [u32; 2] = [390, 360];

const FRAME: &str = "<!DOCTYPE html><title>nothing</title><body style='margin:0'><script>
addEventListener('message', function (e) { document.title = e.data; });</script>
<iframe src='page.html' style='width:WIDTHpx;height:800px;border:0'></iframe></body>";

fn view(parts: &Parts) -> View<'_> {
    View {
        header: &parts.header,
        runs: parts.runs.iter().map(|(observation, account)| (observation, account)).collect(),
        budget: parts.budget.as_ref(),
        trials: &[],
        notes: &[],
        complete: true,
    }
}

/// The browser's name, or `None` (said so) where there is none; a failure where nothing may be skipped.
fn browser() -> Option<&'static str> {
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(there);
    if found.is_none() {
        assert!(std::env::var_os("BURSAR_NO_SKIP").is_none(), "no chromium: apt-get install chromium");
        println!("skipped: no chromium; apt-get install chromium");
    }
    found
}

/// The page as it is once its scripts have run. Headless browsers hang now and then on a busy machine: then once more.
fn dumped(browser: &str, folder: &Path, file: &str, more: &[&str]) -> String {
    let dom = (0..3).find_map(|_| dump(browser, folder, file, more));
    dom.expect("the browser answers within a minute")
}

/// `None`: it hung. Not through pipes, which a helper process left behind would keep open.
fn dump(browser: &str, folder: &Path, file: &str, more: &[&str]) -> Option<String> {
    const TIMED_OUT: i32 = 124;
    let profile = tempfile::tempdir().unwrap();
    let (dom, errors) = (profile.path().join("dom"), profile.path().join("errors"));
    let status = Command::new("timeout")
        .args(["--kill-after=5", "60", browser])
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--window-size=1200,900", "--virtual-time-budget=20000", "--hide-scrollbars", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(format!("file://{}", folder.join(file).display()))
        .stdout(File::create(&dom).unwrap())
        .stderr(File::create(&errors).unwrap())
        .status()
        .unwrap();
    if status.code() == Some(TIMED_OUT) {
        return None;
    }
    assert!(status.success(), "{}", std::fs::read_to_string(errors).unwrap());
    Some(std::fs::read_to_string(dom).unwrap())
}

fn finding(dom: &str) -> Finding {
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap_or("no title");
    let parts: Vec<&str> = title.split('|').collect();
    assert_eq!(parts.len(), 7, "the page did not tell: {title}");
    Finding {
        errors: parts[0].to_string(),
        plots: parts[1].parse().unwrap(),
        traces: parts[2].parse().unwrap(),
        fetched: parts[3].parse().unwrap(),
        width: parts[4].parse().unwrap(),
        widest: parts[5].parse().unwrap(),
        tick_color: parts[6].to_string(),
    }
}

fn check(finding: &Finding, plots: usize) {
    assert_eq!(finding.errors, "");
    assert_eq!(finding.plots, plots, "plots with something drawn in them");
    assert!(finding.traces >= plots, "{} traces", finding.traces);
    assert_eq!(finding.fetched, 0, "nothing may be fetched");
    assert!(finding.widest <= finding.width + 0.5, "{} is wider than {}", finding.widest, finding.width);
}

/// The page with the watching scripts in it, and frames of narrow screens' widths around it.
fn folder_with_pages(page: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let watched = page.replacen("<style>", &format!("{WATCH}<style>"), 1);
    let (before, after) = watched.rsplit_once("</body>").unwrap();
    std::fs::write(folder.path().join("page.html"), format!("{before}{TELL}{after}")).unwrap();
    for width in NARROW {
        std::fs::write(folder.path().join(format!("{width}.html")), FRAME.replace("WIDTH", &width.to_string()))
            .unwrap();
    }
    folder
}

#[test]
fn the_budgets_page_draws_its_plots_in_light_and_dark_and_on_a_narrow_screen() {
    let Some(browser) = browser() else { return };
    let folder = folder_with_pages(&report::html::page(&view(&Parts::of_a_budget())));

    let dom = dumped(browser, folder.path(), "page.html", &["--blink-settings=preferredColorScheme=1"]);
    let light = finding(&dom);
    // Six plots of the budget and its account; of the first run its charge, other memory and pressure; of the second the
    // same and its refaults.
    check(&light, 6 + 3 + 4);
    assert_eq!(light.tick_color, "rgb(29, 33, 39)");
    assert!(dom.contains("needs 412 MiB to stay within 5 % of its 12.3 s"));

    let dark = finding(&dumped(browser, folder.path(), "page.html", &["--blink-settings=preferredColorScheme=0"]));
    check(&dark, 6 + 3 + 4);
    assert_eq!(dark.tick_color, "rgb(228, 231, 235)");

    for width in NARROW {
        let narrow = finding(&dumped(browser, folder.path(), &format!("{width}.html"), &[]));
        check(&narrow, 6 + 3 + 4);
        assert_eq!(narrow.width, f64::from(width));
    }
}

#[test]
fn a_runs_page_draws_its_plots() {
    let Some(browser) = browser() else { return };
    let folder = folder_with_pages(&report::html::page(&view(&Parts::of_runs(&[12.3]))));
    check(&finding(&dumped(browser, folder.path(), "page.html", &[])), 1 + 3 + 1);
}

#[test]
fn the_page_of_what_was_watched_draws_its_plots_in_light_and_dark_and_on_a_narrow_screen() {
    let Some(browser) = browser() else { return };
    let header = Parts::of_runs(&[1.0]).header;
    let rounds: Vec<PagesRound> = (1..=20).map(round).collect();
    let page = report::html::watch(&Watched { header: &header, rounds: &rounds, notes: &[] });
    let folder = folder_with_pages(&page);
    for scheme in ["--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"] {
        check(&finding(&dumped(browser, folder.path(), "page.html", &[scheme])), 4);
    }
    let narrow = finding(&dumped(browser, folder.path(), "360.html", &[]));
    check(&narrow, 4);
}

#[test]
fn the_page_of_an_attribution_draws_its_plots_in_light_and_dark_and_on_a_narrow_screen() {
    let Some(browser) = browser() else { return };
    let header = Parts::of_runs(&[1.0]).header;
    let attributions = [attribution(2), attribution(4)];
    let attributions = attributions.map(|attribution| Attribution { run: attribution.ranks - 2, ..attribution });
    let runs = [Observation { run: 2, ..attributed_run(&attributions[1]) }];
    let attributed = Attributed { header: &header, attributions: &attributions, runs: &runs, notes: &[] };
    let folder = folder_with_pages(&report::html::attribution(&attributed));
    for scheme in ["--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"] {
        // All together, then the application, MPI and the total of each rank; messages.
        check(&finding(&dumped(browser, folder.path(), "page.html", &[scheme])), 5);
    }
    check(&finding(&dumped(browser, folder.path(), "360.html", &[])), 5);
}

/// Of a program that goes round 64 MiB, later 16 MiB, of two mappings.
fn round(second: u64) -> PagesRound {
    let mib = if second <= 10 { 64 } else { 16 };
    let point = |mib: u64, misses_per_second| MissPoint { bytes: mib << 20, misses_per_second };
    let heat = |pid, name: &str| MappingHeat {
        pid,
        start: 1 << 30,
        end: (1 << 30) + (64 << 20),
        name: name.into(),
        resident: 64 << 20,
        touched: mib << 20,
        blind: 0,
        parts: (0..32).map(|part| (part % 5 > 0).then_some(part as f32 / 32.0)).collect(),
    };
    PagesRound {
        t_ns: second * 1_000_000_000,
        seconds: 1.0,
        tracking: second % 3 != 0,
        new_phase: second == 11,
        tracked_bytes: 80 << 20,
        wss_bytes: Some(mib << 20),
        misses: vec![point(0, 900.0), point(mib / 4, 400.0), point(mib, 0.0)],
        heat: vec![heat(7, "[heap]"), heat(7, "/usr/lib/a-library-with-quite-a-long-name.so.1.2.3")],
        ages: vec![AgeBytes { below: Some(1.0), bytes: mib << 20 }, AgeBytes { below: None, bytes: 1 << 20 }],
        ..PagesRound::default()
    }
}

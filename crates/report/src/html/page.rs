//! The page: answer first, then the comparison, the curve, the time lines, the processes, the sources.

use model::{BudgetReport, Observation, RunAccount, RunRole, names};

use super::markup::{Html, escape};
use super::{methods, plots, timelines};
use crate::answer::{bracket, confidence, headline, paste_lines, why_none, why_nothing_to_paste};
use crate::figures::{demand_caption, detail_lines, memory_rows, scope_of, size, warnings};
use crate::format::{bytes, count, opt_seconds, or_unknown, percent, printable, ratio, seconds};
use crate::tables::{self, Table, Tone};
use crate::verdict::method_name;
use crate::{View, demand, figures};

/// The whole report as one HTML file that needs nothing else.
pub fn page(view: &View) -> String {
    let mut html = Html::default();
    open(&mut html, view.header.command.first().map_or("bursar", |word| word.rsplit('/').next().unwrap_or(word)));
    answer(&mut html, view);
    if let Some(report) = view.budget {
        comparison(&mut html, view, report);
    }
    trials(&mut html, view);
    account(&mut html, view);
    time_lines(&mut html, view);
    file_demand(&mut html, view);
    process_tree(&mut html, view);
    sources(&mut html, view);
    close(&mut html);
    html.finish()
}

/// All that comes before a page's contents.
pub fn open(html: &mut Html, title: &str) {
    html.raw("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    // Nothing may be fetched: the page must work, and say the same, without a network.
    html.raw(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
         style-src 'unsafe-inline'; img-src data: blob:\">",
    );
    html.raw(&format!("<title>{} – bursar</title>", escape(title)));
    html.raw(&format!("<style>{}</style>", include_str!("style.css")));
    html.raw(&plots::library());
    html.raw("</head><body><main>");
}

/// All that comes after.
pub fn close(html: &mut Html) {
    html.raw(&format!("<script>{}</script>", include_str!("page.js")));
    html.raw("</main></body></html>");
}

fn answer(html: &mut Html, view: &View) {
    match (view.budget, view.foremost_run()) {
        (Some(report), _) => {
            html.element("h1", "", &headline(report));
            let class = if report.answer.confident { "good" } else { "warning" };
            if why_none(report).is_none() {
                html.paragraph(class, &format!("{}: {}", confidence(report), report.answer.reason));
            }
        }
        (None, Some((run, account))) => {
            html.element("h1", "", &figures::headline(run, account, view.plain_runs().len()))
        }
        (None, None) => html.element("h1", "", "no run was recorded"),
    }
    if let Some(unfinished) = view.unfinished() {
        html.paragraph("warning", &unfinished.to_string());
    }
    let doubts = view.budget.map(|report| &report.doubts).or(view.foremost_run().map(|(_, account)| &account.doubts));
    for doubt in doubts.into_iter().flat_map(|doubts| figures::other_doubts(doubts)) {
        html.paragraph("warning", &doubt);
    }
    if !view.header.command.is_empty() {
        html.paragraph("command", &printable(&view.command()));
    }
    if !view.complete {
        html.paragraph("warning", "the record was cut short: what follows is what had been written by then");
    }
    if let Some(report) = view.budget {
        budget_figures(html, report);
        if let Some(why) = why_nothing_to_paste(report) {
            html.paragraph("warning", why);
        }
        let lines = paste_lines(report);
        if !lines.is_empty() {
            html.element("h3", "", "to paste");
            let text: Vec<String> = lines.iter().map(|(tool, line)| format!("{tool:<13} {line}")).collect();
            html.element("pre", "paste", &text.join("\n"));
        }
        html.paragraph(
            "quiet",
            &format!(
                "limits by {}; swap: {}; page cache at each start: {}",
                report.placement, report.swap, report.cache_state
            ),
        );
    } else if let Some((_, account)) = view.foremost_run() {
        figure_boxes(
            html,
            &[
                ("wall", seconds(account.wall_seconds)),
                ("user", opt_seconds(account.user_seconds)),
                ("system", opt_seconds(account.system_seconds)),
                ("exit status", or_unknown(account.exit_status, |s| s.to_string())),
                ("I/O wait", percent(account.io_wait_share)),
                ("processes", count(account.processes)),
                ("amplification", ratio(account.amplification, false)),
            ],
        );
    }
    let demand = view.foremost_run().and_then(|(_, account)| Some((account.file_demand.as_ref()?, &account.doubts)));
    for warning in demand.map(|(demand, doubts)| warnings(demand, doubts)).unwrap_or_default() {
        html.paragraph("warning", &warning);
    }
}

fn budget_figures(html: &mut Html, report: &BudgetReport) {
    let run_times = |value: Option<f64>| or_unknown(value, |v| format!("{v:.1} times the reference"));
    let reference =
        format!("{} ± {}", opt_seconds(report.reference_seconds), opt_seconds(report.reference_stddev_seconds));
    figure_boxes(
        html,
        &[
            ("answer", bytes(report.answer.budget_bytes)),
            ("floor", bytes(report.floor_bytes)),
            ("reference", reference),
            ("search", run_times(report.run_times_used)),
            ("comparison", run_times(report.compare_run_times)),
        ],
    );
    if let Some(sentence) = bracket(report) {
        html.paragraph("", &sentence);
    }
}

/// Figures with their names, as many to a line as fit.
pub fn figure_boxes(html: &mut Html, boxes: &[(&str, String)]) {
    html.raw("<div class=\"figures\">");
    for (name, text) in boxes {
        html.raw(&format!("<div class=\"figure\"><b>{}</b><span>{}</span></div>", escape(text), escape(name)));
    }
    html.raw("</div>");
}

fn comparison(html: &mut Html, view: &View, report: &BudgetReport) {
    if let Some(nodes) = tables::nodes_table(report) {
        html.heading("What each node needs");
        html.table("nodes", &nodes);
    }
    if !report.methods.is_empty() {
        html.heading("What the methods name, and what it is made of");
        let rows: Vec<_> =
            report.methods.iter().map(|row| (method_name(row.name), row.memory_bytes, row.breakdown)).collect();
        html.raw(&methods::memory_bars("plot-memory", &rows));
        html.table("methods-memory", &tables::methods_memory_table(report));
        html.heading("What each costs");
        html.raw(&methods::time_bars("plot-time", report));
        html.table("methods-time", &tables::methods_time_table(report));
        html.raw(&methods::score_bars("plot-scores", report));
        html.table("methods-judgement", &tables::judgement_table(report));
    }
    html.heading("Run time by budget");
    html.raw(&methods::budget_curve("plot-budget", report, view.all_trials(), price(view)));
}

/// What reading from storage cost the reference, for estimates from file demand.
fn price(view: &View) -> Option<f64> {
    view.foremost_run().and_then(|(run, account)| demand::seconds_per_byte(run, account))
}

fn trials(html: &mut Html, view: &View) {
    let trials = view.all_trials();
    if trials.is_empty() {
        return;
    }
    html.element("h3", "", "Trials, in their order");
    html.table("trials", &tables::trials_table(trials));
    let mut why = Table::new(&["run", "why it was made"]).with_words_last();
    for trial in trials.iter().filter(|trial| !trial.why.is_empty()) {
        why.row(Tone::Plain, vec![trial.run.to_string(), trial.why.clone()]);
    }
    html.table("trials-why", &why);
}

fn account(html: &mut Html, view: &View) {
    let Some((run, account)) = view.foremost_run() else { return };
    let runs = view.plain_runs();
    if runs.len() > 1 {
        html.heading(&format!("{} runs without a trial's limit", runs.len()));
        html.table("variability", &tables::variability_table(&runs));
    }
    html.heading(&format!(
        "The account of run {}{}",
        run.run,
        if runs.len() > 1 { ", which had the highest peak" } else { "" }
    ));
    let bars: Vec<_> = memory_rows(account).iter().map(|row| (row.name, row.total, row.parts)).collect();
    html.raw(&methods::memory_bars("plot-account", &bars));
    html.table("memory", &tables::memory_table(account));
    if let Some(parts) = tables::parts_table(&view.parts_of(run)) {
        html.element("h3", "", "ranks and nodes, each at its own peak");
        html.table("parts", &parts);
    }
    html.table("details", &details(account));
}

/// All figures of an account that are not in the table of memory.
fn details(account: &RunAccount) -> Table {
    let mut table = Table::new(&["figure", "value"]);
    let mut row = |name: &str, value: String| table.row(Tone::Plain, vec![name.to_string(), value]);
    for (name, value) in detail_lines(&account.peak_detail) {
        row(&format!("{name}, within the peak"), size(value));
    }
    let lists = &account.sys_max_rss_lists;
    row("active anonymous, at Sys-MaxRSS", bytes(lists.active_anon));
    row("inactive anonymous, at Sys-MaxRSS", bytes(lists.inactive_anon));
    row("active file, at Sys-MaxRSS", bytes(lists.active_file));
    row("inactive file, at Sys-MaxRSS", bytes(lists.inactive_file));
    row("huge pages (pool), beside the charge", bytes(account.peak_breakdown.hugetlb));
    row("limit", account.limit_bytes.map_or_else(|| "none".to_string(), size));
    row("swap", bytes(account.swap_bytes));
    row("faults, minor", count(account.faults.minor));
    row("faults, major", count(account.faults.major));
    row("refaults, file", count(account.flow.refaults_file));
    row("refaults, anonymous", count(account.flow.refaults_anon));
    row("pages scanned", count(account.flow.scanned));
    row("pages reclaimed", count(account.flow.reclaimed));
    row("OOM kills", count(account.oom_kills));
    let scope = scope_of(&account.pressure);
    row(&format!("memory pressure, some{scope}"), opt_seconds(account.pressure.memory_some_seconds));
    row(&format!("memory pressure, full{scope}"), opt_seconds(account.pressure.memory_full_seconds));
    row(&format!("I/O pressure, some{scope}"), opt_seconds(account.pressure.io_some_seconds));
    row(&format!("I/O pressure, full{scope}"), opt_seconds(account.pressure.io_full_seconds));
    table
}

fn time_lines(html: &mut Html, view: &View) {
    // A page with those of all nodes in all runs would not open.
    let parts = view.foremost_run().map(|(run, _)| view.parts_of(run)).unwrap_or_default();
    let is_shown = |run: &Observation| run.role != RunRole::Part || parts.iter().any(|(part, _)| part.run == run.run);
    let shown = view.runs.iter().filter(|(run, _)| is_shown(run));
    let drawn: Vec<(&Observation, Vec<(String, String)>)> =
        shown.map(|(run, _)| (*run, lines_of(run))).filter(|(_, lines)| !lines.is_empty()).collect();
    if drawn.is_empty() {
        return;
    }
    html.heading("Time lines");
    if drawn.len() > 1 {
        let foremost = view.foremost_run().map(|(run, _)| run.run);
        html.raw("<p><label>run <select id=\"choose-run\">");
        for (run, _) in &drawn {
            let selected = if Some(run.run) == foremost { " selected" } else { "" };
            let limit =
                run.limit_bytes.map_or_else(|| "no limit".to_string(), |limit| format!("limit {}", size(limit)));
            let host =
                run.origin.as_ref().map_or(String::new(), |origin| format!(", {}", escape(&printable(&origin.host))));
            html.raw(&format!(
                "<option value=\"run-{0}\"{selected}>{0}: {limit}, {1}{host}</option>",
                run.run,
                seconds(run.wall_seconds)
            ));
        }
        html.raw("</select></label></p>");
    }
    for (run, lines) in drawn {
        html.raw(&format!("<div class=\"run\" id=\"run-{}\">", run.run));
        for (name, markup) in lines {
            html.element("h3", "", &name);
            html.raw(&markup);
        }
        html.raw("</div>");
    }
}

fn lines_of(run: &Observation) -> Vec<(String, String)> {
    let id = |name: &str| format!("plot-{name}-{}", run.run);
    let from = |name: &str| run.job_series(name).map_or_else(String::new, |series| format!(", from {}", series.rung));
    vec![
        (format!("charge by kind of page{}", from(names::CHARGE)), timelines::stack(&id("stack"), run)),
        ("other memory".to_string(), timelines::others(&id("others"), run)),
        (format!("pressure{}", from(names::PSI_IO_SOME)), timelines::pressure(&id("pressure"), run)),
        ("pages that went and came back".to_string(), timelines::flow(&id("flow"), run)),
    ]
    .into_iter()
    .filter(|(_, markup)| !markup.is_empty())
    .collect()
}

fn file_demand(html: &mut Html, view: &View) {
    let of_run = view.foremost_run().and_then(|(_, account)| account.file_demand.as_ref());
    let Some(demand) = view.budget.and_then(|report| report.file_demand.as_ref()).or(of_run) else { return };
    html.heading("File demand: what the page cache would cost at a limit");
    html.raw(&methods::demand_curve("plot-demand", demand));
    html.table("demand", &tables::demand_table(demand, price(view)));
    html.paragraph("quiet", &demand_caption(demand, price(view)));
    let mut foreign = Table::new(&["file cached before, charged elsewhere", "bytes"]);
    for file in &demand.foreign {
        let name = file.path.clone().unwrap_or_else(|| format!("device {} inode {}", file.device, file.inode));
        foreign.row(Tone::Plain, vec![name, size(file.cached_bytes)]);
    }
    html.table("foreign", &foreign);
}

fn process_tree(html: &mut Html, view: &View) {
    let Some((run, _)) = view.foremost_run().filter(|(run, _)| !run.processes.is_empty()) else { return };
    html.heading(&format!("Processes of run {}", run.run));
    html.table("processes", &tables::process_table(&run.processes, 80));
}

fn sources(html: &mut Html, view: &View) {
    html.heading("Sources and notes");
    let header = view.header;
    html.paragraph(
        "quiet",
        &format!(
            "bursar {} on {}: Linux {}, {} processors, {} of memory; {}; swap: {}",
            header.bursar_version,
            header.host,
            header.kernel,
            header.cpus,
            size(header.memory_bytes),
            header.placement,
            header.swap
        ),
    );
    let mut from = Table::new(&["figure", "from"]).with_words_last();
    let mut notes = Table::new(&["note"]);
    notes.rows.extend(view.all_notes().into_iter().map(|note| (Tone::Plain, vec![note])));
    if let Some((_, account)) = view.foremost_run() {
        for (figure, rung) in &account.sources {
            from.row(Tone::Plain, vec![figure.clone(), rung.clone()]);
        }
        notes.rows.extend(account.notes.iter().map(|note| (Tone::Plain, vec![note.clone()])));
        let own = (opt_seconds(account.own_cpu_seconds), bytes(account.own_rss_bytes));
        html.paragraph("quiet", &format!("bursar itself: {} of CPU time, {} resident", own.0, own.1));
    }
    html.table("sources", &from);
    html.table("notes", &notes);
}

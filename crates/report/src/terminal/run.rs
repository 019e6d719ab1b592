//! The account of one or more runs.

use model::{Exit, FileDemand, Observation, ProcessRecord, RunAccount, Target};

use super::Style;
use super::table::Page;
use crate::figures::{
    demand_caption, detail_lines, ended_for_memory, headline, other_doubts, scope_of, size, uncached_step, warnings,
};
use crate::format::{bytes, count, opt_seconds, or_unknown, percent, printable, ratio, seconds};
use crate::tables::{Tone, demand_table, memory_table, parts_table, process_table, variability_table};
use crate::{View, demand};

/// The account of the record's runs; its first line is the answer.
pub fn run(view: &View, style: Style) -> String {
    let mut page = Page::new(style);
    let runs = view.plain_runs();
    let Some((observation, account)) = view.foremost_run() else {
        page.paragraph(Tone::Strong, "no run was recorded");
        notes(&mut page, view, &[]);
        return page.finish();
    };
    let tone = if account.doubts.is_empty() { Tone::Strong } else { Tone::Warning };
    page.paragraph(tone, &headline(observation, account, runs.len()));
    for doubt in other_doubts(&account.doubts) {
        page.paragraph(Tone::Warning, &doubt);
    }
    if let Some(step) = uncached_step(observation, account) {
        page.paragraph(Tone::Plain, &step);
    }
    foreword(&mut page, view, observation, account);
    if runs.len() > 1 {
        variability(&mut page, &runs);
        page.heading(&format!("run {}, which had the highest peak", observation.run));
    } else {
        page.gap();
    }
    times(&mut page, observation, account);
    page.gap();
    memory(&mut page, account);
    if let Some(parts) = parts_table(&view.runs) {
        page.heading("ranks and nodes, each at its own peak");
        page.table(&parts);
    }
    flow(&mut page, account);
    if let Some(demand) = &account.file_demand {
        file_demand(&mut page, demand, demand::seconds_per_byte(observation, account));
    }
    process_tree(&mut page, &observation.processes);
    sources(&mut page, account);
    notes(&mut page, view, &account.notes);
    page.finish()
}

fn foreword(page: &mut Page, view: &View, observation: &Observation, account: &RunAccount) {
    if let Some(unfinished) = view.unfinished() {
        page.paragraph(Tone::Warning, &unfinished.to_string());
    }
    if view.header.command.is_empty() {
        let what = match observation.target {
            Target::Process(_) => "one process",
            Target::Tree(_) => "a process and its descendants",
            Target::Cgroup(_) => "a cgroup with all in it",
            Target::Command => "a command",
        };
        page.paragraph(
            Tone::Plain,
            &format!(
                "observed from outside: {what}, which was there before; peaks from before the observation began are the \
                 kernel's own (VmHWM of processes, memory.peak of the cgroup), all else is of these {}",
                seconds(account.wall_seconds)
            ),
        );
    } else {
        page.paragraph(Tone::Plain, &printable(&view.command()));
    }
    if let Some(killed) = ended_for_memory(observation, account) {
        page.paragraph(Tone::Bad, &killed);
    }
    if let Some(demand) = &account.file_demand {
        for warning in warnings(demand, &account.doubts) {
            page.paragraph(Tone::Warning, &warning);
        }
    }
    if !view.complete {
        page.paragraph(Tone::Warning, "the record was cut short: what follows is what had been written by then");
    }
}

fn times(page: &mut Page, observation: &Observation, account: &RunAccount) {
    let end = match (observation.exit, account.exit_status) {
        (Exit::Signal(signal), _) => format!("ended by signal {signal}"),
        (Exit::TimedOut, _) => "ended by time-out".to_string(),
        (Exit::StoppedEarly, _) => "stopped early".to_string(),
        (Exit::StillRunning, _) => "still running".to_string(),
        (Exit::Status(_), _) if observation.target != Target::Command => "ended".to_string(),
        (Exit::Status(_), status) => format!("exit status {}", or_unknown(status, |s| s.to_string())),
    };
    page.items(
        Tone::Plain,
        &[
            format!("wall {}", seconds(account.wall_seconds)),
            format!("user {}", opt_seconds(account.user_seconds)),
            format!("system {}", opt_seconds(account.system_seconds)),
            format!("I/O wait {}", percent(account.io_wait_share)),
            format!("processes {}", count(account.processes)),
            end,
        ],
    );
}

fn memory(page: &mut Page, account: &RunAccount) {
    page.table(&memory_table(account));
    let lists = &account.sys_max_rss_lists;
    let known = [
        ("active anonymous", lists.active_anon),
        ("inactive anonymous", lists.inactive_anon),
        ("active file", lists.active_file),
        ("inactive file", lists.inactive_file),
    ];
    let on_lists: Vec<_> = known.iter().filter_map(|(name, v)| Some(format!("{name} {}", size((*v)?)))).collect();
    if !on_lists.is_empty() {
        page.paragraph(Tone::Plain, &format!("  lists at Sys-MaxRSS: {}", on_lists.join(", ")));
    }
    let finer: Vec<_> =
        detail_lines(&account.peak_detail).iter().map(|(name, v)| format!("{name} {}", size(*v))).collect();
    if !finer.is_empty() {
        page.paragraph(Tone::Plain, &format!("  within the peak: {}", finer.join(", ")));
    }
    if let Some(pool) = account.peak_breakdown.hugetlb.filter(|bytes| *bytes > 0) {
        page.paragraph(Tone::Plain, &format!("  beside the charge: huge pages (pool) {}", size(pool)));
    }
}

fn flow(page: &mut Page, account: &RunAccount) {
    page.gap();
    page.items(
        Tone::Plain,
        &[
            format!("amplification {}", ratio(account.amplification, false)),
            format!("swap {}", bytes(account.swap_bytes)),
            format!("limit {}", account.limit_bytes.map_or_else(|| "none".to_string(), size)),
        ],
    );
    page.items(
        Tone::Plain,
        &[
            format!("faults minor {}, major {}", count(account.faults.minor), count(account.faults.major)),
            format!(
                "refaults file {}, anonymous {}",
                count(account.flow.refaults_file),
                count(account.flow.refaults_anon)
            ),
            format!("reclaim scanned {}, taken {}", count(account.flow.scanned), count(account.flow.reclaimed)),
        ],
    );
    let pressure = &account.pressure;
    let [memory_some, memory_full, io_some, io_full] = [
        pressure.memory_some_seconds,
        pressure.memory_full_seconds,
        pressure.io_some_seconds,
        pressure.io_full_seconds,
    ]
    .map(opt_seconds);
    page.items(
        Tone::Plain,
        &[
            format!("pressure{}", scope_of(pressure)),
            format!("memory some {memory_some}, full {memory_full}"),
            format!("I/O some {io_some}, full {io_full}"),
        ],
    );
}

fn variability(page: &mut Page, runs: &[(&Observation, &RunAccount)]) {
    page.heading(&format!("{} runs", runs.len()));
    page.table(&variability_table(runs));
}

/// The file demand curve with what it was made from.
pub fn file_demand(page: &mut Page, demand: &FileDemand, seconds_per_byte: Option<f64>) {
    page.heading("file demand: what the page cache would cost at a limit");
    page.table(&demand_table(demand, seconds_per_byte));
    page.paragraph(Tone::Dim, &demand_caption(demand, seconds_per_byte));
}

fn process_tree(page: &mut Page, records: &[ProcessRecord]) {
    if !records.is_empty() {
        page.heading("processes");
        page.table(&process_table(records, (page.width() / 2).max(20)));
    }
}

fn sources(page: &mut Page, account: &RunAccount) {
    page.gap();
    for (figure, rung) in &account.sources {
        page.paragraph(Tone::Dim, &format!("{}: {}", printable(figure), printable(rung)));
    }
    if let Some(own) = account.own_charge_bytes.filter(|bytes| *bytes > 0) {
        page.paragraph(
            Tone::Dim,
            &format!("taken off the charge, as it was there before or is bursar's own: {} at most", size(own)),
        );
    }
    page.paragraph(
        Tone::Dim,
        &format!(
            "bursar itself: {} of CPU time, {} resident",
            opt_seconds(account.own_cpu_seconds),
            bytes(account.own_rss_bytes)
        ),
    );
}

fn notes(page: &mut Page, view: &View, of_run: &[String]) {
    let all: Vec<&String> = view.notes.iter().chain(of_run).collect();
    if !all.is_empty() {
        page.gap();
    }
    for note in all {
        page.paragraph(Tone::Plain, &format!("note: {}", printable(note)));
    }
}

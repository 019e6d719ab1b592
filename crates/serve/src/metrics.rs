//! Every metric there is: its name, what it means, and where its values come from.

use std::time::Duration;

use linux::procfs;
use linux::psi::Psi;
use rustix::time::{ClockId, clock_gettime};

use crate::agent::Scan;
use crate::exposition::{Family, Format, Kind, Page, label};
use crate::server::Counts;
use crate::watched::{Shown, unreclaimable};

/// A value of a cgroup's metric: a label of its own, if it has any, and what it is, if it is known.
type Value = (Option<(&'static str, &'static str)>, Option<f64>);

/// A metric of every cgroup.
struct OfCgroup {
    family: Family,
    values: fn(&Shown) -> Vec<Value>,
}

const fn gauge(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, help }
}

const fn counter(name: &'static str, help: &'static str) -> Family {
    Family { name, kind: Kind::Counter, help }
}

fn one(value: Option<u64>) -> Vec<Value> {
    vec![(None, value.map(|value| value as f64))]
}

fn each<const N: usize>(label: &'static str, values: [(&'static str, Option<u64>); N]) -> Vec<Value> {
    values.into_iter().map(|(name, value)| (Some((label, name)), value.map(|value| value as f64))).collect()
}

const OF_CGROUPS: [OfCgroup; 20] = [
    OfCgroup {
        family: gauge("bursar_cgroup_charge_bytes", "Memory that counts against the limit, cgroups beneath included."),
        values: |of| one(of.seen.memory.usage),
    },
    OfCgroup {
        family: gauge(
            "bursar_cgroup_memory_bytes",
            "What the charge is made of: heap, file (on the active list, on the inactive one, on neither), shared, \
             kernel, unmapped (charged and in none of these: mostly parts of huge pages that a program has given back, which the \
             kernel frees when memory is short).",
        ),
        values: |of| {
            let memory = &of.seen.memory;
            let listed = memory.active_file.zip(memory.inactive_file).map(|(active, inactive)| active + inactive);
            let parts = [
                ("heap", memory.anon),
                ("file_active", memory.active_file),
                ("file_inactive", memory.inactive_file),
                ("file_unlisted", memory.file.zip(listed).map(|(file, listed)| file.saturating_sub(listed))),
                ("shared", memory.shmem),
                ("kernel", memory.kernel),
                ("unmapped", memory.unmapped()),
            ];
            each("memory", parts)
        },
    },
    OfCgroup {
        family: gauge(
            "bursar_cgroup_hugetlb_bytes",
            "Pages of the hugetlb pools in use; part of the charge only where the hierarchy is mounted with memory_hugetlb_accounting.",
        ),
        values: |of| one(of.seen.memory.hugetlb),
    },
    OfCgroup {
        family: gauge("bursar_cgroup_swap_bytes", "Swap in use; no part of the charge."),
        values: |of| one(of.seen.memory.swap),
    },
    OfCgroup {
        family: gauge(
            "bursar_cgroup_peak_bytes",
            "The largest charge: the kernel's own peak, else the largest of all scans.",
        ),
        values: |of| one(of.most.charge),
    },
    OfCgroup {
        family: gauge("bursar_cgroup_hugetlb_peak_bytes", "The most memory from hugetlb pools, from the same source."),
        values: |of| one(of.most.hugetlb),
    },
    OfCgroup {
        family: gauge("bursar_cgroup_swap_peak_bytes", "The most swap, from the same source."),
        values: |of| one(of.most.swap),
    },
    OfCgroup {
        family: gauge(
            "bursar_cgroup_working_set_bytes",
            "What cannot be reclaimed and the active file pages: what the kernel holds for in use, not what was seen accessed.",
        ),
        values: |of| {
            let memory = &of.seen.memory;
            one(unreclaimable(memory).zip(memory.active_file).map(|(held, file)| held + file))
        },
    },
    OfCgroup {
        family: gauge(
            "bursar_cgroup_unreclaimable_bytes",
            "What reclaim could not take now, swapped out memory included.",
        ),
        values: |of| one(unreclaimable(&of.seen.memory)),
    },
    OfCgroup {
        family: gauge(
            "bursar_cgroup_floor_bytes",
            "The most that reclaim could not have taken, since bursar began to watch: a limit below it kills.",
        ),
        values: |of| one(of.most.unreclaimable),
    },
    OfCgroup {
        family: gauge(
            "bursar_cgroup_budget_estimate_bytes",
            "The largest working set since bursar began to watch, in whole MiB. An estimate that no run has confirmed: \
             too low while bursar_cgroup_refaults_total rises, too high where file pages stay active unused.",
        ),
        values: |of| one(of.most.budget),
    },
    OfCgroup {
        family: gauge(
            "bursar_cgroup_limit_bytes",
            "The smallest limit of it and of those above it; absent without one.",
        ),
        values: |of| one(of.seen.limit),
    },
    OfCgroup {
        family: gauge(
            "bursar_cgroup_throttle_limit_bytes",
            "The charge from which it is slowed down (memory.high, cgroup v2); absent without one.",
        ),
        values: |of| one(of.seen.throttle_limit),
    },
    OfCgroup {
        family: gauge("bursar_cgroup_swap_limit_bytes", "The swap it may use (cgroup v2); absent without a limit."),
        values: |of| one(of.seen.swap_limit),
    },
    OfCgroup {
        family: counter("bursar_cgroup_refaults_total", "Refaults: pages read or swapped in again after reclaim."),
        values: |of| each("pages", [("file", of.seen.memory.refault_file), ("anon", of.seen.memory.refault_anon)]),
    },
    OfCgroup {
        family: counter("bursar_cgroup_page_faults_total", "Page faults, without I/O (minor) and with it (major)."),
        values: |of| {
            let major = of.seen.memory.pgmajfault;
            let minor = of.seen.memory.pgfault.zip(major).map(|(all, major)| all.saturating_sub(major));
            each("fault", [("minor", minor), ("major", major)])
        },
    },
    OfCgroup {
        family: counter(
            "bursar_cgroup_reclaim_pages_total",
            "Pages that reclaim scanned, and those that it took (cgroup v2).",
        ),
        values: |of| each("pages", [("scanned", of.seen.memory.pgscan), ("taken", of.seen.memory.pgsteal)]),
    },
    OfCgroup {
        family: counter(
            "bursar_cgroup_pressure_seconds_total",
            "Time in which some or all of its tasks stalled (PSI); absent where only cgroup v1 is.",
        ),
        values: |of| pressure(of.seen.pressure),
    },
    OfCgroup {
        family: counter("bursar_cgroup_limit_hits_total", "Times that the charge met the limit."),
        values: |of| one(of.seen.memory.limit_hits),
    },
    OfCgroup {
        family: counter("bursar_cgroup_oom_kills_total", "Processes killed for lack of memory."),
        values: |of| one(of.seen.memory.oom_kills),
    },
];

const PRESSURE: Family =
    counter("bursar_machine_pressure_seconds_total", "Time in which some or all tasks of the machine stalled (PSI).");
const CGROUPS: Family = gauge("bursar_cgroups", "Cgroups that are watched.");
const LEFT_OUT: Family =
    gauge("bursar_cgroups_left_out", "Cgroups without metrics: more than --max-cgroups, or not readable.");
const LOOKS: Family = counter("bursar_scans_total", "Scans of all cgroups.");
const LOOK: Family = gauge("bursar_scan_duration_seconds", "Duration of the last scan.");
const LOOKED_AT: Family =
    gauge("bursar_last_scan_timestamp_seconds", "Time of the last scan, of which the metrics are.");
const INTERVAL: Family = gauge(
    "bursar_scan_interval_seconds",
    "Time between the starts of two scans: --interval, or longer if scans would use more than a fifth of a processor.",
);
const SCRAPE: Family =
    gauge("bursar_scrape_duration_seconds", "How long it took to write the last answer before this.");
const REQUESTS: Family = counter("bursar_http_requests_total", "Requests answered before this one, by status.");
const DROPPED: Family =
    counter("bursar_http_connections_dropped_total", "Clients let go without an answer: too slow, or too many.");
const BUILD: Family = Family { name: "bursar_build_info", kind: Kind::Info, help: "bursar's version." };
const CPU: Family = counter("process_cpu_seconds_total", "User and system time of bursar serve itself.");
const RSS: Family = gauge("process_resident_memory_bytes", "Resident memory of bursar serve itself.");

/// All metrics of a scan, in one of the formats. `written_in`: how long the page before took.
pub fn page(scan: &Scan, written_in: Duration, format: Format, counts: &Counts) -> String {
    let mut page = Page::new(format);
    for metric in &OF_CGROUPS {
        page.family(&metric.family);
        for shown in &scan.cgroups {
            for (own, value) in (metric.values)(shown) {
                let own = own.map(|(name, value)| label(name, value)).unwrap_or_default();
                if let Some(value) = value {
                    page.sample(&metric.family, &[&shown.labels, &own], value);
                }
            }
        }
    }
    let own = &scan.own;
    page.family(&PRESSURE);
    for (own, value) in pressure(own.pressure) {
        let own = own.map(|(name, value)| label(name, value)).unwrap_or_default();
        if let Some(value) = value {
            page.sample(&PRESSURE, &[&own], value);
        }
    }
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let rss = procfs::stat(std::process::id() as i32).ok().map(|stat| stat.rss_pages * procfs::page_bytes());
    for (family, value) in [
        (CGROUPS, Some(scan.cgroups.len() as f64)),
        (LEFT_OUT, Some(own.left_out as f64)),
        (LOOKS, Some(own.looks as f64)),
        (LOOK, Some(own.look.as_secs_f64())),
        (LOOKED_AT, Some(own.looked_at)),
        (INTERVAL, Some(own.interval.as_secs_f64())),
        (SCRAPE, Some(written_in.as_secs_f64())),
        (DROPPED, Some(counts.dropped as f64)),
        (CPU, Some(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9)),
        (RSS, rss.map(|rss| rss as f64)),
    ] {
        page.family(&family);
        if let Some(value) = value {
            page.sample(&family, &[], value);
        }
    }
    page.family(&REQUESTS);
    for (status, count) in &counts.answers {
        page.sample(&REQUESTS, &[&label("code", &status.to_string())], *count as f64);
    }
    page.family(&BUILD);
    page.sample(&BUILD, &[&label("version", env!("CARGO_PKG_VERSION"))], 1.0);
    page.finish()
}

fn pressure(psi: Option<Psi>) -> Vec<Value> {
    let psi = psi.unwrap_or_default();
    [
        ("memory_some", psi.memory_some_seconds),
        ("memory_full", psi.memory_full_seconds),
        ("io_some", psi.io_some_seconds),
        ("io_full", psi.io_full_seconds),
    ]
    .into_iter()
    .map(|(name, seconds)| (Some(("stalled", name)), seconds))
    .collect()
}

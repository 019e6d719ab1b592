//! How long page faults took, in sentences and tables.

use model::{
    Bytes, CallFigures, FaultFigures, FaultShare, Faults, Header, Latencies, MemoryCall, SlowFault, SlowFaults,
};

use crate::format::{UNKNOWN, count, percent, seconds, shell_word, short};
use crate::tables::{Table, Tone};

/// Of the slowest faults, those that are listed.
const MOST_SLOWEST: usize = 8;
/// The first line names what system calls populated from this on: what the start of any program does is less.
const LEAST_POPULATED_BYTES: u64 = 256 << 10;
/// And their time if it is at least this, and at least this share of the time in faults.
const LEAST_CALL_SECONDS: f64 = 1e-3;
const LEAST_CALL_SHARE: f64 = 0.1;

/// What a report of faults is made from.
#[derive(Clone, Copy, Debug)]
pub struct Faulted<'a> {
    /// Where, when and of what the record is.
    pub header: &'a Header,
    /// One for each run: alone, and beside a load.
    pub runs: &'a [Faults],
    /// Notes, as sentences.
    pub notes: &'a [String],
}

impl Faulted<'_> {
    /// The command line as one would type it.
    pub fn command(&self) -> String {
        self.header.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
    }
}

/// Whether a run was the command's own, and beside what.
pub fn arm(faults: &Faults) -> String {
    faults.beside.as_ref().map_or_else(|| "alone".to_string(), |load| format!("beside {load}"))
}

/// What one first wants to know.
pub fn headline(faults: &Faults) -> String {
    let FaultFigures { count: faulted, latency, .. } = &faults.overall;
    let of = count(Some(*faulted));
    match latency.sum_seconds {
        Some(sum) => format!(
            "{of} page faults took {}: half of them up to {}, one in 1000 over {}, the longest {}{}",
            seconds(sum),
            short(latency.p50_us),
            short(latency.p999_us),
            short(latency.max_us),
            beside_faults(faults, sum)
        ),
        None => format!("{of} page faults, whose latency cannot be seen here"),
    }
}

/// What system calls took beside the faults, where it matters.
fn beside_faults(faults: &Faults, fault_seconds: f64) -> String {
    let sum = |figure: fn(&CallFigures) -> f64| faults.calls.values().map(figure).sum::<f64>();
    let populated: u64 = faults.calls.values().map(|call| call.populated_bytes).sum();
    let mut text = String::new();
    if populated >= LEAST_POPULATED_BYTES {
        let took = short(Some(sum(|call| call.populating_seconds) * 1e6));
        text = format!("; system calls populated {} more in {took}", Bytes(populated));
    }
    let others = sum(|call| call.sum_seconds - call.populating_seconds);
    if others >= LEAST_CALL_SECONDS && others >= LEAST_CALL_SHARE * fault_seconds {
        let most = |a: &(&MemoryCall, &CallFigures), b: &(&MemoryCall, &CallFigures)| {
            let own = |call: &CallFigures| call.sum_seconds - call.populating_seconds;
            own(a.1).total_cmp(&own(b.1))
        };
        let name = faults.calls.iter().max_by(most).map_or("", |(call, _)| call.name());
        text += &format!("; other system calls on memory took {}, most of it in {name}", short(Some(others * 1e6)));
    }
    text
}

/// System calls on memory: what the program waited for outside of faults.
pub fn calls_table(faults: &Faults) -> Table {
    let header =
        ["system calls", "calls", "populated", "allocated", "compaction", "reclaim", "off processor", "max", "sum"];
    let mut table = Table::new(&header);
    let bytes = |bytes: u64| if bytes > 0 { Bytes(bytes).to_string() } else { UNKNOWN.to_string() };
    let time = |seconds: f64| if seconds > 0.0 { short(Some(seconds * 1e6)) } else { UNKNOWN.to_string() };
    for (call, of) in &faults.calls {
        let cells = vec![
            call.name().to_string(),
            count(Some(of.count)),
            bytes(of.populated_bytes),
            bytes(of.allocated_bytes),
            time(of.compaction_seconds),
            time(of.reclaim_seconds),
            time(of.off_cpu_seconds),
            short(Some(of.max_us)),
            short(Some(of.sum_seconds * 1e6)),
        ];
        table.row(Tone::Plain, cells);
    }
    table
}

/// The distribution of every kind.
pub fn kinds_table(faults: &Faults) -> Table {
    let mut table = distribution("kind");
    for (name, figures) in lines(faults) {
        table.row(Tone::Plain, row(name, figures.count, &figures.latency));
    }
    table
}

/// The same without the time off the processor; no rows if there was none.
pub fn on_cpu_table(faults: &Faults) -> Table {
    let mut table = distribution("on the processor");
    let waited = |figures: &FaultFigures| figures.causes.off_cpu.is_some_and(|off| off.count > 0);
    for (name, figures) in lines(faults).into_iter().filter(|(_, figures)| waited(figures)) {
        table.row(Tone::Plain, row(name, figures.count, &figures.on_cpu));
    }
    table
}

/// Every kind, and all of them where there are several.
fn lines(faults: &Faults) -> Vec<(&'static str, &FaultFigures)> {
    let kinds = faults.kinds.iter().map(|(kind, figures)| (kind.name(), figures));
    let all = (faults.kinds.len() > 1).then_some(("all", &faults.overall));
    kinds.chain(all).collect()
}

fn distribution(of: &str) -> Table {
    Table::new(&[of, "faults", "p50", "p99", "p99.9", "p99.999", "max", "mean", "± stddev", "sum"])
}

fn row(name: &str, faulted: u64, latency: &Latencies) -> Vec<String> {
    let Latencies { p50_us, p99_us, p999_us, p99999_us, max_us, mean_us, stddev_us, sum_seconds } = *latency;
    let mut cells = vec![name.to_string(), count(Some(faulted))];
    cells.extend([p50_us, p99_us, p999_us, p99999_us, max_us, mean_us, stddev_us].map(short));
    cells.push(short(sum_seconds.map(|sum| sum * 1e6)));
    cells
}

/// By size of the largest allocation; no rows where all were base pages, or none is known.
pub fn orders_table(faults: &Faults, page_bytes: u64) -> Table {
    let mut table = Table::new(&["largest allocation", "faults", "mean", "max", "sum"]);
    let orders = &faults.overall.by_order;
    if orders.iter().all(|of| of.order.is_none_or(|order| order == 0)) {
        return table;
    }
    for of in orders {
        let size = of.order.map(|order| format!("{} (order {order})", model::Bytes(page_bytes << order)));
        let mean = of.sum_seconds / of.count as f64 * 1e6;
        let cells = vec![
            size.unwrap_or_else(|| "none".into()),
            count(Some(of.count)),
            short(Some(mean)),
            short(Some(of.max_us)),
            short(Some(of.sum_seconds * 1e6)),
        ];
        table.row(Tone::Plain, cells);
    }
    table
}

/// The slowest faults.
pub fn slowest_table(faults: &Faults) -> Table {
    let header = ["slowest", "at", "kind", "compaction", "reclaim", "off processor", "address", "process"];
    let mut table = Table::new(&header);
    let part = |us: f64| if us > 0.0 { short(Some(us)) } else { UNKNOWN.to_string() };
    for slow in faults.slowest.iter().take(MOST_SLOWEST) {
        let SlowFault { latency_us, off_cpu_us, compaction_us, reclaim_us, address, pid, kind, .. } = slow;
        let mark = if slow.collapse { " (collapse)" } else { "" };
        let cells = vec![
            short(Some(*latency_us)),
            seconds(slow.seconds),
            format!("{}{mark}", kind.name()),
            part(*compaction_us),
            part(*reclaim_us),
            part(*off_cpu_us),
            format!("{address:#x}"),
            pid.to_string(),
        ];
        table.row(Tone::Plain, cells);
    }
    table
}

/// What of it matters, in sentences.
pub fn sentences(faults: &Faults) -> Vec<String> {
    let overall = &faults.overall;
    let mut sentences: Vec<String> = overall.over_50us.iter().map(|slow| slow_sentence(slow, overall)).collect();
    let shares = [("compaction", overall.causes.compaction), ("reclaim", overall.causes.reclaim)];
    let part = |(name, share): (&str, Option<FaultShare>)| {
        let share = share.filter(|share| share.count > 0)?;
        Some(format!("{} went to {name} in {} faults", short(Some(share.part_seconds * 1e6)), count(Some(share.count))))
    };
    let parts: Vec<String> = shares.into_iter().filter_map(part).collect();
    if !parts.is_empty() {
        sentences.push(format!("{}.", parts.join("; ")));
    }
    sentences.extend(overall.major_count.map(|major| {
        let in_kernel = overall.in_kernel_count.map(|taken| {
            format!(" Taken in system calls on the program's behalf, and among the others: {}.", count(Some(taken)))
        });
        format!("Major: {}.{}", count(Some(major)), in_kernel.unwrap_or_default())
    }));
    if !faults.calls.is_empty() {
        sentences.push("System calls are timed from entry to return, what following them costs included; their time is in no figure of faults.".into());
    }
    if let Some(unfinished) = faults.unfinished_count.filter(|unfinished| *unfinished > 0) {
        sentences.push(format!(
            "Mapped no page, for they ended in a signal, or were interrupted by one and taken again: {} more.",
            count(Some(unfinished))
        ));
    }
    if let Some(untimed) = faults.untimed_count.filter(|untimed| *untimed > 0) {
        sentences.push(format!("Begun unseen, and in no figure: {} more.", count(Some(untimed))));
    }
    if let (Some(tracer), Some(cost)) = (&faults.tracer, overall.tracer_cost_us) {
        sentences.push(format!(
            "Following them cost {} a fault ({} in all), which is in no figure: the first touch of a page in the cache takes {}, followed {}.",
            short(Some(cost)),
            short(Some(cost * overall.count as f64)),
            short(Some(tracer.base_us)),
            short(Some(tracer.traced_base_us))
        ));
    }
    sentences
}

fn slow_sentence(slow: &SlowFaults, overall: &FaultFigures) -> String {
    if slow.count == 0 {
        return "No fault took longer than 50 µs.".into();
    }
    let share = overall.latency.sum_seconds.map(|sum| slow.sum_seconds / sum);
    let parts = [
        (slow.compaction, "compaction"),
        (slow.reclaim, "reclaim"),
        (slow.collapse, "a collapse of their 2 MiB"),
        (slow.off_cpu, "time off the processor"),
    ];
    let why: Vec<String> = parts
        .iter()
        .filter(|(slow, _)| *slow > 0)
        .map(|(slow, what)| format!("{what} in {}", count(Some(*slow))))
        .collect();
    let why = if why.is_empty() { String::new() } else { format!("; with {}", why.join(", ")) };
    format!(
        "Longer than 50 µs: {}, {} in all, {} of the time in faults{why}.",
        count(Some(slow.count)),
        short(Some(slow.sum_seconds * 1e6)),
        percent(share)
    )
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeMap;

    use model::{FaultCauses, FaultKind, FaultMoment, LatencyHistogram, OrderFaults, SlowFaults, TracerCost};

    use super::*;

    fn figures(each_ns: u64, times: u64, order: Option<u32>) -> FaultFigures {
        let mut histogram = LatencyHistogram::default();
        histogram.add(LatencyHistogram::bucket_of(each_ns), times);
        let sum_seconds = (each_ns * times) as f64 / 1e9;
        let latency = Latencies::of(&histogram, each_ns * times, each_ns);
        let off = FaultShare { count: 3, sum_seconds: 0.001, part_seconds: 0.0005 };
        FaultFigures {
            count: times,
            latency,
            on_cpu: latency,
            tracer_cost_us: Some(0.7),
            in_kernel_count: Some(2),
            major_count: Some(0),
            over_50us: Some(SlowFaults { count: 7, sum_seconds, compaction: 3, off_cpu: 2, ..SlowFaults::default() }),
            causes: FaultCauses { off_cpu: Some(off), compaction: Some(off), ..FaultCauses::default() },
            by_order: vec![OrderFaults { order, count: times, sum_seconds, max_us: each_ns as f64 / 1e3 }],
            histogram,
        }
    }

    /// Base and huge pages, as the programs see them.
    pub fn faults() -> Faults {
        let slow = SlowFault {
            seconds: 0.5,
            latency_us: 2700.0,
            off_cpu_us: 0.0,
            compaction_us: 2500.0,
            reclaim_us: 0.0,
            collapse: true,
            address: 0x7f00_0000_0000,
            pid: 4711,
            kind: FaultKind::Huge,
            order: Some(9),
            in_kernel: false,
        };
        let huge = figures(90_000, 512, Some(9));
        Faults {
            rung: "told by hand".into(),
            kinds: BTreeMap::from([
                (FaultKind::Base, figures(1300, 262_144, Some(0))),
                (FaultKind::Huge, huge.clone()),
            ]),
            overall: huge,
            unfinished_count: Some(1),
            tracer: Some(TracerCost { base_us: 1.3, traced_base_us: 2.0, ..TracerCost::default() }),
            moment_seconds: 0.01,
            moments: vec![FaultMoment { seconds: 0.1, count: 3, sum_seconds: Some(0.001), max_us: Some(90.0) }],
            slowest: vec![slow],
            ..Faults::default()
        }
    }

    /// What is left without BPF.
    pub fn counted() -> Faults {
        let overall = FaultFigures { count: 1234, major_count: Some(1), ..FaultFigures::default() };
        Faults { rung: "counted".into(), overall, ..Faults::default() }
    }

    #[test]
    fn latencies_are_in_units_of_their_size() {
        let said = [0.52, 1.304, 36.09, 218.1, 2768.0].map(|us| short(Some(us)));
        assert_eq!(said, ["520 ns", "1.30 µs", "36.1 µs", "218 µs", "2.77 ms"]);
        assert_eq!(short(None), "-");
    }

    #[test]
    fn the_first_line_names_what_system_calls_populated_and_took() {
        let call = |populated_bytes, sum_seconds, populating_seconds| CallFigures {
            count: 2,
            sum_seconds,
            populated_bytes,
            populating_seconds,
            ..CallFigures::default()
        };
        let with = |calls: &[(MemoryCall, CallFigures)]| {
            headline(&Faults { calls: calls.iter().copied().collect(), ..faults() })
        };
        assert_eq!(with(&[(MemoryCall::Mmap, call(4096, 1e-4, 1e-4))]), headline(&faults()));
        let populated =
            with(&[(MemoryCall::Mmap, call(64 << 20, 0.02, 0.02)), (MemoryCall::Populate, call(64 << 20, 0.01, 0.01))]);
        assert!(populated.ends_with("; system calls populated 128 MiB more in 30 ms"), "{populated}");
        let slow = with(&[(MemoryCall::Collapse, call(0, 0.5, 0.0)), (MemoryCall::Munmap, call(0, 0.1, 0.0))]);
        assert!(
            slow.ends_with("; other system calls on memory took 600 ms, most of it in madvise (collapse)"),
            "{slow}"
        );
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(headline(&counted()), "1,234 page faults, whose latency cannot be seen here");
        assert_eq!(sentences(&counted()), ["Major: 1."]);
        assert!(kinds_table(&counted()).rows.is_empty() && orders_table(&counted(), 4096).rows.is_empty());
    }
}

//! What the ranks or nodes of one job showed, as one run.

use std::collections::{BTreeMap, BTreeSet};

use model::{Bytes, Evidence, Exit, KeptPeaks, Observation, RunRole, Rusage, Series, Target, Unit, names};

use crate::held_together;

/// What the source of a charge says that is not the job's alone.
const SHARED: &str = "with all else that is in it";

/// The run whose parts these are: their time lines added up on the first one's axis, each host's own figures once.
/// `None` of none. The processes, the file demand and the kernel's own peaks stay with the parts.
pub fn together(parts: &[Observation]) -> Option<Observation> {
    let first = parts.iter().min_by_key(|part| part.started_unix_ns)?;
    let begin = first.started_unix_ns;
    let end = parts.iter().map(end_ns).max()?;
    let mut whole = Observation::begun(0, RunRole::Plain, Target::Command, first.cache_state.clone(), begin);
    whole.wall_seconds = (end - begin) as f64 / 1e9;
    whole.exit = parts.iter().map(|part| part.exit).find(|exit| *exit != Exit::Status(0)).unwrap_or(Exit::Status(0));
    whole.rusage = parts.iter().map(|part| part.rusage).reduce(|a, b| a.zip(b).map(|(a, b)| both(a, b))).flatten();
    whole.kept = KeptPeaks {
        oom_kills: sum(parts, |part| part.kept.oom_kills),
        limit_hits: sum(parts, |part| part.kept.limit_hits),
        ..KeptPeaks::default()
    };
    // What was read of each part at its own moments has no plain sum.
    let apart = [
        names::TREE_HELD,
        names::TREE_HELD_LEAST,
        names::TREE_FILE_LEAST,
        names::TREE_SHARED_LEAST,
        names::TREE_GAINED,
        names::TREE_LOST,
    ];
    let of_job = |series: &&Series| series.process.is_none() && !apart.contains(&series.name.as_str());
    let lines = parts.iter().flat_map(|part| &part.series).filter(of_job);
    let all: BTreeSet<&str> = lines.map(|series| series.name.as_str()).collect();
    whole.series = all.into_iter().filter_map(|name| added(parts, name, begin)).collect();
    whole.series.extend(held_together::lines(parts, begin).into_iter().flatten());
    whole.evidence = Evidence::join(parts.iter().map(|part| part.evidence.clone()));
    whole.sources = first.sources.clone();
    let hosts: BTreeSet<&str> = parts.iter().map(host).collect();
    whole.sources.insert("parts".into(), format!("{} records of {} hosts, added up", parts.len(), hosts.len()));
    whole.notes.push("Peaks are of the sum, as sampled; the hosts' clocks are taken to agree.".into());
    if let Some(peaks) = sum(parts, |part| part.kept.charge_bytes) {
        whole.notes.push(format!(
            "The parts' own peaks, as the kernel has kept them, add up to {}, but need not have been at one time.",
            Bytes(peaks)
        ));
    }
    Some(whole)
}

fn host(part: &Observation) -> &str {
    part.origin.as_ref().map_or("", |origin| &origin.host)
}

fn end_ns(part: &Observation) -> u64 {
    part.started_unix_ns.saturating_add((part.wall_seconds.max(0.0) * 1e9) as u64)
}

fn sum(parts: &[Observation], of: impl Fn(&Observation) -> Option<u64>) -> Option<u64> {
    parts.iter().filter_map(of).reduce(|a, b| a.saturating_add(b))
}

fn both(a: Rusage, b: Rusage) -> Rusage {
    Rusage {
        max_rss_bytes: a.max_rss_bytes.max(b.max_rss_bytes),
        user_seconds: a.user_seconds + b.user_seconds,
        system_seconds: a.system_seconds + b.system_seconds,
        minor_faults: a.minor_faults.saturating_add(b.minor_faults),
        major_faults: a.major_faults.saturating_add(b.major_faults),
        blocks_in: a.blocks_in.saturating_add(b.blocks_in),
        blocks_out: a.blocks_out.saturating_add(b.blocks_out),
    }
}

/// Whose a line is.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// The part's own.
    Part,
    /// Of all parts on its host, which have it alike.
    Host,
}

/// The line of a name, of all parts.
fn added(parts: &[Observation], name: &str, begin: u64) -> Option<Series> {
    let mut of_hosts: BTreeMap<&str, &Observation> = BTreeMap::new();
    let mut chosen: Vec<(&Observation, Scope)> = Vec::new();
    for part in parts {
        match part.job_series(name).map(|series| scope(part, series)) {
            Some(Scope::Part) => chosen.push((part, Scope::Part)),
            // The one that was there longest has seen most of it.
            Some(Scope::Host) => {
                let longest = of_hosts.entry(host(part)).or_insert(part);
                if part.wall_seconds > longest.wall_seconds {
                    *longest = part;
                }
            }
            None => {}
        }
    }
    chosen.extend(of_hosts.into_values().map(|part| (part, Scope::Host)));
    let like = chosen.first()?.0.job_series(name)?;
    // Time that tasks of one machine stalled and time that those of another did have no sum.
    if name.starts_with("psi_") && chosen.len() > 1 {
        return None;
    }
    let mut moments: Vec<(u64, usize, f64)> = Vec::new();
    let mut now = vec![0.0; chosen.len()];
    for (number, (part, scope)) in chosen.iter().enumerate() {
        let series = part.job_series(name)?;
        let offset = part.started_unix_ns - begin;
        moments.extend(series.points.iter().map(|(t_ns, value)| (offset.saturating_add(*t_ns), number, *value)));
        if *scope == Scope::Part && matches!(series.unit, Unit::Bytes | Unit::Count) {
            // What it had is gone after its end.
            let last = series.points.last().map_or(0, |(t_ns, _)| offset.saturating_add(*t_ns));
            moments.push((last.max(end_ns(part) - begin).saturating_add(1), number, 0.0));
        } else {
            // The machine had it before; and counters count from where they began.
            now[number] = series.points.first().map_or(0.0, |(_, value)| *value);
        }
    }
    moments.sort_by_key(|(t_ns, number, _)| (*t_ns, *number));
    let mut points = Vec::new();
    for moment in moments.chunk_by(|a, b| a.0 == b.0) {
        for (_, number, value) in moment {
            now[*number] = *value;
        }
        points.push((moment[0].0, now.iter().sum()));
    }
    let rung = if chosen.len() > 1 { format!("{}, added up", like.rung) } else { like.rung.clone() };
    Some(Series { rung, points, process: None, ..like.clone() })
}

fn scope(part: &Observation, series: &Series) -> Scope {
    let is_shared = part.sources.get("charge").is_some_and(|source| source.contains(SHARED));
    let of_machine = [names::SYSTEM_USED, names::SYSTEM_SLAB_RECLAIMABLE, names::SYSTEM_NAMES]
        .contains(&series.name.as_str())
        || series.rung.contains("(system)");
    if of_machine || (is_shared && series.rung.starts_with("cgroup")) { Scope::Host } else { Scope::Part }
}

#[cfg(test)]
mod tests {
    use model::Origin;

    use super::*;

    fn part(host: &str, rank: u32, started_ns: u64, wall: f64, lines: &[Line<'_>]) -> Observation {
        let series = lines.iter().map(|(name, unit, points)| Series {
            name: name.to_string(),
            process: None,
            unit: *unit,
            rung: "cgroup v2".into(),
            points: points.to_vec(),
        });
        Observation {
            wall_seconds: wall,
            series: series.collect(),
            kept: KeptPeaks { charge_bytes: Some(100), oom_kills: Some(1), ..Default::default() },
            exit: Exit::Status(0),
            origin: Some(Origin { host: host.into(), boot_id: "b".into(), rank: Some(rank) }),
            ..Observation::begun(0, RunRole::Plain, Target::Command, String::new(), started_ns)
        }
    }

    type Line<'a> = (&'static str, Unit, &'a [(u64, f64)]);

    fn charge(points: &[(u64, f64)]) -> Line<'_> {
        (names::CHARGE, Unit::Bytes, points)
    }

    fn faults(points: &[(u64, f64)]) -> Line<'_> {
        (names::MAJOR_FAULTS, Unit::Events, points)
    }

    fn line<'a>(whole: &'a Observation, name: &str) -> &'a [(u64, f64)] {
        &whole.job_series(name).unwrap().points
    }

    #[test]
    fn levels_add_up_while_their_parts_live_and_counters_go_on() {
        const S: u64 = 1_000_000_000;
        let parts = [
            part("a", 0, 7, 4.0, &[charge(&[(0, 10.0), (2 * S, 30.0)]), faults(&[(0, 5.0), (2 * S, 7.0)])]),
            part("b", 1, 7 + S, 6.0, &[charge(&[(0, 1.0), (2 * S, 2.0)]), faults(&[(0, 100.0), (2 * S, 101.0)])]),
        ];
        let whole = together(&parts).unwrap();
        let expected = [(0, 10.0), (S, 11.0), (2 * S, 31.0), (3 * S, 32.0), (4 * S + 1, 2.0), (7 * S + 1, 0.0)];
        assert_eq!(line(&whole, names::CHARGE), expected);
        assert_eq!(line(&whole, names::MAJOR_FAULTS), [(0, 105.0), (S, 105.0), (2 * S, 107.0), (3 * S, 108.0)]);
        assert_eq!((whole.wall_seconds, whole.kept.oom_kills, whole.kept.charge_bytes), (7.0, Some(2), None));
        assert!(whole.notes[1].contains("200 B"), "{:?}", whole.notes);
        assert_eq!(together(&[]), None);
    }

    #[test]
    fn what_a_host_has_is_not_counted_for_each_of_its_parts() {
        let charge = charge(&[(0, 10.0)]);
        let used = (names::SYSTEM_USED, Unit::Bytes, &[(0, 1000.0), (5, 1100.0)][..]);
        let stalled = (names::PSI_IO_SOME, Unit::Seconds, &[(0, 1.0)][..]);
        let mut parts = [
            part("a", 0, 0, 2.0, &[charge, used, stalled]),
            part("a", 1, 0, 1.0, &[charge, used, stalled]),
            part("b", 2, 3, 2.0, &[charge, used, stalled]),
        ];
        let whole = together(&parts).unwrap();
        assert_eq!(line(&whole, names::CHARGE)[0].1, 20.0, "the third begins later");
        assert_eq!(line(&whole, names::SYSTEM_USED)[..2], [(0, 2000.0), (3, 2000.0)], "b used it before");
        assert!(whole.job_series(names::PSI_IO_SOME).is_none());
        for part in &mut parts {
            part.sources.insert("charge".into(), format!("cgroup v2 memory.stat, {SHARED}"));
        }
        let shared = together(&parts).unwrap();
        assert_eq!(line(&shared, names::CHARGE)[0].1, 20.0, "of each host once, and b's was there before");
    }
}

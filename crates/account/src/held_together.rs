//! What the ranks or nodes of one job held together, memory that the processes of a host share counted once.
//!
//! A reading of the PSS of one part's processes has its share of what they share with those of other parts, too: so the readings of
//! the parts of a host add up, as far as nothing moved from one reading to the other.

use std::collections::BTreeSet;

use model::{Observation, Series, Unit, names};

/// Lower and upper bound over time, on the time axis of the joined run. `None` if one part has no such lines.
pub fn lines(parts: &[Observation], begin: u64) -> Option<[Series; 2]> {
    let parts = parts.iter().map(|part| Part::of(part, begin)).collect::<Option<Vec<_>>>()?;
    let hosts: BTreeSet<&str> = parts.iter().map(|part| part.host).collect();
    let hosts: Vec<Vec<&Part>> =
        hosts.into_iter().map(|host| parts.iter().filter(|part| part.host == host).collect()).collect();
    let moments: BTreeSet<u64> = parts.iter().flat_map(Part::moments).collect();
    let bounds = moments.into_iter().map(|t_ns| {
        let of_hosts = hosts.iter().map(|host| of_host(host, t_ns));
        (t_ns, of_hosts.fold((0.0, 0.0), |sum, host| (sum.0 + host.0, sum.1 + host.1)))
    });
    let bounds: Vec<(u64, (f64, f64))> = bounds.collect();
    let line = |name: &str, of: fn(&(f64, f64)) -> f64| Series {
        name: name.into(),
        process: None,
        unit: Unit::Bytes,
        rung: "smaps_rollup, /proc/PID/stat".into(),
        points: bounds.iter().map(|(t_ns, bound)| (*t_ns, of(bound))).collect(),
    };
    Some([line(names::TREE_HELD_LEAST, |bound| bound.0), line(names::TREE_HELD_MOST, |bound| bound.1)])
}

/// The lines of one part.
struct Part<'a> {
    host: &'a str,
    /// Of its time axis, from the joined one's.
    offset: u64,
    end: u64,
    rss: &'a Series,
    least: &'a Series,
    /// Mapped files and shared memory.
    shareable: Option<[&'a Series; 2]>,
    gained: &'a Series,
    lost: &'a Series,
    /// By moment of its own axis.
    readings: &'a [(u64, f64)],
}

impl<'a> Part<'a> {
    fn of(part: &'a Observation, begin: u64) -> Option<Part<'a>> {
        let offset = part.started_unix_ns - begin;
        let line = |name| part.job_series(name).filter(|series| !series.points.is_empty());
        let rss = line(names::TREE_RSS)?;
        let last = rss.points.last()?.0;
        Some(Part {
            host: part.origin.as_ref().map_or("", |origin| &origin.host),
            offset,
            end: offset.saturating_add(last.max((part.wall_seconds.max(0.0) * 1e9) as u64)),
            rss,
            least: line(names::TREE_HELD_LEAST)?,
            shareable: line(names::TREE_RSS_FILE)
                .zip(line(names::TREE_RSS_SHARED))
                .map(|(file, shared)| [file, shared]),
            gained: line(names::TREE_GAINED)?,
            lost: line(names::TREE_LOST)?,
            readings: part.job_series(names::TREE_HELD).map_or(&[][..], |series| &series.points),
        })
    }

    fn moments(&self) -> impl Iterator<Item = u64> + '_ {
        self.rss.points.iter().map(|(t_ns, _)| self.offset.saturating_add(*t_ns))
    }

    /// At a moment of the joined axis; nothing before its begin and after its end.
    fn at(&self, series: &Series, t_ns: u64) -> f64 {
        if t_ns > self.end {
            return 0.0;
        }
        t_ns.checked_sub(self.offset).and_then(|own| series.at(own)).unwrap_or(0.0).max(0.0)
    }

    /// What it holds of heap at least.
    fn heap(&self, t_ns: u64) -> f64 {
        let shareable = self.shareable.map(|lines| lines.iter().map(|line| self.at(line, t_ns)).sum::<f64>());
        shareable.map_or(0.0, |shareable| (self.at(self.least, t_ns) - shareable).max(0.0))
    }

    /// All that it can have obtained until then; and given back, of which its end gives back all.
    fn moved(&self, t_ns: u64) -> (f64, f64) {
        let Some(own) = t_ns.checked_sub(self.offset) else { return (0.0, 0.0) };
        let first = self.rss.points.first().map_or(0.0, |(_, rss)| *rss);
        let gained = self.gained.at(own).map_or(0.0, |gained| first + gained);
        let left = if t_ns > self.end { self.rss.last().unwrap_or(0.0) } else { 0.0 };
        (gained, self.lost.at(own).unwrap_or(0.0) + left)
    }

    /// Bounds on its share of what the host's processes hold at a moment.
    fn share(&self, host: &[&Part], t_ns: u64) -> (f64, f64) {
        let rss = self.at(self.rss, t_ns);
        let next = self.readings.partition_point(|(at, _)| self.offset.saturating_add(*at) <= t_ns);
        let near = [next.checked_sub(1), Some(next)].into_iter().flatten().filter_map(|index| self.readings.get(index));
        near.map(|(at, bytes)| {
            let at = self.offset.saturating_add(*at);
            // What it obtains makes its share larger, and what others give back; the other way round back in time.
            let (mut larger, mut smaller) = (0.0, 0.0);
            for part in host {
                let ((gained, lost), (then_gained, then_lost)) = (part.moved(t_ns), part.moved(at));
                let (gained, lost) = ((gained - then_gained).abs(), (lost - then_lost).abs());
                let (more, less) =
                    if std::ptr::eq(*part, self) == (at <= t_ns) { (gained, lost) } else { (lost, gained) };
                larger += more;
                smaller += less;
            }
            ((bytes - smaller).max(0.0), bytes + larger)
        })
        .fold((0.0, rss), |(least, most), (low, high)| (low.max(least).min(rss), high.min(most)))
    }
}

/// Bounds on what the processes of one host hold together at a moment.
fn of_host(host: &[&Part], t_ns: u64) -> (f64, f64) {
    let shares = host.iter().map(|part| part.share(host, t_ns));
    let (least, most) = shares.fold((0.0, 0.0), |sum, share| (sum.0 + share.0, sum.1 + share.1));
    // They may share all files and shared memory that one of them has; heap is shared by forks alone, which are of one part.
    let largest = host.iter().map(|part| part.at(part.least, t_ns)).fold(0.0, f64::max);
    let heap = host.iter().map(|part| part.heap(t_ns)).sum();
    let least = least.max(largest).max(heap);
    (least, most.max(least))
}

#[cfg(test)]
mod tests {
    use model::{Origin, RunRole, Target};

    use super::*;

    const S: u64 = 1_000_000_000;

    /// A rank of one process that has these sizes, second by second, and whose PSS was read at some.
    fn rank(host: &str, start: u64, rss: &[f64], readings: &[(u64, f64)]) -> Observation {
        let line = |name: &str, points: Vec<(u64, f64)>| Series {
            name: name.into(),
            process: None,
            unit: Unit::Bytes,
            rung: String::new(),
            points,
        };
        let by_second =
            |of: &dyn Fn(usize) -> f64| (0..rss.len()).map(|at| (at as u64 * S, of(at))).collect::<Vec<_>>();
        let moved =
            |sign: f64| by_second(&|at| rss[..=at].windows(2).map(|pair| (sign * (pair[1] - pair[0])).max(0.0)).sum());
        Observation {
            wall_seconds: rss.len() as f64 - 1.0,
            series: vec![
                line(names::TREE_RSS, by_second(&|at| rss[at])),
                line(names::TREE_HELD_LEAST, by_second(&|at| rss[at])),
                line(names::TREE_GAINED, moved(1.0)),
                line(names::TREE_LOST, moved(-1.0)),
                line(names::TREE_HELD, readings.iter().map(|(at, bytes)| (at * S, *bytes)).collect()),
            ],
            origin: Some(Origin { host: host.into(), boot_id: "b".into(), rank: None }),
            ..Observation::begun(0, RunRole::Part, Target::Command, String::new(), start * S)
        }
    }

    fn bounds(parts: &[Observation]) -> (f64, f64) {
        let [least, most] = lines(parts, 0).unwrap();
        (least.peak().unwrap(), most.peak().unwrap())
    }

    #[test]
    fn what_ranks_of_a_host_share_counts_once_where_their_pss_was_read() {
        // 100 of each, of which both share 80.
        let shared = |host| rank(host, 0, &[10.0, 100.0, 100.0, 100.0], &[(2, 60.0)]);
        assert_eq!(bounds(&[shared("a"), shared("a")]), (120.0, 120.0));
        let alone = |host| rank(host, 0, &[10.0, 100.0, 100.0, 100.0], &[(2, 100.0)]);
        assert_eq!(bounds(&[alone("a"), alone("a")]), (200.0, 200.0));
        assert_eq!(bounds(&[shared("a"), shared("a"), alone("b")]), (220.0, 220.0));
    }

    #[test]
    fn without_readings_it_is_between_the_largest_and_the_sum() {
        let unread = |host| rank(host, 0, &[10.0, 100.0, 100.0], &[]);
        assert_eq!(bounds(&[unread("a"), unread("a")]), (100.0, 200.0));
        assert_eq!(bounds(&[unread("a"), unread("b")]), (200.0, 200.0), "hosts share nothing");
        let with_files = |shareable: f64| {
            let mut part = unread("a");
            for (name, bytes) in [(names::TREE_RSS_FILE, shareable), (names::TREE_RSS_SHARED, 0.0)] {
                let points = vec![(0, bytes)];
                part.series.push(Series { name: name.into(), points, ..part.series[0].clone() });
            }
            part
        };
        assert_eq!(bounds(&[with_files(10.0), with_files(10.0)]), (180.0, 200.0), "ranks share no heap");
        assert_eq!(bounds(&[with_files(90.0), with_files(90.0)]), (100.0, 200.0));
    }

    #[test]
    fn the_end_of_one_rank_leaves_the_other_what_they_shared() {
        // Both share all of it; the second is read last, then it ends.
        let first = rank("a", 0, &[100.0, 100.0, 100.0, 100.0, 100.0, 100.0], &[(1, 50.0)]);
        let second = rank("a", 0, &[100.0, 100.0], &[(1, 50.0)]);
        let [least, most] = lines(&[first, second], 0).unwrap();
        assert_eq!((least.at(S), most.at(S)), (Some(100.0), Some(100.0)));
        assert_eq!((least.last(), most.last()), (Some(100.0), Some(100.0)), "not 50");
    }

    #[test]
    fn ranks_that_run_one_after_the_other_hold_no_sum() {
        let one = rank("a", 0, &[100.0, 100.0], &[]);
        let other = rank("a", 5, &[80.0, 80.0], &[]);
        assert_eq!(bounds(&[one, other]), (100.0, 100.0));
    }

    #[test]
    fn a_record_without_these_lines_gives_no_bounds() {
        let mut old = rank("a", 0, &[100.0], &[]);
        old.series.truncate(1);
        assert!(lines(&[rank("a", 0, &[100.0], &[]), old], 0).is_none());
    }
}

//! The file demand curve in a few lines.

use model::{DemandPoint, FileDemand, Observation, RunAccount, names};

/// Bytes read below which a cost per byte would be noise.
const MIN_READ_BYTES: u64 = 8 << 20;

/// Faster than 2 GiB/s the program did not wait for its reads; they were made ahead of it.
const LEAST_PRICE: f64 = 1.0 / (2u64 << 30) as f64;

/// One line of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DemandLine {
    /// Limit on the whole charge.
    pub limit_bytes: u64,
    /// Bytes read again there.
    pub refault_bytes: u64,
    /// What reading them again would cost, at the price this run paid for what it read from storage.
    pub estimated_seconds: Option<f64>,
}

/// The limits at which the curve falls to a quarter of its height and so on; the first is the curve's first point, the
/// last the least limit without refaults.
pub fn lines(demand: &FileDemand, seconds_per_byte: Option<f64>) -> Vec<DemandLine> {
    let Some(first) = demand.points.first() else { return Vec::new() };
    let mut lines: Vec<DemandLine> = Vec::new();
    for share in [1.0, 0.75, 0.5, 0.25, 0.05, 0.0] {
        let most = (first.refault_bytes as f64 * share) as u64;
        let Some(point) = demand.points.iter().find(|p| p.refault_bytes <= most) else { continue };
        if lines.last().is_none_or(|line| line.limit_bytes < point.limit_bytes) {
            lines.push(DemandLine {
                limit_bytes: point.limit_bytes,
                refault_bytes: point.refault_bytes,
                estimated_seconds: seconds_per_byte.map(|price| price * point.refault_bytes as f64),
            });
        }
    }
    lines
}

/// A limit is shown beside the knee only if it is at most this share of it: then both differ when they are rounded.
const BELOW_KNEE: f64 = 0.99;

/// What a limit below the knee costs: the largest limit there at which a quarter of the curve's height is reached, and
/// the curve's first point if that is clearly higher.
pub fn below_knee(demand: &FileDemand) -> Vec<DemandPoint> {
    let Some(first) = demand.points.first() else { return Vec::new() };
    let Some(knee) = demand.knee() else { return Vec::new() };
    let below = demand.points.iter().take_while(|point| point.limit_bytes < knee.limit_bytes);
    let near = below.filter(|point| point.refault_bytes >= first.refault_bytes / 4).last().map(|point| {
        let limit_bytes = point.limit_bytes.min((knee.limit_bytes as f64 * BELOW_KNEE) as u64).max(first.limit_bytes);
        DemandPoint { limit_bytes, refault_bytes: demand.refault_bytes_at(limit_bytes).unwrap_or(point.refault_bytes) }
    });
    let is_higher = |point: &DemandPoint| point.refault_bytes < first.refault_bytes / 10 * 9;
    let far = near.filter(is_higher).map(|_| *first);
    near.into_iter().chain(far).collect()
}

/// Seconds that this run's time was longer per byte that it read from storage: block I/O delay over what `wait4` counted as read. Tasks
/// that wait at the same time wait once, so it is divided by how many ran or waited at a time, and is no more than the time for which
/// pressure says that some task waited. `None` where one of these is unknown, too little was read to tell, or reading ahead of the program
/// hid the time.
pub fn seconds_per_byte(run: &Observation, account: &RunAccount) -> Option<f64> {
    let counted = run.rusage?.blocks_in * 512;
    let read = account.moved.map_or(counted, |moved| moved.storage_read.max(counted));
    let known: Vec<f64> = run.processes.iter().filter_map(|process| process.io_delay_seconds).collect();
    let of_processes = (!known.is_empty()).then(|| known.iter().sum::<f64>());
    let delay = of_processes.or_else(|| run.job_series(names::IO_DELAY)?.last())?;
    let busy = delay + account.user_seconds? + account.system_seconds?;
    let waited = delay / (busy / account.wall_seconds).max(1.0);
    let waited = account.pressure.io_some_seconds.map_or(waited, |some| waited.min(some));
    (read >= MIN_READ_BYTES).then(|| waited / read as f64).filter(|price| *price > LEAST_PRICE)
}

#[cfg(test)]
mod tests {
    use model::RunRole;

    use super::*;
    use crate::fixture;

    #[test]
    fn a_cliff_is_two_lines_and_a_slope_more() {
        let point = |limit_bytes, refault_bytes| DemandPoint { limit_bytes, refault_bytes };
        let cliff = FileDemand { points: vec![point(100, 900), point(400, 900), point(401, 0)], ..Default::default() };
        let limits = |demand: &FileDemand| lines(demand, None).iter().map(|l| l.limit_bytes).collect::<Vec<_>>();
        assert_eq!(limits(&cliff), [100, 401]);
        let slope =
            FileDemand { points: (0..=10).map(|i| point(i * 10, 1000 - i * 100)).collect(), ..Default::default() };
        assert_eq!(limits(&slope), [0, 30, 50, 80, 100]);
        assert!(limits(&FileDemand::default()).is_empty());
    }

    #[test]
    fn below_a_cliff_is_one_point_and_below_a_slope_two() {
        let point = |limit_bytes, refault_bytes| DemandPoint { limit_bytes, refault_bytes };
        let limits = |points| {
            let demand = FileDemand { points, ..Default::default() };
            below_knee(&demand).iter().map(|point| point.limit_bytes).collect::<Vec<_>>()
        };
        assert_eq!(limits(vec![point(100, 900 << 20), point(400, 900 << 20), point(401, 0)]), [396]);
        assert_eq!(limits((0..=10).map(|i| point(i * 10, (1000 - i * 100) << 20)).collect()), [70, 0]);
        assert_eq!(
            limits(vec![point(100, 3 << 20), point(150, 2 << 20), point(200, 1 << 20), point(300, 0)]),
            [150, 100]
        );
        assert_eq!(limits(Vec::new()), [0; 0]);
    }

    #[test]
    fn tasks_that_wait_at_the_same_time_make_a_run_longer_once() {
        let (run, account) = (fixture::observation(0, RunRole::Plain, None, 10.0), fixture::account(10.0));
        let price = |delay: f64, account: &RunAccount| {
            let mut run = run.clone();
            run.processes.iter_mut().for_each(|process| process.io_delay_seconds = None);
            run.processes[0].io_delay_seconds = Some(delay);
            seconds_per_byte(&run, account).unwrap() * (run.rusage.unwrap().blocks_in * 512) as f64
        };
        let of = |io_some: Option<f64>| RunAccount {
            user_seconds: Some(4.0),
            system_seconds: Some(1.0),
            moved: None,
            pressure: model::Pressure { io_some_seconds: io_some, ..Default::default() },
            ..account.clone()
        };
        assert_eq!(price(4.0, &of(None)).round(), 4.0, "one task that waits and runs");
        assert_eq!(price(35.0, &of(None)).round(), 9.0, "four at a time, of which most wait");
        assert_eq!(price(4.0, &of(Some(2.0))).round(), 2.0, "some task waited for no longer");
    }

    #[test]
    fn an_estimate_needs_a_price() {
        let demand =
            FileDemand { points: vec![DemandPoint { limit_bytes: 1, refault_bytes: 1000 }], ..Default::default() };
        assert_eq!(lines(&demand, None)[0].estimated_seconds, None);
        assert_eq!(lines(&demand, Some(0.5))[0].estimated_seconds, Some(500.0));
    }
}

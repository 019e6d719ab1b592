//! Fewer points with the same peaks.

use model::Series;

/// Times at which to show these series together, `most` at the most: the first and the last, and of each of as many equal
/// stretches as fit, the smallest and the largest point of each series.
pub fn shared_times(series: &[&Series], most: usize) -> Vec<u64> {
    let mut all: Vec<u64> = series.iter().flat_map(|s| s.points.iter().map(|(t, _)| *t)).collect();
    all.sort_unstable();
    all.dedup();
    let (Some(first), Some(last)) = (all.first().copied(), all.last().copied()) else { return Vec::new() };
    if all.len() <= most {
        return all;
    }
    let stretches = (most.saturating_sub(2) / (2 * series.len())).max(1) as u64;
    let mut times = vec![first, last];
    for series in series {
        let stretch = |t: u64| ((t - first) as u128 * stretches as u128 / (last - first + 1) as u128) as u64;
        for bucket in series.points.chunk_by(|a, b| stretch(a.0) == stretch(b.0)) {
            times.extend(bucket.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(t, _)| *t));
            times.extend(bucket.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(t, _)| *t));
        }
    }
    times.sort_unstable();
    times.dedup();
    times
}

/// What a counter gained per second between `most` evenly chosen points of it, as (time, rate) at the end of each stretch.
pub fn rates(series: &Series, most: usize) -> Vec<(u64, f64)> {
    let step = series.points.len().div_ceil(most.max(1)).max(1);
    let last = series.points.len().saturating_sub(1);
    let chosen: Vec<(u64, f64)> =
        series.points.iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last).map(|(_, p)| *p).collect();
    let rate = |pair: &[(u64, f64)]| {
        let seconds = pair[1].0.saturating_sub(pair[0].0) as f64 / 1e9;
        (seconds > 0.0).then(|| (pair[1].0, ((pair[1].1 - pair[0].1) / seconds).max(0.0)))
    };
    chosen.windows(2).filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Unit;

    fn series(points: Vec<(u64, f64)>) -> Series {
        Series { name: "x".to_string(), process: None, unit: Unit::Bytes, rung: String::new(), points }
    }

    #[test]
    fn a_peak_of_one_point_survives() {
        let mut points: Vec<_> = (0..100_000u64).map(|t| (t * 10, 1.0)).collect();
        points[54_321].1 = 99.0;
        points[77_777].1 = -5.0;
        let (peaky, flat) = (series(points), series((0..100_000u64).map(|t| (t * 10, 2.0)).collect()));
        let times = shared_times(&[&peaky, &flat], 2000);
        assert!(times.len() <= 2000, "{}", times.len());
        assert!(times.contains(&543_210) && times.contains(&777_770));
        assert_eq!((times[0], *times.last().unwrap()), (0, 999_990));
    }

    #[test]
    fn few_points_are_all_kept() {
        assert_eq!(shared_times(&[&series(vec![(1, 1.0), (5, 2.0)])], 2000), [1, 5]);
        assert!(shared_times(&[], 2000).is_empty());
    }

    #[test]
    fn a_rate_is_the_gain_per_second() {
        let counter = series(vec![(0, 0.0), (1_000_000_000, 0.5), (3_000_000_000, 0.5)]);
        assert_eq!(rates(&counter, 100), [(1_000_000_000, 0.5), (3_000_000_000, 0.0)]);
        assert!(rates(&series(vec![(0, 1.0)]), 100).is_empty());
    }
}

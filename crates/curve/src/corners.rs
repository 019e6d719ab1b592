//! A staircase drawn with few points that keep its cliffs.

use model::DemandPoint;

/// The points of `line` needed so that straight lines between them have a vertical error of at most `error`. If that
/// takes more than `most` points, the error is widened. The first and last point stay.
pub fn keep_corners(line: &[DemandPoint], mut error: f64, most: usize) -> Vec<DemandPoint> {
    loop {
        let kept = douglas_peucker(line, error);
        if kept.len() <= most.max(2) {
            return kept;
        }
        error = (error * 1.5).max(1.0);
    }
}

/// Distances are vertical, since limits and refaults have no common unit.
fn douglas_peucker(line: &[DemandPoint], error: f64) -> Vec<DemandPoint> {
    let Some(last) = line.len().checked_sub(1) else { return Vec::new() };
    let mut keep = vec![false; line.len()];
    (keep[0], keep[last]) = (true, true);
    let mut spans = vec![(0, last)];
    while let Some((from, to)) = spans.pop() {
        let worst = (from + 1..to)
            .map(|i| (i, distance(line[from], line[to], line[i])))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(_, off)| *off > error);
        if let Some((corner, _)) = worst {
            keep[corner] = true;
            spans.push((from, corner));
            spans.push((corner, to));
        }
    }
    line.iter().zip(keep).filter_map(|(point, keep)| keep.then_some(*point)).collect()
}

fn distance(left: DemandPoint, right: DemandPoint, point: DemandPoint) -> f64 {
    let share = (point.limit_bytes - left.limit_bytes) as f64 / (right.limit_bytes - left.limit_bytes) as f64;
    let line = left.refault_bytes as f64 + share * (right.refault_bytes as f64 - left.refault_bytes as f64);
    (point.refault_bytes as f64 - line).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(limit_bytes: u64, refault_bytes: u64) -> DemandPoint {
        DemandPoint { limit_bytes, refault_bytes }
    }

    #[test]
    fn a_slope_needs_its_ends_and_a_cliff_its_edges() {
        let slope: Vec<_> = (0..1000).map(|i| point(i, 10 * (1000 - i))).collect();
        assert_eq!(keep_corners(&slope, 1.0, 512), [slope[0], slope[999]]);
        let cliff = [point(0, 900), point(500, 900), point(699, 900), point(700, 0), point(900, 0)];
        assert_eq!(keep_corners(&cliff, 1.0, 512), [cliff[0], cliff[2], cliff[3], cliff[4]]);
    }

    #[test]
    fn points_are_limited_and_the_highest_cliffs_stay() {
        let mut line: Vec<_> = (0..5000).map(|i| point(i, 100_000 - i * 10 + (i * 7919) % 13)).collect();
        line.extend((5000..6000).map(|i| point(i, 6000 - i)));
        let kept = keep_corners(&line, 0.0, 100);
        assert!(kept.len() <= 100);
        assert!(kept.contains(&line[4999]) && kept.contains(&line[5000]));
    }
}

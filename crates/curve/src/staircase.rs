//! A function of size that falls in steps.

/// Maximum error of an outline, as a part of its height.
const OUTLINE_ERROR: f64 = 0.0005;

/// Misses by size.
#[derive(Clone, Debug, PartialEq)]
pub struct Staircase {
    /// Below the first step.
    top: f64,
    /// Rising sizes, each with the misses from it on.
    steps: Vec<(u64, f64)>,
}

impl Staircase {
    /// `needs`: (size, misses that it avoids), sizes rising; `always`: misses at any size. Takes O(n).
    pub fn new(needs: impl IntoIterator<Item = (u64, f64)>, always: f64) -> Staircase {
        let mut steps: Vec<(u64, f64)> = needs.into_iter().collect();
        // Summed from the end, so that the rest after all sizes is exact.
        let mut left = always;
        for (_, misses) in steps.iter_mut().rev() {
            let needing = std::mem::replace(misses, left);
            left += needing;
        }
        Staircase { top: left, steps }
    }

    /// The height at a size. Takes O(log n).
    pub fn at(&self, size: u64) -> f64 {
        let after = self.steps.partition_point(|(from, _)| *from <= size);
        after.checked_sub(1).map_or(self.top, |step| self.steps[step].1)
    }

    /// The smallest size (1 or more) with at most this height; none if it stays above. Takes O(log n).
    pub fn first_within(&self, height: f64) -> Option<u64> {
        if self.top <= height {
            return Some(1);
        }
        self.steps.get(self.steps.partition_point(|(_, left)| *left > height)).map(|(size, _)| *size)
    }

    /// The last size at which it falls; 0 if never.
    pub fn last_step(&self) -> u64 {
        self.steps.last().map_or(0, |(size, _)| *size)
    }

    /// Rising points such that straight lines between them are nowhere off by more than a thousandth of the height;
    /// cliffs stay vertical. Takes O(n).
    pub fn outline(&self) -> Vec<(u64, f64)> {
        let error = self.top * OUTLINE_ERROR;
        let mut points = vec![(1, self.at(1))];
        let mut before = points[0];
        for (size, left) in self.steps.iter().copied().filter(|(size, _)| *size > 1) {
            let (_, shown) = points[points.len() - 1];
            if shown - left > error {
                // Add the value just before the step, unless that is a point already.
                if before.1 - left > error && points[points.len() - 1].0 + 1 < size {
                    points.push((size - 1, before.1));
                }
                points.push((size, left));
            }
            before = (size, left);
        }
        if before.0 > points[points.len() - 1].0 {
            points.push(before);
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_staircase_falls_at_each_needed_size() {
        let stairs = Staircase::new([(2, 3.0), (5, 1.0)], 0.5);
        assert_eq!([0, 1, 2, 4, 5, 99].map(|size| stairs.at(size)), [4.5, 4.5, 1.5, 1.5, 0.5, 0.5]);
        assert_eq!(stairs.last_step(), 5);
    }

    #[test]
    fn the_least_size_within_a_height() {
        let stairs = Staircase::new([(2, 3.0), (5, 1.0)], 0.5);
        assert_eq!(
            [5.0, 2.0, 1.5, 0.5, 0.4].map(|height| stairs.first_within(height)),
            [Some(1), Some(2), Some(2), Some(5), None]
        );
    }

    #[test]
    fn an_outline_keeps_cliffs_upright_and_slopes_close() {
        let slope = (1..=100_000u64).map(|size| (size, if size == 60_000 { 50_000.0 } else { 1.0 }));
        let stairs = Staircase::new(slope, 7.0);
        let outline = stairs.outline();
        assert!(outline.len() < 2500, "{}", outline.len());
        let worst = outline
            .windows(2)
            .flat_map(|pair| {
                let ((from, high), (to, low)) = (pair[0], pair[1]);
                (from..=to).map(move |size| (size, high + (low - high) * (size - from) as f64 / (to - from) as f64))
            })
            .map(|(size, drawn)| (drawn - stairs.at(size)).abs())
            .fold(0.0, f64::max);
        assert!(worst <= 150_000.0 / 1000.0, "{worst}");
        assert_eq!(outline.last(), Some(&(100_000, 7.0)));
    }

    #[test]
    fn nothing_is_a_flat_line() {
        assert_eq!(Staircase::new([], 0.0).outline(), [(1, 0.0)]);
        assert_eq!(Staircase::new([], 2.0).first_within(1.0), None);
    }
}

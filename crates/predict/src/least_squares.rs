//! Weighted least squares with an intercept, for a handful of features.

/// A plane: `intercept + Σ slope × feature`.
#[derive(Clone, Debug, PartialEq)]
pub struct Plane {
    intercept: f64,
    slopes: Vec<f64>,
}

impl Plane {
    pub fn at(&self, features: &[f64]) -> f64 {
        self.intercept + self.slopes.iter().zip(features).map(|(slope, feature)| slope * feature).sum::<f64>()
    }
}

/// Sums from which planes are fitted.
pub struct Fit {
    means: Vec<f64>,
    /// Root mean square of each feature about its mean.
    spreads: Vec<f64>,
    mean: f64,
    /// Of features in units of their spread: mean products.
    products: Vec<Vec<f64>>,
    /// Mean products with the value.
    values: Vec<f64>,
}

impl Fit {
    /// Of points (weight, features, value); there is at least one with a weight above 0. Time: points × features².
    pub fn of<'a>(points: impl Iterator<Item = (f64, &'a [f64], f64)> + Clone, count: usize) -> Self {
        let mut means = vec![0.0; count];
        let (mut weights, mut mean) = (0.0, 0.0);
        for (weight, features, value) in points.clone() {
            weights += weight;
            mean += weight * value;
            for (sum, feature) in means.iter_mut().zip(features) {
                *sum += weight * feature;
            }
        }
        mean /= weights;
        means.iter_mut().for_each(|sum| *sum /= weights);
        let mut products = vec![vec![0.0; count]; count];
        let mut values = vec![0.0; count];
        let mut about = vec![0.0; count];
        for (weight, features, value) in points {
            for (feature, about) in about.iter_mut().enumerate() {
                *about = features[feature] - means[feature];
            }
            for row in 0..count {
                values[row] += weight * about[row] * (value - mean);
                for column in 0..=row {
                    products[row][column] += weight * about[row] * about[column];
                }
            }
        }
        let spreads: Vec<f64> = (0..count).map(|feature| (products[feature][feature] / weights).sqrt()).collect();
        for row in 0..count {
            values[row] /= weights * spreads[row].max(f64::MIN_POSITIVE);
            for column in 0..=row {
                products[row][column] /= weights * (spreads[row] * spreads[column]).max(f64::MIN_POSITIVE);
                products[column][row] = products[row][column];
            }
        }
        Self { means, spreads, mean, products, values }
    }

    /// The plane through the points.
    pub fn plane(&self) -> Plane {
        self.with(&self.varying())
    }

    /// The same with no negative slope and no negative intercept: a negative slope is taken out and the rest fitted again. `None` if the
    /// intercept is negative then.
    pub fn non_negative(&self) -> Option<Plane> {
        let mut features = self.varying();
        loop {
            let plane = self.with(&features);
            let least = features.iter().copied().min_by(|&a, &b| plane.slopes[a].total_cmp(&plane.slopes[b]));
            match least.filter(|&least| plane.slopes[least] < 0.0) {
                Some(least) => features.retain(|&feature| feature != least),
                None => return (plane.intercept >= 0.0).then_some(plane),
            }
        }
    }

    /// Features that are not the same everywhere.
    fn varying(&self) -> Vec<usize> {
        (0..self.means.len()).filter(|&feature| self.spreads[feature] > 1e-6 * self.means[feature].abs()).collect()
    }

    fn with(&self, features: &[usize]) -> Plane {
        // Features that are nearly the same line have no slopes of their own: the diagonal is raised a little.
        let mut rows: Vec<Vec<f64>> = features
            .iter()
            .map(|&row| {
                let products =
                    features.iter().map(|&column| self.products[row][column] + f64::from(row == column) * 1e-9);
                products.chain([self.values[row]]).collect()
            })
            .collect();
        let scaled = solve(&mut rows);
        let mut slopes = vec![0.0; self.means.len()];
        for (&feature, scaled) in features.iter().zip(scaled) {
            slopes[feature] = scaled / self.spreads[feature];
        }
        let raised: f64 = slopes.iter().zip(&self.means).map(|(slope, mean)| slope * mean).sum();
        Plane { intercept: self.mean - raised, slopes }
    }
}

/// Gaussian elimination; the last column is the right-hand side. The matrix is positive definite, so no pivot is 0.
fn solve(rows: &mut [Vec<f64>]) -> Vec<f64> {
    let count = rows.len();
    for pivot in 0..count {
        let (above, below) = rows.split_at_mut(pivot + 1);
        let base = &above[pivot];
        for row in below {
            let share = row[pivot] / base[pivot];
            for (cell, base) in row.iter_mut().zip(base).skip(pivot) {
                *cell -= share * base;
            }
        }
    }
    let mut solution = vec![0.0; count];
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|column| rows[row][column] * solution[column]).sum();
        solution[row] = (rows[row][count] - known) / rows[row][row];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(points: &[([f64; 2], f64)]) -> Fit {
        Fit::of(points.iter().map(|(features, value)| (1.0, &features[..], *value)), 2)
    }

    #[test]
    fn finds_the_plane_that_the_points_are_on() {
        let points: Vec<_> =
            [[1e9, 1.0], [2e9, 8.0], [5e9, 2.0], [7e9, 4.0]].map(|f| (f, 5e8 + 3.0 * f[0] + 1e8 * f[1])).to_vec();
        assert!((fit(&points).plane().at(&[3e9, 16.0]) / 1.11e10 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_negative_slope_is_left_out() {
        let points = [([1.0, 5.0], 10.0), ([2.0, 5.0], 8.0), ([3.0, 5.0], 6.0)];
        assert_eq!(fit(&points).non_negative().unwrap().at(&[9.0, 5.0]), 8.0);
    }

    #[test]
    fn features_on_one_line_have_a_plane() {
        let points = [([1.0, 2.0], 10.0), ([2.0, 4.0], 20.0), ([4.0, 8.0], 40.0)];
        assert!((fit(&points).plane().at(&[8.0, 16.0]) - 80.0).abs() < 1e-3);
    }
}

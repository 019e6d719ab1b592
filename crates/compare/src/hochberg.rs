//! Several tests at one level.

/// The level at which each p-value is tested so that all together are at `level`, by Hochberg's step-up procedure: a p-value is significant if it is
/// at most its level.
pub fn levels(p_values: &[f64], level: f64) -> Vec<f64> {
    let count = p_values.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    // The largest p-value is tested at the whole level, the next at half of it, and so on.
    let at = |rank: usize| level / (count - rank) as f64;
    let significant = (0..count).rev().find(|rank| p_values[order[*rank]] <= at(*rank));
    let mut levels = vec![0.0; count];
    for (rank, index) in order.into_iter().enumerate() {
        levels[index] = at(significant.filter(|significant| rank < *significant).unwrap_or(rank));
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_grow_together_are_tested_at_the_whole_level() {
        assert_eq!(levels(&[0.009, 0.008, 0.0095, 0.01], 0.01), [0.01; 4]);
    }

    #[test]
    fn one_figure_of_several_needs_more() {
        let found = levels(&[0.5, 0.004, 0.9], 0.01);
        assert_eq!(found, [0.005, 0.01 / 3.0, 0.01]);
    }
}

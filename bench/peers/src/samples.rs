//! Arithmetic over rounds.

/// The middle one; of an even number the mean of the two in the middle.
pub fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.as_slice() {
        [] => None,
        _ if sorted.len().is_multiple_of(2) => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
        _ => Some(sorted[middle]),
    }
}

/// The least and the most.
pub fn range(figures: &[f64]) -> Option<(f64, f64)> {
    let least = figures.iter().copied().min_by(f64::total_cmp)?;
    let most = figures.iter().copied().max_by(f64::total_cmp)?;
    Some((least, most))
}

/// The median of the ratios of each round: what the machine did in a round met both.
pub fn ratio(figures: &[(usize, f64)], to: &[(usize, f64)]) -> Option<f64> {
    let beside = |round: usize| to.iter().find(|(other, _)| *other == round).map(|(_, figure)| *figure);
    let ratios = figures.iter().filter_map(|(round, figure)| Some(figure / beside(*round)?));
    // What was too little to be measured can be compared with nothing.
    let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
    median(&ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
        assert_eq!(median(&[]), None);
        assert_eq!(range(&[3.0, 1.0, 2.0]), Some((1.0, 3.0)));
    }

    #[test]
    fn a_ratio_compares_what_was_measured_in_the_same_round() {
        let slow_then_quick = [(0, 10.0), (1, 40.0), (2, 12.0)];
        let beside = [(0, 5.0), (1, 20.0), (3, 1.0)];
        assert_eq!(ratio(&slow_then_quick, &beside), Some(2.0));
        assert_eq!(ratio(&slow_then_quick, &[]), None);
        assert_eq!(ratio(&slow_then_quick, &[(0, 0.0)]), None);
    }
}

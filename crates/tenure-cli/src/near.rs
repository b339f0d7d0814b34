//! What may have been meant by a name that is not there.

/// The nearest of these, if one is near enough to be meant.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let enough = (name.chars().count() / 3).clamp(1, 3);
    let far = |known: &str| distance(&name.to_lowercase(), &known.to_lowercase());
    names.map(|known| (far(known), known)).filter(|(far, _)| *far <= enough).min().map(|(_, known)| known)
}

/// All that are near enough to be meant and as near as the nearest.
pub(crate) fn all_nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let names: Vec<&str> = names.collect();
    let far = |known: &str| distance(&name.to_lowercase(), &known.to_lowercase());
    let least = nearest(name, names.iter().copied()).map(far);
    names.into_iter().filter(|known| Some(far(known)) == least).collect()
}

/// How many signs have to be put in, left out, changed, or swapped with the next one.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let change = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_meant_and_what_is_far_is_not() {
        let known = ["mail", "nightly", "default"];
        let meant = |name| nearest(name, known.into_iter());
        assert_eq!(
            (meant("mial"), meant("Nightly"), meant("defalt")),
            (Some("mail"), Some("nightly"), Some("default"))
        );
        assert_eq!((meant("stars"), meant("m")), (None, None));
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("ab", "ba")), (3, 0, 1));
    }
}

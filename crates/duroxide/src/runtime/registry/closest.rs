//! Guesses which name was meant.

/// Most suggestions worth reading.
const SUGGESTIONS_MAX: usize = 3;
/// Longer names get no suggestion: comparing takes time by the product of the lengths.
const NAME_CHARS_MAX: usize = 200;

/// The known names that `wanted` may be a slip of, closest first, whatever their case.
pub(crate) fn closest_names(known: &[String], wanted: &str) -> Vec<String> {
    let wanted = comparable(wanted);
    let mut close: Vec<(usize, &String)> = known
        .iter()
        .filter_map(|name| slips_between(&comparable(name), &wanted).map(|slips| (slips, name)))
        .collect();
    close.sort();
    close.into_iter().take(SUGGESTIONS_MAX).map(|(_, name)| name.clone()).collect()
}

fn comparable(name: &str) -> Vec<char> {
    name.chars().flat_map(char::to_lowercase).collect()
}

/// How many letters were added, lost, changed or swapped; nothing if that is more than a third of
/// them.
fn slips_between(known: &[char], wanted: &[char]) -> Option<usize> {
    let longer = known.len().max(wanted.len());
    let slips_max = longer / 3;
    if longer > NAME_CHARS_MAX || known.len().abs_diff(wanted.len()) > slips_max {
        return None;
    }
    let slips = edit_distance(known, wanted);
    (slips <= slips_max).then_some(slips)
}

/// Levenshtein's distance, where swapping two neighbours is one slip too; three rows at a time.
fn edit_distance(from: &[char], to: &[char]) -> usize {
    let mut before = vec![0; to.len() + 1];
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let changed = above[j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut slips = changed.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                slips = slips.min(before[j - 2] + 1);
            }
            row.push(slips);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closest(known: &[&str], wanted: &str) -> Vec<String> {
        let known: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        closest_names(&known, wanted)
    }

    #[test]
    fn r3_172_distances() {
        for (from, to, distance) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("Order", "Ordre", 1),
            ("Main", "Mian", 1),
            ("abcd", "badc", 2),
            ("Größe", "Grösse", 2),
        ] {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            assert_eq!(edit_distance(&chars(from), &chars(to)), distance, "{from} {to}");
        }
    }

    #[test]
    fn r3_172_only_plausible_names() {
        let known = ["SendEmail", "SendMail", "ChargeCard", "Ship"];
        assert_eq!(closest(&known, "SendEmial"), ["SendEmail", "SendMail"]);
        assert_eq!(closest(&known, "send_email"), ["SendEmail", "SendMail"]);
        assert_eq!(closest(&known, "chargecard"), ["ChargeCard"]);
        assert_eq!(closest(&known, "Shop"), ["Ship"]);
        assert_eq!(closest(&known, "Sihp"), ["Ship"]);
        for wanted in ["", "Refund", "Sh", &"S".repeat(1_000_000)] {
            assert!(closest(&known, wanted).is_empty());
        }
        assert!(closest(&[], "SendEmail").is_empty());
    }

    #[test]
    fn r3_172_at_most_three_closest_first() {
        let known = ["step-3", "step-9", "step-10", "step-1", "step-2"];
        assert_eq!(closest(&known, "step-1"), ["step-1", "step-10", "step-2"]);
    }
}

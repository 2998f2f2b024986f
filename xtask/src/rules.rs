//! `xtask rules`: which rules of docs/behaviour.md no test cites.
//!
//! A rule is a line `- **R3.14** …`, or a row `| L7 | … |` of the table of old problems. A test
//! cites it as `R3.14` or `L7` in a comment or text, or as `r3_14` or `l7_` in a name. Of a range
//! (`R3.14 – R3.17`) only the two ends count.

use std::collections::BTreeSet;

use crate::{Outcome, files, regions};

const BEHAVIOUR: &str = "docs/behaviour.md";
/// How much of a rule is shown.
const TEXT_CHARS: usize = 90;

/// Lists the rules no test cites. With a maximum it lists them only when there are more, and fails
/// then, or when a test cites a rule that does not exist.
pub(crate) fn run(max: Option<usize>) -> Outcome {
    let rules = parse(&files::read(BEHAVIOUR)?);
    let mut cited = BTreeSet::new();
    for file in files::all()?.iter().filter(|file| file.is_rust() && !is_own(&file.path)) {
        for line in regions::test_lines(file)? {
            cited.extend(citations(line));
        }
    }
    let open: Vec<&Rule> = rules.iter().filter(|rule| !cited.contains(&rule.id)).collect();
    for rule in &rules {
        cited.remove(&rule.id);
    }
    if max.is_none_or(|max| max < open.len()) {
        for rule in &open {
            println!("{:8} {}", rule.id, rule.text);
        }
    }
    let (all, open) = (rules.len(), open.len());
    println!("rules: {all} in {BEHAVIOUR}, {} cited by tests, {open} not", all - open);
    if !cited.is_empty() {
        let unknown: Vec<String> = cited.into_iter().collect();
        println!("rules: cited but unknown: {}", unknown.join(", "));
        if max.is_some() {
            return Err("rules: tests cite rules that do not exist".to_owned());
        }
    }
    match max {
        Some(max) if max < open => Err(format!("rules: at most {max} may be uncited")),
        _ => Ok(()),
    }
}

/// Rules that a text cites and docs/behaviour.md does not have.
pub(crate) fn unknown_in(text: &str) -> Result<BTreeSet<String>, String> {
    let mut cited: BTreeSet<String> = text.lines().flat_map(citations).collect();
    for rule in parse(&files::read(BEHAVIOUR)?) {
        cited.remove(&rule.id);
    }
    Ok(cited)
}

/// The tests of this tool speak of rules without proving them.
fn is_own(path: &str) -> bool {
    path.starts_with("xtask/")
}

#[derive(Debug, PartialEq)]
struct Rule {
    id: String,
    text: String,
}

fn parse(markdown: &str) -> Vec<Rule> {
    markdown.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Rule> {
    let (id, text) = if let Some(rest) = line.strip_prefix("- **") {
        rest.split_once("**")?
    } else {
        line.strip_prefix("| ")?.split_once(" | ")?
    };
    let is_row = line.starts_with('|');
    let cited = citation_at(id, 0)?;
    // Rows name old problems only; other tables begin with rule numbers, too.
    if cited.end != id.len() || id.starts_with('L') != is_row {
        return None;
    }
    let text = text.trim().chars().take(TEXT_CHARS).collect();
    Some(Rule { id: id.to_owned(), text })
}

/// The ids of all rules cited in a line.
fn citations(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < line.len() {
        match citation_at(line, at) {
            Some(citation) => {
                found.push(citation.id);
                at = citation.end;
            }
            None => at += 1,
        }
    }
    found
}

struct Citation {
    id: String,
    end: usize,
}

/// The citation that begins exactly at this byte.
fn citation_at(line: &str, at: usize) -> Option<Citation> {
    let bytes = line.as_bytes();
    let letter = *bytes.get(at)?;
    let in_name = letter.is_ascii_lowercase();
    let before = at.checked_sub(1).map(|before| bytes[before]);
    if before.is_some_and(|b| b.is_ascii_alphanumeric() || (!in_name && b == b'_')) {
        return None;
    }
    let (first, mut end) = number(bytes, at + 1)?;
    let mut id = format!("{}{first}", char::from(letter).to_ascii_uppercase());
    match letter {
        b'R' | b'r' => {
            let separator = if in_name { b'_' } else { b'.' };
            if bytes.get(end) != Some(&separator) {
                return None;
            }
            let (second, after) = number(bytes, end + 1)?;
            id = format!("{id}.{second}");
            end = after;
            // Rules squeezed in later: R3.104a.
            let is_suffix = bytes.get(end).is_some_and(u8::is_ascii_lowercase)
                && !bytes.get(end + 1).is_some_and(u8::is_ascii_alphanumeric);
            if is_suffix {
                id.push(char::from(bytes[end]));
                end += 1;
            }
        }
        b'L' => {}
        b'l' if bytes.get(end) == Some(&b'_') => {}
        _ => return None,
    }
    let is_end = match bytes.get(end) {
        None => true,
        Some(after) => !after.is_ascii_alphanumeric() && (in_name || *after != b'_'),
    };
    is_end.then_some(Citation { id, end })
}

fn number(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let digits = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = std::str::from_utf8(&bytes[at..at + digits]).ok()?;
    Some((text.parse().ok()?, at + digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_from_list_items_and_rows_of_problems() {
        let markdown = "\
# Title R1.1
- **R3.14** Short.
- **R3.104a** Squeezed in, see R3.14.
- **Note** no rule
| Id | Problem |
| L7 | children left running |
| R4.1 | a table of other things |
text **R9.9** inside";
        let ids: Vec<String> = parse(markdown).into_iter().map(|rule| rule.id).collect();
        assert_eq!(ids, ["R3.14", "R3.104a", "L7"]);
        assert_eq!(parse(markdown)[0].text, "Short.");
    }

    #[test]
    fn rules_that_do_not_exist_are_found() {
        let unknown = unknown_in("R8.41, then R8.999 and `r1_12_x`\nL1 (L999)").unwrap();
        assert_eq!(unknown.iter().collect::<Vec<_>>(), ["L999", "R8.999"]);
    }

    #[test]
    fn citations_stand_in_comments_and_names() {
        for (line, expected) in [
            ("// R3.14: why", &["R3.14"][..]),
            ("// R3.14, R3.15a and (L7).", &["R3.14", "R3.15a", "L7"]),
            ("fn r6_3_r6_13_a_payload() {}", &["R6.3", "R6.13"]),
            ("fn r3_104a_x() {}", &["R3.104a"]),
            ("fn l20_r2_92_strings()", &["L20", "R2.92"]),
            ("fn also_r2_100() {}", &["R2.100"]),
            ("R2.90 – R2.92", &["R2.90", "R2.92"]),
            ("let var3_14 = l7; let error3_1 = XR3.1;", &[]),
            ("R3 R.1 R3.14x5 R3.14_1 L7a L7_ xL7 l7", &[]),
            ("größe R1.1", &["R1.1"]),
            ("", &[]),
        ] {
            assert_eq!(citations(line), expected, "{line}");
        }
    }
}

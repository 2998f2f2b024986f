//! Text as PostgreSQL can store it. It has no NUL, so NUL is written as two other characters.
//!
//! JSON escapes control characters itself: payloads and events go as they are.

use std::borrow::Cow;

/// Begins what stands for something else. Hardly any text has it.
const MARK: char = '\u{1a}';

/// The stored form of a text.
pub(crate) fn pack(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', MARK]) {
        return Cow::Borrowed(text);
    }
    let mut packed = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\0' => packed.extend([MARK, '0']),
            MARK => packed.extend([MARK, '1']),
            other => packed.push(other),
        }
    }
    Cow::Owned(packed)
}

/// The stored form of a text that may be absent.
pub(crate) fn packed(text: Option<&str>) -> Option<String> {
    text.map(|text| pack(text).into_owned())
}

/// The text again.
pub(crate) fn unpack(packed: String) -> String {
    if !packed.contains(MARK) {
        return packed;
    }
    let mut text = String::with_capacity(packed.len());
    let mut letters = packed.chars();
    while let Some(letter) = letters.next() {
        match letter {
            MARK => text.push(if letters.next() == Some('0') { '\0' } else { MARK }),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8_114_every_text_has_a_stored_form_of_its_own() {
        let texts =
            ["", "plain", "a\0b", "\0", "\u{1a}", "\u{1a}0", "\u{1a}1", "\0\u{1a}\x000", "é"];
        let mut packed: Vec<String> = texts.iter().map(|text| pack(text).into_owned()).collect();
        for (text, packed) in texts.iter().zip(&packed) {
            assert!(!packed.contains('\0'));
            assert_eq!(unpack(packed.clone()), *text);
        }
        packed.sort();
        packed.dedup();
        assert_eq!(packed.len(), texts.len());
    }
}

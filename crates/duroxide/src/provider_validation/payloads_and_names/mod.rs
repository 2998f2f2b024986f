//! Texts are any text, of any length, and come back letter by letter; texts that look alike are
//! different.

mod names;
mod payloads;

pub use names::*;
pub use payloads::*;

/// Texts that are hard on quoting, on patterns and on encodings.
const ODD: &[&str] = &[
    "it's",
    "''",
    "\"quoted\"",
    "`ticks`",
    "nul\0inside",
    "100%",
    "under_score",
    "back\\slash",
    "'; DROP TABLE instances; --",
    "/* comment */",
    "$1 ?1 :name @x",
    "{\"json\": [1, null]}",
    "null",
    "0",
    "-1e9",
    "two\nlines\r\n",
    "tab\tand bell\u{7}",
    " leading",
    "trailing ",
    " ",
    "\u{feff}byte order mark",
    "soft\u{ad}hyphen and zero\u{200b}width",
    "crab 🦀 family 👩‍👩‍👧",
    "שלום עולם",
    "\u{202e}right to left\u{202c}",
    "ÄÖÜ ß ﬁ",
    "日本語",
    "\u{10ffff}",
    "a::sub::2",
    "a/b?c=d&e#f",
    "a,b;c|d",
];

/// Texts that differ in case, spaces, accents, patterns or length only.
const ALIKE: &[&str] = &[
    "a",
    "A",
    "aa",
    "aA",
    "ab",
    "a ",
    " a",
    "a%",
    "%",
    "a_",
    "_",
    "a*",
    "a\\",
    "a\0",
    "a\n",
    "á",
    "a\u{301}",
    "ａ",
    "а",
    "a::",
    "a::sub",
    "a::sub::2",
    "a::sub::22",
    "1",
    "01",
    "1.0",
];

/// All odd texts, and one of 10 KB.
fn odd_texts() -> Vec<String> {
    let long = "long ".repeat(2048);
    ODD.iter().map(|text| (*text).to_owned()).chain([long]).collect()
}

/// All texts that look alike, and two long ones that differ at the end.
fn alike_texts() -> Vec<String> {
    let long = "x".repeat(10_240);
    let ends = ["1", "2"].map(|end| format!("{long}{end}"));
    ALIKE.iter().map(|text| (*text).to_owned()).chain(ends).collect()
}

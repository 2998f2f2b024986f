//! The codec of typed payloads (R2.90 – R2.92): strings travel raw, everything else as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Turns a value into a payload. A string is stored without quotes, so that typed and untyped code
/// can talk to each other; a string that is itself a JSON string literal keeps its quotes, since it
/// would lose them on the way back (L20).
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String, String> {
    let mut value = serde_json::to_value(value).map_err(|e| e.to_string())?;
    // Sorted already, unless some crate of the program asks for `preserve_order`: that must not
    // change what replay compares.
    value.sort_all_objects();
    match value {
        Value::String(text) if serde_json::from_str::<String>(&text).is_err() => Ok(text),
        value => serde_json::to_string(&value).map_err(|e| e.to_string()),
    }
}

/// Turns a payload back into a value: as JSON first, else as a bare string.
pub fn decode<T: DeserializeOwned>(payload: &str) -> Result<T, String> {
    serde_json::from_str(payload).or_else(|json_error| {
        serde_json::from_value(Value::String(payload.to_owned()))
            .map_err(|_| json_error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r2_90_strings_are_raw_and_keys_sorted() {
        #[derive(Serialize)]
        struct Sample {
            zeta: u32,
            alpha: &'static str,
            opt: Option<u8>,
        }
        let sample = Sample { zeta: 1, alpha: "a", opt: None };
        assert_eq!(encode(&sample).unwrap(), r#"{"alpha":"a","opt":null,"zeta":1}"#);
        assert_eq!(encode("plain \"q\"").unwrap(), "plain \"q\"");
        assert_eq!(encode(&42).unwrap(), "42");
        assert_eq!(encode(&()).unwrap(), "null");
        assert_eq!(encode(&Some("x")).unwrap(), "x");
        assert_eq!(encode(&["x"]).unwrap(), r#"["x"]"#);
    }

    #[test]
    fn r2_91_json_first_then_bare_string() {
        assert_eq!(decode::<u32>("42"), Ok(42));
        assert_eq!(decode::<String>("42"), Ok("42".to_owned()));
        assert_eq!(decode::<Option<String>>("null"), Ok(None));
        assert!(decode::<u32>("x").is_err());
    }

    #[test]
    fn l20_r2_92_a_string_that_looks_like_json_keeps_its_quotes() {
        for text in ["\"a\"", "a", "", "\"", "\\\"", "{\"a\":1}", "42", "\"\"", " \"x\" "] {
            assert_eq!(decode::<String>(&encode(text).unwrap()).as_deref(), Ok(text), "{text}");
        }
    }
}

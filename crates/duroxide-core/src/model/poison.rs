//! What a poison error says of itself: the messages given up, and why.

use serde::Serialize;
use serde_json::Value;

/// Beside the fields of what was given up. A decoder of these as messages passes over it.
const CAUSE: &str = "given_up_because";

/// The message of a poison error (R7.74): what was given up, as JSON, with the cause if there is one.
pub fn poison_message(given_up: &impl Serialize, cause: Option<&str>) -> String {
    let text = serde_json::to_string(given_up).unwrap_or_default();
    let (Some(cause), Ok(mut json)) = (cause, serde_json::from_str(&text)) else { return text };
    let Some(fields) = fields_of(&mut json) else { return text };
    fields.insert(CAUSE.to_owned(), Value::String(cause.to_owned()));
    json.to_string()
}

/// The cause that the message of a poison error names.
pub(super) fn poison_cause(message: &str) -> Option<String> {
    if !message.contains(CAUSE) {
        return None; // Most often there is nothing to look for in what may be long.
    }
    let mut json = serde_json::from_str(message).ok()?;
    match fields_of(&mut json)?.remove(CAUSE)? {
        Value::String(cause) => Some(cause),
        _ => None,
    }
}

/// The fields of a message, or of the first of several.
fn fields_of(json: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    let message = match json {
        Value::Array(messages) => messages.first_mut()?,
        message => message,
    };
    message.as_object_mut()?.values_mut().next()?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WorkItem;

    #[test]
    fn r9_62_a_message_with_its_cause_still_reads_as_what_was_given_up() {
        let cancel =
            || WorkItem::CancelInstance { instance: "i".to_owned(), reason: "why".to_owned() };
        let cause = "the process \"ended\"";
        let one = poison_message(&cancel(), Some(cause));
        assert_eq!(serde_json::from_str::<WorkItem>(&one).unwrap(), cancel());
        let two = poison_message(&[cancel(), cancel()], Some(cause));
        assert_eq!(serde_json::from_str::<Vec<WorkItem>>(&two).unwrap(), [cancel(), cancel()]);
        for message in [one, two] {
            assert_eq!(poison_cause(&message).as_deref(), Some(cause));
        }
        let silent = poison_message(&cancel(), None);
        assert_eq!(silent, serde_json::to_string(&cancel()).unwrap());
        for message in
            [silent.as_str(), "", "m", "given_up_because", "[]", "[\"given_up_because\"]"]
        {
            assert_eq!(poison_cause(message), None, "{message}");
        }
    }
}

//! Long texts are taken out of what is stored as JSON, kept once per instance, and put back when it is
//! read.
//!
//! A text that users hand in passes through many rows: a message, an event, an activity, another event.
//! The first row stores it, the others refer to it.

use std::hash::Hasher;
use std::sync::Arc;

use duroxide_core::model::{EventKind, WorkItem};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::tables::long_texts::TextReference;

/// From how many bytes on a text is long: about where a row would not fit into its page any more.
const LONG_BYTES: usize = 1024;

/// What stands where a text was taken out: a row that has lost its reference is not taken for one with
/// this text, since this text is treated as a long one.
const ELSEWHERE: &str = "\u{fffd}elsewhere";

/// A long text on its way into the store.
#[derive(Debug)]
pub(crate) struct LongText {
    pub(crate) hash: u64,
    pub(crate) text: String,
}

/// Takes out the long texts of one operation. One that occurs several times in a row, as most do, is
/// hashed and looked up once.
#[derive(Debug, Default)]
pub(crate) struct LongTexts {
    last: Option<Arc<LongText>>,
}

impl LongTexts {
    /// Encodes something, without its text if that is long.
    pub(crate) fn encode<T: Carrier>(
        &mut self,
        item: &T,
    ) -> Result<(String, Option<Arc<LongText>>), serde_json::Error> {
        if item.payload().is_none_or(|text| !is_long(text)) {
            return Ok((serde_json::to_string(item)?, None));
        }
        let mut rest = item.clone();
        let text = rest.payload_mut().map(|text| std::mem::replace(text, ELSEWHERE.to_owned()));
        Ok((serde_json::to_string(&rest)?, text.map(|text| self.note(text))))
    }

    /// Takes a text if it is long.
    pub(crate) fn take(&mut self, text: &mut Option<String>) -> Option<Arc<LongText>> {
        text.take_if(|text| is_long(text)).map(|text| self.note(text))
    }

    fn note(&mut self, text: String) -> Arc<LongText> {
        let known = self.last.take().filter(|known| known.text == text);
        let long = known.unwrap_or_else(|| Arc::new(LongText { hash: hash(&text), text }));
        self.last = Some(Arc::clone(&long));
        long
    }
}

/// Decodes something and puts its text back. If it makes no sense, an error text, and the text stays.
pub(crate) fn decode<T: Carrier>(
    json: &str,
    text_reference: &mut Option<TextReference>,
) -> Result<T, String> {
    let mut item: T = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let place = item.payload_mut();
    match (place.filter(|text| *text == ELSEWHERE), text_reference) {
        (None, None) => Ok(item),
        (Some(place), Some(text_reference)) => {
            *place = text_reference.take_text()?;
            Ok(item)
        }
        (Some(_), None) => Err("it does not say which long text belongs to it".to_owned()),
        (None, Some(_)) => Err("it has a long text and no place for one".to_owned()),
    }
}

/// The JSON of a message as if its text had never been taken out, for people. What cannot be decoded is
/// followed by its text.
pub(crate) fn whole(json: String, mut text_reference: Option<TextReference>) -> String {
    if text_reference.is_none() {
        return json;
    }
    let item = decode::<WorkItem>(&json, &mut text_reference).ok();
    let whole = item.and_then(|item| serde_json::to_string(&item).ok());
    whole.unwrap_or_else(|| {
        match text_reference.and_then(|mut text_reference| text_reference.take_text().ok()) {
            Some(text) => format!("{json}\n{text}"),
            None => json,
        }
    })
}

/// What has a text that may be long.
pub(crate) trait Carrier: Clone + Serialize + DeserializeOwned {
    fn payload(&self) -> Option<&String>;
    fn payload_mut(&mut self) -> Option<&mut String>;
}

impl Carrier for EventKind {
    fn payload(&self) -> Option<&String> {
        self.payload()
    }

    fn payload_mut(&mut self) -> Option<&mut String> {
        self.payload_mut()
    }
}

impl Carrier for WorkItem {
    fn payload(&self) -> Option<&String> {
        self.payload()
    }

    fn payload_mut(&mut self) -> Option<&mut String> {
        self.payload_mut()
    }
}

fn is_long(text: &str) -> bool {
    LONG_BYTES <= text.len() || text == ELSEWHERE
}

/// May differ between versions of the library: then a text is stored once more.
fn hash(text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

//! A call of a function of the schema, with its values.

use std::borrow::Cow;

use uuid::Uuid;

use crate::value::Value;

/// A statement with its values.
pub(crate) struct Call<'a> {
    pub(crate) sql: &'static str,
    values: Vec<CallValue<'a>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::with_capacity(sql.matches('$').count()) }
    }

    /// The next value.
    pub(crate) fn add(&mut self, value: impl Into<CallValue<'a>>) -> &mut Self {
        self.values.push(value.into());
        self
    }

    /// A value that comes before others.
    pub(crate) fn insert(&mut self, place: usize, value: impl Into<CallValue<'a>>) -> &mut Self {
        self.values.insert(place, value.into());
        self
    }

    /// The same, for those who build it in one go.
    pub(crate) fn with(mut self, value: impl Into<CallValue<'a>>) -> Self {
        self.add(value);
        self
    }

    /// The values in their order.
    pub(crate) fn values(&self) -> Vec<&dyn Value> {
        self.values.iter().map(CallValue::get).collect()
    }
}

/// The kinds of values that calls have. A call has some forty: they are not boxed, since allocating that
/// many costs more than all else about a call.
macro_rules! call_values {
    ($($kind:ident: $rust:ty,)*) => {
        pub(crate) enum CallValue<'a> {
            $($kind($rust),)*
        }

        impl<'a> CallValue<'a> {
            fn get(&self) -> &(dyn Value + 'a) {
                match self {
                    $(Self::$kind(value) => value,)*
                }
            }
        }

        $(impl<'a> From<$rust> for CallValue<'a> {
            fn from(value: $rust) -> Self {
                Self::$kind(value)
            }
        })*
    };
}

call_values! {
    Bool: bool,
    Int2: i16,
    Int4: i32,
    Int8: i64,
    Text: &'a str,
    Uuid: Uuid,
    Int4OrNull: Option<i32>,
    Int8OrNull: Option<i64>,
    TextOrNull: Option<&'a str>,
    PackedOrNull: Option<Cow<'a, str>>,
    UuidOrNull: Option<Uuid>,
    Bools: Vec<bool>,
    Int2s: Vec<i16>,
    Int4s: Vec<i32>,
    Int8s: Vec<i64>,
    Texts: Vec<&'a str>,
    Strings: Vec<String>,
    Uuids: Vec<Uuid>,
    Int4sOrNull: Option<Vec<i32>>,
    Int4sWithNulls: Vec<Option<i32>>,
    Int8sWithNulls: Vec<Option<i64>>,
    TextsWithNulls: Vec<Option<&'a str>>,
}

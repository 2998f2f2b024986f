//! Values of statements, each with the type it has in the database.
//!
//! A statement that says the types of its values need not be prepared first. Behind a pooler nothing
//! can be: the next transaction may be on another connection of the server.

use std::borrow::Cow;

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

/// A value of a statement.
pub(crate) trait Value: ToSql + Sync {
    /// Its type in the database.
    fn type_of(&self) -> Type;
}

/// Values of a statement.
pub(crate) type Values<'a> = [&'a dyn Value];

impl<T: Typed + ToSql + Sync> Value for T {
    fn type_of(&self) -> Type {
        T::TYPE
    }
}

/// Whose type is known without looking at the value.
pub(crate) trait Typed {
    const TYPE: Type;
}

/// What arrays are made of.
pub(crate) trait Element {
    const ARRAY: Type;
}

macro_rules! elements {
    ($($rust:ty => $one:ident, $array:ident;)*) => {
        $(impl Typed for $rust {
            const TYPE: Type = Type::$one;
        }

        impl Element for $rust {
            const ARRAY: Type = Type::$array;
        })*
    };
}

elements! {
    bool => BOOL, BOOL_ARRAY;
    i16 => INT2, INT2_ARRAY;
    i32 => INT4, INT4_ARRAY;
    i64 => INT8, INT8_ARRAY;
    &str => TEXT, TEXT_ARRAY;
    String => TEXT, TEXT_ARRAY;
    Cow<'_, str> => TEXT, TEXT_ARRAY;
    Uuid => UUID, UUID_ARRAY;
}

impl<T: Typed> Typed for Option<T> {
    const TYPE: Type = T::TYPE;
}

impl<T: Element> Element for Option<T> {
    const ARRAY: Type = T::ARRAY;
}

impl<T: Element> Typed for Vec<T> {
    const TYPE: Type = T::ARRAY;
}

impl<T: Element> Typed for &[T] {
    const TYPE: Type = T::ARRAY;
}

/// The values with their types, as the driver wants them.
pub(crate) fn typed<'a>(values: &Values<'a>) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| (sql(*value), value.type_of())).collect()
}

/// The values, where the types are known from the statement.
pub(crate) fn untyped<'a>(values: &Values<'a>) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| sql(*value)).collect()
}

fn sql(value: &dyn Value) -> &(dyn ToSql + Sync) {
    value
}

//! A call of a function of the schema, with its values.

use tokio_postgres::types::ToSql;

use crate::connection::Value;

/// A statement with its values.
pub(crate) struct Call<'a> {
    pub(crate) sql: &'static str,
    values: Vec<Box<dyn ToSql + Sync + Send + 'a>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::new() }
    }

    /// The next value.
    pub(crate) fn add(&mut self, value: impl ToSql + Sync + Send + 'a) -> &mut Self {
        self.values.push(Box::new(value));
        self
    }

    /// A value that comes before others.
    pub(crate) fn insert(
        &mut self,
        place: usize,
        value: impl ToSql + Sync + Send + 'a,
    ) -> &mut Self {
        self.values.insert(place, Box::new(value));
        self
    }

    /// The same, for those who build it in one go.
    pub(crate) fn with(mut self, value: impl ToSql + Sync + Send + 'a) -> Self {
        self.add(value);
        self
    }

    /// One statement with the values of both.
    pub(crate) fn followed_by(mut self, other: Self, sql: &'static str) -> Self {
        self.values.extend(other.values);
        Self { sql, values: self.values }
    }

    /// The values, as the driver wants them.
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        self.values.iter().map(|value| -> Value<'_> { &**value }).collect()
    }
}

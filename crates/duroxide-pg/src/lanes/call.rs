//! A call of a function of the schema, with its values.

use crate::value::Value;

/// A statement with its values.
pub(crate) struct Call<'a> {
    pub(crate) sql: &'static str,
    values: Vec<Box<dyn Value + Send + 'a>>,
}

impl<'a> Call<'a> {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self { sql, values: Vec::new() }
    }

    /// The next value.
    pub(crate) fn add(&mut self, value: impl Value + Send + 'a) -> &mut Self {
        self.values.push(Box::new(value));
        self
    }

    /// A value that comes before others.
    pub(crate) fn insert(&mut self, place: usize, value: impl Value + Send + 'a) -> &mut Self {
        self.values.insert(place, Box::new(value));
        self
    }

    /// The same, for those who build it in one go.
    pub(crate) fn with(mut self, value: impl Value + Send + 'a) -> Self {
        self.add(value);
        self
    }

    /// The values in their order.
    pub(crate) fn values(&self) -> Vec<&dyn Value> {
        self.values.iter().map(|value| -> &dyn Value { &**value }).collect()
    }
}

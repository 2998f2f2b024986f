//! Tests of index and resolution on small crates.

use std::path::Path;

use super::index::{Index, Module};
use super::list;
use super::parse::add_items;

/// Two crates: a core, and one that re-exports from it.
fn index() -> Index {
    let mut index = Index::default();
    for (name, text) in [("core", CORE), ("front", FRONT)] {
        let root = index.modules.len();
        index.modules.push(Module { root, ..Module::default() });
        index.roots.insert(name.to_owned(), root);
        let items = syn::parse_file(text).unwrap().items;
        add_items(&mut index, root, &items, Path::new("nowhere")).unwrap();
    }
    index.assign_methods();
    index
}

const CORE: &str = "
pub mod model {
    mod event {
        pub struct Event { pub id: u64, secret: u8 }
        impl Event { pub fn new() {} fn hidden() {} }
        pub enum Kind { Plain, Rich { a: u8, b: u8 }, Pair(u8, u8) }
        pub struct Wrapper<F>(pub F);
        pub fn helper() {}
        pub(crate) fn internal() {}
    }
    pub use event::{Event, Kind, helper as help, internal};
    pub use self::event::*;
    pub mod limits { pub const MAX: usize = 1; }
}
pub mod provider {
    pub trait Provider { fn name(&self) {} fn read(&self); fn write(&self); }
    pub type ProviderRef = Box<dyn Provider>;
    #[cfg(test)]
    mod tests;
}
mod circle { pub use super::circle::*; pub use self::lost; }
";

const FRONT: &str = "
pub mod providers { pub use core::model::limits; pub use core::provider::*; }
pub use core::model::Event;
pub use crate::providers::{self as stores, Provider};
use core::model::Kind;
mod private { pub struct Unreachable; }
pub use tokio_util::sync::CancellationToken;
pub use circle_maker::Circle;
impl providers::Provider {}
impl<T> Local<T> { pub fn go() {} }
pub struct Local<T> { pub all: T }
";

fn missing(list: &str) -> Vec<String> {
    let index = index();
    let items = list::parse(list).unwrap();
    items.iter().filter(|item| !index.offers(item)).map(|item| item.path.clone()).collect()
}

#[test]
fn items_are_found_where_they_are_and_where_they_are_re_exported() {
    let list = "\
mod core::model
mod core::model::limits
const core::model::limits::MAX
const front::providers::limits::MAX
struct core::model::Event
struct front::Event
struct core::model::Wrapper
fn core::model::help
trait front::Provider
trait front::stores::Provider
type front::providers::ProviderRef
struct front::CancellationToken
struct front::Local
";
    assert_eq!(missing(list), [""; 0]);
}

#[test]
fn private_things_and_wrong_kinds_are_missing() {
    let list = "\
enum front::Kind
struct front::private::Unreachable
struct core::model::event::Event
enum front::Event
mod front::nothing
fn core::circle::lost
fn elsewhere::x
";
    assert_eq!(missing(list).len(), 7);
}

#[test]
fn members_are_found_through_any_path_of_their_type() {
    let list = "\
method front::Event::new
field front::Event::id
field front::Event::_
field core::model::Wrapper::0
variant core::model::Kind::Plain
variant core::model::Kind::Rich
variant core::model::Kind::Pair
field core::model::Kind::Rich::b
method front::Provider::read
method front::Provider::name
method front::Local::go
";
    assert_eq!(missing(list), [""; 0]);
    let list = "\
method front::Event::hidden
field front::Event::secret
variant core::model::Kind::Other
field core::model::Kind::Rich::c
method front::Provider::fetch
method front::Nothing::x
";
    assert_eq!(missing(list).len(), 6);
}

#[test]
fn additions_that_break_callers_are_found() {
    let additions = |list: &str| index().additions(&list::parse(list).unwrap());
    let list = "\
field core::model::Event::id
variant core::model::Kind::Rich
field core::model::Kind::Rich::a
method core::provider::Provider::read
method front::Local::go
";
    let expected = [
        "field core::model::Event::_",
        "field core::model::Kind::Rich::b",
        "variant core::model::Kind::Pair",
        "variant core::model::Kind::Plain",
        "required method core::provider::Provider::write",
    ];
    assert_eq!(additions(list), expected);
    assert_eq!(additions("field core::model::Event::id\nfield core::model::Event::_\n"), [""; 0]);
}

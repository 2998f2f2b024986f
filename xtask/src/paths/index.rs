//! What our crates define: modules, the names in them, and the members of types.

use std::collections::{BTreeMap, BTreeSet};

use super::list::Item;
use super::resolve::Target;

/// Everything parsed, by number.
#[derive(Default)]
pub(super) struct Index {
    pub(super) roots: BTreeMap<String, usize>,
    pub(super) modules: Vec<Module>,
    pub(super) definitions: Vec<Definition>,
    /// Blocks of methods, until their types are known.
    pub(super) impls: Vec<Impl>,
}

/// One module.
#[derive(Default)]
pub(super) struct Module {
    pub(super) parent: Option<usize>,
    pub(super) root: usize,
    pub(super) names: BTreeMap<String, Vec<Entry>>,
    pub(super) globs: Vec<Glob>,
}

/// `use path::*`.
pub(super) struct Glob {
    pub(super) public: bool,
    pub(super) path: Vec<String>,
}

/// What a name in a module stands for.
pub(super) struct Entry {
    pub(super) public: bool,
    pub(super) what: What,
}

/// See [`Entry`].
pub(super) enum What {
    Module(usize),
    Definition(usize),
    Use(Vec<String>),
}

/// A type, trait, function or constant.
pub(super) struct Definition {
    pub(super) kind: &'static str,
    pub(super) members: BTreeSet<Member>,
}

/// Part of a type: its kind and its path inside the type.
pub(super) type Member = (&'static str, String);

/// The member that stands for all private fields of a type.
pub(super) const PRIVATE_FIELDS: &str = "_";
/// Kind of a trait method without a body, in addition to being a method.
pub(super) const REQUIRED: &str = "required method";

/// The public functions of an `impl` block.
pub(super) struct Impl {
    pub(super) module: usize,
    pub(super) of: Vec<String>,
    pub(super) functions: Vec<String>,
}

impl Index {
    /// Gives methods to their types, once all types are known.
    pub(super) fn assign_methods(&mut self) {
        for Impl { module, of, functions } in std::mem::take(&mut self.impls) {
            for target in self.resolve(module, &of) {
                if let Target::Definition(definition) = target {
                    let methods = functions.iter().map(|name| ("method", name.clone()));
                    self.definitions[definition].members.extend(methods);
                }
            }
        }
    }

    /// Whether the item exists, public and of its kind.
    pub(super) fn offers(&self, item: &Item) -> bool {
        let path = segments(&item.path);
        match item.kind.as_str() {
            "variant" | "field" | "method" => match self.owner(&path) {
                Some((definition, rest)) => {
                    let of_kind = |member: &Member| member.0 == item.kind && member.1 == rest;
                    rest == PRIVATE_FIELDS || definition.members.iter().any(of_kind)
                }
                None => false,
            },
            kind => self.find(&path).into_iter().any(|target| match target {
                Target::Module(_) => kind == "mod",
                Target::Definition(definition) => self.definitions[definition].kind == kind,
                Target::Foreign => true,
            }),
        }
    }

    /// Members that callers of the listed types do not know and would stumble over.
    pub(super) fn additions(&self, items: &[Item]) -> Vec<String> {
        let mut listed: BTreeMap<String, BTreeSet<Member>> = BTreeMap::new();
        for item in items {
            let kind = match item.kind.as_str() {
                "variant" => "variant",
                "field" => "field",
                "method" => REQUIRED,
                _ => continue,
            };
            let path = segments(&item.path);
            if let Some((_, rest)) = self.owner(&path) {
                let owner = item.path[..item.path.len() - rest.len() - 2].to_owned();
                listed.entry(owner).or_default().insert((kind, rest));
            }
        }
        let mut additions = Vec::new();
        for (owner, known) in &listed {
            let Some((definition, _)) = self.owner(&segments(&format!("{owner}::x"))) else {
                continue;
            };
            let is_built_by_callers = known.iter().any(|(kind, _)| *kind != REQUIRED);
            for member in &definition.members {
                let matters = match member.0 {
                    "method" => false,
                    REQUIRED => true,
                    _ => is_built_by_callers,
                };
                if matters && !known.contains(member) {
                    additions.push(format!("{} {owner}::{}", member.0, member.1));
                }
            }
        }
        additions
    }

    /// The definition a member's path begins with, and the rest of the path.
    fn owner(&self, path: &[String]) -> Option<(&Definition, String)> {
        (2..path.len()).find_map(|length| {
            let is_definition = |target: Target| match target {
                Target::Definition(definition) => Some(&self.definitions[definition]),
                _ => None,
            };
            let definition = self.find(&path[..length]).into_iter().find_map(is_definition)?;
            Some((definition, path[length..].join("::")))
        })
    }
}

/// A path in parts.
pub(super) fn segments(path: &str) -> Vec<String> {
    path.split("::").map(str::to_owned).collect()
}

//! Which crate and which folder may not use which.
//!
//! Only paths that spell the way out are seen (`crate::runtime::…`, `super::super::runtime::…`, in
//! `use` and elsewhere). Names that reach a folder through a re-export, and paths inside macro
//! calls, are not. Test code may look anywhere.

use syn::visit::{self, Visit};

use super::Finding;
use crate::files::File;
use crate::regions::{is_test_file, is_test_item};

/// The manifest of the crate that knows nothing outside, and what it may not depend on.
const CORE_MANIFEST: &str = "crates/duroxide-core/Cargo.toml";
const NOT_FOR_CORE: &[&str] = &["tokio", "tokio-util", "duroxide", "getrandom", "rand"];

/// What a folder may use of its own crate.
struct Arrow {
    folder: &'static str,
    uses: Uses,
}

enum Uses {
    Only(&'static [&'static str]),
    AnyBut(&'static [&'static str]),
}

const ARROWS: &[Arrow] = &[
    Arrow { folder: "crates/duroxide-core/src/model/", uses: Uses::Only(&["model", "clock"]) },
    Arrow {
        folder: "crates/duroxide-core/src/context/",
        uses: Uses::AnyBut(&["provider", "replay"]),
    },
    Arrow {
        folder: "crates/duroxide-core/src/provider/",
        uses: Uses::AnyBut(&["context", "replay"]),
    },
    Arrow { folder: "crates/duroxide/src/client/", uses: Uses::AnyBut(&["runtime"]) },
];

/// Checks the dependencies of the core, if this is its manifest.
pub(super) fn check_manifest(file: &File) -> Vec<Finding> {
    if file.path != CORE_MANIFEST {
        return Vec::new();
    }
    let dependencies = dependencies(&file.text);
    let wrong = dependencies.into_iter().filter(|(_, name)| NOT_FOR_CORE.contains(&name.as_str()));
    wrong
        .map(|(line, name)| {
            Finding::new(format!("{}:{line}", file.path), format!("the core may not use {name}"))
        })
        .collect()
}

/// Checks the paths of a file against the arrows of its folder.
pub(super) fn check_modules(file: &File, syntax: &syn::File) -> Vec<Finding> {
    let Some(arrow) = ARROWS.iter().find(|arrow| file.path.starts_with(arrow.folder)) else {
        return Vec::new();
    };
    if is_test_file(&file.path) {
        return Vec::new();
    }
    let mut paths = Paths { module: module_of(&file.path), found: Vec::new() };
    paths.visit_file(syntax);
    let wrong = paths.found.into_iter().filter(|(_, folder)| !arrow.uses.allow(folder));
    wrong
        .map(|(line, folder)| {
            let message = format!("{} may not use {folder}", arrow.folder);
            Finding::new(format!("{}:{line}", file.path), message)
        })
        .collect()
}

impl Uses {
    fn allow(&self, folder: &str) -> bool {
        match self {
            Self::Only(allowed) => allowed.contains(&folder),
            Self::AnyBut(forbidden) => !forbidden.contains(&folder),
        }
    }
}

/// Line and name of everything an ordinary build depends on.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut listing = false;
    for (number, line) in (1..).zip(manifest.lines()) {
        if let Some(section) = line.trim().strip_prefix('[') {
            let section = section.trim_end_matches(']');
            listing = section == "dependencies"
                || section == "build-dependencies"
                || section.ends_with(".dependencies");
            if let Some((_, name)) = section.split_once("dependencies.") {
                let is_dev = section.contains("dev-dependencies.");
                found.extend((!is_dev).then(|| (number, name.to_owned())));
            }
        } else if listing {
            let name: String = line.chars().take_while(|c| !" .=#".contains(*c)).collect();
            found.extend((!name.is_empty()).then_some((number, name)));
        }
    }
    found
}

/// The module a file holds, as a path from its crate's root.
fn module_of(path: &str) -> Vec<String> {
    let inside = path.split_once("/src/").map_or(path, |(_, inside)| inside);
    let inside = inside.trim_end_matches(".rs");
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    inside.split('/').filter(|part| *part != "lib").map(str::to_owned).collect()
}

/// Line and folder of every path that leads through the crate's root.
struct Paths {
    module: Vec<String>,
    found: Vec<(usize, String)>,
}

impl Paths {
    fn note(&mut self, line: usize, path: &[String]) {
        let mut absolute: Vec<String> = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => self.module.clone(),
            _ => return,
        };
        for part in path {
            match part.as_str() {
                "crate" | "self" => {}
                "super" => {
                    absolute.pop();
                }
                _ => absolute.push(part.clone()),
            }
        }
        if let Some(folder) = absolute.into_iter().next() {
            self.found.push((line, folder));
        }
    }

    fn note_tree(&mut self, tree: &syn::UseTree, prefix: &[String]) {
        let with = |ident: &syn::Ident| [prefix, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.note_tree(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) => {
                self.note(name.ident.span().start().line, &with(&name.ident));
            }
            syn::UseTree::Rename(name) => {
                self.note(name.ident.span().start().line, &with(&name.ident));
            }
            syn::UseTree::Glob(glob) => {
                self.note(glob.star_token.spans[0].start().line, prefix);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.note_tree(tree, prefix);
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.note_tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if let (Some(first), true) = (path.segments.first(), parts.len() > 1) {
            self.note(first.ident.span().start().line, &parts);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_test_item(&item.attrs) {
            return;
        }
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong_lines(path: &str, text: &str) -> Vec<String> {
        let syntax = syn::parse_file(text).unwrap();
        check_modules(&File::new(path, text), &syntax).into_iter().map(|f| f.place).collect()
    }

    #[test]
    fn the_client_does_not_know_the_runtime() {
        let text = "\
use crate::runtime::Runtime;
use crate::{providers, runtime as r};
use super::super::runtime::*;
fn f() -> crate::runtime::X { super::super::runtime::g() }
use tokio::runtime::Handle;
use super::runtime::Y;
#[cfg(test)]
mod tests { use crate::runtime::Z; }
mod inner { use super::super::super::runtime::W; use super::super::runtime::V; }
";
        let expected = [1, 2, 3, 4, 4, 9].map(|n| format!("crates/duroxide/src/client/a.rs:{n}"));
        assert_eq!(wrong_lines("crates/duroxide/src/client/a.rs", text), expected);
        assert_eq!(wrong_lines("crates/duroxide/src/client/tests/a.rs", text), [""; 0]);
        assert_eq!(wrong_lines("crates/duroxide/src/runtime/a.rs", text), [""; 0]);
    }

    #[test]
    fn the_model_knows_itself_and_the_clock() {
        let text = "use crate::clock::now;\nuse super::Event;\nuse crate::provider::X;\n";
        let path = "crates/duroxide-core/src/model/event.rs";
        assert_eq!(wrong_lines(path, text), [format!("{path}:3")]);
        let path = "crates/duroxide-core/src/model/mod.rs";
        assert_eq!(wrong_lines(path, "use super::provider::X;"), [format!("{path}:1")]);
        assert_eq!(module_of("crates/a/src/lib.rs"), [""; 0]);
    }

    #[test]
    fn the_core_depends_on_little() {
        let manifest = "\
[package]
tokio = 1
[dependencies]
serde.workspace = true
tokio = { version = \"1\" }
[dev-dependencies]
tokio = \"1\"
[target.'cfg(unix)'.dependencies]
rand = \"1\"
[dependencies.duroxide]
[dev-dependencies.getrandom]
";
        let found = check_manifest(&File::new(CORE_MANIFEST, manifest));
        let places: Vec<&str> = found.iter().map(|found| found.place.as_str()).collect();
        let expected = [5, 9, 10].map(|n| format!("{CORE_MANIFEST}:{n}"));
        assert_eq!(places, expected);
        assert_eq!(check_manifest(&File::new("crates/duroxide/Cargo.toml", manifest)), []);
    }
}

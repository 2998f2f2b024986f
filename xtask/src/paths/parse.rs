//! From source files to the index.

use std::fs;
use std::path::{Path, PathBuf};

use syn::{Fields, ImplItem, Item, TraitItem, Visibility};

use super::index::{
    Definition, Entry, Glob, Impl, Index, Member, Module, PRIVATE_FIELDS, REQUIRED, What,
};
use crate::regions::is_test_item;

/// Parses a crate from its `src` folder.
pub(super) fn add_crate(index: &mut Index, name: &str, folder: &Path) -> Result<(), String> {
    let root = index.modules.len();
    index.modules.push(Module { root, ..Module::default() });
    index.roots.insert(name.to_owned(), root);
    let items = read(&folder.join("lib.rs"))?;
    add_items(index, root, &items, folder)
}

fn read(path: &Path) -> Result<Vec<Item>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    Ok(syn::parse_file(&text).map_err(|error| failed(&error))?.items)
}

/// Adds the items of a module whose files lie in `folder`.
pub(super) fn add_items(
    index: &mut Index,
    module: usize,
    items: &[Item],
    folder: &Path,
) -> Result<(), String> {
    for item in items {
        match item {
            Item::Mod(item) if !is_test_item(&item.attrs) => {
                let name = item.ident.to_string();
                let child = index.modules.len();
                let root = index.modules[module].root;
                index.modules.push(Module { parent: Some(module), root, ..Module::default() });
                add_name(index, module, &name, is_public(&item.vis), What::Module(child));
                let inner = folder.join(&name);
                match &item.content {
                    Some((_, items)) => add_items(index, child, items, &inner)?,
                    None => add_items(index, child, &read(&file_of(folder, &name))?, &inner)?,
                }
            }
            Item::Use(item) => add_use(index, module, is_public(&item.vis), &item.tree, &[]),
            Item::Impl(item) if item.trait_.is_none() => add_impl(index, module, item),
            item => add_definition(index, module, item),
        }
    }
    Ok(())
}

fn file_of(folder: &Path, name: &str) -> PathBuf {
    let flat = folder.join(format!("{name}.rs"));
    if flat.exists() { flat } else { folder.join(name).join("mod.rs") }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn add_name(index: &mut Index, module: usize, name: &str, public: bool, what: What) {
    let entries = index.modules[module].names.entry(name.to_owned()).or_default();
    entries.push(Entry { public, what });
}

fn add_use(index: &mut Index, module: usize, public: bool, tree: &syn::UseTree, prefix: &[String]) {
    let with = |ident: &syn::Ident| [prefix, &[ident.to_string()]].concat();
    match tree {
        syn::UseTree::Path(path) => {
            add_use(index, module, public, &path.tree, &with(&path.ident));
        }
        syn::UseTree::Name(name) if name.ident == "self" => {
            if let Some(last) = prefix.last() {
                add_name(index, module, last, public, What::Use(prefix.to_vec()));
            }
        }
        syn::UseTree::Name(name) => {
            let what = What::Use(with(&name.ident));
            add_name(index, module, &name.ident.to_string(), public, what);
        }
        syn::UseTree::Rename(name) => {
            let path = if name.ident == "self" { prefix.to_vec() } else { with(&name.ident) };
            add_name(index, module, &name.rename.to_string(), public, What::Use(path));
        }
        syn::UseTree::Glob(_) => {
            index.modules[module].globs.push(Glob { public, path: prefix.to_vec() });
        }
        syn::UseTree::Group(group) => {
            for tree in &group.items {
                add_use(index, module, public, tree, prefix);
            }
        }
    }
}

fn add_impl(index: &mut Index, module: usize, item: &syn::ItemImpl) {
    let syn::Type::Path(of) = &*item.self_ty else { return };
    let of = of.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let functions = item.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) if is_public(&function.vis) => Some(function.sig.ident.to_string()),
        _ => None,
    });
    let functions = functions.collect();
    index.impls.push(Impl { module, of, functions });
}

fn add_definition(index: &mut Index, module: usize, item: &Item) {
    let (kind, visibility, ident, members): (_, _, _, Vec<Member>) = match item {
        Item::Struct(item) => ("struct", &item.vis, &item.ident, struct_fields(&item.fields)),
        Item::Enum(item) => {
            let members = item.variants.iter().flat_map(variant_members).collect();
            ("enum", &item.vis, &item.ident, members)
        }
        Item::Trait(item) => {
            let members = item.items.iter().flat_map(trait_members).collect();
            ("trait", &item.vis, &item.ident, members)
        }
        Item::Type(item) => ("type", &item.vis, &item.ident, Vec::new()),
        Item::Const(item) => ("const", &item.vis, &item.ident, Vec::new()),
        Item::Fn(item) => ("fn", &item.vis, &item.sig.ident, Vec::new()),
        _ => return,
    };
    let definition = index.definitions.len();
    index.definitions.push(Definition { kind, members: members.into_iter().collect() });
    let (name, what) = (ident.to_string(), What::Definition(definition));
    add_name(index, module, &name, is_public(visibility), what);
}

fn struct_fields(fields: &Fields) -> Vec<Member> {
    let member = |(name, field): (String, &syn::Field)| {
        let name = if is_public(&field.vis) { name } else { PRIVATE_FIELDS.to_owned() };
        ("field", name)
    };
    named(fields).map(member).collect()
}

fn variant_members(variant: &syn::Variant) -> Vec<Member> {
    let name = variant.ident.to_string();
    // Fields of tuple variants have no names to be compared.
    let fields = match &variant.fields {
        Fields::Named(_) => {
            named(&variant.fields).map(|(field, _)| ("field", format!("{name}::{field}"))).collect()
        }
        _ => Vec::new(),
    };
    [vec![("variant", name)], fields].concat()
}

fn trait_members(item: &TraitItem) -> Vec<Member> {
    let TraitItem::Fn(function) = item else { return Vec::new() };
    let name = function.sig.ident.to_string();
    let required = function.default.is_none().then(|| (REQUIRED, name.clone()));
    std::iter::once(("method", name)).chain(required).collect()
}

fn named(fields: &Fields) -> impl Iterator<Item = (String, &syn::Field)> {
    fields.iter().enumerate().map(|(number, field)| {
        let name = field.ident.as_ref().map_or_else(|| number.to_string(), ToString::to_string);
        (name, field)
    })
}

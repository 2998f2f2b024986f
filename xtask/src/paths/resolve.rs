//! From a path to what it names, through modules and re-exports.

use super::index::{Index, What};

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    Module(usize),
    Definition(usize),
    /// Something of a crate we did not parse.
    Foreign,
}

/// Longest chain of re-exports; only a circle is longer.
const STEPS_MAX: usize = 16;

impl Index {
    /// What users of our crates reach by this path. A name can stand for a type and a function.
    pub(super) fn find(&self, path: &[String]) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        match self.roots.get(first) {
            Some(root) => self.walk(Target::Module(*root), rest, true, STEPS_MAX),
            None => Vec::new(),
        }
    }

    /// What code inside a module means by this path.
    pub(super) fn resolve(&self, module: usize, path: &[String]) -> Vec<Target> {
        self.resolve_in(module, path, STEPS_MAX)
    }

    fn resolve_in(&self, module: usize, path: &[String], steps: usize) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else {
            return vec![Target::Module(module)];
        };
        let Some(steps) = steps.checked_sub(1) else { return Vec::new() };
        match first.as_str() {
            "crate" => self.walk(Target::Module(self.modules[module].root), rest, false, steps),
            "self" => self.resolve_in(module, rest, steps),
            "super" => match self.modules[module].parent {
                Some(parent) => self.resolve_in(parent, rest, steps),
                None => Vec::new(),
            },
            name => {
                let here = self.lookup(module, name, false, steps);
                if !here.is_empty() {
                    return self.walk_all(here, rest, steps);
                }
                match self.roots.get(name) {
                    Some(root) => self.walk(Target::Module(*root), rest, false, steps),
                    None => vec![Target::Foreign],
                }
            }
        }
    }

    fn walk_all(&self, from: Vec<Target>, path: &[String], steps: usize) -> Vec<Target> {
        from.into_iter().flat_map(|target| self.walk(target, path, false, steps)).collect()
    }

    fn walk(&self, from: Target, path: &[String], public: bool, steps: usize) -> Vec<Target> {
        let Some((name, rest)) = path.split_first() else { return vec![from] };
        match from {
            Target::Foreign => vec![Target::Foreign],
            Target::Definition(_) => Vec::new(),
            Target::Module(module) => self
                .lookup(module, name, public, steps)
                .into_iter()
                .flat_map(|target| self.walk(target, rest, public, steps))
                .collect(),
        }
    }

    /// A name in a module: its own, else one that a glob brings.
    fn lookup(&self, module: usize, name: &str, public: bool, steps: usize) -> Vec<Target> {
        let Some(steps) = steps.checked_sub(1) else { return Vec::new() };
        let module_data = &self.modules[module];
        let own: Vec<Target> = module_data
            .names
            .get(name)
            .into_iter()
            .flatten()
            .filter(|entry| entry.public || !public)
            .flat_map(|entry| match &entry.what {
                What::Module(module) => vec![Target::Module(*module)],
                What::Definition(definition) => vec![Target::Definition(*definition)],
                What::Use(path) => self.resolve_in(module, path, steps),
            })
            .collect();
        if !own.is_empty() {
            return own;
        }
        let globs = module_data.globs.iter().filter(|glob| glob.public || !public);
        globs
            .flat_map(|glob| self.resolve_in(module, &glob.path, steps))
            .flat_map(|target| match target {
                Target::Module(module) => self.lookup(module, name, true, steps),
                _ => Vec::new(),
            })
            .collect()
    }
}

//! No circle among the files of a crate: whoever reads a file upward from what it uses meets each file once. An edge is a
//! name that one file takes from another, wherever it is re-exported on the way. A re-export alone is none, nor is a
//! `mod`; tests are left out. Nor does it count what a part takes from the file that it was split from: Rust's privacy is
//! made for that.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Attribute, File, Item, ItemMod, ItemUse, Macro, Meta, UseTree, Visibility};

use crate::architecture::{children, root};

#[test]
fn no_files_of_a_crate_form_a_circle() {
    let crates = children(&root().join("crates"));
    let circles: Vec<_> = crates.iter().flat_map(|folder| circles(&Crate::read(folder))).collect();
    assert!(circles.is_empty(), "{} circles:\n{}", circles.len(), circles.join("\n"));
}

/// One module, in a file of its own or within another's.
#[derive(Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    /// Names that it imports, and from where.
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Paths that its code names, imports that are re-exports left out.
    paths: Vec<Vec<String>>,
}

/// The modules of one crate; the first is its root.
struct Crate(Vec<Module>);

impl Crate {
    fn read(folder: &Path) -> Self {
        let files = ["src/lib.rs", "src/main.rs"].map(|name| folder.join(name));
        let file = files.into_iter().find(|file| file.exists()).unwrap();
        let mut all = Self(vec![Module { file: file.clone(), ..Module::default() }]);
        all.fill(0, &parse(&file).items, &folder.join("src"));
        all
    }

    /// Adds what a module's items say; `folder` holds the files of its children.
    fn fill(&mut self, index: usize, items: &[Item], folder: &Path) {
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            match item {
                Item::Mod(module) => self.add_child(index, module, folder),
                Item::Use(import) => self.0[index].import(import),
                _ => {
                    self.0[index].items.extend(name_of(item));
                    self.0[index].visit_item(item);
                }
            }
        }
    }

    fn add_child(&mut self, parent: usize, module: &ItemMod, folder: &Path) {
        let name = module.ident.to_string();
        let folder = folder.join(&name);
        let child = self.0.len();
        self.0[parent].children.insert(name, child);
        let inline = module.content.as_ref().map(|(_, items)| items);
        let file = if inline.is_some() { self.0[parent].file.clone() } else { folder.with_extension("rs") };
        self.0.push(Module { file: file.clone(), parent: Some(parent), ..Module::default() });
        match inline {
            Some(items) => self.fill(child, items, &folder),
            None => self.fill(child, &parse(&file).items, &folder),
        }
    }

    /// The module in which what `path` names is defined; none of another crate's, or of a module as such.
    fn definition(&self, from: usize, path: &[String], depth: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let module = &self.0[from];
        match first.as_str() {
            "crate" => self.within(0, rest, depth),
            "self" => self.within(from, rest, depth),
            "super" => self.definition(module.parent?, &[&["self".to_owned()], rest].concat(), depth),
            name if module.children.contains_key(name) || module.items.contains(name) => {
                self.within(from, path, depth)
            }
            name => {
                let import = module.imports.get(name)?;
                if depth == 0 { None } else { self.definition(from, &[import, rest].concat(), depth - 1) }
            }
        }
    }

    fn within(&self, at: usize, path: &[String], depth: usize) -> Option<usize> {
        let module = &self.0[at];
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "super" => return self.within(module.parent?, rest, depth),
            "self" => return self.within(at, rest, depth),
            _ => {}
        }
        if module.items.contains(first) || depth == 0 {
            return Some(at);
        }
        if let Some(&child) = module.children.get(first) {
            return self.within(child, rest, depth);
        }
        if let Some(import) = module.imports.get(first) {
            return self.definition(at, &[import, rest].concat(), depth - 1);
        }
        let globs = module.globs.iter();
        let through = |glob: &Vec<String>| {
            let found = self.definition(at, &[glob, path].concat(), depth - 1)?;
            self.0[found].items.contains(first).then_some(found)
        };
        globs.filter(|glob| glob[0] != "crate" || depth > 1).find_map(through)
    }

    /// From file to file, with the names that tie them.
    fn edges(&self) -> BTreeMap<(&Path, &Path), BTreeSet<String>> {
        let mut edges = BTreeMap::<_, BTreeSet<_>>::new();
        for (index, module) in self.0.iter().enumerate() {
            for path in &module.paths {
                let Some(definition) = self.definition(index, path, 8) else { continue };
                let to = self.0[definition].file.as_path();
                if !is_part_of(&module.file, to) {
                    let name = path.last().unwrap().clone();
                    edges.entry((module.file.as_path(), to)).or_default().insert(name);
                }
            }
        }
        edges
    }
}

/// Whether `to` is a file that `from` was split from: a part may use what the whole has, as Rust's privacy lets it.
fn is_part_of(from: &Path, to: &Path) -> bool {
    from.with_extension("").starts_with(to.with_extension(""))
}

impl Module {
    fn import(&mut self, import: &ItemUse) {
        let mut found = Vec::new();
        flatten(&import.tree, &[], &mut found);
        for (path, name) in found {
            if name == "*" {
                self.globs.push(path);
                continue;
            }
            if matches!(import.vis, Visibility::Inherited) {
                self.paths.push(path.clone());
            }
            self.imports.insert(name, path);
        }
    }

    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.paths.push(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => self.scan(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => colons = 0,
            }
        }
        self.paths.push(path);
        self.paths.retain(|path| path.len() > 1);
    }
}

impl<'ast> Visit<'ast> for Module {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 && path.leading_colon.is_none() {
            self.paths.push(names);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.scan(call.tokens.clone());
    }

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        self.import(import);
    }
}

fn flatten(tree: &UseTree, before: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &with(&path.ident), found),
        UseTree::Name(name) if name.ident == "self" => {
            found.extend(before.last().map(|last| (before.to_vec(), last.clone())));
        }
        UseTree::Name(name) => found.push((with(&name.ident), name.ident.to_string())),
        UseTree::Rename(rename) => found.push((with(&rename.ident), rename.rename.to_string())),
        UseTree::Glob(_) => found.push((before.to_vec(), "*".to_owned())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, found)),
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    let says_test = |meta: &Meta| matches!(meta, Meta::List(list) if list.path.is_ident("cfg") && list.tokens.to_string() == "test");
    attributes.iter().any(|attribute| says_test(&attribute.meta))
}

fn parse(file: &Path) -> File {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    syn::parse_file(&text).unwrap()
}

/// Each set of files that reach one another, with the edges within it.
fn circles(all: &Crate) -> Vec<String> {
    let edges = all.edges();
    let mut reach: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
    for (from, to) in edges.keys() {
        reach.entry(from).or_default().insert(to);
    }
    // Until nothing new is reached: some dozens of files a crate.
    loop {
        let further: Vec<_> = reach
            .iter()
            .flat_map(|(from, tos)| {
                tos.iter().filter_map(|to| reach.get(to)).flatten().map(|to| (*from, *to))
            })
            .filter(|(from, to)| !reach[from].contains(to))
            .collect();
        if further.is_empty() {
            break;
        }
        for (from, to) in further {
            reach.entry(from).or_default().insert(to);
        }
    }
    let both = |a: &Path, b: &Path| {
        reach.get(a).is_some_and(|to| to.contains(b)) && reach.get(b).is_some_and(|to| to.contains(a))
    };
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for file in reach.keys().copied() {
        if !both(file, file) || !seen.insert(file) {
            continue;
        }
        let within: Vec<_> = edges.iter().filter(|((a, b), _)| both(file, a) && both(file, b)).collect();
        seen.extend(within.iter().flat_map(|((a, b), _)| [*a, *b]));
        let short =
            |path: &Path| path.strip_prefix(root().join("crates")).unwrap_or(path).display().to_string();
        let files: BTreeSet<_> = within.iter().flat_map(|((a, b), _)| [short(a), short(b)]).collect();
        let lines =
            within.iter().map(|((a, b), names)| format!("    {} -> {}: {names:?}", short(a), short(b)));
        circles.push(format!("{} files {files:?}\n{}", files.len(), lines.collect::<Vec<_>>().join("\n")));
    }
    circles
}

//! The paths that a Rust file names, from its syntax tree: `use` trees taken apart, macro bodies read as tokens, test modules
//! left out.

use syn::visit::{self, Visit};

/// All paths that the text names, segments joined with `::`; globs end in `*`.
pub(crate) fn paths(name: &str, text: &str) -> Vec<String> {
    let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut found = Found(Vec::new());
    found.visit_file(&file);
    found.0
}

struct Found(Vec<String>);

impl<'ast> Visit<'ast> for Found {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            flatten(&item.tree, String::new(), &mut self.0);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.0.push(segments.join("::"));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        visit::visit_macro(self, item);
        let tokens = item.tokens.to_string().replace(" :: ", "::");
        let words = tokens.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'));
        self.0.extend(words.filter(|word| word.contains("::")).map(str::to_owned));
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_cfg_test = |attribute: &syn::Attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        meta => meta.path().is_ident("test"),
    };
    attributes.iter().any(is_cfg_test)
}

fn flatten(tree: &syn::UseTree, before: String, found: &mut Vec<String>) {
    let join =
        |name: &dyn std::fmt::Display| if before.is_empty() { name.to_string() } else { format!("{before}::{name}") };
    match tree {
        syn::UseTree::Path(path) => flatten(&path.tree, join(&path.ident), found),
        syn::UseTree::Name(name) if name.ident == "self" => found.push(before),
        syn::UseTree::Name(name) => found.push(join(&name.ident)),
        syn::UseTree::Rename(rename) => found.push(join(&rename.ident)),
        syn::UseTree::Glob(_) => found.push(join(&'*')),
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| flatten(item, before.clone(), found)),
    }
}

/// Whether `path` is `root` or inside it.
pub(crate) fn is_within(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[test]
fn every_way_to_name_a_path_is_seen() {
    let text = "
        use std::{fs::File, io::{self, Read as R}, net::*};
        fn f() { let a = std::env::var(\"x\"); println!(\"{:?}\", std::process::id()); }
        #[cfg(test)] mod tests { use std::thread; fn g() { std::time::Instant::now(); } }
    ";
    let found = paths("sample", text);
    for path in ["std::fs::File", "std::io", "std::io::Read", "std::net::*", "std::env::var", "std::process::id"] {
        assert!(found.iter().any(|other| other == path), "{path} is not in {found:?}");
    }
    assert!(!found.iter().any(|path| path.starts_with("std::thread") || path.starts_with("std::time")), "{found:?}");
    assert!(
        is_within("std::fs::File", "std::fs") && is_within("std::fs", "std::fs") && !is_within("std::fsx", "std::fs")
    );
}

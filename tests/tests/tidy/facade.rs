//! What editors link can be named by them: every type of ours that is reachable from a public signature of `tidegate` is exported by its
//! root or by one of its public modules.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};

use crate::tree::{File, files};
use crate::{bites, hold};

/// The crates whose types the facade exports, by the name that code uses, and where their sources are.
const CRATES: [(&str, &str); 13] = [
    ("tidegate", "host/tidegate/src/"),
    ("flow", "host/flow/src/"),
    ("rules", "rules/src/"),
    ("record", "host/record/src/"),
    ("guard", "host/guard/src/"),
    ("turn", "host/turn/src/"),
    ("chat", "host/chat/src/"),
    ("config", "host/config/src/"),
    ("sandbox", "host/sandbox/src/"),
    ("tools", "host/tools/src/"),
    ("providers", "host/providers/src/"),
    ("wire", "host/wire/src/"),
    ("telemetry", "host/telemetry/src/"),
];

/// The root of the facade.
const ROOT: &str = "host/tidegate/src/lib.rs";

/// A type: its crate, and its name there.
type Name = (String, String);

/// Public types and what is reachable from each.
#[derive(Default)]
struct Surface {
    reaches: BTreeMap<Name, BTreeSet<Name>>,
    exports: BTreeSet<Name>,
}

/// The names that `use` gives a file, each with the type it means.
struct Scope<'a> {
    own: &'a str,
    used: BTreeMap<String, Name>,
}

fn crate_of(word: &str) -> Option<&'static str> {
    CRATES.iter().map(|(name, _)| *name).find(|name| *name == word)
}

impl Scope<'_> {
    /// The type that a path means, where it is one of ours.
    fn resolve(&self, path: &syn::Path) -> Option<Name> {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let last = words.last()?.clone();
        match words.first()?.as_str() {
            "crate" | "self" | "super" if words.len() > 1 => Some((self.own.to_owned(), last)),
            _ if words.len() == 1 => Some(self.used.get(&last).cloned().unwrap_or((self.own.to_owned(), last))),
            first => crate_of(first).map(|owner| (owner.to_owned(), last)),
        }
    }

    fn take_use(&mut self, tree: &syn::UseTree, before: &[String]) {
        let mut name = |ident: &syn::Ident, local: &syn::Ident| {
            let owner = match before.first().map(String::as_str) {
                Some("crate" | "self" | "super") => Some(self.own),
                Some(first) => crate_of(first),
                None => None,
            };
            // A name from elsewhere hides one of the own crate.
            self.used.insert(local.to_string(), (owner.unwrap_or_default().to_owned(), ident.to_string()));
        };
        match tree {
            syn::UseTree::Name(one) => name(&one.ident, &one.ident),
            syn::UseTree::Rename(one) => name(&one.ident, &one.rename),
            syn::UseTree::Path(path) => self.take_use(&path.tree, &[before, &[path.ident.to_string()]].concat()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.take_use(tree, before)),
            syn::UseTree::Glob(_) => {}
        }
    }
}

/// Collects the types that a signature names.
struct Types<'a> {
    scope: &'a Scope<'a>,
    found: BTreeSet<Name>,
}

impl<'ast> Visit<'ast> for Types<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.found.extend(self.scope.resolve(path));
        visit::visit_path(self, path);
    }

    // Bodies are not part of a signature.
    fn visit_block(&mut self, _: &'ast syn::Block) {}

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

fn is_public(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

impl Surface {
    fn read(files: &[File]) -> Self {
        let (mut surface, mut renamed) = (Self::default(), BTreeMap::new());
        let modules = public_modules(files);
        for (own, folder) in CRATES {
            for file in files.iter().filter(|file| file.is_rust() && file.path.starts_with(folder)) {
                let parsed = syn::parse_file(&file.text).unwrap_or_else(|error| panic!("{}: {error}", file.path));
                let mut scope = Scope { own, used: BTreeMap::new() };
                for item in &parsed.items {
                    if let syn::Item::Use(one) = item {
                        scope.take_use(&one.tree, &[]);
                    }
                }
                parsed.items.iter().for_each(|item| surface.take(item, &scope));
                if own == "tidegate" && is_public_module(&file.path, &modules) {
                    surface.exports.extend(exported(own, &parsed.items).into_values());
                } else if file.path == format!("{folder}lib.rs") {
                    let names = exported(own, &parsed.items);
                    renamed.extend(names.into_iter().map(|(name, meant)| ((own.to_owned(), name), meant)));
                }
            }
        }
        // A crate that is exported as a module is exported with all that its root exports.
        let modules: Vec<_> = surface.exports.iter().filter_map(|(_, name)| crate_of(name)).collect();
        surface.exports.extend(renamed.keys().filter(|(own, _)| modules.contains(&own.as_str())).cloned());
        // A crate can export a type under another name, or that of a crate below it.
        let meant = |name: &Name| renamed.get(name).unwrap_or(name).clone();
        surface.exports = surface.exports.iter().map(meant).collect();
        surface
    }

    fn reach(&mut self, from: Name, scope: &Scope<'_>, visit: impl FnOnce(&mut Types<'_>)) {
        let mut types = Types { scope, found: BTreeSet::new() };
        visit(&mut types);
        types.found.remove(&from);
        self.reaches.entry(from).or_default().extend(types.found);
    }

    /// A definition, or methods. Private fields and methods show nothing.
    fn take(&mut self, item: &syn::Item, scope: &Scope<'_>) {
        let own = |ident: &syn::Ident| (scope.own.to_owned(), ident.to_string());
        match item {
            syn::Item::Struct(one) if is_public(&one.vis) => self.reach(own(&one.ident), scope, |types| {
                one.fields.iter().filter(|field| is_public(&field.vis)).for_each(|field| types.visit_type(&field.ty));
            }),
            syn::Item::Enum(one) if is_public(&one.vis) => self.reach(own(&one.ident), scope, |types| {
                one.variants.iter().flat_map(|variant| &variant.fields).for_each(|field| types.visit_type(&field.ty));
            }),
            syn::Item::Trait(one) if is_public(&one.vis) => {
                self.reach(own(&one.ident), scope, |types| types.visit_item_trait(one));
            }
            syn::Item::Type(one) if is_public(&one.vis) => {
                self.reach(own(&one.ident), scope, |types| types.visit_type(&one.ty));
            }
            syn::Item::Impl(one) if one.trait_.is_none() => {
                let syn::Type::Path(path) = &*one.self_ty else { return };
                let Some(name) = scope.resolve(&path.path) else { return };
                self.reach(name, scope, |types| {
                    let methods = one.items.iter().filter_map(|item| match item {
                        syn::ImplItem::Fn(method) if is_public(&method.vis) => Some(&method.sig),
                        _ => None,
                    });
                    methods.for_each(|signature| types.visit_signature(signature));
                });
            }
            _ => {}
        }
    }

    /// Types that are reachable from an export and are none.
    fn findings(&self, defined: &BTreeSet<Name>) -> Vec<String> {
        let mut findings = BTreeSet::new();
        for from in &self.exports {
            for to in self.reaches.get(from).into_iter().flatten() {
                if defined.contains(to) && !self.exports.contains(to) {
                    findings.insert(format!(
                        "{}::{} shows {}::{}, which no public module of `tidegate` exports",
                        from.0, from.1, to.0, to.1
                    ));
                }
            }
        }
        findings.into_iter().collect()
    }
}

/// The public modules of the facade, which its root declares.
fn public_modules(files: &[File]) -> BTreeSet<String> {
    let root = files.iter().find(|file| file.path == ROOT);
    let parsed = root.and_then(|root| syn::parse_file(&root.text).ok());
    let modules = parsed.into_iter().flat_map(|parsed| parsed.items).filter_map(|item| match item {
        syn::Item::Mod(one) if is_public(&one.vis) => Some(one.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

/// Whether a file of the facade is its root or the file of a public module.
fn is_public_module(path: &str, modules: &BTreeSet<String>) -> bool {
    let own = path.trim_start_matches("host/tidegate/src/");
    let module = own.strip_suffix("/mod.rs").or_else(|| own.strip_suffix(".rs"));
    path == ROOT || module.is_some_and(|module| modules.contains(module))
}

/// The names that a crate's root or module exports, each with the type it means.
fn exported(own: &str, items: &[syn::Item]) -> BTreeMap<String, Name> {
    let mut scope = Scope { own, used: BTreeMap::new() };
    // One of them can have the name of a crate, which is then not meant.
    let is_module = |name: &str| items.iter().any(|item| matches!(item, syn::Item::Mod(one) if one.ident == name));
    for item in items {
        let syn::Item::Use(one) = item else { continue };
        // Modules of the crate are named without `crate`.
        let of_ours = |tree: &syn::UseTree| {
            let first = if let syn::UseTree::Path(path) = tree { path.ident.to_string() } else { String::new() };
            first == "crate" || (crate_of(&first).is_some() && !is_module(&first))
        };
        let before =
            if one.leading_colon.is_some() || of_ours(&one.tree) { Vec::new() } else { vec!["crate".to_owned()] };
        if is_public(&one.vis) {
            scope.take_use(&one.tree, &before);
        }
    }
    for ident in items.iter().filter_map(defined) {
        scope.used.insert(ident.to_string(), (own.to_owned(), ident.to_string()));
    }
    scope.used
}

/// The name of a public type that an item defines.
fn defined(item: &syn::Item) -> Option<&syn::Ident> {
    let (visibility, ident) = match item {
        syn::Item::Struct(one) => (&one.vis, &one.ident),
        syn::Item::Enum(one) => (&one.vis, &one.ident),
        syn::Item::Trait(one) => (&one.vis, &one.ident),
        syn::Item::Type(one) => (&one.vis, &one.ident),
        _ => return None,
    };
    is_public(visibility).then_some(ident)
}

fn facade(files: &[File]) -> (usize, Vec<String>) {
    let surface = Surface::read(files);
    let defined: BTreeSet<Name> = surface.reaches.keys().cloned().collect();
    (surface.exports.len(), surface.findings(&defined))
}

#[test]
fn every_type_that_the_facade_shows_can_be_named() {
    let (read, findings) = facade(&files());
    hold("facade", read, 120, &findings);
}

/// The names at the facade's root, its modules left out.
fn root_names(files: &[File]) -> usize {
    let root = files.iter().find(|file| file.path == ROOT).and_then(|root| syn::parse_file(&root.text).ok());
    root.map_or(0, |root| exported("tidegate", &root.items).len())
}

/// A reader takes in about this many at once; everything else has a subject, and a module for it.
#[test]
fn the_root_of_the_facade_is_short() {
    let names = root_names(&files());
    assert!((15..=28).contains(&names), "{ROOT} exports {names} names: move some to the module of their subject");
}

#[test]
fn a_type_that_cannot_be_named_is_found() {
    let lib = |exports: &str| File::sample("host/tidegate/src/lib.rs", exports);
    let event = File::sample(
        "host/flow/src/event.rs",
        "use crate::place::Place; pub struct Event { pub at: Option<Place>, kept: Kept }",
    );
    let place = File::sample("host/flow/src/place.rs", "pub struct Place; pub struct Kept; pub struct Other;");
    let method = File::sample(
        "host/turn/src/a.rs",
        "pub struct T; impl T { pub fn f(&self) -> Vec<flow::Other> { todo!() } fn g(_: flow::Kept) {} }",
    );
    let all = |exports| [lib(exports), event_of(&event), event_of(&place), event_of(&method)];
    bites(&facade(&all("pub use flow::{Event};")).1, "flow::Event shows flow::Place");
    assert!(facade(&all("pub use flow::{Event, Place};")).1.is_empty());
    assert!(facade(&all("pub use flow::{Event, Place as Position};")).1.is_empty());
    bites(&facade(&all("pub use turn::T;")).1, "turn::T shows flow::Other");
    let module = File::sample("host/turn/src/lib.rs", "mod flow; pub use flow::{Other, T};");
    let both = [lib("pub use turn::{T, Other};"), event_of(&place), event_of(&method), module];
    bites(&facade(&both).1, "turn::T shows flow::Other");
    let turn = File::sample("host/turn/src/lib.rs", "pub use a::T;");
    let whole = |exports| [lib(exports), event_of(&place), event_of(&method), event_of(&turn)];
    bites(&facade(&whole("pub use turn;")).1, "turn::T shows flow::Other");
    assert!(facade(&whole("pub use turn; pub use flow::Other;")).1.is_empty());
    let module = |text: &str| File::sample("host/tidegate/src/event.rs", text);
    let with_module = |root, text| [lib(root), module(text), event_of(&event), event_of(&place)];
    bites(&facade(&with_module("pub mod event;", "pub use flow::Event;")).1, "flow::Event shows flow::Place");
    bites(
        &facade(&with_module("mod event; pub use flow::Event;", "pub use flow::Place;")).1,
        "flow::Event shows flow::Place",
    );
    assert!(facade(&with_module("pub mod event; pub use flow::Event;", "pub use flow::Place;")).1.is_empty());
    assert!(
        facade(&with_module("pub mod event; pub use ::flow::Event;", "pub struct Own; pub use ::flow::Place;"))
            .1
            .is_empty()
    );
    let own = File::sample("host/tidegate/src/host.rs", "use flow::Place; pub struct Host { pub at: Place }");
    bites(
        &facade(&[lib("mod host; pub use host::Host;"), own, event_of(&place)]).1,
        "tidegate::Host shows flow::Place",
    );
}

fn event_of(file: &File) -> File {
    File::sample(&file.path, &file.text)
}

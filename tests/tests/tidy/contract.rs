//! The contract is its own manual: every item of `sdk/wit` has a doc comment.

use std::path::Path;

use wit_parser::{Docs, Resolve, TypeDefKind};

use crate::tree::root;
use crate::{bites, hold};

/// How many items a package has, and those without a doc comment.
fn undocumented(resolve: &Resolve, package: wit_parser::PackageId) -> (usize, Vec<String>) {
    let mut check = Check::default();
    let package = &resolve.packages[package];
    for (name, id) in &package.worlds {
        check.item(name, &resolve.worlds[*id].docs);
    }
    for (name, id) in &package.interfaces {
        let interface = &resolve.interfaces[*id];
        check.item(name, &interface.docs);
        for (function, value) in &interface.functions {
            check.item(&format!("{name}.{function}"), &value.docs);
        }
        for (type_name, id) in &interface.types {
            check.type_definition(&format!("{name}.{type_name}"), &resolve.types[*id]);
        }
    }
    (check.read, check.findings)
}

#[derive(Default)]
struct Check {
    read: usize,
    findings: Vec<String>,
}

impl Check {
    fn item(&mut self, name: &str, docs: &Docs) {
        self.read += 1;
        if docs.contents.as_deref().is_none_or(|words| words.trim().is_empty()) {
            self.findings.push(format!("{name} has no doc comment"));
        }
    }

    fn type_definition(&mut self, name: &str, definition: &wit_parser::TypeDef) {
        // A `use` of another interface's type is documented there.
        if matches!(&definition.kind, TypeDefKind::Type(wit_parser::Type::Id(_))) {
            return;
        }
        self.item(name, &definition.docs);
        let mut part = |part: &str, docs: &Docs| self.item(&format!("{name}.{part}"), docs);
        match &definition.kind {
            TypeDefKind::Record(record) => record.fields.iter().for_each(|field| part(&field.name, &field.docs)),
            TypeDefKind::Variant(variant) => variant.cases.iter().for_each(|case| part(&case.name, &case.docs)),
            TypeDefKind::Enum(cases) => cases.cases.iter().for_each(|case| part(&case.name, &case.docs)),
            TypeDefKind::Flags(flags) => flags.flags.iter().for_each(|flag| part(&flag.name, &flag.docs)),
            _ => {}
        }
    }
}

fn parse(folder: &Path) -> (usize, Vec<String>) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(folder).unwrap_or_else(|error| panic!("{}: {error:#}", folder.display()));
    undocumented(&resolve, package)
}

#[test]
fn every_item_of_the_contract_is_documented() {
    let versions = std::fs::read_dir(root().join("sdk/wit")).unwrap().map(|entry| entry.unwrap().path());
    let versions: Vec<_> = versions.filter(|path| path.is_dir()).collect();
    assert!(!versions.is_empty());
    for version in versions {
        let (read, findings) = parse(&version);
        hold(&format!("contract {}", version.display()), read, 80, &findings);
    }
}

#[test]
fn a_missing_doc_comment_is_found() {
    let check = |text: &str| {
        let mut resolve = Resolve::default();
        let package = resolve.push_str("sample.wit", text).unwrap();
        undocumented(&resolve, package)
    };
    let inside = |body: &str| check(&format!("package a:b;\n/// I.\ninterface i {{ {body} }}"));
    bites(&check("package a:b;\ninterface i {}").1, "i has no doc comment");
    bites(&check("package a:b;\nworld w {}").1, "w has no doc comment");
    bites(&inside("f: func();").1, "i.f has no");
    bites(&inside("/// R.\nrecord r { x: u8 }").1, "i.r.x has no");
    bites(&inside("/// V.\nvariant v { /// A.\na, b(u8) }").1, "i.v.b has no");
    bites(&inside("/// E.\nenum e { a }").1, "i.e.a has no");
    bites(&inside("/// F.\nflags f { a }").1, "i.f.a has no");
    bites(&inside("type t = u8;").1, "i.t has no");
    assert_eq!(inside("/// F.\nf: func();"), (2, Vec::new()));
}

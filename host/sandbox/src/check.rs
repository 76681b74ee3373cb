//! What a file is, and what a component takes and offers, held against what it may.

use std::collections::BTreeSet;

use flow::CallbackKind;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::error::LoadProblem;
use crate::limits::COMPONENT_MAX_BYTES;
use crate::power::Power;
use crate::v0_1;

/// Looks at the first bytes: a component, and none too large to be looked at further.
pub(crate) fn header(bytes: &[u8]) -> Result<(), LoadProblem> {
    if bytes.len() as u64 > COMPONENT_MAX_BYTES {
        return Err(LoadProblem::TooLarge { bytes: bytes.len() as u64, max: COMPONENT_MAX_BYTES });
    }
    let Some(rest) = bytes.strip_prefix(b"\0asm") else {
        let found = bytes.get(..bytes.len().min(16)).unwrap_or_default();
        return Err(LoadProblem::NotWasm { found: String::from_utf8_lossy(found).into_owned() });
    };
    // Version 1 in layer 0 is a core module; components are layer 1.
    match rest {
        [1, 0, 0, 0, ..] => Err(LoadProblem::CoreModule),
        _ => Ok(()),
    }
}

/// What a component takes and offers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Surface {
    pub(crate) powers: BTreeSet<Power>,
    pub(crate) callbacks: BTreeSet<CallbackKind>,
}

/// Reads the names of a component's imports and exports; all must be known.
pub(crate) fn surface(component: &Component, engine: &Engine) -> Result<Surface, LoadProblem> {
    let ty = component.component_type();
    let imports: Vec<&str> = ty.imports(engine).map(|(name, _)| name).collect();
    let exports: Vec<&str> = ty.exports(engine).map(|(name, _)| name).collect();
    for name in imports.iter().chain(&exports) {
        version(name)?;
    }
    let mut found = Surface { powers: BTreeSet::new(), callbacks: BTreeSet::new() };
    for name in imports {
        match interface(name) {
            Some("types") => {}
            Some(known) if Power::from_name(known).is_some() => found.powers.extend(Power::from_name(known)),
            _ => return Err(LoadProblem::UnknownImport { name: name.to_owned(), hint: hint(name) }),
        }
    }
    let mut registers = false;
    for name in exports {
        match interface(name) {
            None | Some("types") => {}
            Some(v0_1::REGISTRATION) => registers = true,
            Some(known) => match CallbackKind::ALL.into_iter().find(|kind| v0_1::interface(*kind) == known) {
                Some(kind) => _ = found.callbacks.insert(kind),
                None => {
                    return Err(LoadProblem::UnknownExport { name: name.to_owned(), spoken: v0_1::VERSION });
                }
            },
        }
    }
    if registers { Ok(found) } else { Err(LoadProblem::NoRegistration { expected: full(v0_1::REGISTRATION) }) }
}

/// The name of an interface of the contract with package and version.
pub(crate) fn full(interface: &str) -> String {
    format!("{}/{interface}@{}", v0_1::PACKAGE, v0_1::VERSION)
}

/// The interface that a name of our package names.
fn interface(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(v0_1::PACKAGE)?.strip_prefix('/')?;
    Some(rest.split_once('@').map_or(rest, |(interface, _)| interface))
}

/// A name of our package must carry the version we speak.
fn version(name: &str) -> Result<(), LoadProblem> {
    if interface(name).is_none() {
        return Ok(());
    }
    let found = name.split_once('@').map_or("none", |(_, version)| version);
    if found == v0_1::VERSION {
        return Ok(());
    }
    Err(LoadProblem::WrongContract { found: found.to_owned(), name: name.to_owned(), spoken: v0_1::VERSION })
}

fn hint(name: &str) -> &'static str {
    if name.starts_with("wasi:") {
        "extensions have no WASI: build for wasm32-unknown-unknown, and for other languages with WASI stubbed out"
    } else {
        "extensions may import `log`, `session`, `settings`, `state` and `tools` of the contract, nothing else"
    }
}

/// Each power a component imports must be asked for by its manifest and granted by the operator.
pub(crate) fn powers(
    imported: &BTreeSet<Power>,
    asked: &BTreeSet<Power>,
    granted: &BTreeSet<Power>,
) -> Result<(), LoadProblem> {
    for &power in imported.iter().filter(|power| !power.always_granted()) {
        if !asked.contains(&power) {
            return Err(LoadProblem::PowerNotAsked { power });
        }
        if !granted.contains(&power) {
            return Err(LoadProblem::PowerNotGranted { power });
        }
    }
    Ok(())
}

/// Exports, registration and (where it says something) the manifest must name the same callbacks.
pub(crate) fn callbacks(
    exported: &BTreeSet<CallbackKind>,
    registered: &BTreeSet<CallbackKind>,
    declared: Option<&BTreeSet<CallbackKind>>,
) -> Result<(), LoadProblem> {
    let interface = |callback| full(v0_1::interface(callback));
    if let Some(&callback) = registered.difference(exported).next() {
        return Err(LoadProblem::NotExported { callback, interface: interface(callback) });
    }
    if let Some(&callback) = exported.difference(registered).next() {
        return Err(LoadProblem::NotRegistered { callback, interface: interface(callback) });
    }
    let Some(declared) = declared else { return Ok(()) };
    if let Some(&callback) = declared.difference(registered).next() {
        return Err(LoadProblem::OnlyDeclared { callback });
    }
    match registered.difference(declared).next() {
        Some(&callback) => Err(LoadProblem::NotDeclared { callback }),
        None => Ok(()),
    }
}

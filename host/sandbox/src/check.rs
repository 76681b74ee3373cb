//! What a file is, and what a component takes and offers, held against what it may.

use std::collections::BTreeSet;

use flow::{CallbackKind, Power};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::error::LoadProblem;
use crate::interface::Interface;
use crate::limits::COMPONENT_MAX_BYTES;
use crate::v0_1;

/// Whether a component of this size is read.
pub(crate) fn size(bytes: u64) -> Result<(), LoadProblem> {
    if bytes > COMPONENT_MAX_BYTES {
        return Err(LoadProblem::TooLarge { bytes, max: COMPONENT_MAX_BYTES });
    }
    Ok(())
}

/// Looks at the first bytes: whether it is a component.
pub(crate) fn header(bytes: &[u8]) -> Result<(), LoadProblem> {
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
    pub(crate) imports: BTreeSet<Interface>,
    pub(crate) callbacks: BTreeSet<CallbackKind>,
    /// It exports `tool-provider`.
    pub(crate) provides_tools: bool,
    /// It exports `migration`.
    pub(crate) migrates: bool,
}

/// Reads the names of a component's imports and exports; all must be known.
pub(crate) fn surface(component: &Component, engine: &Engine) -> Result<Surface, LoadProblem> {
    let ty = component.component_type();
    let imports: Vec<&str> = ty.imports(engine).map(|(name, _)| name).collect();
    let exports: Vec<&str> = ty.exports(engine).map(|(name, _)| name).collect();
    for name in imports.iter().chain(&exports) {
        version(name)?;
    }
    let mut found =
        Surface { imports: BTreeSet::new(), callbacks: BTreeSet::new(), provides_tools: false, migrates: false };
    for name in imports {
        match interface(name) {
            Some("types") => {}
            Some(known) if Interface::from_name(known).is_some() => found.imports.extend(Interface::from_name(known)),
            _ => return Err(LoadProblem::UnknownImport { name: name.to_owned(), hint: hint(name) }),
        }
    }
    let mut registers = false;
    for name in exports {
        match interface(name) {
            None | Some("types") => {}
            Some(v0_1::REGISTRATION) => registers = true,
            Some(v0_1::TOOL_PROVIDER) => found.provides_tools = true,
            Some(v0_1::MIGRATION) => found.migrates = true,
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

/// An interface of our package must have a version that this host supports.
fn version(name: &str) -> Result<(), LoadProblem> {
    if interface(name).is_none() {
        return Ok(());
    }
    let found = name.split_once('@').map_or("none", |(_, version)| version);
    if supports(v0_1::VERSION, found) {
        return Ok(());
    }
    let newer = newer(v0_1::VERSION, found);
    Err(LoadProblem::WrongContract { found: found.to_owned(), name: name.to_owned(), spoken: v0_1::VERSION, newer })
}

/// Whether a host of version `own` runs what was built for `found`: the same minor version, and a patch version that is not
/// newer. Types never change within a minor version, and interfaces only grow.
fn supports(own: &str, found: &str) -> bool {
    match (parts(own), parts(found)) {
        (Some(own), Some(found)) => own[..2] == found[..2] && found[2] <= own[2],
        _ => false,
    }
}

/// Whether a newer host would run what was built for `found`, and this one does not.
fn newer(own: &str, found: &str) -> bool {
    parts(own).zip(parts(found)).is_some_and(|(own, found)| found > own)
}

/// The three numbers of a version. Anything else, such as a pre-release, is not a version of the contract.
fn parts(version: &str) -> Option<[u32; 3]> {
    let number = |part: &str| part.parse().ok().filter(|number: &u32| number.to_string() == part);
    let parts: Vec<u32> = version.split('.').map(number).collect::<Option<_>>()?;
    parts.try_into().ok()
}

fn hint(name: &str) -> &'static str {
    if name.starts_with("wasi:") {
        "extensions have no WASI: build for wasm32-unknown-unknown, and for other languages with WASI stubbed out"
    } else {
        "extensions may import `clock`, `events`, `history`, `log`, `random`, `session`, `settings`, `state`, `tool-progress` and `tools` \
         of the contract, nothing else"
    }
}

/// Each power that a component's imports and exports need must be asked for by its manifest and granted by the operator.
pub(crate) fn powers(surface: &Surface, asked: &BTreeSet<Power>, granted: &BTreeSet<Power>) -> Result<(), LoadProblem> {
    let imported = surface.imports.iter().filter_map(|interface| Some((interface.power()?, "imports the power")));
    let exported =
        surface.provides_tools.then_some((Power::ProvideTools, "exports `tool-provider`, and so needs the power"));
    for (power, how) in imported.chain(exported) {
        if !asked.contains(&power) {
            return Err(LoadProblem::PowerNotAsked { power, how });
        }
        if !granted.contains(&power) {
            return Err(LoadProblem::PowerNotGranted { power });
        }
    }
    Ok(())
}

/// Exports, registration and (if it declares callbacks) the manifest must name the same callbacks.
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

#[cfg(test)]
mod tests {
    use super::{newer, supports};

    #[test]
    fn a_host_runs_what_was_built_for_its_minor_version_up_to_its_own() {
        for found in ["0.1.0", "0.1.1", "0.1.3"] {
            assert!(supports("0.1.3", found), "{found}");
        }
        for found in [
            "0.1.4",
            "0.1.30",
            "0.2.0",
            "0.0.3",
            "1.1.3",
            "0.1",
            "0.1.3.0",
            "0.1.3-rc1",
            "0.1.03",
            "+0.1.3",
            "none",
            "",
        ] {
            assert!(!supports("0.1.3", found), "{found}");
        }
        assert!(newer("0.1.3", "0.1.4") && newer("0.1.3", "0.2.0"));
        assert!(!newer("0.1.3", "0.1.2") && !newer("0.1.3", "0.0.9") && !newer("0.1.3", "none"));
    }
}

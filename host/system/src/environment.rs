//! The environment variables of the process, with those that its program has taken out of what other processes can read of it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

static TAKEN: OnceLock<BTreeMap<OsString, OsString>> = OnceLock::new();

/// Makes variables known that the program has taken out of its environment: [`variable`] and [`variables`] return them all the same. To be
/// called once, before anything is read; further calls have no effect.
pub fn add_taken(variables: impl IntoIterator<Item = (OsString, OsString)>) {
    // A second caller cannot know what was read in between.
    let _ = TAKEN.set(variables.into_iter().collect());
}

/// Returns the value of a variable.
pub fn variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    let name = name.as_ref();
    TAKEN.get().and_then(|taken| taken.get(name).cloned()).or_else(|| std::env::var_os(name))
}

/// Returns all variables, sorted by name.
pub fn variables() -> BTreeMap<OsString, OsString> {
    std::env::vars_os()
        .chain(TAKEN.get().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())))
        .collect()
}

//! From the compiler's module to a component.

use std::path::Path;

use wit_component::ComponentEncoder;

use crate::BuildError;

/// The name that the SDK's bindings give the section in which they describe themselves.
const BINDINGS_SECTION: &[u8] = b"component-type:wit-bindgen:";

/// Encodes a module into a component that exports what the extension exports and imports the powers it uses.
pub(crate) fn component(dir: &Path, module: &[u8]) -> Result<Vec<u8>, BuildError> {
    if !module.windows(BINDINGS_SECTION.len()).any(|window| window == BINDINGS_SECTION) {
        return Err(BuildError::NoExport { dir: dir.to_owned() });
    }
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| BuildError::Encode { dir: dir.to_owned(), problem: format!("{error:#}") })
}

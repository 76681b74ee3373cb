//! The only hand-written unsafe code of the host: handing authenticated native code to the engine.

use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes that this installation wrote itself: their code was checked with its private key.
pub(super) struct Verified<'a>(&'a [u8]);

impl<'a> Verified<'a> {
    /// `code` has passed the check of its HMAC.
    pub(super) fn new(code: &'a [u8]) -> Self {
        Self(code)
    }
}

/// Loads compiled code. Fails cleanly where it was made by another version or with other settings.
///
/// It takes the bytes that were checked and not their path: a file could change between the check and the load.
#[expect(clippy::needless_pass_by_value, reason = "a checked value is used once")]
#[expect(unsafe_code, reason = "compiled components are native code; see SAFETY")]
pub(super) fn load(engine: &Engine, code: Verified<'_>) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize` needs bytes that `Component::serialize` made. `Verified` is made in one place, after the
    // HMAC over exactly these bytes was verified with a key that only this user can read (mode 0600 in a folder of mode
    // 0700, both checked when the cache was opened); only `Entry::write` makes such codes, over `serialize`'s output.
    unsafe { Component::deserialize(engine, code.0) }
}

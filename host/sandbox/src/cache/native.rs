//! The only hand-written unsafe code of the host: handing authenticated native code to the engine.

use wasmtime::Engine;
use wasmtime::component::Component;

use super::sealed::Code;

/// Code that this installation wrote itself: it was checked with its private key.
pub(super) struct Verified(Code);

impl Verified {
    /// `code` has passed the check of its HMAC.
    pub(super) fn new(code: Code) -> Self {
        Self(code)
    }
}

/// Loads compiled code. Fails cleanly where it was made by another version or with other settings.
///
/// It takes the authenticated code and not its path: a file of the cache could change between the check and the load.
pub(super) fn load(engine: &Engine, Verified(code): Verified) -> wasmtime::Result<Component> {
    #[cfg(target_os = "linux")]
    if let Code::Sealed(file) = &code {
        use std::os::fd::AsRawFd as _;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: `deserialize_file` needs the same content as `deserialize` below, which nothing changes as long as the component
        // exists. The path is that of the file in memory that was checked, whose content is sealed, and `file` is open.
        #[expect(unsafe_code, reason = "compiled components are native code; see SAFETY")]
        let loaded = unsafe { Component::deserialize_file(engine, path) };
        match loaded {
            // There may be no `/proc`, and code of such a file may not be allowed to run: a buffer needs neither.
            Err(error) => tracing::debug!(%error, "a sealed component is not mapped"),
            loaded => return loaded,
        }
    }
    let bytes = code.bytes()?;
    // SAFETY: `deserialize` needs bytes that `Component::serialize` made. `Verified` is made in one place, after the
    // HMAC over exactly these bytes was verified with a key that only this user can read (mode 0600 in a folder of mode
    // 0700, both checked when the cache was opened); only `Entry::write` makes such codes, over `serialize`'s output.
    #[expect(unsafe_code, reason = "compiled components are native code; see SAFETY")]
    let loaded = unsafe { Component::deserialize(engine, bytes) };
    loaded
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use wasmtime::Engine;
    use wasmtime::component::Component;

    use super::{Code, Verified, load};

    #[test]
    fn code_in_a_buffer_is_loaded_and_what_is_none_is_refused() {
        let engine = Engine::default();
        let code = Component::new(&engine, wat::parse_str("(component)").unwrap()).unwrap().serialize().unwrap();
        assert!(load(&engine, Verified::new(Code::Bytes(code))).is_ok());
        assert!(load(&engine, Verified::new(Code::Bytes(b"no code".to_vec()))).is_err());
    }
}

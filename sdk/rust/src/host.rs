//! The powers as the rest of the crate calls them: the host's imports in a guest, memory everywhere else.

#[cfg(target_arch = "wasm32")]
mod imports;
#[cfg(not(target_arch = "wasm32"))]
mod memory;

#[cfg(target_arch = "wasm32")]
pub(crate) use imports::*;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use memory::*;

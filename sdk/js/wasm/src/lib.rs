//! The chat primitives for JavaScript: an instance takes lines of JSON and gives back what changed, never a whole state.
//!
//! The interface is two buffers and a few functions with numbers (`exports`), so that nothing but a compiler is needed to build it: no
//! generator of bindings whose version has to match. Callbacks stay on the JavaScript side: transforms, modes, hooks and policies work on
//! what an [`Output`] has.
#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]

mod action;
#[cfg(target_arch = "wasm32")]
pub mod exports;
mod instance;
mod options;
mod output;
mod primitive;
mod view;

pub use action::Action;
pub use instance::{Fed, Instance};
pub use options::Options;
pub use output::{Grown, Output, Returned, Steering, Streamed, ViewChange};

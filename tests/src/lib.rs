//! What the runners of the corpus share.

#![forbid(unsafe_code)]

#[doc(inline)]
pub use tidegate_servers as servers;

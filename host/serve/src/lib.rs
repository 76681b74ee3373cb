//! Protocols for front ends that are programs of their own. It has no logic: what a session is and does is decided by `tidegate`.
//!
//! | module | protocol |
//! |---|---|
//! | [`acp`] | the Agent Client Protocol, version 1, for editors, on standard input and output |
#![forbid(unsafe_code)]

pub mod acp;

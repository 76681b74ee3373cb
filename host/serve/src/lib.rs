//! Protocols for front ends that are programs of their own. It has no logic: what a session is and does is decided by `tidegate`.
//!
//! | module | protocol |
//! |---|---|
//! | [`acp`] | the Agent Client Protocol, version 1, for editors, on standard input and output, and on websockets |
//! | [`gateway`] | the wire formats of model providers over HTTP, for agents that have a loop of their own |
//! | [`http`] | sessions over HTTP, for front ends in browsers and in other languages |
//!
//! `conventions` has what front ends of others read and send, as state machines that `http` serves.
#![forbid(unsafe_code)]

pub mod acp;
pub mod gateway;
pub mod http;

mod conventions;
mod inbound;
mod token;

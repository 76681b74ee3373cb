#![forbid(unsafe_code)]
//! x
pub mod ports;

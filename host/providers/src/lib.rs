//! A client of the wire formats of model vendors over HTTP: addresses, keys, what a vendor refuses, recordings.
//!
//! [`connect`] makes a model of a [`ProviderConfig`]; [`check`] tests whether it can be reached. A request is encoded
//! by [`wire::encode`], sent over HTTP or answered from a recording (`recording`), and the answer goes through the same
//! [`wire::AnswerDecoder`] in both cases. Nothing is tried again here: retries belong to the turn. Dropping an answer closes its connection.
#![forbid(unsafe_code)]

mod check;
mod config;
mod http;
mod model;
mod models;
mod patience;
mod recording;
mod refused;

pub use self::check::check;
pub use self::config::{HttpConfig, ProviderConfig, ProviderError, ReplayConfig, Secret, connect};
pub use self::model::encode;
pub use self::models::context_tokens;
pub use self::recording::{
    Expect, RecordedAnswer, RecordedEnd, RecordedFire, RecordedRules, RecordingError, RecordingReader, RecordingWriter,
    RequestNumber,
};

//! Model vendors and their HTTP: the only crate that knows either.
//!
//! [`connect`] makes a model of a [`ProviderConfig`]; [`check`] tests whether it can be reached. A request is encoded
//! by the wire format's file (`anthropic`, `openai_chat`, `openai_responses`), sent over HTTP or answered from a
//! recording (`recording`), and what comes back goes through the same [`wire::AnswerDecoder`] in both cases. Nothing is tried
//! again here: retries belong to the turn. Dropping an answer closes its connection.
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

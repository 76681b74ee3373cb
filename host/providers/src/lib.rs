//! Model vendors and their HTTP: the only crate that knows either.
//!
//! [`connect`] makes a model of a [`ProviderConfig`]; [`check`] tests whether it can be reached. A request is encoded
//! by the wire format's file (`anthropic`, `openai_chat`, `openai_responses`), sent over HTTP or answered from a
//! recording (`recording`), and what comes back goes through the same [`AnswerDecoder`] in both cases. Nothing is tried
//! again here: retries belong to the turn. Dropping an answer closes its connection.
#![forbid(unsafe_code)]

mod anthropic;
mod check;
mod config;
mod conversation;
mod decode;
mod failure;
mod http;
mod limits;
mod loose;
mod model;
mod models;
mod nul;
mod openai_chat;
mod openai_responses;
mod patience;
mod recording;
mod refused;
mod schema;
mod sse;
mod surrogates;
mod wires;

pub use self::check::check;
pub use self::config::{HttpConfig, ProviderConfig, ProviderError, ReplayConfig, Secret, Wire, connect};
pub use self::decode::AnswerDecoder;
pub use self::limits::AnswerLimits;
pub use self::model::encode;
pub use self::models::context_tokens;
pub use self::recording::{
    Expect, RecordedAnswer, RecordedEnd, RecordedFire, RecordedRules, RecordingError, RecordingReader, RecordingWriter,
    RequestNumber,
};
pub use self::sse::{MAX_EVENT_BYTES, SseDecoder, SseEvent, TooLarge};

pub(crate) use self::config::Options;

//! Models: the trait that an embedder implements for its own, what a request and an answer consist of, and which errors are tried again.
//!
//! [`SessionOptions::model`](crate::SessionOptions::model) gives a session a [`Model`]; without it the operator's provider is used.

pub use flow::ports::{Model, ModelStream};
pub use flow::{
    BlockId, Classified, Delta, ErrorClass, ErrorFacts, ErrorMetadata, ErrorPattern, InvalidMessagePattern, KeySource,
    MessagePattern, ModelError, NamedSizes, ProviderKind, RetryHeader, RetryPolicy, RetryTable, RetryWait, StopReason,
    Usage,
};
pub use providers::{ProviderError, RecordingError};
pub use turn::Compaction;

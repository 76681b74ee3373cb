//! Identifiers of traces and spans: random enough never to meet, without a generator to seed.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The identifier of a trace. Never zero, which means "none".
pub(crate) type TraceId = [u8; 16];
/// The identifier of a span. Never zero.
pub(crate) type SpanId = [u8; 8];

/// Keys from the system's random numbers, once for each process.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A number: SipHash of a counter under the random keys of the process.
fn word() -> u64 {
    KEYS.hash_one(NEXT.fetch_add(1, Ordering::Relaxed)).max(1)
}

/// A random number of 128 bits.
pub(crate) fn random() -> u128 {
    u128::from(word()) << 64 | u128::from(word())
}

pub(crate) fn trace() -> TraceId {
    random().to_be_bytes()
}

pub(crate) fn span() -> SpanId {
    word().to_be_bytes()
}

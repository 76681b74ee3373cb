//! `[gateway.limits]`: what the gateway takes at most.

use std::time::Duration;

use crate::typed::GatewayLimitsFile;

/// What the gateway takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Bytes of the body of a request.
    pub body_bytes: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Bytes of one answer that are held back.
    pub held_bytes: usize,
    /// Events of one answer that are held back.
    pub held_frames: usize,
    /// Requests of one token at once; without tokens, of all clients.
    pub concurrent: u32,
    /// Open connections of clients.
    pub connections: u32,
    /// The head of a request, and each further part of its body.
    pub client_timeout: Duration,
    /// Establishing a connection to a server.
    pub connect_timeout: Duration,
    /// Silence of a server, or of a client that takes nothing.
    pub idle_timeout: Duration,
    /// A request, to the end of its answer.
    pub request_timeout: Duration,
    /// Silence to the client after which a sign of life is sent.
    pub keep_alive: Duration,
    /// What answers under way get after SIGTERM.
    pub drain: Duration,
}

impl GatewayLimits {
    pub(super) fn of(typed: &GatewayLimitsFile) -> Self {
        let bytes = |count: u64, shift: u32| usize::try_from(count << shift).unwrap_or(usize::MAX);
        Self {
            body_bytes: bytes(typed.body_mib, 20),
            head_bytes: bytes(typed.head_kib, 10),
            held_bytes: bytes(typed.held_mib, 20),
            held_frames: bytes(typed.held_frames, 0),
            concurrent: typed.concurrent,
            connections: typed.connections,
            client_timeout: Duration::from_millis(typed.client_timeout_ms),
            connect_timeout: Duration::from_millis(typed.connect_timeout_ms),
            idle_timeout: Duration::from_millis(typed.idle_timeout_ms),
            request_timeout: Duration::from_millis(typed.request_timeout_ms),
            keep_alive: Duration::from_millis(typed.keep_alive_ms),
            drain: Duration::from_millis(typed.drain_ms),
        }
    }
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self::of(&GatewayLimitsFile::default())
    }
}

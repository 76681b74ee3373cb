//! `[gateway.limits]`: the limits of the gateway.

use std::time::Duration;

use crate::typed::GatewayLimitsFile;

/// The limits of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// The maximum size of a request body in bytes.
    pub body_bytes: usize,
    /// The maximum size of a request head in bytes.
    pub head_bytes: usize,
    /// The maximum number of bytes of one answer that are held back.
    pub held_bytes: usize,
    /// The maximum number of events of one answer that are held back.
    pub held_frames: usize,
    /// The maximum number of concurrent requests of each token; without tokens, of all clients.
    pub concurrent: u32,
    /// The maximum number of open connections of clients.
    pub connections: u32,
    /// The time limit for the head of a request, and for each further part of its body.
    pub client_timeout: Duration,
    /// The time limit for connecting to a server.
    pub connect_timeout: Duration,
    /// The time limit for a server that sends nothing, or a client that receives nothing.
    pub idle_timeout: Duration,
    /// The time limit for a request, up to the end of its answer.
    pub request_timeout: Duration,
    /// The time without bytes to the client after which a keep-alive is sent.
    pub keep_alive: Duration,
    /// The time limit for answers under way after SIGTERM.
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

//! The metrics of a gateway, which has no sessions of its own.

use std::time::Duration;

use crate::Metrics;
use crate::catalogue::Id;

impl Metrics {
    /// Counts a finished request.
    pub fn gateway_request(&self, route: &str, outcome: &str) {
        self.lock().add(Id::GatewayRequests, &[route, outcome], 1);
    }

    /// Counts a request that is sent again because a rule has stopped the answer.
    pub fn gateway_retry(&self, route: &str) {
        self.lock().add(Id::GatewayRetries, &[route], 1);
    }

    /// Counts a match on an answer that goes through a gateway, where no session counts it.
    pub fn gateway_fired(&self, rule: &str, action: &str) {
        self.lock().add(Id::RuleFired, &[rule, action], 1);
    }

    /// Records the time from the first byte of a server's answer to the first byte to its client.
    pub fn gateway_first_byte(&self, route: &str, added: Duration) {
        self.lock().observe(Id::GatewayFirstByte, &[route], billionths(added));
    }

    /// Records the time that was spent on a part of an answer.
    pub fn gateway_frame(&self, route: &str, added: Duration) {
        self.lock().observe(Id::GatewayFrame, &[route], billionths(added));
    }

    /// Sets the number of bytes that are held back of all answers.
    pub fn gateway_held(&self, bytes: u64) {
        self.lock().set(Id::GatewayHeld, &[], bytes);
    }

    /// Sets the number of open connections of clients.
    pub fn gateway_connections(&self, open: u64) {
        self.lock().set(Id::GatewayConnections, &[], open);
    }

    /// Sets the number of conversations in memory.
    pub fn gateway_conversations(&self, open: usize) {
        self.lock().set(Id::GatewayConversations, &[], open as u64);
    }

    /// Sets the number of conversations with data that is in memory only, because the state store is away.
    pub fn gateway_unstored(&self, conversations: usize) {
        self.lock().set(Id::GatewayUnstored, &[], conversations as u64);
    }

    /// Counts conversations with this outcome: `evicted`, `forgotten`, `branched`, `local` or `lost`.
    pub fn gateway_conversation(&self, outcome: &str, more: u64) {
        self.lock().add(Id::GatewayConversationChanges, &[outcome], more);
    }

    /// Sets the state of the certificate for clients: its last second since 1970-01-01 UTC, if that is known, and whether the files as they
    /// are now cannot be used.
    pub fn server_certificate(&self, not_after: Option<u64>, has_failed: bool) {
        let mut registry = self.lock();
        if let Some(not_after) = not_after {
            registry.set(Id::CertificateExpiry, &[], not_after);
        }
        registry.set(Id::CertificateFailed, &[], u64::from(has_failed));
    }

    /// Counts a request without a known token.
    pub fn gateway_rejected(&self) {
        self.lock().add(Id::GatewayRejected, &[], 1);
    }

    /// Counts a reload of the configuration: `done` or `failed`.
    pub fn gateway_reload(&self, outcome: &str) {
        self.lock().add(Id::GatewayReloads, &[outcome], 1);
    }
}

/// Converts a duration to billionths of a millisecond.
fn billionths(time: Duration) -> u128 {
    time.as_nanos() * 1_000
}

//! The numbers of a gateway, which has no sessions of its own.

use std::time::Duration;

use crate::Metrics;
use crate::catalogue::Id;

impl Metrics {
    /// A request to the gateway is over.
    pub fn gateway_request(&self, route: &str, outcome: &str) {
        self.lock().add(Id::GatewayRequests, &[route, outcome], 1);
    }

    /// An answer is asked for once more, because a rule has stopped it.
    pub fn gateway_retry(&self, route: &str) {
        self.lock().add(Id::GatewayRetries, &[route], 1);
    }

    /// A rule has fired on an answer that goes through a gateway, where no session counts it.
    pub fn gateway_fired(&self, rule: &str, action: &str) {
        self.lock().add(Id::RuleFired, &[rule, action], 1);
    }

    /// The time from the first byte of a server's answer to the first that its client got.
    pub fn gateway_first_byte(&self, route: &str, added: Duration) {
        self.lock().observe(Id::GatewayFirstByte, &[route], billionths(added));
    }

    /// The time that a part of an answer was worked on.
    pub fn gateway_frame(&self, route: &str, added: Duration) {
        self.lock().observe(Id::GatewayFrame, &[route], billionths(added));
    }

    /// The bytes that are held back of all answers now.
    pub fn gateway_held(&self, bytes: u64) {
        self.lock().set(Id::GatewayHeld, &[], bytes);
    }

    /// The connections of clients that are open now.
    pub fn gateway_connections(&self, open: u64) {
        self.lock().set(Id::GatewayConnections, &[], open);
    }

    /// The conversations that are in memory now.
    pub fn gateway_conversations(&self, open: usize) {
        self.lock().set(Id::GatewayConversations, &[], open as u64);
    }

    /// This has become of so many more conversations: `evicted`, `forgotten`, `branched`, `local` or `lost`.
    pub fn gateway_conversation(&self, outcome: &str, more: u64) {
        self.lock().add(Id::GatewayConversationChanges, &[outcome], more);
    }

    /// A request without a token that is known.
    pub fn gateway_rejected(&self) {
        self.lock().add(Id::GatewayRejected, &[], 1);
    }

    /// A changed configuration was read: `done` or `failed`.
    pub fn gateway_reload(&self, outcome: &str) {
        self.lock().add(Id::GatewayReloads, &[outcome], 1);
    }
}

/// Milliseconds in billionths.
fn billionths(time: Duration) -> u128 {
    time.as_nanos() * 1_000
}

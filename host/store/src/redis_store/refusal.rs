//! Why a server refuses a connection, with what to do about it.

use std::error::Error;
use std::sync::Arc;

use ::redis::{ErrorKind, RedisError};

/// A connection is refused, by the server or by this client. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error(
        "it refuses the user or the password ({0}); check those in the URL, or `user` and `password` under [state]"
    )]
    Password(RedisError),
    #[error("it requires a password ({0}); write one into the URL, or set `password` under [state]")]
    NoPassword(RedisError),
    #[error(
        "its certificate is not accepted ({0}); set `ca` under [state] to the certificates of its authority, and use a host name that the \
         certificate contains"
    )]
    Certificate(RedisError),
    #[error("it refuses this client ({0}); check `certificate` and `certificate_key` under [state]")]
    ClientCertificate(RedisError),
}

/// Adds what to do, where the reason is known.
pub(super) fn explained(error: RedisError) -> Arc<dyn Error + Send + Sync> {
    if error.kind() == ErrorKind::AuthenticationFailed {
        return Arc::new(Refusal::Password(error));
    }
    if error.code() == Some("NOAUTH") {
        return Arc::new(Refusal::NoPassword(error));
    }
    let words = if error.is_io_error() { error.to_string() } else { String::new() };
    if words.contains("AuthenticationFailed") {
        // No node of a Cluster could be reached, and this is the reason of one of them.
        Arc::new(Refusal::Password(error))
    } else if words.contains("invalid peer certificate") {
        Arc::new(Refusal::Certificate(error))
    } else if words.contains("received fatal alert") {
        Arc::new(Refusal::ClientCertificate(error))
    } else {
        Arc::new(error)
    }
}

//! What the servers over HTTP share: connections, with or without TLS, checks of heads and bodies, tokens of the environment, and permits.

use std::time::Duration;

mod accept;
pub(crate) mod body;
mod ending;
pub(crate) mod head;
mod patient;
mod permits;
mod tls;
pub(crate) mod tokens;

pub(crate) use self::accept::{Connection, ConnectionLimits, Inbound, accept, url};
pub(crate) use self::patient::WriteLimits;
pub(crate) use self::permits::Permits;
pub(crate) use self::tls::Tls;

/// The time for the last bytes of a connection after the server closes. It is shorter than the time that the program has for its end.
pub(crate) const LAST_BYTES: Duration = Duration::from_millis(300);

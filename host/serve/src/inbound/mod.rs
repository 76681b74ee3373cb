//! What the servers over HTTP share: connections, with or without TLS, checks of heads and bodies, tokens of the environment, and permits.

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

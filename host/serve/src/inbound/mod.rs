//! What the servers over HTTP share: connections, checks of heads and bodies, tokens of the environment, and permits.

mod accept;
pub(crate) mod body;
pub(crate) mod head;
mod patient;
mod permits;
pub(crate) mod tokens;

pub(crate) use self::accept::{Connection, ConnectionLimits, Inbound, accept};
pub(crate) use self::permits::Permits;

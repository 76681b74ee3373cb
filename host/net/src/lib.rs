//! How the host reaches other machines over HTTP: which proxy, which certificates, and the client that uses both. And TLS of its own servers.
//!
//! What the environment says about either is an error where it cannot be used as it is meant: a request never goes directly
//! because a proxy was misspelled, and is never trusted less or more because a file of certificates could not be read.
#![forbid(unsafe_code)]

mod certificates;
mod client;
mod exempt;
mod proxy;
mod server;
mod validity;

pub use self::certificates::{InvalidCertificates, SSL_CERT_DIR, SSL_CERT_FILE};
pub use self::client::{NoClient, cause, client, client_trusting, is_loopback, place};
pub use self::proxy::{InvalidVariable, Proxies, Proxy};
pub use self::server::{UnusableCertificate, acceptor};
pub use self::validity::{Validity, ValidityState};
pub use tokio_rustls::TlsAcceptor;
pub use tokio_rustls::server::TlsStream;

//! The client of one address.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flow::Address;
use reqwest::{Certificate, Client, Url};

use crate::certificates::{self, InvalidCertificates};
use crate::proxy::{InvalidVariable, Proxies};

/// There is no client, because of this machine or its environment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoClient {
    /// A variable about proxies cannot be used.
    #[error(transparent)]
    Proxy(#[from] InvalidVariable),
    /// The certificates that a variable names cannot be used.
    #[error(transparent)]
    Certificates(#[from] InvalidCertificates),
    /// The file with the certificates for a server is invalid.
    #[error("cannot check the server against {}, {problem}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The problem with the file.
        problem: String,
    },
    /// The certificates of this machine cannot be used, or what is named is none after all.
    #[error("cannot prepare HTTP: {0}; check the certificates of this machine")]
    Machine(String),
}

/// A client for requests to one address, over HTTP/1.1, which follows no redirects: a redirect could carry a key elsewhere.
///
/// # Errors
/// The certificates cannot be used.
pub fn client(url: &Url, proxies: &Proxies, connect_timeout: Option<Duration>) -> Result<Client, NoClient> {
    // For a server or a proxy without TLS, no certificate is checked.
    let is_plain = url.scheme() == "http" && proxies.of(url).is_none_or(|proxy| proxy.url.scheme() != "https");
    let authorities = if is_plain { Some(Vec::new()) } else { certificates::of_environment()? };
    build(url, proxies, connect_timeout, authorities)
}

/// Creates a client as [`client`] does, for a server whose certificate is only checked against those in a PEM file.
///
/// # Errors
/// The file cannot be read, contains no certificate, or contains an invalid one.
pub fn client_trusting(
    file: &Path,
    url: &Url,
    proxies: &Proxies,
    connect_timeout: Option<Duration>,
) -> Result<Client, NoClient> {
    let unusable = |problem| NoClient::File { path: file.to_owned(), problem };
    let authorities = certificates::of_file(file).map_err(unusable)?;
    if authorities.is_empty() {
        return Err(unusable("which contains no certificate in PEM".to_owned()));
    }
    build(url, proxies, connect_timeout, Some(authorities))
}

/// Builds a client. `authorities`: the certificates to check against; `None` for those of the machine.
fn build(
    url: &Url,
    proxies: &Proxies,
    connect_timeout: Option<Duration>,
    authorities: Option<Vec<Certificate>>,
) -> Result<Client, NoClient> {
    // Somebody else may have chosen already; then theirs is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    let machine = |error: reqwest::Error| NoClient::Machine(cause(&error));
    let mut builder = Client::builder()
        .http1_only()
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
        // Those of the environment are read here, where they can be refused.
        .no_proxy();
    if let Some(time) = connect_timeout {
        builder = builder.connect_timeout(time);
    }
    if let Some(proxy) = proxies.of(url) {
        builder = builder.proxy(reqwest::Proxy::all(proxy.url.clone()).map_err(machine)?);
    }
    if let Some(authorities) = authorities {
        builder = builder.tls_certs_only(authorities);
    }
    builder.build().map_err(machine)
}

/// Whether an address is of this machine.
pub fn is_loopback(url: &Url) -> bool {
    Address::of_url(url.as_str()).is_ok_and(|address| address.is_loopback())
}

/// An address for messages: no path, no query, no user.
pub fn place(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The innermost cause of an error, which says what happened; the outer ones repeat the address.
pub fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(next) = innermost.source() {
        innermost = next;
    }
    innermost.to_string()
}

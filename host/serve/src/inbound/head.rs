//! Checks of the head of a request that do not depend on paths and tokens.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;

/// The names of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'s> {
    /// The address that it listens on.
    pub(crate) address: SocketAddr,
    /// The local address of the connection.
    pub(crate) here: Option<SocketAddr>,
    /// Further names, in lower case.
    pub(crate) hosts: &'s [String],
}

/// The reason why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadFault {
    /// The request has a form that is not supported here (the reason).
    Malformed(&'static str),
    /// The request is for another host.
    Host,
    /// The head exceeds the limit, in bytes.
    Size { limit: usize },
}

/// Checks the form, the host and the size of a head.
///
/// # Errors
/// The request cannot be answered here.
pub(crate) fn check(head: &Parts, names: Names<'_>, limit: usize) -> Result<(), HeadFault> {
    if head.uri.authority().is_some() || !head.uri.path().starts_with('/') {
        return Err(HeadFault::Malformed("the target of a request is a path here, without scheme and host"));
    }
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_some_and(|first| !is_chunked(first)) || codings.next().is_some() {
        return Err(HeadFault::Malformed("a body comes as it is or in chunks here, and in no other transfer coding"));
    }
    if !names.is_host_of(&head.headers) {
        // A website may have made the browser send the request under a host name of its own (DNS rebinding).
        return Err(HeadFault::Host);
    }
    let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if fields.sum::<usize>() + target > limit {
        return Err(HeadFault::Size { limit });
    }
    Ok(())
}

impl Names<'_> {
    /// Returns whether the only `Host` of a request is a name of the server.
    fn is_host_of(self, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else { return false };
        let Ok(host) = host.to_str().map(str::to_ascii_lowercase) else { return false };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            // Some clients omit the port; a name of this machine belongs to nobody else.
            _ => (host.as_str(), Some(self.address.port())),
        };
        if self.hosts.iter().any(|known| known == name) {
            return port.is_some();
        }
        // An IP address cannot be another site's name.
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let is_here =
            address.is_some_and(|address| address.is_loopback() || self.here.is_some_and(|here| here.ip() == address));
        (name == "localhost" || is_here) && port == Some(self.address.port())
    }
}

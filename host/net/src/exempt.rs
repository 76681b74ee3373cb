//! What `NO_PROXY` exempts from proxies.

use std::net::IpAddr;

use ipnet::IpNet;
use reqwest::Url;

/// One entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exempt {
    what: What,
    /// `None`: every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Everything,
    /// A host and those below it, in lower case.
    Domain(String),
    Network(IpNet),
}

impl Exempt {
    /// The entries of a list, which commas or white space separate.
    ///
    /// # Errors
    /// The first that is none, and what one looks like.
    pub(crate) fn parse_list(list: &str) -> Result<Vec<Self>, String> {
        let entries = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
        let parse = |entry: &str| {
            Self::parse(entry).ok_or_else(|| {
                format!(
                    "contains {entry:?}, which exempts nothing: an entry is `*`, a network such as `10.0.0.0/8`, or an address, a host or a domain such as \
                     `.example.com`, these three with or without a port"
                )
            })
        };
        entries.map(parse).collect()
    }

    fn parse(entry: &str) -> Option<Self> {
        if entry == "*" {
            return Some(Self { what: What::Everything, port: None });
        }
        if entry.contains('/') {
            return Some(Self { what: What::Network(entry.parse().ok()?), port: None });
        }
        // The colons of an address are none before a port.
        let (host, port) = match entry.rsplit_once(':').filter(|_| address(entry).is_none()) {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (entry, None),
        };
        let what = match address(host) {
            Some(address) => What::Network(address.into()),
            None => What::Domain(domain(host)?),
        };
        Some(Self { what, port })
    }

    pub(crate) fn applies_to(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        if self.port.is_some_and(|port| url.port_or_known_default() != Some(port)) {
            return false;
        }
        match &self.what {
            What::Everything => true,
            What::Domain(domain) => {
                let host = host.trim_end_matches('.').to_ascii_lowercase();
                host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            What::Network(network) => address(host).is_some_and(|own| network.contains(&own)),
        }
    }
}

/// An address, with or without the brackets that it has in a URL.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    bare.unwrap_or(text).parse().ok()
}

/// A domain without the dot or `*.` before it and the dot after it.
fn domain(text: &str) -> Option<String> {
    let text = text.strip_prefix('*').map_or(Some(text), |rest| rest.starts_with('.').then_some(rest))?;
    let text = text.strip_prefix('.').unwrap_or(text).trim_end_matches('.');
    let is_label = |label: &str| {
        let has_letter = label.bytes().any(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80);
        has_letter && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80 || b"-_".contains(&byte))
    };
    text.split('.').all(is_label).then(|| text.to_ascii_lowercase())
}

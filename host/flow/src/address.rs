//! Addresses of servers, compared as they are used and not as they are written.

use std::fmt;

use url::{Host, Url};

/// Scheme, host and port of a URL. Two spellings of one server are equal: case, default ports, and the forms of IPv4 and international names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    scheme: String,
    host: Host<String>,
    port: Option<u16>,
}

/// Why a string is not the address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the URL of a server ({cause})")]
pub struct InvalidAddress {
    cause: String,
}

impl Address {
    /// The address in a URL; its path, query and credentials are not part of it.
    ///
    /// # Errors
    /// It is not a URL, or names no host.
    pub fn of_url(text: &str) -> Result<Self, InvalidAddress> {
        let bad = |cause: String| InvalidAddress { cause };
        let url = Url::parse(text).map_err(|cause| bad(cause.to_string()))?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| bad("it names no host".to_owned()))?;
        // Of a scheme that is not of the web, the host has not been normalised.
        let host = Host::parse(host).map_err(|cause| bad(cause.to_string()))?;
        let usual = || match url.scheme() {
            "redis" | "rediss" | "redis+cluster" | "rediss+cluster" => Some(6_379),
            "redis+sentinel" | "rediss+sentinel" => Some(26_379),
            _ => None,
        };
        let port = url.port_or_known_default().or_else(usual);
        Ok(Self { scheme: url.scheme().to_owned(), host, port })
    }

    /// Whether the server is this machine by its address: `localhost`, 127.0.0.0/8 or `::1`. Other names can lead anywhere, whatever they
    /// lead to now.
    pub fn is_loopback(&self) -> bool {
        match &self.host {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(ip) => ip.is_loopback(),
            Host::Ipv6(ip) => ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback()),
        }
    }

    /// Whether what is sent there can be read on the way: it leaves this machine without encryption.
    pub fn is_exposed(&self) -> bool {
        !matches!(self.scheme.as_str(), "https" | "rediss") && !self.is_loopback()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        let usual = matches!((self.scheme.as_str(), self.port), ("http", Some(80)) | ("https", Some(443)));
        match self.port {
            Some(port) if !usual => write!(f, ":{port}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#[allow(clippy::print_stdout, reason = "the test prints how many cases it has")]
mod tests {
    use super::Address;

    #[test]
    fn only_what_stays_on_this_machine_or_is_encrypted_is_not_exposed() {
        let kept = [
            "http://localhost",
            "http://LOCALHOST:8080/v1",
            "HTTP://LocalHost",
            "http://127.0.0.1:11434",
            "http://127.9.8.7",
            "http://127.1",
            "http://0x7f.0.0.1",
            "http://2130706433",
            "http://0177.0.0.1",
            "http://[::1]:8000",
            "http://[0:0:0:0:0:0:0:1]",
            "http://[::ffff:127.0.0.1]",
            "http://[::ffff:7f00:1]",
            // Full-width letters and digits are those of ASCII in a name.
            "http://\u{ff4c}ocalhost",
            "http://\u{ff11}27.0.0.1",
            "http://user:password@127.0.0.1",
            "redis://LOCALHOST",
            "redis://:password@127.0.0.1:6379/0",
            "redis://[::1]",
            "https://example.com",
            "https://0.0.0.0",
            "HTTPS://EXAMPLE.COM",
            "rediss://example.com",
        ];
        let exposed = [
            "http://example.com",
            "HTTP://EXAMPLE.COM",
            "http://localhost.evil.com",
            "http://localhost.",
            "http://evil.localhost",
            "http://127.0.0.1.evil.com",
            "http://localhost@evil.com",
            "http://127.0.0.1:80@evil.com",
            // A backslash is a slash to some, and part of the user to others.
            "http://evil.com\\@localhost",
            "http://evil.com/localhost",
            "http://evil.com#@localhost",
            "http://evil.com?localhost",
            "http://0.0.0.0:8080",
            "http://[::]:8080",
            "http://126.0.0.1",
            "http://128.0.0.1",
            "http://10.0.0.1",
            "http://192.168.1.5",
            "http://169.254.169.254",
            "http://[fe80::1]",
            "http://[::ffff:10.0.0.1]",
            "http://[::127.0.0.1]",
            "http://lo\u{441}alhost",
            "http://localh\u{f6}st",
            "http://xn--localhst-n4a",
            "redis://:password@cache.example:6379",
            "redis://127.0.0.1.evil.com",
        ];
        for url in kept {
            assert!(!Address::of_url(url).unwrap().is_exposed(), "{url}");
        }
        for url in exposed {
            assert!(Address::of_url(url).unwrap().is_exposed(), "{url}");
        }
        println!("{} addresses that keep a key, {} that expose it", kept.len(), exposed.len());
    }

    #[test]
    fn spellings_of_one_server_are_equal() {
        let cases = [
            ("https://API.Example.com/v1", "https://api.example.com:443", "https://api.example.com"),
            ("http://0x7f.1:80/a", "http://127.0.0.1", "http://127.0.0.1"),
            ("http://b\u{fc}cher.example", "http://xn--bcher-kva.example", "http://xn--bcher-kva.example"),
            ("redis://CACHE/0", "redis://:secret@cache:6379", "redis://cache:6379"),
            ("rediss://CACHE/0", "rediss://:secret@cache:6379", "rediss://cache:6379"),
            ("http://[0::1]:8080", "http://[::1]:8080/x", "http://[::1]:8080"),
        ];
        for (one, other, shown) in cases {
            let [one, other] = [one, other].map(|url| Address::of_url(url).unwrap());
            assert_eq!((&one, one.to_string()), (&other, shown.to_owned()));
        }
        for (one, other) in [
            ("http://a.example", "https://a.example"),
            ("https://a.example", "https://a.example:8443"),
            ("https://a.example", "https://b.a.example"),
        ] {
            assert_ne!(Address::of_url(one).unwrap(), Address::of_url(other).unwrap());
        }
        for bad in
            ["", "localhost:8080", "unix:/run/redis.sock", "http://", "http:// a", "http://a:99999", "http://[::1"]
        {
            assert!(Address::of_url(bad).is_err(), "{bad}");
        }
    }
}

//! The proxies that the environment names.

use std::env::VarError;
use std::fmt;

use reqwest::Url;

use crate::client::{is_loopback, place};
use crate::exempt::Exempt;

/// The variables of each scheme, in order of precedence. As other programs do, the name in lower case wins.
const HTTP: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
const HTTPS: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const NO_PROXY: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// A server of CGI has it, where `HTTP_PROXY` is what somebody sent as the header `Proxy`.
const CGI: &str = "REQUEST_METHOD";

/// The schemes of proxies.
const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

/// What a variable says cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {variable} {problem}; requests are not sent without the proxy that it means")]
pub struct InvalidVariable {
    /// The name of the variable.
    pub variable: &'static str,
    /// What is wrong with it and what is expected, without passwords.
    pub problem: String,
}

/// A proxy, and the variable that names it.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    pub(crate) url: Url,
    variable: &'static str,
}

/// The proxies of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    exempt: Vec<Exempt>,
}

impl Proxies {
    /// Those of the environment: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, each also in lower case.
    ///
    /// # Errors
    /// A variable that is set cannot be used.
    pub fn of_environment() -> Result<Self, InvalidVariable> {
        Self::read(|name| match std::env::var(name) {
            Ok(value) => Some(Ok(value)),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(_)) => Some(Err("is not valid Unicode".to_owned())),
        })
    }

    /// The proxies of an environment.
    fn read(get: impl Fn(&str) -> Option<Result<String, String>>) -> Result<Self, InvalidVariable> {
        // An empty variable is none.
        let value = |variable: &'static str| -> Result<Option<String>, InvalidVariable> {
            let value = get(variable).transpose().map_err(|problem| InvalidVariable { variable, problem })?;
            Ok(value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()))
        };
        let is_cgi = get(CGI).is_some();
        let proxy = |variables: [&'static str; 4]| -> Result<Option<Proxy>, InvalidVariable> {
            let mut found = None;
            for variable in variables.into_iter().filter(|name| !(is_cgi && *name == "HTTP_PROXY")) {
                // Also one that another takes precedence of: it is meant for something.
                let own = value(variable)?.map(|value| Proxy::parse(variable, &value)).transpose()?;
                found = found.or(own);
            }
            Ok(found)
        };
        let mut exempt = None;
        for variable in NO_PROXY {
            if let Some(list) = value(variable)? {
                let parsed = Exempt::parse_list(&list).map_err(|problem| InvalidVariable { variable, problem })?;
                exempt.get_or_insert(parsed);
            }
        }
        Ok(Self { http: proxy(HTTP)?, https: proxy(HTTPS)?, exempt: exempt.unwrap_or_default() })
    }

    /// The proxy that requests to an address go through; `None`: they go directly, as all do to the machine itself.
    pub fn of(&self, url: &Url) -> Option<&Proxy> {
        let proxy = if url.scheme() == "https" { &self.https } else { &self.http };
        let is_direct = is_loopback(url) || self.exempt.iter().any(|exempt| exempt.applies_to(url));
        proxy.as_ref().filter(|_| !is_direct)
    }
}

impl Proxy {
    fn parse(variable: &'static str, value: &str) -> Result<Self, InvalidVariable> {
        let invalid = |why: String| {
            let problem = format!("is {:?}, {why}; it looks like http://proxy.example:3128", masked(value));
            InvalidVariable { variable, problem }
        };
        let with_scheme = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        let url = Url::parse(&with_scheme).map_err(|error| invalid(format!("which is not a URL ({error})")))?;
        if !SCHEMES.contains(&url.scheme()) {
            let known = SCHEMES.join(", ");
            return Err(invalid(format!(
                "and {} is not a scheme of a proxy that is supported ({known})",
                url.scheme()
            )));
        }
        // A URL in general can have more slashes than two.
        let has_host = with_scheme.split_once("://").is_some_and(|(_, rest)| !rest.starts_with(['/', '\\']));
        let is_host = |host: &str| {
            !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte))
        };
        if !has_host || !url.host_str().is_some_and(is_host) {
            return Err(invalid("which has no host, or one that is none".to_owned()));
        }
        // Schemes that are not special have no path where the others have `/`.
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(invalid("which has more than a host, a port and a user".to_owned()));
        }
        if value.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(invalid("which contains white space".to_owned()));
        }
        Ok(Self { url, variable })
    }

    /// Its password, which must not be printed.
    pub fn password(&self) -> Option<&str> {
        self.url.password()
    }
}

/// Without user and password: `the proxy http://proxy.example:3128 (HTTPS_PROXY)`.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.url.clone();
        // Both fail only for addresses without a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let place = if url.scheme().starts_with("http") { place(&url) } else { url.to_string() };
        write!(f, "the proxy {place} ({})", self.variable)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// A value that may be no URL, without what can be a user and a password in it.
fn masked(value: &str) -> String {
    let Some((user, host)) = value.rsplit_once('@') else { return value.to_owned() };
    let scheme = user.find("://").map_or("", |at| &user[..at + 3]);
    format!("{scheme}***@{host}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, InvalidVariable> {
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Proxies::read(|wanted| variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| Ok(value.clone())))
    }

    /// The proxy of an address, as it is printed.
    fn of(variables: &[(&str, &str)], url: &str) -> Option<String> {
        proxies(variables).unwrap().of(&Url::parse(url).unwrap()).map(ToString::to_string)
    }

    const FAR: &str = "https://api.example.com/v1";

    #[test]
    fn the_scheme_decides_and_lower_case_wins() {
        let both = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://p:2"), ("ALL_PROXY", "socks5://a:3")];
        assert_eq!(of(&both, FAR).unwrap(), "the proxy http://s:1 (HTTPS_PROXY)");
        assert_eq!(of(&both, "http://api.example.com").unwrap(), "the proxy http://p:2 (HTTP_PROXY)");
        assert_eq!(of(&both[2..], FAR).unwrap(), "the proxy socks5://a:3 (ALL_PROXY)");
        let lower = [("HTTPS_PROXY", "http://s:1"), ("https_proxy", "http://lower:1")];
        assert_eq!(of(&lower, FAR).unwrap(), "the proxy http://lower:1 (https_proxy)");
        assert_eq!(of(&[("HTTPS_PROXY", " ")], FAR), None);
        assert_eq!(of(&[], FAR), None);
        let cgi = [("HTTP_PROXY", "http://p:2"), ("REQUEST_METHOD", "GET")];
        assert_eq!(of(&cgi, "http://api.example.com"), None);
        for local in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://127.9.9.9"] {
            assert_eq!(of(&both, local), None, "{local}");
        }
    }

    #[test]
    fn what_is_a_proxy_is_used_as_it_is_written() {
        for (value, shown) in [
            ("proxy:3128", "http://proxy:3128"),
            ("http://proxy", "http://proxy"),
            ("https://user:pa%20ss@proxy:8443/", "https://proxy:8443"),
            ("socks5h://user:secret@10.0.0.1:1080", "socks5h://10.0.0.1:1080"),
            ("http://[fe80::1]:3128", "http://[fe80::1]:3128"),
            (" http://proxy:1 ", "http://proxy:1"),
        ] {
            assert_eq!(of(&[("HTTPS_PROXY", value)], FAR).unwrap(), format!("the proxy {shown} (HTTPS_PROXY)"));
        }
        let proxies = proxies(&[("ALL_PROXY", "http://user:secret@proxy:1")]).unwrap();
        assert!(!format!("{proxies:?}").contains("secret"));
        assert_eq!(proxies.of(&Url::parse(FAR).unwrap()).unwrap().password(), Some("secret"));
    }

    /// Each of them was a direct connection, without a word.
    #[test]
    fn what_is_none_is_an_error_that_names_the_variable() {
        let values = [
            "http://",
            "http:///proxy",
            "http://proxy:port",
            "http://proxy:99999",
            "htp://proxy:1",
            "socks4://proxy:1",
            "ftp://proxy",
            "http://pro xy:1",
            "http://proxy:1/path",
            "http://proxy:1?x=1",
            "http//proxy:1",
            "http://us er:secret@proxy:x",
            "secret@pro xy:x",
            "user:secret@:1",
            ":3128",
            "http://[::1",
            "http://proxy,other:1",
            "'http://proxy:1'",
        ];
        for variable in ["HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
            for value in values {
                let error = proxies(&[(variable, value)]).unwrap_err();
                assert_eq!(error.variable, variable, "{value}");
                let error = error.to_string();
                assert!(error.contains(variable) && error.contains("http://proxy.example:3128"), "{error}");
                assert!(!error.contains("secret"), "{error}");
            }
        }
        // It is an error also where another one takes precedence.
        assert!(proxies(&[("https_proxy", "http://a:1"), ("HTTPS_PROXY", "http://")]).is_err());
        let error = Proxies::read(|name| (name == "ALL_PROXY").then(|| Err("is not valid Unicode".to_owned())));
        assert!(error.unwrap_err().to_string().contains("ALL_PROXY is not valid Unicode"));
    }

    #[test]
    fn what_is_exempt_goes_directly() {
        let with = |list: &'static str| [("ALL_PROXY", "http://p:1"), ("NO_PROXY", list)];
        let is_direct = |list, url: &str| of(&with(list), url).is_none();
        for (list, url, expected) in [
            ("*", FAR, true),
            ("example.com", FAR, true),
            (".example.com", FAR, true),
            ("*.example.com", FAR, true),
            ("API.Example.Com.", FAR, true),
            ("other, example.com", FAR, true),
            ("other example.com", FAR, true),
            ("ample.com", FAR, false),
            ("api", FAR, false),
            ("", FAR, false),
            (",,", FAR, false),
            ("example.com:443", FAR, true),
            ("example.com:80", FAR, false),
            ("10.0.0.0/8", "http://10.9.8.7/", true),
            ("10.0.0.0/8", "http://11.9.8.7/", false),
            ("10.9.8.7", "http://10.9.8.7:8000/", true),
            ("10.9.8.7:80", "http://10.9.8.7:8000/", false),
            ("fd00::/8", "http://[fd12::1]/", true),
            ("[fd12::1]:80", "http://[fd12::1]/", true),
            ("fd00::/8", "http://10.0.0.1/", false),
            ("0.0.0.0/0", "http://10.0.0.1/", true),
        ] {
            assert_eq!(is_direct(list, url), expected, "{list} {url}");
        }
        for list in [
            "10.*",
            "*.*",
            "http://example.com",
            "10.0.0.0/33",
            "10.0.0/8",
            "ex ample.com/8",
            "a/b",
            "host:port",
            "a..b",
            "user@host",
        ] {
            let error = proxies(&with(list)).unwrap_err();
            assert_eq!(error.variable, "NO_PROXY", "{list}");
            assert!(error.problem.contains("10.0.0.0/8"), "{error}");
        }
    }
}

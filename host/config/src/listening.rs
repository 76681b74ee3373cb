//! What the tables of servers share, `[gateway]` and `[serve]`: the address that is listened on, names of the server, its certificate, and tokens
//! of clients.

use std::net::SocketAddr;

use flow::KeySource;

use crate::document::{Document, Step, steps};
use crate::{Code, PlacedFile};

/// The certificate with which a server identifies itself to its clients, over TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCertificate {
    /// The PEM file with the certificate chain of the server, leaf first.
    pub certificate: PlacedFile,
    /// The PEM file with its private key.
    pub key: PlacedFile,
}

/// A table of a server, with the code of its diagnostics and a complete address for the help of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerTable {
    pub(crate) name: &'static str,
    pub(crate) code: Code,
    pub(crate) example: &'static str,
}

impl ServerTable {
    /// Reads the address that the server listens on; `None` if it is none. Without tokens it is an address of this machine.
    pub(crate) fn listen(self, document: &mut Document<'_>, text: &str, has_tokens: bool) -> Option<SocketAddr> {
        let at = steps![self.name, "listen"];
        let Ok(address) = text.parse::<SocketAddr>() else {
            let message = format!("`{}` is not an IP address with a port", text.escape_debug());
            let port = self.example.rsplit(':').next().unwrap_or_default();
            let help = format!("write it as `{}` or `[::1]:{port}`; names of hosts are not accepted", self.example);
            document.error(self.code, &at, message, help);
            return None;
        };
        if !address.ip().is_loopback() && !has_tokens {
            let message =
                format!("other machines can reach {address}, and no `[[{}.token]]` says who is admitted", self.name);
            document.error(self.code, &at, message, "add a token, or listen on 127.0.0.1");
        }
        Some(address)
    }

    /// Reads the files of the certificate; `None`: there are none, or one without the other.
    pub(crate) fn certificate(
        self,
        document: &mut Document<'_>,
        certificate: Option<&str>,
        key: Option<&str>,
    ) -> Option<ServerCertificate> {
        check_certificate(document, (self.name, self.code), certificate.is_some(), key.is_some());
        Some(ServerCertificate {
            certificate: PlacedFile::read(document, &steps![self.name, "certificate"], certificate?),
            key: PlacedFile::read(document, &steps![self.name, "certificate_key"], key?),
        })
    }

    /// Reads the names of the server, in lower case.
    pub(crate) fn hosts(self, document: &mut Document<'_>, typed: &[String]) -> Vec<String> {
        for (index, host) in typed.iter().enumerate() {
            let is_name = |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            let is_address = |host: &str| host.starts_with('[') && host.ends_with(']');
            if !is_name(host) && !is_address(host) {
                let message = format!("`{}` is not the name of a host", host.escape_debug());
                let help = format!("write it without scheme and port, such as `{}.example.com`", self.name);
                document.error(self.code, &steps![self.name, "hosts", index], message, help);
            }
        }
        typed.iter().map(|host| host.to_ascii_lowercase()).collect()
    }

    /// Returns the variable of a token. `before`: the names and the variables of the tokens before it, none of which it repeats.
    pub(crate) fn token(
        self,
        document: &mut Document<'_>,
        index: usize,
        (name, value): (&str, &str),
        before: &[(&str, &str)],
    ) -> String {
        let at = |key: &str| steps![self.name, "token", index, key];
        let own = variable(document, &at("value"), value, "`value`").unwrap_or_default();
        if before.iter().any(|(other, _)| *other == name) {
            let message = format!("two tokens have the name `{}`", name.escape_debug());
            document.error(Code::ConfigDuplicate, &at("name"), message, "give each token a name of its own");
        }
        if !own.is_empty() && before.iter().any(|(_, other)| *other == own) {
            let message = format!("two tokens have the value in {own}");
            document.error(Code::ConfigDuplicate, &at("value"), message, "give each token a value of its own");
        }
        own
    }
}

/// Reports `certificate` without `certificate_key`, and the other way round.
pub(crate) fn check_certificate(
    document: &mut Document<'_>,
    (table, code): (&'static str, Code),
    has_certificate: bool,
    has_key: bool,
) {
    let (set, missing, help) = match (has_certificate, has_key) {
        (true, false) => ("certificate", "certificate_key", "name the file with the private key of this certificate"),
        (false, true) => ("certificate_key", "certificate", "name the file with the certificate of this key"),
        _ => return,
    };
    has_no_effect(document, (table, code), (set, missing), help);
}

/// Reports a key of a table that has no effect without another one.
pub(crate) fn has_no_effect(
    document: &mut Document<'_>,
    (table, code): (&'static str, Code),
    (set, missing): (&'static str, &'static str),
    help: &str,
) {
    let message = format!("`{set}` has no effect without `{missing}`");
    document.error(code, &steps![table, set], message, format!("{help}, or remove `{set}`"));
}

/// Returns the variable that `env:NAME` names. A value of another form is reported without its text, because it may be a key.
pub(crate) fn variable(document: &mut Document<'_>, at: &[Step], text: &str, what: &str) -> Option<String> {
    let name = text.strip_prefix("env:").unwrap_or_default();
    if let Ok(KeySource::Env(name)) = KeySource::of_variable(name) {
        return Some(name);
    }
    let help = "write `env:` and the name of an environment variable, such as `env:ANTHROPIC_API_KEY`. If this is a key or a token itself, put it into \
                a variable and remove it from this file";
    document.error(Code::ConfigInvalidVariable, at, format!("{what} does not name an environment variable"), help);
    None
}

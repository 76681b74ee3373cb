//! The values of tokens, which are variables of the environment.

use tidegate::diagnostic::{Diagnostic, DiagnosticCode as Code, Location};
use tidegate::environment;

use crate::token::{MIN_TOKEN, is_token};

/// A token in the settings of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'s> {
    pub(crate) name: &'s str,
    pub(crate) variable: &'s str,
    pub(crate) place: Option<&'s Location>,
}

/// What diagnostics about the variables of a server have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of {
    pub(crate) code: Code,
    /// The server, such as `gateway`.
    pub(crate) server: &'static str,
}

impl Of {
    pub(crate) fn error(self, message: String, place: Option<&Location>) -> Diagnostic {
        let error = Diagnostic::error(self.code, message);
        match place {
            Some(place) => error.at(place.clone(), ""),
            None => error,
        }
    }

    /// Returns the value of a variable that contains `what`; one that has none is reported.
    pub(crate) fn variable(
        self,
        name: &str,
        what: &str,
        place: Option<&Location>,
        found: &mut Vec<Diagnostic>,
    ) -> Option<String> {
        let value =
            environment::variable(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty());
        if value.is_none() {
            let message = format!("the variable {name}, which contains {what}, is not set, is empty or is no text");
            let help = format!("set it in the environment of the {}", self.server);
            found.push(self.error(message, place).help(help));
        }
        value
    }

    /// Reads the values of tokens, in order; `None` for each that has none. A value that cannot be used, and one that two tokens have, is
    /// reported.
    pub(crate) fn values<'s>(
        self,
        tokens: impl Iterator<Item = Named<'s>>,
        found: &mut Vec<Diagnostic>,
    ) -> Vec<Option<String>> {
        let mut known: Vec<(&str, String)> = Vec::new();
        let mut values = Vec::new();
        for Named { name, variable, place } in tokens {
            let value = self.variable(variable, &format!("the token `{name}`"), place, found);
            let value = value.map(|value| value.trim().to_owned());
            values.push(value.clone());
            let Some(value) = value else { continue };
            if !is_token(&value) {
                let message = format!("the variable {variable} contains no token for `{name}`");
                let help = format!(
                    "a token has at least {MIN_TOKEN} letters, digits and `-._~`; `openssl rand -hex 32` makes one"
                );
                found.push(self.error(message, place).help(help));
            } else if let Some((same, _)) = known.iter().find(|(_, other)| *other == value) {
                let message = format!("the tokens `{same}` and `{name}` have the same value");
                found.push(self.error(message, place).help("give each client a token of its own"));
            }
            known.push((name, value));
        }
        values
    }
}

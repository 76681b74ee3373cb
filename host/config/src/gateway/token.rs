//! `[[gateway.token]]`: the tokens of clients.

use flow::text::nearest;

use super::{GatewayRoute, place, variable};
use crate::document::{Document, steps};
use crate::typed::TokenFile;
use crate::{Code, Location};

/// A client, or several that share a token.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayToken {
    /// The name of the token in logs, metrics and the audit file.
    pub name: String,
    /// The environment variable that contains the token.
    pub variable: String,
    /// The maximum number of concurrent requests; `None` for the one in the limits.
    pub concurrent: Option<u32>,
    /// The paths of the routes that the token is for; `None` for all.
    pub routes: Option<Vec<String>>,
    /// The span of the entry.
    pub place: Option<Location>,
}

impl GatewayToken {
    /// Returns whether the token is for the route with this path.
    pub fn admits(&self, route: &str) -> bool {
        self.routes.as_ref().is_none_or(|paths| paths.iter().any(|path| path == route))
    }
}

pub(super) fn read(document: &mut Document<'_>, typed: &[TokenFile], routes: &[GatewayRoute]) -> Vec<GatewayToken> {
    let mut tokens: Vec<GatewayToken> = Vec::new();
    for (index, token) in typed.iter().enumerate() {
        let at = |key: &str| steps!["gateway", "token", index, key];
        let name = variable(document, &at("value"), &token.value, "`value`").unwrap_or_default();
        let is_same = |other: &GatewayToken| !name.is_empty() && other.variable == name;
        if tokens.iter().any(|other| other.name == token.name) {
            let message = format!("two tokens have the name `{}`", token.name.escape_debug());
            document.error(Code::ConfigDuplicate, &at("name"), message, "give each token a name of its own");
        }
        if tokens.iter().any(is_same) {
            let message = format!("two tokens have the value in {name}");
            document.error(Code::ConfigDuplicate, &at("value"), message, "give each token a value of its own");
        }
        check_routes(document, token, index, routes);
        tokens.push(GatewayToken {
            name: token.name.clone(),
            variable: name,
            concurrent: token.concurrent,
            routes: token.routes.clone(),
            place: place(document, &at("value")),
        });
    }
    tokens
}

fn check_routes(document: &mut Document<'_>, token: &TokenFile, index: usize, routes: &[GatewayRoute]) {
    for (position, path) in token.routes.iter().flatten().enumerate() {
        if routes.iter().any(|route| route.path == *path) {
            continue;
        }
        let known = || routes.iter().map(|route| route.path.as_str());
        let help = match (nearest(path, known()), routes.is_empty()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, true) => "add a `[[gateway.route]]`".to_owned(),
            (None, false) => format!("the routes are {}", known().collect::<Vec<_>>().join(", ")),
        };
        let at = steps!["gateway", "token", index, "routes", position];
        document.error(Code::ConfigGateway, &at, format!("no route has the path `{}`", path.escape_debug()), help);
    }
}

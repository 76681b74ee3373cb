//! `[[gateway.token]]`: the tokens of clients.

use flow::text::nearest;

use super::{GatewayRoute, TABLE, place};
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
        let before: Vec<_> = tokens.iter().map(|other| (other.name.as_str(), other.variable.as_str())).collect();
        let name = TABLE.token(document, index, (&token.name, &token.value), &before);
        check_routes(document, token, index, routes);
        tokens.push(GatewayToken {
            name: token.name.clone(),
            variable: name,
            concurrent: token.concurrent,
            routes: token.routes.clone(),
            place: place(document, &steps!["gateway", "token", index, "value"]),
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

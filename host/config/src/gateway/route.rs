//! `[[gateway.route]]`: the routes of paths to servers.

use std::path::PathBuf;

use flow::Address;

use super::{GatewayToken, file, place};
use crate::document::{Document, steps};
use crate::listening::variable;
use crate::operator::unusable_url;
use crate::typed::RouteFile;
use crate::{Code, Location};

/// The paths that one server answers.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayRoute {
    /// The common prefix of the paths: `/`, or whole segments without a slash at the end.
    pub path: String,
    /// The URL of the server.
    pub upstream: String,
    /// The key that the server gets.
    pub key: RouteKey,
    /// Names of the rules that watch its answers, in addition to those that are required; `None`: all.
    pub rules: Option<Vec<String>>,
    /// Ids of the plugins that act on it, in addition to those that are required; `None`: all.
    pub plugins: Option<Vec<String>>,
    /// The agent name of its clients, for rules.
    pub agent: String,
    /// A file with the certificates for checking the server's; `None` for those of the machine.
    pub ca: Option<PathBuf>,
    /// The span of the entry.
    pub place: Option<Location>,
}

/// The key that a server gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteKey {
    /// The key of the client.
    Client,
    /// The key in this environment which replaces the client's.
    Env(String),
}

/// Paths that the gateway itself answers.
const OWN: [&str; 2] = ["/healthz", "/metrics"];

pub(super) fn read(document: &mut Document<'_>, typed: &[RouteFile]) -> Vec<GatewayRoute> {
    typed.iter().enumerate().map(|(index, _)| route(document, typed, index)).collect()
}

fn route(document: &mut Document<'_>, all: &[RouteFile], index: usize) -> GatewayRoute {
    let typed = &all[index];
    let at = |key: &str| steps!["gateway", "route", index, key];
    if let Some(why) = unusable_path(&typed.path) {
        let message = format!("`{}` cannot be the path of a route: {why}", typed.path.escape_debug());
        let help = "write it as `/` or `/anthropic`: letters, digits and `-._~`, no slash at the end";
        document.error(Code::ConfigGateway, &at("path"), message, help);
    } else if all[..index].iter().any(|other| other.path == typed.path) {
        let message = format!("two routes have the path `{}`", typed.path);
        document.error(Code::ConfigDuplicate, &at("path"), message, "give each route a path of its own");
    }
    check_upstream(document, typed, index);
    let key = match typed.key.as_str() {
        "client" => Some(RouteKey::Client),
        other => variable(document, &at("key"), other, "`key` is not `client`, and").map(RouteKey::Env),
    };
    GatewayRoute {
        path: typed.path.clone(),
        upstream: typed.upstream.clone(),
        key: key.unwrap_or(RouteKey::Client),
        rules: typed.rules.clone(),
        plugins: typed.plugins.clone(),
        agent: typed.agent.clone(),
        ca: file(document, &at("ca"), typed.ca.as_ref()),
        place: place(document, &at("path")),
    }
}

fn check_upstream(document: &mut Document<'_>, typed: &RouteFile, index: usize) {
    let at = steps!["gateway", "route", index, "upstream"];
    if let Some(why) = unusable_url(&typed.upstream) {
        let help = "write it as `https://HOST` or `https://HOST/v1`";
        document.error(Code::ConfigInvalidUrl, &at, format!("`upstream` {why}"), help);
        return;
    }
    match Address::of_url(&typed.upstream) {
        Err(why) => document.error(Code::ConfigInvalidUrl, &at, why.to_string(), "write it as `https://HOST`"),
        Ok(address) if address.is_exposed() && !typed.allow_plaintext_key => {
            let message =
                format!("keys would go to {address} without encryption, where everyone on the way can read them");
            let help = "use `https://`; `allow_plaintext_key = true` sends them anyway";
            document.error(Code::ConfigInvalidUrl, &at, message, help);
        }
        Ok(_) => {}
    }
}

/// Returns the reason why a path cannot be the path of a route.
fn unusable_path(path: &str) -> Option<&'static str> {
    let Some(rest) = path.strip_prefix('/') else { return Some("it does not begin with `/`") };
    if rest.is_empty() {
        return None;
    }
    if OWN.contains(&path) {
        return Some("the gateway answers it itself");
    }
    let is_plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    let is_step = |part: &str| part.is_empty() || part == "." || part == "..";
    match rest.split('/').all(|part| is_plain(part) && !is_step(part)) {
        true => None,
        false => Some("one of its parts is empty, a step, or has other characters than a path here can have"),
    }
}

/// Without tokens, everyone who can connect would spend the operator's key.
pub(super) fn check_keys(document: &mut Document<'_>, routes: &[GatewayRoute], tokens: &[GatewayToken]) {
    for (index, route) in routes.iter().enumerate() {
        let is_admitted = tokens.iter().any(|token| token.admits(&route.path));
        if let RouteKey::Env(name) = &route.key
            && !is_admitted
        {
            let message = format!(
                "requests to `{}` get the key in {name}, and no `[[gateway.token]]` says who is admitted",
                route.path
            );
            let help = "add a token for this route, or set `key = \"client\"`";
            document.error(Code::ConfigGateway, &steps!["gateway", "route", index, "key"], message, help);
        }
    }
}

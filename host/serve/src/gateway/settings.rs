//! Builds the served configuration from `[gateway]` of the operator's settings: keys and tokens of the environment, and the rules of each
//! route.

use std::sync::Arc;

use gateway::{HeldLimits, Watching};
use net::Proxies;
use reqwest::Url;
use tidegate::config::{GatewayRoute, GatewaySettings, GatewayToken, Policy, RouteKey};
use tidegate::diagnostic::{Diagnostic, DiagnosticCode as Code, Diagnostics, Location};
use tidegate::gateway::WithoutStore;
use tidegate::rule::{Rule, RuleSet};
use tidegate::text::nearest;

use super::forward::{Clients, Key, Route};
use super::{Audit, Conversations, Site, Token};
use crate::inbound::tokens::{Named, Of};

pub(super) const OF: Of = Of { code: Code::ConfigGateway, server: "gateway" };

/// The conversations of a route, which survive a reload that does not change what watches them.
#[derive(Clone, Debug)]
struct Kept {
    path: String,
    rules: Option<Vec<String>>,
    plugins: Option<Vec<String>>,
    watching: Watching,
    without_store: WithoutStore,
    conversations: Arc<Conversations>,
}

/// Opens the conversations of a route with these rules, replacing the ones that the route had before.
type Make<'a> = dyn Fn(Arc<RuleSet>, Watching, &GatewayRoute, Option<&Conversations>) -> Arc<Conversations> + 'a;

/// The conversations of all routes, kept between reloads.
#[derive(Clone, Debug, Default)]
pub struct KeptConversations {
    rules: Option<Arc<RuleSet>>,
    routes: Vec<Kept>,
}

impl KeptConversations {
    /// Returns the conversations of all routes that do not go on in `now`, with their paths and what replaces them.
    pub fn replaced<'k>(
        &'k self,
        now: &'k Self,
    ) -> impl Iterator<Item = (&'k str, &'k Arc<Conversations>, Option<&'k Conversations>)> {
        let of = |path: &str| now.routes.iter().find(|route| route.path == path).map(|route| &*route.conversations);
        let goes_on =
            |before: &Kept| now.routes.iter().any(|now| Arc::ptr_eq(&before.conversations, &now.conversations));
        let gone = self.routes.iter().filter(move |before| !goes_on(before));
        gone.map(move |before| (&*before.path, &before.conversations, of(&before.path)))
    }

    /// Returns the conversations of all routes.
    pub fn all(&self) -> Vec<Arc<Conversations>> {
        self.routes.iter().map(|route| Arc::clone(&route.conversations)).collect()
    }
}

impl Site {
    /// Builds the configuration from settings. The rules of a route are those that it names, and the required ones. `make`: opens the
    /// conversations of a route with its rules. Conversations in `kept` are reused if the rules and the settings of the route have not
    /// changed.
    ///
    /// # Errors
    /// A variable is not set or invalid, a file cannot be written, or a route names a rule that does not exist; all errors are reported
    /// together.
    pub fn of_settings(
        settings: &GatewaySettings,
        rules: &Arc<RuleSet>,
        kept: &mut KeptConversations,
        make: &Make<'_>,
    ) -> Result<Self, Diagnostics> {
        let mut found = Vec::new();
        let mut now = KeptConversations { rules: Some(Arc::clone(rules)), routes: Vec::new() };
        let is_same = kept.rules.as_ref().is_some_and(|before| Arc::ptr_eq(before, rules));
        let before = if is_same { kept.routes.as_slice() } else { &[] };
        let routes = settings.routes.iter().filter_map(|route| {
            check_authorities(route, &mut found);
            let watching = watching(settings, route);
            let known = before.iter().find(|kept| kept.fits(settings, route, &watching));
            let conversations = match known {
                Some(kept) => Arc::clone(&kept.conversations),
                None => {
                    let same = kept.routes.iter().find(|kept| kept.path == route.path);
                    let before = same.map(|kept| &*kept.conversations);
                    make(subset(rules, route, &mut found)?, watching.clone(), route, before)
                }
            };
            let (path, own) = (route.path.clone(), Arc::clone(&conversations));
            let (rules, plugins) = (route.rules.clone(), route.plugins.clone());
            let without_store = settings.without_store;
            now.routes.push(Kept { path, rules, plugins, watching, without_store, conversations: own });
            Some(Route {
                path: route.path.clone(),
                upstream: route.upstream.clone(),
                clients: Clients::All,
                key: key(route, &mut found),
                ca: route.ca.clone(),
                conversations,
            })
        });
        let routes = routes.collect();
        let tokens = tokens(settings, &mut found);
        let audit = settings.audit.as_ref().and_then(|path| {
            let failed = |error| error_of(format!("cannot write the audit file {}: {error}", path.display()));
            Audit::open(path).map_err(|error| found.push(failed(error).help("check `audit` under `[gateway]`"))).ok()
        });
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
        *kept = now;
        Ok(Self { routes, tokens, hosts: settings.hosts.clone(), limits: settings.limits, audit })
    }
}

impl Kept {
    fn fits(&self, settings: &GatewaySettings, route: &GatewayRoute, watching: &Watching) -> bool {
        let is_same = self.path == route.path && self.rules == route.rules && self.plugins == route.plugins;
        is_same && self.watching == *watching && self.without_store == settings.without_store
    }
}

/// Checks the servers of requests, and the variables of keys, against the policy of the machine.
///
/// # Errors
/// The policy does not permit one of them.
pub fn check_policy(settings: &GatewaySettings, policy: &Policy) -> Result<(), Diagnostics> {
    for route in &settings.routes {
        policy.check_address(&format!("the route `{}` of the gateway", route.path), &route.upstream)?;
        if let RouteKey::Env(name) = &route.key {
            policy.check_variable("gateway.route.key", name)?;
        }
    }
    settings.tokens.iter().try_for_each(|token| policy.check_variable("gateway.token.value", &token.variable))
}

fn watching(settings: &GatewaySettings, route: &GatewayRoute) -> Watching {
    let held = HeldLimits { bytes: settings.limits.held_bytes, frames: settings.limits.held_frames };
    Watching { agent: Some(route.agent.clone()), header: settings.conversation_header.clone(), held }
}

/// Returns the rules of a route; `None` if it names one that does not exist.
fn subset(rules: &Arc<RuleSet>, route: &GatewayRoute, found: &mut Vec<Diagnostic>) -> Option<Arc<RuleSet>> {
    let Some(names) = &route.rules else { return Some(Arc::clone(rules)) };
    let before = found.len();
    for name in names {
        let known = || rules.rules().map(|info| info.rule.name.as_str());
        if known().any(|known| known == name) {
            continue;
        }
        let help = match nearest(name, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`tidegate rules list` prints the names".to_owned(),
        };
        let message =
            format!("the route `{}` names the rule `{}`, which does not exist", route.path, name.escape_debug());
        found.push(at(Diagnostic::error(Code::ConfigUnknownRule, message), route.place.as_ref()).help(help));
    }
    let is_kept = |rule: &Rule| names.contains(&rule.name) || rules.is_required(rule);
    let kept = rules.rules().map(|info| info.rule).filter(|rule| is_kept(rule)).cloned().collect();
    // Errors in rules were reported before, for all routes.
    let (set, _) = RuleSet::build(kept, rules.settings().clone(), rules.workspace());
    (found.len() == before).then_some(set)
}

/// Returns whether the certificates of a route are valid.
fn check_authorities(route: &GatewayRoute, found: &mut Vec<Diagnostic>) {
    // Errors in addresses are reported when the server is opened.
    let (Some(file), Ok(url)) = (&route.ca, Url::parse(&route.upstream)) else { return };
    if let Err(error) = net::client_trusting(file, &url, &Proxies::default(), None) {
        let message = format!("`ca` of the route `{}`: {error}", route.path);
        let help = "name a file with certificates in PEM, by its path from this file";
        found.push(at(error_of(message), route.place.as_ref()).help(help));
    }
}

fn key(route: &GatewayRoute, found: &mut Vec<Diagnostic>) -> Option<Key> {
    let RouteKey::Env(name) = &route.key else { return None };
    let text = OF.variable(name, &format!("the key of the route `{}`", route.path), route.place.as_ref(), found)?;
    let key = Key::new(&text);
    if key.is_none() {
        let message = format!("the variable {name} contains no key: it has characters that a header cannot have");
        found.push(at(error_of(message), route.place.as_ref()).help("set it to the key alone"));
    }
    key
}

fn tokens(settings: &GatewaySettings, found: &mut Vec<Diagnostic>) -> Vec<Token> {
    let named = settings.tokens.iter();
    let values = OF.values(
        named.map(|GatewayToken { name, variable, place, .. }| Named { name, variable, place: place.as_ref() }),
        found,
    );
    let tokens = settings.tokens.iter().zip(values).filter_map(|(token, value)| {
        let concurrent = token.concurrent.unwrap_or(settings.limits.concurrent);
        Some(Token { name: token.name.clone(), value: value?, concurrent, routes: token.routes.clone() })
    });
    tokens.collect()
}

fn error_of(message: String) -> Diagnostic {
    OF.error(message, None)
}

fn at(error: Diagnostic, place: Option<&Location>) -> Diagnostic {
    match place {
        Some(place) => error.at(place.clone(), ""),
        None => error,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::cell::RefCell;

    use tidegate::Operator;
    use tidegate::diagnostic::SourceFile;
    use tidegate::rule::RuleSettings;

    use super::*;

    #[test]
    fn conversations_go_on_until_a_setting_about_them_changes() {
        let (rules, _) = RuleSet::build(Vec::new(), RuleSettings::default(), "");
        let mut kept = KeptConversations::default();
        let opened = RefCell::new(Vec::new());
        let make = |_: Arc<RuleSet>, _: Watching, route: &GatewayRoute, _: Option<&Conversations>| {
            opened.borrow_mut().push(route.path.clone());
            Conversations::idle()
        };
        let mut read = |more: &str| {
            let toml =
                format!("[gateway]\n{more}\n[[gateway.route]]\npath = \"/a\"\nupstream = \"https://api.example\"\n");
            let operator = Operator::of_source(&SourceFile::new("tidegate.toml", toml)).unwrap();
            Site::of_settings(&operator.gateway, &rules, &mut kept, &make).unwrap();
            std::mem::take(&mut *opened.borrow_mut()).len()
        };
        assert_eq!(read(""), 1);
        assert_eq!(read("listen = \"127.0.0.1:9\""), 0);
        assert_eq!(read("without_store = \"local\""), 1);
        assert_eq!(read("without_store = \"local\""), 0);
        assert_eq!(read("conversation_header = \"x-chat\"\nwithout_store = \"local\""), 1);
    }
}

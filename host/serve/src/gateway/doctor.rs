//! Checks routes before clients rely on them: a small request goes through a gateway to each server.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use net::Proxies;
use reqwest::{Client, Url};
use serde_json::Value;
use tidegate::config::{GatewayRoute, GatewaySettings, RouteKey};
use tidegate::diagnostic::{Check, Health};
use tidegate::metrics::Metrics;
use tokio::time::timeout;

use super::{Gateway, Site};

/// The time limit for a server.
const PATIENCE: Duration = Duration::from_secs(15);

/// Requests the list of models from each server like a client: with the key of its route if it has one, else without any.
pub async fn doctor(settings: &GatewaySettings, site: Site) -> Vec<Check> {
    let what = "gateway";
    let tokens: Vec<_> = site.tokens.iter().map(|token| (token.name.clone(), token.value.clone())).collect();
    let gateway = match Gateway::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, site, &Metrics::new()).await {
        Ok(gateway) => gateway,
        Err(error) => return vec![Check::new(what, Health::Bad, error.to_string())],
    };
    let base = format!("http://{}", gateway.address());
    let client = Url::parse(&base)
        .map_err(|error| error.to_string())
        .and_then(|url| net::client(&url, &Proxies::default(), None).map_err(|error| error.to_string()));
    let client = match client {
        Ok(client) => client,
        Err(error) => return vec![Check::new(what, Health::Bad, error)],
    };
    let mut checks = Vec::new();
    for route in &settings.routes {
        let admits =
            |name: &String| settings.tokens.iter().any(|token| token.name == *name && token.admits(&route.path));
        let token = tokens.iter().find(|(name, _)| admits(name)).map(|(_, value)| value.as_str());
        let (health, detail) = match (token, tokens.is_empty()) {
            (None, false) => (Health::Warning, "no token is for this route: nobody can use it".to_owned()),
            _ => check(&client, &base, route, token).await,
        };
        checks.push(Check::new(format!("route {}", route.path), health, format!("{}: {detail}", route.upstream)));
    }
    checks
}

async fn check(client: &Client, base: &str, route: &GatewayRoute, token: Option<&str>) -> (Health, String) {
    let mut said = (0, String::new());
    // Servers of both vendors list their models there, and expect different keys.
    for is_anthropic in [false, true] {
        said = match timeout(PATIENCE, ask(client, base, route, token, is_anthropic)).await {
            Ok(Ok(said)) => said,
            Ok(Err(error)) => return (Health::Bad, error),
            Err(_) => return (Health::Bad, format!("it does not answer within {PATIENCE:?}")),
        };
        if said.0 == 200 || !said.1.is_empty() {
            break;
        }
    }
    let (status, own) = said;
    match (&route.key, status) {
        _ if !own.is_empty() => (Health::Bad, own),
        (RouteKey::Client, _) => {
            (Health::Good, format!("it answers (status {status}); the keys of clients cannot be checked"))
        }
        (RouteKey::Env(name), 200) => (Health::Good, format!("it answers and takes the key in {name}")),
        (RouteKey::Env(name), 401 | 403) => {
            (Health::Bad, format!("it refuses the key in {name} (status {status}); set another one"))
        }
        (RouteKey::Env(name), _) => {
            let why = format!("it answers a request for its models with status {status}");
            (Health::Warning, format!("{why}: whether it takes the key in {name} cannot be checked"))
        }
    }
}

/// Returns the status of the answer and, if the gateway itself answered, its message.
async fn ask(
    client: &Client,
    base: &str,
    route: &GatewayRoute,
    token: Option<&str>,
    is_anthropic: bool,
) -> Result<(u16, String), String> {
    let url = format!("{base}{}/v1/models", route.path.trim_end_matches('/'));
    let mut request = client.get(url);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if is_anthropic {
        request = request.header("anthropic-version", "2023-06-01");
    }
    let answered = request.send().await.map_err(|error| net::cause(&error))?;
    let status = answered.status().as_u16();
    let body = answered.bytes().await.unwrap_or_default();
    let error: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_own = error["error"]["code"].as_str().is_some_and(|code| code.starts_with("gateway_"));
    let message = error["error"]["message"].as_str().filter(|_| is_own).unwrap_or_default();
    Ok((status, message.to_owned()))
}

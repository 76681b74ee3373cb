//! `tidegate gateway`: the server between agents and their models, with the settings of `[gateway]`.

mod files;
pub(crate) mod plugin_notes;
pub(crate) mod rules;
mod stamps;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serve::gateway::{Conversations, Gateway, KeptConversations, OpenError, Site, check_policy};
use tidegate::config::{GatewayRoute, GatewaySettings, RouteKey, machine_policy};
use tidegate::diagnostic::{Check, Health};
use tidegate::metrics::Metrics;
use tidegate::plugin::{CallbackKind, Loaded, PluginInfo};
use tidegate::trust::WorkspaceSettings;
use tidegate::{Host, Operator};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::files::Files;
use crate::args::{self, Common};
use crate::exit::{Exit, Failure};
use crate::say::{self, count};
use crate::{open, screen};

/// The interval at which expired sessions are removed, a bounded number each time.
const REMOVING: Duration = Duration::from_secs(10 * 60);

/// The minimum configuration file.
const EXAMPLE: &str = "\
help: write where requests go, into tidegate.toml:
[[gateway.route]]
path = \"/anthropic\"
upstream = \"https://api.anthropic.com\"";

/// Serves until a signal ends the program.
pub(crate) async fn run(common: &Common, args: &args::Gateway, exported: Option<&Metrics>) -> Result<Exit, Failure> {
    let mut signals = Signals::watch()?;
    let metrics = exported.cloned().unwrap_or_default();
    let files = Arc::new(Files::new(common.clone(), args.listen, Some(metrics.clone())));
    let (site, settings) = files.first().await?;
    let address = settings.listen;
    let gateway =
        Gateway::open(address, settings.certificate.as_ref(), site, &metrics).await.map_err(|error| match error {
            OpenError::Certificate(diagnostics) => diagnostics.into(),
            other => Failure::setup(other),
        })?;
    gateway.follow(Arc::<Files>::clone(&files));
    if !address.ip().is_loopback() && settings.certificate.is_none() {
        say::note(format_args!(
            "warning: tokens and conversations are not encrypted on their way to {address}: set `certificate` under `[gateway]`, or put a server with TLS in \
             front of it"
        ));
    }
    say_where(&gateway, &settings)?;
    tokio::select! {
        () = signals.serve(&gateway) => {}
        () = remove_expired(&files) => {}
    }
    let patience = gateway.drain();
    tokio::select! {
        left = gateway.close(patience) => say_left(left),
        () = signals.again() => say::note("gateway: ended at once; answers broke off"),
    }
    files.close().await;
    Ok(Exit::Completed)
}

/// Removes expired sessions at an interval.
async fn remove_expired(files: &Files) {
    loop {
        files.remove_expired().await;
        tokio::time::sleep(REMOVING).await;
    }
}

/// Returns the settings under the policy of the machine, with the flags.
fn operator(common: &Common, settings: &WorkspaceSettings, listen: Option<SocketAddr>) -> Result<Operator, Failure> {
    let mut operator = open::under_policy(open::of_settings(common, settings)?)?;
    if let Some(address) = listen {
        operator.gateway.listen = address;
    }
    let settings = &operator.gateway;
    if settings.routes.is_empty() {
        return Err(Failure::setup(format_args!("the gateway has no route\n{EXAMPLE}")));
    }
    if let Some(policy) = machine_policy()? {
        check_policy(settings, &policy)?;
    }
    Ok(operator)
}

/// Opens a host with the plugins, for conversations: it has no model of its own. `before`: the host that it replaces.
pub(crate) fn host(operator: &Operator, metrics: Option<&Metrics>, before: Option<&Host>) -> Result<Host, Failure> {
    let mut builder = Host::builder(operator.clone()).without_model().remember_shown_prompts();
    if let Some(before) = before {
        builder = builder.in_place_of(before);
    }
    if let Some(metrics) = metrics {
        builder = builder.metrics(metrics);
    }
    Ok(tokio::task::block_in_place(|| Handle::current().block_on(builder.open()))?)
}

/// Returns the plugins of a host, as its conversations have them.
pub(crate) fn loaded(host: &Host, workspace: &Path) -> Result<Loaded, Failure> {
    Ok(tokio::task::block_in_place(|| Handle::current().block_on(host.loaded(workspace)))?)
}

/// Returns whether a plugin gets or changes requests or answers, and not only gets matches of rules.
pub(crate) fn gets_traffic(plugin: &PluginInfo) -> bool {
    let is_called = plugin.callbacks.iter().any(|one| one.kind() != CallbackKind::TtsrTriggered);
    plugin.enabled && (is_called || plugin.adds_to_prompt)
}

/// Checks the routes, if there are any.
pub(crate) async fn doctor(common: &Common, operator: &Operator) -> Vec<Check> {
    if operator.gateway.routes.is_empty() {
        return Vec::new();
    }
    let opened = || -> Result<Site, Failure> {
        if let Some(policy) = machine_policy()? {
            check_policy(&operator.gateway, &policy)?;
        }
        let loaded = rules::read(operator, &common.workspace)?;
        loaded.report();
        loaded.check(None, &operator.gateway.routes)?;
        rules::check_plugins(operator, &operator.load_plugins()?)?;
        let set = loaded.set;
        let make = |_, _, _: &GatewayRoute, _: Option<&Conversations>| Conversations::idle();
        Ok(Site::of_settings(&operator.gateway, &set, &mut KeptConversations::default(), &make)?)
    };
    match tokio::task::block_in_place(opened) {
        Ok(site) => serve::gateway::doctor(&operator.gateway, site).await,
        Err(failure) => vec![Check::new("gateway", Health::Bad, failure.into_line())],
    }
}

fn say_where(gateway: &Gateway, settings: &GatewaySettings) -> Result<(), Failure> {
    let mut out = screen::out();
    let base = gateway.url();
    writeln!(out, "{base}")?;
    for route in &settings.routes {
        let key = match &route.key {
            RouteKey::Client => "the key of the client".to_owned(),
            RouteKey::Env(name) => format!("the key in {name}"),
        };
        writeln!(out, "{}{} -> {} with {key}", base, route.path, route.upstream)?;
    }
    out.flush()?;
    if settings.tokens.is_empty() {
        say::note("gateway: every program of this machine is admitted: there is no `[[gateway.token]]`");
    }
    Ok(())
}

fn say_left(left: u64) {
    if left > 0 {
        let left = count(left, "connection", "connections");
        say::note(format_args!("gateway: {left} did not end within `drain_ms` under `[gateway.limits]` and broke off"));
    }
}

/// The signals of a server.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn watch() -> Result<Self, Failure> {
        let watch = |kind| signal(kind).map_err(|error| Failure::setup(format_args!("cannot follow signals: {error}")));
        Ok(Self {
            interrupt: watch(SignalKind::interrupt())?,
            terminate: watch(SignalKind::terminate())?,
            hangup: watch(SignalKind::hangup())?,
        })
    }

    /// Returns when the server has to close.
    async fn serve(&mut self, gateway: &Gateway) {
        loop {
            tokio::select! {
                _ = self.hangup.recv() => gateway.reload(),
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
            }
        }
    }

    /// Waits for the next signal that ends the program.
    async fn again(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

//! The policy of the machine: read once when a host is opened, and above everything that the host is opened with.

use std::path::PathBuf;
use std::sync::Arc;

use config::{Diagnostics, Policy, StatePlace};
use flow::{Diagnostic, DiagnosticCode as Code, KeySource};
use providers::{HttpConfig, ProviderConfig};

use crate::plugins::host_plugin::HostPlugin;
use crate::{HostBuilder, HostError};

/// Where the policy of a machine is. Nothing that a user, a workspace or an environment says changes the place.
pub const POLICY_FILE: &str = "/etc/tidegate/policy.toml";

/// Reads the policy of this machine; `None`: there is none.
///
/// # Errors
/// It is there and cannot be used: then nothing should run.
pub fn machine_policy() -> Result<Option<Policy>, Diagnostics> {
    Policy::read(POLICY_FILE.as_ref())
}

impl HostBuilder {
    /// Reads the policy here, and not at [`POLICY_FILE`]: for tests, and for programs whose administrators have another place for it. What
    /// can name the file can end the policy: it must not come from a user, a workspace or the environment.
    #[must_use]
    pub fn policy_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.policy_file = file.into();
        self
    }

    /// The same under the policy.
    ///
    /// # Errors
    /// The policy is there and cannot be used.
    pub(crate) fn under_policy(mut self) -> Result<Self, HostError> {
        let Some(policy) = Policy::read(&self.policy_file)?.map(Arc::new) else { return Ok(self) };
        self.replaced = policy.put_above(&mut self.operator);
        if let Some(read) = self.follow.take() {
            let above = Arc::clone(&policy);
            self.follow = Some(Arc::new(move || {
                let mut operator = read()?;
                let _replaced = above.put_above(&mut operator);
                Ok(operator)
            }));
        }
        self.policy = Some(policy);
        Ok(self)
    }

    /// # Errors
    /// The policy does not permit the address of the provider, or the variable of its key.
    pub(crate) fn check_provider(&self, config: &ProviderConfig) -> Result<(), Diagnostics> {
        let (Some(policy), ProviderConfig::Http(config)) = (&self.policy, config) else { return Ok(()) };
        let url = config.base_url.as_deref().unwrap_or(config.wire.default_base_url());
        policy.check_address("the provider", url)?;
        match variable(config) {
            Some(variable) => policy.check_variable("api_key_env", variable),
            None => Ok(()),
        }
    }

    /// # Errors
    /// The policy does not permit the server of the state, or the variable of its URL.
    pub(crate) fn check_state(&self) -> Result<(), HostError> {
        let policy = match &self.policy {
            Some(policy) => Some(Arc::clone(policy)),
            // It is asked for the store without being opened.
            None => Policy::read(&self.policy_file)?.map(Arc::new),
        };
        let (Some(policy), StatePlace::Redis(redis)) = (policy, &self.operator.state.place) else {
            return Ok(());
        };
        policy.check_variable("url_env", &redis.url_env)?;
        if let Some(name) = &redis.password_env {
            policy.check_variable("state.password", name)?;
        }
        let url = system::environment::variable(&redis.url_env).and_then(|url| url.into_string().ok());
        // What cannot be read is not opened.
        let url = url.and_then(|url| store::RedisUrl::parse(&url).ok());
        for server in url.iter().flat_map(store::RedisUrl::addresses) {
            policy.check_address("the state of plugins", &server)?;
        }
        Ok(())
    }
}

/// # Errors
/// The policy requires the plugin: then nothing else configures it.
pub(crate) fn refuse_change(host_plugin: &HostPlugin) -> Result<(), HostError> {
    let plugin = &host_plugin.loaded.plugin;
    if !plugin.entry.by_policy {
        return Ok(());
    }
    let message = "the policy of this machine requires the plugin, and nothing else changes it";
    let error = Diagnostic::error(Code::ConfigPolicy, message).about_plugin(&plugin.manifest.id);
    let error = plugin.entry.place.iter().fold(error, |error, place| error.at(place.clone(), "required here"));
    Err(Diagnostics(vec![error]).into())
}

/// The variable that the key is read from, where one is.
fn variable(config: &HttpConfig) -> Option<&str> {
    match &config.key {
        _ if config.given_key.is_some() => None,
        KeySource::Env(variable) => Some(variable),
        KeySource::Usual if config.base_url.is_none() => Some(config.wire.default_key_env()),
        KeySource::Usual | KeySource::None => None,
    }
}

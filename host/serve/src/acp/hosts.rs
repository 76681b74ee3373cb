//! Hosts of the workspaces: one for each operator's file, all on one engine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate::{Engine, Host, HostBuilder, HostError, OPERATOR_FILE, ProviderError};
use tokio::sync::Mutex;

use super::sdk::Error;

/// Makes the builder of a host from an operator's file.
type Build = Arc<dyn Fn(Option<&Path>) -> Result<HostBuilder, String> + Send + Sync>;

/// The hosts of the process. One that cannot be opened is tried again by the next request that needs it: its files may have changed.
pub(super) struct Hosts {
    build: Build,
    config: Option<PathBuf>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    engine: Option<Engine>,
    /// By operator's file.
    hosts: BTreeMap<Option<PathBuf>, Host>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Hosts {
    pub(super) fn new(build: Build) -> Self {
        Self { build, config: None, open: Mutex::default() }
    }

    pub(super) fn config(self, config: Option<PathBuf>) -> Self {
        Self { config, ..self }
    }

    /// The host for sessions in this workspace. While one is opened, which compiles its plugins, other requests for hosts wait.
    ///
    /// # Errors
    /// It cannot be opened: the reason is for the user.
    pub(super) async fn of(&self, workspace: &Path) -> Result<Host, Error> {
        // One folder has one host, however its path is written.
        let folder = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let file = self.config.clone().or_else(|| Some(folder.join(OPERATOR_FILE)).filter(|file| file.exists()));
        let mut open = self.open.lock().await;
        if let Some(host) = open.hosts.get(&file) {
            return Ok(host.clone());
        }
        let mut builder = (self.build)(file.as_deref()).map_err(|reason| error(-32603, reason))?;
        if let Some(engine) = &open.engine {
            builder = builder.engine(engine);
        }
        let host = builder.open().await.map_err(|reason| failed(&reason))?;
        if open.engine.is_none() {
            open.engine = host.engine().cloned();
        }
        open.hosts.insert(file, host.clone());
        Ok(host)
    }

    /// The hosts that are open.
    pub(super) async fn all(&self) -> Vec<Host> {
        self.open.lock().await.hosts.values().cloned().collect()
    }
}

/// An error for the client, whose users see the message.
pub(super) fn error(code: i32, message: impl Into<String>) -> Error {
    Error::new(code, message)
}

/// The error of a host or of a session that cannot be opened.
pub(super) fn failed(reason: &HostError) -> Error {
    let code = match reason {
        // The client offers the methods of authentication.
        HostError::Provider(ProviderError::NoKey { .. }) => -32000,
        HostError::Tools(_) => -32602,
        _ => -32603,
    };
    error(code, reason.with_hint())
}

//! Hosts of the workspaces: one for each workspace with an operator's file of its own, and one for all others, on one engine.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate::{Engine, Host, HostBuilder, HostError, LayerKind, OperatorFiles, ProviderError};
use tokio::sync::Mutex;

use super::sdk::Error;

/// Makes the builder of the host of a workspace.
type Build = Arc<dyn Fn(&Path) -> Result<HostBuilder, String> + Send + Sync>;

/// The hosts of the process. One that cannot be opened is tried again by the next request that needs it: its files may have changed.
pub(super) struct Hosts {
    build: Build,
    files: OperatorFiles,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    engine: Option<Engine>,
    /// By the workspace whose operator's file counts; `None`: it has none, or another file takes its place.
    hosts: BTreeMap<Option<PathBuf>, Host>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Hosts {
    pub(super) fn new(files: OperatorFiles, build: Build) -> Self {
        Self { build, files, open: Mutex::default() }
    }

    /// The host for sessions in this workspace. While one is opened, which compiles its plugins, other requests for hosts wait.
    ///
    /// # Errors
    /// It cannot be opened: the reason is for the user.
    pub(super) async fn of(&self, workspace: &Path) -> Result<Host, Error> {
        // One folder has one host, however its path is written.
        let folder = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let found = self.files.read(&folder).map_err(|reason| error(-32603, reason.in_one_line()))?;
        let is_own = found.layers.iter().any(|layer| layer.kind == LayerKind::Workspace);
        let own = is_own.then(|| folder.clone());
        let mut open = self.open.lock().await;
        if let Some(host) = open.hosts.get(&own) {
            return Ok(host.clone());
        }
        let mut builder = (self.build)(&folder).map_err(|reason| error(-32603, reason))?;
        if let Some(engine) = &open.engine {
            builder = builder.engine(engine);
        }
        let host = builder.open().await.map_err(|reason| failed(&reason))?;
        if open.engine.is_none() {
            open.engine = host.engine().cloned();
        }
        open.hosts.insert(own, host.clone());
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

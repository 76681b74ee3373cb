//! Hosts of the workspaces: one for each whose own operator's file counts, and one for all others, on one engine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate::model::ProviderError;
use tidegate::trust::{SettingsReader, WorkspaceSettings};
use tidegate::{Engine, Host, HostBuilder, HostError};
use tokio::sync::Mutex;

use super::sdk::Error;

/// Makes the builder of a host from the settings of a workspace.
type Build = Arc<dyn Fn(&WorkspaceSettings) -> Result<HostBuilder, String> + Send + Sync>;

/// The hosts of the process. One that cannot be opened is tried again by the next request that needs it: its files may have changed.
pub(super) struct Hosts {
    build: Build,
    reader: SettingsReader,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    engine: Option<Engine>,
    /// By the workspace whose operator's file counts, and the digest of what it asks for; `None`: no workspace's file does.
    hosts: BTreeMap<Option<(PathBuf, String)>, Host>,
    /// Files that the user does without as long as the process runs: workspaces, and digests of what they ask for.
    left_out: BTreeSet<(PathBuf, String)>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts").field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl Hosts {
    pub(super) fn new(reader: SettingsReader, build: Build) -> Self {
        Self { build, reader, open: Mutex::default() }
    }

    /// The settings of a workspace. Where they have a request, the user has to decide before a session can be opened.
    ///
    /// # Errors
    /// They cannot be read: the reason is for the user.
    pub(super) async fn settings(&self, workspace: &Path) -> Result<WorkspaceSettings, Error> {
        // One folder has one host, however its path is written.
        let folder = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let settings = self.reader.read(&folder).map_err(|reason| error(-32603, reason.in_one_line()))?;
        let asked = settings.request().map(|request| (folder, request.digest.clone()));
        let open = self.open.lock().await;
        Ok(if asked.is_some_and(|asked| open.left_out.contains(&asked)) { settings.without() } else { settings })
    }

    /// Does without the file of a workspace from now on, as it is.
    pub(super) async fn leave_out(&self, workspace: &Path, settings: WorkspaceSettings) -> WorkspaceSettings {
        if let Some(request) = settings.request() {
            let folder = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
            self.open.lock().await.left_out.insert((folder, request.digest.clone()));
        }
        settings.without()
    }

    /// The host for sessions with these settings. While one is opened, which compiles its plugins, other requests for hosts wait.
    ///
    /// # Errors
    /// It cannot be opened: the reason is for the user.
    pub(super) async fn of(&self, settings: WorkspaceSettings) -> Result<Host, Error> {
        let identity = settings.identity();
        // A host of many workspaces follows the user's file alone.
        let settings = if identity.is_none() { settings.without() } else { settings };
        let mut open = self.open.lock().await;
        if let Some(host) = open.hosts.get(&identity) {
            return Ok(host.clone());
        }
        let mut builder = (self.build)(&settings).map_err(|reason| error(-32603, reason))?;
        if let Some(engine) = &open.engine {
            builder = builder.engine(engine);
        }
        let host = builder.open().await.map_err(|reason| failed(&reason))?;
        if open.engine.is_none() {
            open.engine = host.engine().cloned();
        }
        // Sessions that are open keep the host of what was trusted before.
        if let Some((workspace, _)) = &identity {
            open.hosts.retain(|known, _| known.as_ref().is_none_or(|(other, _)| other != workspace));
        }
        open.hosts.insert(identity, host.clone());
        Ok(host)
    }

    /// The host that knows where the sessions of a workspace are, without the file of the workspace where that is not trusted.
    ///
    /// # Errors
    /// It cannot be opened: the reason is for the user.
    pub(super) async fn of_records(&self, workspace: &Path) -> Result<Host, Error> {
        let settings = self.settings(workspace).await?;
        Box::pin(self.of(if settings.request().is_some() { settings.without() } else { settings })).await
    }

    /// The hosts that are open.
    pub(super) async fn all(&self) -> Vec<Host> {
        self.open.lock().await.hosts.values().cloned().collect()
    }

    /// The same, each with the workspace whose file counts; `None`: no workspace's file does.
    pub(super) async fn by_workspace(&self) -> Vec<(Option<PathBuf>, Host)> {
        let open = self.open.lock().await;
        open.hosts.iter().map(|(of, host)| (of.as_ref().map(|(folder, _)| folder.clone()), host.clone())).collect()
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

//! The host of a run: five plugins in a folder, which can be edited, and a store for their state.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tempfile::TempDir;
use tidegate::metrics::Metrics;
use tidegate::state::{DiskStore, RedisOptions, RedisStore, StoreOptions};
use tidegate::{Host, HostBuilder, Operator, Session, SessionId, SessionOptions, SystemClock};
use tidegate_servers::RedisServer;

use crate::plan::{Plan, Store};
use crate::recorded::Recorded;
use crate::tally::Tally;
use crate::worker::Done;

/// The plugin that withholds what it did not check: it stays as it is while the program runs.
const GUARD: &str = "plugins/redact-secrets";

/// The plugins in order of registration: where they are, what they are granted, and more of their entry.
pub(crate) const PLUGINS: [(&str, &str, &str); 5] = [
    ("plugins/team-guard", "\"state\", \"prompt\"", ""),
    ("plugins/session-notes", "\"state\", \"prompt\", \"provide-tools\"", ""),
    (GUARD, "\"state\"", ""),
    ("tests/guests/echo", "", "priority.on_tag = 60\n"),
    (
        "tests/guests/conformance",
        "\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"",
        "priority.on_input_messages = 90\npriority.on_plain_text = 10\n\
         [plugin.settings]\nonly = [\"on_input_messages\", \"on_plain_text\"]\nmode = \"observe\"\n",
    ),
];

pub(crate) struct Place {
    folder: TempDir,
    host: Host,
    metrics: Metrics,
    /// The server of the state, where there is one.
    pub(crate) server: Mutex<Option<RedisServer>>,
}

impl Place {
    pub(crate) async fn open(plan: &Plan) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // Other work on the machine must not decide whether a callback is in time.
        let mut toml =
            "[rules]\nuser_rules = false\n[limits]\ncallback_ms = 60000\ntext_ms = 60000\nturn_ms = 600000\n"
                .to_owned();
        for (source, grants, more) in PLUGINS {
            let path = install(&source_of(source), folder.path())?;
            toml += &format!(
                "[[plugin]]\npath = {path:?}\ngrants = [{grants}]\nlimits.text_ms = 60000\nlimits.callback_ms = 60000\n{more}"
            );
        }
        fs::write(folder.path().join("tidegate.toml"), toml)?;
        fs::create_dir(folder.path().join("workspace"))?;
        let operator = Operator::load(&folder.path().join("tidegate.toml")).map_err(|wrong| anyhow!("{wrong}"))?;
        let metrics = Metrics::new();
        // Twice: `ttsr_triggered` runs in an instance of its own.
        let instances = plan.sessions * u32::try_from(PLUGINS.len())? * 2;
        let compiled = std::env::current_exe()?.with_file_name("load-components");
        let builder = Host::builder(operator).user_rules(None).cache_dir(Some(compiled));
        let builder = builder.max_instances(instances).metrics(&metrics);
        let (builder, server) = with_store(builder, plan.store, folder.path())?;
        let host = builder.open().await?;
        Ok(Self { folder, host, metrics, server: Mutex::new(server) })
    }

    /// Opens a session.
    ///
    /// # Errors
    /// Those of [`Host::session`].
    pub(crate) async fn session(&self, id: &SessionId, model: Arc<Recorded>) -> Result<Session, tidegate::HostError> {
        let options = SessionOptions::new(self.folder.path().join("workspace")).id(id.clone()).model(model);
        self.host.session(options).await
    }

    /// Writes the manifest of a plugin that can be reloaded anew, with another version, at once as editors do.
    pub(crate) fn edit(&self, edit: usize) -> Result<()> {
        let mut sources = PLUGINS.iter().map(|(source, ..)| *source).filter(|source| *source != GUARD).cycle();
        let source = sources.nth(edit % PLUGINS.len()).context("every plugin guards")?;
        let folder = self.folder.path().join(name_of(source));
        let text = fs::read_to_string(source_of(source).join("plugin.toml"))?;
        let text = text.replace("version = \"0.1.0\"", &format!("version = \"0.1.{}\"", edit + 1));
        fs::write(folder.join("new"), text)?;
        fs::rename(folder.join("new"), folder.join("plugin.toml"))?;
        Ok(())
    }

    /// Compares what is stored of a session with what it did.
    pub(crate) async fn check_stored(&self, done: &Done, tally: &Tally) -> Result<()> {
        let shown = self.host.state_admin().show(&done.id).await?;
        let shown = shown.with_context(|| format!("nothing is stored of the session {}", done.id))?;
        let mut found = false;
        for (plugin, state) in &shown.states {
            for entry in &state.entries {
                let value = String::from_utf8_lossy(&entry.value);
                tally.look_for_secrets(&format!("the state of {plugin}"), &value, &done.canary);
                if plugin.as_str() == "conformance" && entry.key == "turns" {
                    found = true;
                    if !value.parse().is_ok_and(|turns| done.agrees(turns, 0)) {
                        let Done { id, counted, unseen, .. } = done;
                        tally.problem(format!("{id}: {value} turns are stored, it had {counted} (and up to {unseen})"));
                    }
                }
            }
        }
        if !found {
            tally.problem(format!("{}: the number of its turns is not stored", done.id));
        }
        Ok(())
    }

    /// Nothing of a session is a label of a metric.
    pub(crate) fn check_metrics(&self, tally: &Tally) {
        tally.look_for_secrets("the text of the metrics", &self.metrics.prometheus(), "nobody");
    }

    /// Kills the server of the state for a moment.
    pub(crate) fn restart_server(&self, away: Duration) -> Result<()> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let server = server.as_mut().context("there is no server to restart")?;
        server.kill();
        std::thread::sleep(away);
        server.start_again()
    }
}

fn name_of(source: &str) -> &str {
    source.rsplit('/').next().unwrap_or(source)
}

pub(crate) fn source_of(source: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(source)
}

/// Copies the manifest and the component of a plugin; the component is built where it is not fresh.
pub(crate) fn install(source: &Path, into: &Path) -> Result<String> {
    let name = name_of(source.to_str().context("the path is not UTF-8")?).to_owned();
    let folder = into.join(&name);
    fs::create_dir(&folder)?;
    fs::copy(source.join("plugin.toml"), folder.join("plugin.toml"))?;
    let built = tidegate_build::build(source, &tidegate_build::Options::default(), &mut |_| {})?;
    fs::write(folder.join(tidegate_build::COMPONENT_FILE), built.bytes)?;
    Ok(name)
}

fn with_store(builder: HostBuilder, store: Store, folder: &Path) -> Result<(HostBuilder, Option<RedisServer>)> {
    let (options, clock) = (StoreOptions::default(), Arc::new(SystemClock));
    Ok(match store {
        Store::Memory => (builder, None),
        Store::Disk => (builder.state_store(Arc::new(DiskStore::new(folder.join("state"), options, clock)?)), None),
        Store::Redis => {
            let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"])?;
            let store = RedisStore::new(RedisOptions::new(server.url()), clock)?;
            (builder.state_store(Arc::new(store)), Some(server))
        }
    })
}

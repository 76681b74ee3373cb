//! `[state]` of the operator's file: where the state of plugins is kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flow::{KeySource, StateBackend};

use crate::Code;
use crate::document::{Document, Step, steps};
use crate::typed::{OperatorFile, StateFile};

/// Where the state of plugins is kept, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSettings {
    /// Which store keeps it.
    pub place: StatePlace,
    /// How long the state of a session is kept after its last turn.
    pub session_ttl: Duration,
    /// Maximum bytes of the state of all plugins of one session.
    pub session_bytes: u64,
    /// How long the state of a plugin that is not configured any more is kept in a session.
    pub absent: Duration,
}

/// The store of plugin state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatePlace {
    /// The operator has not decided: memory, unless a front end that keeps sessions decides otherwise.
    Unset,
    /// Memory, as long as the host exists.
    Memory,
    /// Files in this folder; `None`: the default folder.
    Disk(Option<PathBuf>),
    /// The Redis server whose URL this environment variable contains.
    Redis {
        /// The name of the variable.
        url_env: String,
        /// Whether the password in the URL is sent to another machine.
        allow_plaintext_password: bool,
    },
}

impl StateSettings {
    /// The variable of the URL, where the operator names none.
    const URL_ENV: &str = "TIDEGATE_REDIS_URL";

    pub(crate) fn of(typed: &StateFile, folder: &Path) -> Self {
        let place = match typed.backend {
            None => StatePlace::Unset,
            Some(StateBackend::Memory) => StatePlace::Memory,
            Some(StateBackend::Disk) => StatePlace::Disk(typed.folder.as_ref().map(|path| folder.join(path))),
            Some(StateBackend::Redis) => StatePlace::Redis {
                url_env: typed.url_env.clone().unwrap_or_else(|| Self::URL_ENV.to_owned()),
                allow_plaintext_password: typed.allow_plaintext_password,
            },
        };
        let session_ttl = Duration::from_secs(u64::from(typed.session_ttl_h) * 3_600);
        let absent = Duration::from_secs(u64::from(typed.absent_days) * 86_400);
        Self { place, session_ttl, session_bytes: u64::from(typed.session_mib) << 20, absent }
    }
}

/// Reports what cannot have the effect that it seems to have.
pub(crate) fn check_state(document: &mut Document<'_>, typed: &OperatorFile) {
    check_backend(document, &typed.state);
    let own = typed.plugin.iter().enumerate().filter_map(|(index, plugin)| {
        Some((steps!["plugin", index, "limits", "state_mib"].to_vec(), plugin.limits.state_mib?))
    });
    let all = (steps!["limits", "state_mib"].to_vec(), typed.limits.state_mib);
    for (path, mib) in own.chain([all]) {
        check_size(document, &path, mib, typed.state.session_mib);
    }
}

/// A plugin whose limit is larger than that of the session is refused writes there, and none of its keys is ever evicted for it.
fn check_size(document: &mut Document<'_>, path: &[Step], mib: u64, session_mib: u32) {
    // A default is no mistake of whoever lowered the limit of sessions.
    if mib > u64::from(session_mib) && document.find(path, false).is_some() {
        let message =
            format!("`state_mib` is larger than the limit of a session, `state.session_mib`, which is {session_mib}");
        let help = "lower it, or raise `session_mib` under `[state]`: it counts for all plugins of a session together";
        document.error(Code::ConfigOutOfRange, path, message, help);
    }
}

/// Reports the keys of another backend than the one that is used.
fn check_backend(document: &mut Document<'_>, typed: &StateFile) {
    let keys = [
        ("folder", typed.folder.is_some(), StateBackend::Disk),
        ("url_env", typed.url_env.is_some(), StateBackend::Redis),
        ("allow_plaintext_password", typed.allow_plaintext_password, StateBackend::Redis),
    ];
    for (key, is_set, backend) in keys {
        if is_set && typed.backend != Some(backend) {
            let message = format!("`{key}` requires `backend = \"{backend}\"`");
            let help = format!("set `backend = \"{backend}\"`, or remove the key");
            document.error(Code::ConfigStateBackend, &steps!["state", key], message, help);
        }
    }
    if let Some(name) = &typed.url_env
        && KeySource::of_variable(name).is_err()
    {
        let help = "write the name of the variable; the variable contains the URL with its password";
        document.error(
            Code::ConfigInvalidVariable,
            &steps!["state", "url_env"],
            "`url_env` is not the name of an environment variable",
            help,
        );
    }
}

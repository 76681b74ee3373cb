//! `[state]` of the operator's file: where the state of plugins is kept.

use std::path::PathBuf;
use std::time::Duration;

use flow::{KeySource, StateBackend, TranscriptBackend};

use crate::document::{Document, Step, steps};
use crate::listening::{check_certificate, has_no_effect, variable};
use crate::typed::{OperatorFile, StateFile};
use crate::{Code, Location};

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
    /// A Redis server.
    Redis(Box<RedisPlace>),
}

/// The Redis server of the state of plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisPlace {
    /// The environment variable that contains the URL.
    pub url_env: String,
    /// The user, where the URL contains none.
    pub user: Option<String>,
    /// The environment variable that contains the password, where the URL contains none.
    pub password_env: Option<String>,
    /// The certificates for checking that of the server; `None` for those of the machine.
    pub ca: Option<PlacedFile>,
    /// The certificate of this client.
    pub certificate: Option<PlacedFile>,
    /// The private key of `certificate`.
    pub certificate_key: Option<PlacedFile>,
    /// Whether the password is sent to another machine without encryption.
    pub allow_plaintext_password: bool,
    /// How long a host that has died keeps its sessions; `None`: the default of the store.
    pub lease: Option<Duration>,
    /// The location of `password_env`, for diagnostics.
    pub password_place: Option<Location>,
}

/// A file that the settings name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The location of its name, for diagnostics that are only known when it is read.
    pub place: Location,
}

impl PlacedFile {
    /// Reads the name of a file at this place, relative to the file that names it.
    pub(crate) fn read(document: &Document<'_>, at: &[Step], name: &str) -> Self {
        Self { path: document.folder(at).join(name), place: document.place(at) }
    }
}

impl StateSettings {
    /// The variable of the URL, where the operator names none.
    const URL_ENV: &str = "TIDEGATE_REDIS_URL";

    pub(crate) fn read(document: &mut Document<'_>, typed: &StateFile) -> Self {
        let folder = document.folder(&steps!["state", "folder"]);
        let place = match typed.backend {
            None => StatePlace::Unset,
            Some(StateBackend::Memory) => StatePlace::Memory,
            Some(StateBackend::Disk) => StatePlace::Disk(typed.folder.as_ref().map(|path| folder.join(path))),
            Some(StateBackend::Redis) => StatePlace::Redis(Box::new(redis(document, typed))),
        };
        Self::at(place, typed)
    }

    fn at(place: StatePlace, typed: &StateFile) -> Self {
        let session_ttl = Duration::from_secs(u64::from(typed.session_ttl_h) * 3_600);
        let absent = Duration::from_secs(u64::from(typed.absent_days) * 86_400);
        Self { place, session_ttl, session_bytes: u64::from(typed.session_mib) << 20, absent }
    }
}

impl Default for StateSettings {
    fn default() -> Self {
        Self::at(StatePlace::Unset, &StateFile::default())
    }
}

fn redis(document: &mut Document<'_>, typed: &StateFile) -> RedisPlace {
    let at = |key: &str| steps!["state", key];
    let password = typed.password.as_deref();
    let password_env = password.and_then(|text| variable(document, &at("password"), text, "`password`"));
    let file = |key: &str, name: &Option<String>| Some(PlacedFile::read(document, &at(key), name.as_ref()?));
    RedisPlace {
        url_env: typed.url_env.clone().unwrap_or_else(|| StateSettings::URL_ENV.to_owned()),
        user: typed.user.clone(),
        password_env,
        ca: file("ca", &typed.ca),
        certificate: file("certificate", &typed.certificate),
        certificate_key: file("certificate_key", &typed.certificate_key),
        allow_plaintext_password: typed.allow_plaintext_password,
        lease: typed.lease_s.map(|seconds| Duration::from_secs(u64::from(seconds))),
        password_place: password.map(|_| document.place(&at("password"))),
    }
}

/// Reports what cannot have the effect that it seems to have.
pub(crate) fn check_state(document: &mut Document<'_>, typed: &OperatorFile) {
    check_backend(document, &typed.state);
    check_transcript(document, typed);
    check_pairs(document, &typed.state);
    let own = typed.plugin.iter().enumerate().filter_map(|(index, plugin)| {
        Some((steps!["plugin", index, "limits", "state_mib"].to_vec(), plugin.limits.state_mib?))
    });
    let all = (steps!["limits", "state_mib"].to_vec(), typed.limits.state_mib);
    for (path, mib) in own.chain([all]) {
        check_size(document, &path, mib, typed.state.session_mib);
    }
}

/// A session whose records are on a server has its state there, too: what continues it elsewhere needs both.
fn check_transcript(document: &mut Document<'_>, typed: &OperatorFile) {
    if typed.transcript.backend == TranscriptBackend::Redis && typed.state.backend != Some(StateBackend::Redis) {
        let message = "`backend = \"redis\"` under `[transcript]` requires `backend = \"redis\"` under `[state]`";
        let help = "set it there, with the variable that contains the URL of the server";
        document.error(Code::ConfigStateBackend, &steps!["transcript", "backend"], message, help);
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

/// Reports keys that have no effect without another one.
fn check_pairs(document: &mut Document<'_>, typed: &StateFile) {
    let table = ("state", Code::ConfigStateBackend);
    check_certificate(document, table, typed.certificate.is_some(), typed.certificate_key.is_some());
    if typed.user.is_some() && typed.password.is_none() {
        has_no_effect(document, table, ("user", "password"), "set `password = \"env:NAME\"`");
    }
}

/// Reports the keys of another backend than the one that is used.
fn check_backend(document: &mut Document<'_>, typed: &StateFile) {
    let keys = [
        ("folder", typed.folder.is_some(), StateBackend::Disk),
        ("url_env", typed.url_env.is_some(), StateBackend::Redis),
        ("user", typed.user.is_some(), StateBackend::Redis),
        ("password", typed.password.is_some(), StateBackend::Redis),
        ("ca", typed.ca.is_some(), StateBackend::Redis),
        ("certificate", typed.certificate.is_some(), StateBackend::Redis),
        ("certificate_key", typed.certificate_key.is_some(), StateBackend::Redis),
        ("allow_plaintext_password", typed.allow_plaintext_password, StateBackend::Redis),
        ("lease_s", typed.lease_s.is_some(), StateBackend::Redis),
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

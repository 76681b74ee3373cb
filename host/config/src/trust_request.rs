//! What the `tidegate.toml` of a workspace asks for, beyond what any project decides: a person is shown all of it before any of it counts.
//!
//! A project decides without being trusted: which of the models that the operator offers answers (`provider.model`), and what must not run
//! (entries of `tools.permission` with `deny`). Its tables `errors`, `events`, `limits.session`, `limits.approval` and `limits.price` count
//! whatever anybody decides, within the bounds that each has for a project, so nobody is asked about them. A file with any other key counts as
//! a whole or not at all, but for those tables.

use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use toml::de::DeValue;

use crate::digest::{Parts, file_digest};
use crate::document::Document;
use crate::gateway::GatewayRoute;
use crate::leaves::{Leaf, collect, quoted};
use crate::table_settings::is_in_table;
use crate::typed::OperatorFile;
use crate::{
    Diagnostics, FoundFiles, Layer, LayerKind, MANIFEST_FILE, Manifest, Operator, PluginEntry, SourceFile, StatePlace,
    TrustedFiles,
};

/// What a digest is made of. It changes with the way it is made: files are then asked about again.
const DIGEST_FORMAT: &str = "tidegate trust 1";

/// The most bytes that a question shows: nobody reads more.
const MAX_QUESTION_BYTES: usize = 64 << 10;

/// What the file of a workspace asks for. A person decides about all of it at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrustRequest {
    /// The file, as messages show it.
    pub file: PathBuf,
    /// All keys of the file that the decision is about, and the other files that they make power of; the most powerful first.
    pub keys: Vec<RequestedKey>,
    /// The SHA-256 of everything that is decided about: the bytes of the file, those of the system prompt, certificates and keys that it names,
    /// and the manifests and components of its plugins.
    pub digest: String,
}

/// A key of a file with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestedKey {
    /// Its path, as TOML has it; of a plugin, with the plugin's path in the place of the index.
    pub name: String,
    /// A string as it is, whatever it contains; anything else as TOML.
    pub value: String,
    /// What it means for who runs it, where that is not obvious.
    pub meaning: Option<&'static str>,
}

/// The settings of a workspace: with its own file, and without.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JudgedSettings {
    /// What applies where the file counts. Plugins that only it names have the files that the request is about, and no others.
    pub with: Operator,
    /// What applies without it.
    pub without: Operator,
    /// What has to be decided before the file counts; `None`: there is no file, or a project decides all that is in it.
    pub request: Option<TrustRequest>,
}

impl TrustRequest {
    /// Whether it is short enough to be read in a question.
    pub fn is_readable(&self) -> bool {
        self.keys.iter().map(|key| key.name.len() + key.value.len()).sum::<usize>() <= MAX_QUESTION_BYTES
    }
}

impl FoundFiles {
    /// The settings of the workspace, with what its file asks for. Nothing that it names is run, and only files that it names are read.
    ///
    /// # Errors
    /// Something in a file is wrong; all that is wrong is reported together.
    pub fn judge(&self) -> Result<JudgedSettings, Diagnostics> {
        let without = self.without_workspace().operator()?;
        let own = self.layers.iter().find(|layer| layer.kind == LayerKind::Workspace);
        let Some(own) = own else { return Ok(JudgedSettings { with: without.clone(), without, request: None }) };
        let mut with = self.operator()?;
        let request = request(own, &mut with, &without)?;
        Ok(JudgedSettings { with, without, request })
    }

    /// The same files without that of the workspace.
    fn without_workspace(&self) -> Self {
        let mut found = self.clone();
        found.layers.retain(|layer| layer.kind != LayerKind::Workspace);
        let left_out = self.layers.iter().filter(|layer| layer.kind == LayerKind::Workspace);
        found.absent.extend(left_out.map(|layer| layer.source.path.clone()));
        found
    }
}

fn request(own: &Layer, with: &mut Operator, without: &Operator) -> Result<Option<TrustRequest>, Diagnostics> {
    let (document, typed) = Document::read::<OperatorFile>(&own.source)?;
    let DeValue::Table(root) = document.root() else { return Ok(None) };
    let mut leaves = Vec::new();
    collect(root, &mut Vec::new(), &mut leaves);
    if leaves.iter().all(|leaf| leaf.is_free(without)) {
        return Ok(None);
    }
    let mut parts = Parts::new(DIGEST_FORMAT);
    parts.add(&own.source.text);
    let asked = leaves.iter().filter(|leaf| !is_in_table(&leaf.path));
    let mut keys: Vec<RequestedKey> = asked.map(Leaf::key).collect();
    if let (Some(_), Some(system)) = (&typed.prompt.system_file, &with.system) {
        parts.add(system);
        keys.push(more("prompt.system_file, its text", system.clone()));
    }
    for (name, content) in authorities(with, &own.source) {
        parts.add(&content);
        keys.push(more(&format!("{name}, SHA-256 of its content"), content));
    }
    // Those that are disabled can be enabled without another look at their files.
    let entries = with.plugins.iter_mut().chain(&mut with.disabled);
    for entry in entries.filter(|entry| is_only_of(entry, &own.source, without)) {
        let files = trusted_files(entry);
        let shown = |file: &Option<String>| file.as_ref().map_or_else(|| "none".to_owned(), |digest| digest.clone());
        // As the file has it, wherever the workspace is.
        let folder = entry.folder.strip_prefix(own.source.folder()).unwrap_or(&entry.folder).display().to_string();
        for (name, file) in [("manifest", shown(&files.manifest)), ("component", shown(&files.component))] {
            parts.add(&folder);
            parts.add(&file);
            keys.push(more(&format!("plugin.{}, SHA-256 of its {name}", quoted(&folder)), file));
        }
        entry.trusted = Some(files);
    }
    // Stable: keys of one kind stay in the order of their names.
    keys.sort_by_key(|key| {
        MEANINGS.iter().position(|(_, meaning)| Some(*meaning) == key.meaning).unwrap_or(usize::MAX)
    });
    Ok(Some(TrustRequest { file: own.source.path.clone(), keys, digest: parts.digest() }))
}

fn more(name: &str, value: String) -> RequestedKey {
    RequestedKey { name: name.to_owned(), value, meaning: None }
}

/// Returns the files of certificates and keys that the file names for routes and for the state store, each with its digest.
fn authorities(with: &Operator, own: &SourceFile) -> Vec<(String, String)> {
    let digest = |file: &Path| file_digest(file).unwrap_or_else(|_| "none".to_owned());
    let of_file = |route: &&GatewayRoute| route.place.as_ref().is_some_and(|place| place.file.path == own.path);
    let routes = with.gateway.routes.iter().filter(of_file);
    let routes = routes
        .filter_map(|route| Some((format!("gateway.route.{}.ca", quoted(&route.path)), digest(route.ca.as_ref()?))));
    let StatePlace::Redis(redis) = &with.state.place else { return routes.collect() };
    let files = [("ca", &redis.ca), ("certificate", &redis.certificate), ("certificate_key", &redis.certificate_key)];
    let named = files.into_iter().filter_map(|(key, file)| Some((key, file.as_ref()?)));
    let state = named.filter(|(_, file)| file.place.file.path == own.path);
    routes.chain(state.map(|(key, file)| (format!("state.{key}"), digest(&file.path)))).collect()
}

/// Whether the file names the plugin, and no lower layer does.
fn is_only_of(entry: &PluginEntry, own: &SourceFile, without: &Operator) -> bool {
    let real = |entry: &PluginEntry| entry.folder.canonicalize().unwrap_or_else(|_| entry.folder.clone());
    let mut known = without.plugins.iter().chain(&without.disabled);
    let is_named = entry.place.as_ref().is_some_and(|place| place.file.path == own.path);
    is_named && !known.any(|other| real(other) == real(entry))
}

/// The files of a plugin as they are now. One that cannot be read is none: the plugin is not loaded with any.
fn trusted_files(entry: &PluginEntry) -> TrustedFiles {
    let file = entry.folder.join(MANIFEST_FILE);
    let source = crate::read(&file, "").ok();
    let manifest = source.as_ref().map(|source| crate::digest::of_text(&source.text));
    let component = source.and_then(|source| Manifest::of_source(&source).ok()?.component);
    TrustedFiles { manifest, component: component.and_then(|path| file_digest(&path).ok()) }
}

impl Leaf<'_> {
    fn key(&self) -> RequestedKey {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let meaning = MEANINGS.iter().find(|(pattern, _)| fits(pattern, &path)).map(|(_, meaning)| *meaning);
        RequestedKey { name: self.name(), value: self.shown(), meaning }
    }

    /// Whether a project decides it without being trusted.
    fn is_free(&self, operator: &Operator) -> bool {
        if is_in_table(&self.path) {
            return true;
        }
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let text = self.value.get_ref().as_str();
        match path.as_slice() {
            ["provider", "model"] => {
                let offered = &operator.provider;
                let mut models = offered.model.iter().chain(&offered.models);
                models.any(|model| Some(model.as_str()) == text)
            }
            ["tools", "permission", _] => text == Some("deny"),
            _ => false,
        }
    }

    /// A string as it is, whatever it contains; anything else as TOML.
    fn shown(&self) -> String {
        if let Some(text) = self.value.get_ref().as_str() {
            return text.to_owned();
        }
        let tree = toml::de::ValueDeserializer::from(self.value.clone());
        // The schema has let pass what TOML can write.
        toml::Value::deserialize(tree).map_or_else(|error| error.to_string(), |value| value.to_string())
    }
}

fn fits(pattern: &[&str], path: &[&str]) -> bool {
    pattern.len() == path.len() && pattern.iter().zip(path).all(|(part, key)| *part == "*" || part == key)
}

/// What keys mean for who runs them, the most powerful first.
const MEANINGS: [(&[&str], &str); 55] = [
    (&["provider", "base_url"], "requests go to this address, with the conversation and all that tools return"),
    (&["provider", "api_key_env"], "the value of this variable of your environment is sent to the provider"),
    (
        &["provider", "allow_plaintext_key"],
        "the key can be sent without encryption, so that everyone on the way reads it",
    ),
    (
        &["provider", "kind"],
        "answers come from this provider; without `api_key_env` it gets the key of its usual variable",
    ),
    (&["provider", "recording"], "answers come from this file"),
    (&["provider", "headers", "*"], "is sent with every request"),
    (&["gateway", "route", "*", "upstream"], "requests of clients of the gateway go to this address"),
    (&["gateway", "route", "*", "key"], "the key that the gateway sends there"),
    (
        &["gateway", "route", "*", "allow_plaintext_key"],
        "the key can be sent there without encryption, so that everyone on the way reads it",
    ),
    (
        &["gateway", "route", "*", "ca"],
        "the gateway trusts a server with these certificates, instead of those of the machine",
    ),
    (&["gateway", "route", "*", "rules"], "only these rules, and required ones, watch the answers of the route"),
    (&["gateway", "route", "*", "plugins"], "only these plugins, and required ones, act on the route"),
    (&["gateway", "route", "*", "agent"], "rules for other agents do not watch the answers of the route"),
    (&["gateway", "without_store"], "whether requests are answered while budgets and masks cannot be read"),
    (&["gateway", "conversation_header"], "clients choose with this header whose budgets and masks a request has"),
    (&["gateway", "listen"], "the gateway takes requests at this address"),
    (&["gateway", "hosts"], "the gateway takes requests under these names"),
    (&["gateway", "certificate"], "the certificate with which the gateway identifies itself to its clients"),
    (&["gateway", "certificate_key"], "the key with which the gateway identifies itself to its clients"),
    (&["gateway", "token", "*", "value"], "whoever has the value of this variable is admitted to the gateway"),
    (&["gateway", "audit"], "the gateway writes this file"),
    (&["serve", "listen"], "the server for front ends takes requests at this address"),
    (&["serve", "address"], "other hosts send the requests for sessions of this one to it, with the tokens of users"),
    (&["serve", "hosts"], "the server for front ends takes requests under these names"),
    (&["serve", "certificate"], "the certificate with which the server for front ends identifies itself to them"),
    (&["serve", "certificate_key"], "the key with which the server for front ends identifies itself to them"),
    (&["serve", "origins"], "pages of these origins are allowed to call the server for front ends"),
    (
        &["serve", "token", "*", "value"],
        "whoever has the value of this variable is admitted to the server for front ends",
    ),
    (&["tools", "permission", "*"], "whether such calls run: `allow` runs them without a question"),
    (&["tools", "shell", "env"], "commands that the model runs get these variables of your environment"),
    (&["tools", "question", "on_timeout"], "what becomes of a call when nobody answers its question"),
    (
        &["plugin", "*", "path"],
        "a plugin: code in a sandbox, which reads and changes what you write and what you are shown",
    ),
    (&["plugin", "*", "grants"], "what the plugin is given"),
    (&["plugin", "*", "enabled"], "whether the plugin is used"),
    (&["plugin", "*", "required"], "whether its failure ends a turn"),
    (&["plugin", "*", "on_failure"], "whether what it could not check is shown"),
    (&["plugin", "*", "priority", "*"], "when the plugin is called, among others"),
    (&["state", "folder"], "what plugins keep is written to this folder"),
    (&["state", "url_env"], "what plugins keep goes to the server that this variable of your environment names"),
    (&["state", "user"], "the user as whom that server is used"),
    (&["state", "password"], "the value of this variable of your environment is sent to that server"),
    (&["state", "ca"], "that server is trusted if one of these certificates has signed its own"),
    (&["state", "certificate"], "the certificate with which this machine identifies itself to that server"),
    (&["state", "certificate_key"], "the key with which this machine identifies itself to that server"),
    (
        &["state", "allow_plaintext_password"],
        "the password of that server can be sent without encryption, so that everyone on the way reads it",
    ),
    (&["state", "backend"], "where what plugins keep is kept"),
    (&["transcript", "backend"], "where sessions are recorded"),
    (&["transcript", "folder"], "conversations are written to this folder"),
    (&["transcript", "enabled"], "whether conversations are recorded"),
    (&["prompt", "system"], "instructs the model"),
    (&["prompt", "system_file"], "a file that instructs the model, and is sent to the provider"),
    (&["rules", "folders"], "folders with rules, which are sent to the model"),
    (&["rules", "required_folders"], "folders with rules, without which nothing runs"),
    (&["rules", "disabled_rules"], "rules that are switched off"),
    (&["rules", "*"], "what stream rules do"),
];

//! The policy of a machine: what its administrator decides above all settings, flags and answers.
//!
//! Only a file that is absent is no policy. It is read once, when a host is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::Address;

use crate::document::{Document, steps};
use crate::operator::{permissions, plugin_entry};
use crate::rule_folders::RuleFolders;
use crate::typed::{MachinePolicyFile, RulesFile};
use crate::{
    Code, Diagnostic, Diagnostics, Location, MANIFEST_FILE, Manifest, NamedFolder, Operator, PermissionRule,
    PluginEntry, SourceFile, presence,
};

/// What nobody but the administrator of the machine decides.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Policy {
    /// The file, for messages.
    pub file: PathBuf,
    /// The most that calls of tools are permitted. `allow` decides nothing.
    pub permissions: Vec<PermissionRule>,
    /// Plugins that each host requires.
    pub plugins: Vec<PluginEntry>,
    addresses: Option<Permitted<Address>>,
    key_env: Option<Permitted<String>>,
    folders: Vec<NamedFolder>,
}

/// A list outside of which nothing is permitted.
#[derive(Clone, Debug)]
struct Permitted<T> {
    all: Vec<T>,
    place: Location,
}

impl<T: PartialEq + ToString> Permitted<T> {
    fn check(&self, value: &T, message: String) -> Result<(), Diagnostics> {
        if self.all.contains(value) {
            return Ok(());
        }
        let all = self.all.iter().map(T::to_string).collect::<Vec<_>>().join(", ");
        let help = match all.as_str() {
            "" => "it permits none; the administrator of this machine can change that".to_owned(),
            all => format!("it permits {all}; the administrator of this machine can change that"),
        };
        Err(Diagnostic::error(Code::ConfigPolicy, message).at(self.place.clone(), "the policy").help(help).into())
    }
}

impl Policy {
    /// Reads the policy; `None`: there is no file.
    ///
    /// # Errors
    /// There is something at the path, or it cannot be found out, and it cannot be read; everybody can write it; or something in it is wrong.
    pub fn read(file: &Path) -> Result<Option<Self>, Diagnostics> {
        let unusable = |cause: String| {
            let message = format!("cannot use the policy of this machine, `{}`: {cause}", file.display());
            let help = "nothing runs without it; the administrator of this machine can repair or remove it";
            Diagnostics::from(Diagnostic::error(Code::ConfigUnreadable, message).help(help))
        };
        if !presence::is_there(file).map_err(|error| unusable(error.to_string()))? {
            return Ok(None);
        }
        let text = crate::text_of(file).map_err(unusable)?;
        if let Some(open) = writable_by_all(file) {
            return Err(unusable(format!("everybody can write {}", open.display())));
        }
        Self::of_source(&SourceFile::new(file, text)).map(Some)
    }

    /// Reads a policy whose text is there already.
    ///
    /// # Errors
    /// Something in it is wrong; all that is wrong is reported together.
    pub fn of_source(source: &Arc<SourceFile>) -> Result<Self, Diagnostics> {
        let (mut document, typed) = Document::read::<MachinePolicyFile>(source)?;
        let permissions = permissions(&mut document, &typed.tools.permission);
        let plugins = plugins(&mut document, &typed);
        let addresses = addresses(&mut document, &typed);
        let key_env = key_env(&mut document, &typed);
        let mut rules = RulesFile::default();
        rules.folders.required_folders = typed.rules.required_folders;
        let RuleFolders { more, .. } = RuleFolders::read(&mut document, &rules);
        let folders = more.into_iter().map(|folder| NamedFolder { by_policy: true, ..folder }).collect();
        if !document.found.is_empty() {
            return Err(Diagnostics(document.found));
        }
        let file = source.path.clone();
        Ok(Self { file, permissions, plugins, addresses, key_env, folders })
    }

    /// Puts what the policy requires above the settings: its plugins in the place of entries for the same, and its rules. Returns the
    /// entries that have no effect.
    pub fn put_above(&self, operator: &mut Operator) -> Vec<PluginEntry> {
        let own: Vec<Named> = self.plugins.iter().map(Named::of).collect();
        let is_replaced = |entry: &mut PluginEntry| {
            let other = Named::of(entry);
            own.iter().any(|own| own.is_same(&other))
        };
        let mut replaced: Vec<PluginEntry> = operator.plugins.extract_if(.., is_replaced).collect();
        replaced.extend(operator.disabled.extract_if(.., is_replaced));
        operator.plugins.splice(..0, self.plugins.iter().cloned());
        let is_policys = |known: &NamedFolder| self.folders.iter().any(|folder| folder.path == known.path);
        operator.rule_folders.more.retain(|known| !is_policys(known));
        operator.rule_folders.more.extend(self.folders.iter().cloned());
        replaced
    }

    /// Checks where something is to be sent; `what` is the receiver, such as `the provider`.
    ///
    /// # Errors
    /// The policy does not permit the address.
    pub fn check_address(&self, what: &str, url: &str) -> Result<(), Diagnostics> {
        let Some(permitted) = &self.addresses else { return Ok(()) };
        // What is wrong with an address that is none is reported where it is used.
        let Ok(address) = Address::of_url(url) else { return Ok(()) };
        permitted.check(&address, format!("the policy of this machine does not permit {address} for {what}"))
    }

    /// Checks the variable that a key is to be read from; `key` is the setting that names it.
    ///
    /// # Errors
    /// The policy does not permit the variable.
    pub fn check_variable(&self, key: &str, variable: &str) -> Result<(), Diagnostics> {
        let Some(permitted) = &self.key_env else { return Ok(()) };
        let message = format!("the policy of this machine does not permit the variable {variable} for `{key}`");
        permitted.check(&variable.to_owned(), message)
    }

    /// What it enforces, in words.
    pub fn summary(&self) -> String {
        let permissions: Vec<String> = self.permissions.iter().map(ToString::to_string).collect();
        let plugins = self.plugins.iter().map(|entry| entry.folder.display().to_string()).collect();
        let folders = self.folders.iter().map(|folder| folder.path.display().to_string()).collect();
        let lists: [(&str, Vec<String>); 3] =
            [("tools", permissions), ("required plugins", plugins), ("required rule folders", folders)];
        let mut parts: Vec<String> = lists.iter().filter(|(_, all)| !all.is_empty()).map(listed).collect();
        let permitted = [
            ("addresses", self.addresses.as_ref().map(|list| list.all.iter().map(Address::to_string).collect())),
            ("variables of keys", self.key_env.as_ref().map(|list| list.all.clone())),
        ];
        parts.extend(permitted.into_iter().filter_map(|(what, all)| Some(listed(&(what, all?)))));
        if parts.is_empty() { "it enforces nothing".to_owned() } else { parts.join("; ") }
    }
}

fn listed((what, all): &(&str, Vec<String>)) -> String {
    match all.is_empty() {
        true => format!("{what}: none"),
        false => format!("{what}: {}", all.join(", ")),
    }
}

/// What an entry is about: a folder, and the id that its manifest has.
struct Named {
    folder: PathBuf,
    id: Option<flow::PluginId>,
}

impl Named {
    fn of(entry: &PluginEntry) -> Self {
        let folder = entry.folder.canonicalize().unwrap_or_else(|_| entry.folder.clone());
        let id = Manifest::load(&entry.folder.join(MANIFEST_FILE)).ok().map(|manifest| manifest.id);
        Self { folder, id }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.folder == other.folder || (self.id.is_some() && self.id == other.id)
    }
}

fn plugins(document: &mut Document<'_>, typed: &MachinePolicyFile) -> Vec<PluginEntry> {
    let mut entries = Vec::new();
    for (index, plugin) in typed.plugin.iter().enumerate() {
        for key in ["enabled", "required"] {
            let at = steps!["plugin", index, key];
            let is_off = document.find(&at, false).is_some()
                && !(if key == "enabled" { plugin.enabled } else { plugin.required });
            if is_off {
                let message = format!("`{key} = false` contradicts the policy, which requires each of its plugins");
                document.error(Code::ConfigPolicy, &at, message, "remove the key, or the whole entry");
            }
        }
        entries.push(PluginEntry { required: true, by_policy: true, ..plugin_entry(document, index, plugin) });
    }
    entries
}

fn addresses(document: &mut Document<'_>, typed: &MachinePolicyFile) -> Option<Permitted<Address>> {
    let mut all = Vec::new();
    for (index, text) in typed.addresses.as_ref()?.iter().enumerate() {
        let is_origin = text.split_once("://").is_some_and(|(_, rest)| !rest.contains(['/', '?', '#', '@', '*']));
        match Address::of_url(text) {
            Ok(address) if is_origin => all.push(address),
            wrong => {
                let why = wrong
                    .err()
                    .map_or_else(|| "it is not a scheme, a host and a port alone".to_owned(), |why| why.to_string());
                let message = format!("`{}` is not an address: {why}", text.escape_debug());
                let help =
                    "write it as `https://HOST` or `http://HOST:PORT`, each host on its own; paths are not compared";
                document.error(Code::ConfigInvalidUrl, &steps!["addresses", index], message, help);
            }
        }
    }
    Some(Permitted { all, place: document.place(&steps!["addresses"]) })
}

fn key_env(document: &mut Document<'_>, typed: &MachinePolicyFile) -> Option<Permitted<String>> {
    let all = typed.key_env.as_ref()?;
    for (index, name) in all.iter().enumerate() {
        if !matches!(flow::KeySource::of_variable(name), Ok(flow::KeySource::Env(_))) {
            let message = "this is not the name of an environment variable";
            let help = "letters, digits and `_`, such as `ANTHROPIC_API_KEY`";
            document.error(Code::ConfigInvalidVariable, &steps!["key_env", index], message, help);
        }
    }
    Some(Permitted { all: all.clone(), place: document.place(&steps!["key_env"]) })
}

/// The file or its folder, where everybody can write it: then it is nobody's decision.
#[cfg(unix)]
fn writable_by_all(file: &Path) -> Option<&Path> {
    use std::os::unix::fs::PermissionsExt as _;
    let is_open = |path: &&Path| {
        // Of a folder with the sticky bit nobody takes away the files of others.
        let is_writable = |mode: u32| mode & 0o002 != 0 && mode & 0o1000 == 0;
        path.metadata().is_ok_and(|about| is_writable(about.permissions().mode()))
    };
    [Some(file), file.parent()].into_iter().flatten().find(is_open)
}

#[cfg(not(unix))]
fn writable_by_all(_: &Path) -> Option<&Path> {
    None
}

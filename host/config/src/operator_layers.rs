//! The layers of the operator's settings: which files there are, and what they say together.
//!
//! Tables are merged by key. The lists of [`ADDED`] add up; of the list of plugins, entries about one plugin are merged; any other list
//! of a higher layer replaces that of a lower one. Keys that only make sense together are replaced together ([`drop_replaced`]): a layer that
//! names another address must not get the key that a lower layer has for its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::PluginId;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::operator::plugin_folder;
use crate::sources::Sources;
use crate::{MANIFEST_FILE, Manifest, SourceFile};

/// A file with settings of the operator, or a text in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Whose file it is.
    pub kind: LayerKind,
    /// Its text, and the path to show for it: of the environment the name of the variable.
    pub source: Arc<SourceFile>,
}

/// Whose file a layer of settings is, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LayerKind {
    /// The user's, for all workspaces: `tidegate/tidegate.toml` in the configuration folder.
    User,
    /// That of the workspace, which can come from somebody else.
    Workspace,
    /// A file that somebody named, in the place of that of the workspace.
    Named,
    /// The text of a variable of the environment, [`SETTINGS_VARIABLE`](crate::SETTINGS_VARIABLE).
    Environment,
}

impl LayerKind {
    /// The layer's word on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Workspace => "workspace",
            Self::Named => "named",
            Self::Environment => "environment",
        }
    }
}

/// Lists under `[rules]` of which no layer takes anything away: what guards stays on guard.
const ADDED: [&str; 4] = ["disabled_rules", "required", "folders", "required_folders"];

type Table<'a> = DeTable<'a>;
type Value<'a> = Spanned<DeValue<'a>>;

/// Puts the settings of a layer on top of those below it.
pub(crate) fn put<'a>(base: &mut Table<'a>, over: Table<'a>, sources: &Sources<'a>) {
    drop_replaced(base, &over);
    merge(base, over, &mut |path, lower, upper| match path {
        ["plugin"] => plugins(lower, upper, sources),
        ["rules", list] if ADDED.contains(list) => add(lower, upper, list.ends_with("folders")),
        _ => upper,
    });
}

/// Merges tables by key. `both` decides where both have something at a path and not both of it is a table.
fn merge<'a>(
    base: &mut Table<'a>,
    over: Table<'a>,
    both: &mut dyn FnMut(&[&str], DeValue<'a>, DeValue<'a>) -> DeValue<'a>,
) {
    for (key, upper) in over {
        // Inserting under a key that is there would keep the place of the key below.
        let Some((_, lower)) = base.remove_entry(key.get_ref().as_ref()) else {
            base.insert(key, upper);
            continue;
        };
        let span = upper.span();
        let name = key.get_ref().clone();
        let merged = match (lower.into_inner(), upper.into_inner()) {
            (DeValue::Table(mut lower), DeValue::Table(upper)) => {
                merge(&mut lower, upper, &mut |path, lower, upper| {
                    both(&[&[name.as_ref()], path].concat(), lower, upper)
                });
                DeValue::Table(lower)
            }
            (lower, upper) => both(&[&name], lower, upper),
        };
        base.insert(key, Spanned::new(span, merged));
    }
}

/// The items of both lists; names once, and paths as they are, because each is relative to its own file.
fn add<'a>(lower: DeValue<'a>, upper: DeValue<'a>, are_paths: bool) -> DeValue<'a> {
    let (DeValue::Array(mut all), DeValue::Array(upper)) = (lower, upper) else {
        return DeValue::Array(DeArray::new());
    };
    for item in upper {
        let is_there = |known: &Value<'_>| known.get_ref().as_str() == item.get_ref().as_str();
        if are_paths || !all.iter().any(is_there) {
            all.push(item);
        }
    }
    DeValue::Array(all)
}

/// Takes out of the lower layers what goes with a value that the layer `over` replaces.
fn drop_replaced(base: &mut Table<'_>, over: &Table<'_>) {
    let mut drop = |table: &str, changed: &str, others: &[&str]| {
        let (upper, Some(lower)) = (text(over, table, changed), table_mut(base, table)) else { return };
        let before = lower.get(changed).and_then(|value| value.get_ref().as_str());
        if upper.is_some_and(|upper| before != Some(upper)) {
            others.iter().for_each(|other| drop_key(lower, other));
        }
    };
    drop("provider", "base_url", &["api_key_env", "headers", "allow_plaintext_key"]);
    let server = ["user", "password", "ca", "certificate", "certificate_key", "allow_plaintext_password"];
    drop("state", "backend", &["folder", "url_env"]);
    drop("state", "backend", &server);
    drop("state", "url_env", &server);
    drop("state", "user", &["password"]);
    for table in ["state", "gateway", "serve"] {
        drop(table, "certificate", &["certificate_key"]);
    }
    drop("prompt", "system", &["system_file"]);
    drop("prompt", "system_file", &["system"]);
    let kind = |of: &Table<'_>| text(of, "provider", "kind").map(str::to_owned);
    if let (Some(before), Some(now)) = (kind(base), kind(over))
        && before != now
    {
        base.remove("provider");
    }
}

fn drop_key(table: &mut Table<'_>, key: &str) {
    let _dropped = table.remove(key);
}

fn text<'t>(table: &'t Table<'_>, name: &str, key: &str) -> Option<&'t str> {
    table.get(name)?.get_ref().get(key)?.get_ref().as_str()
}

fn table_mut<'t, 'a>(table: &'t mut Table<'a>, name: &str) -> Option<&'t mut Table<'a>> {
    match table.get_mut(name)?.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// The entries of both layers, in order of registration. The entry of the upper one is merged with one below for the same folder; it
/// replaces one for another folder with the same id, so that grants and settings do not pass to other code.
fn plugins<'a>(lower: DeValue<'a>, upper: DeValue<'a>, sources: &Sources<'a>) -> DeValue<'a> {
    let (DeValue::Array(lower), DeValue::Array(upper)) = (lower, upper) else { return DeValue::Array(DeArray::new()) };
    let mut known: Vec<(Plugin, Option<Value<'a>>)> =
        lower.into_iter().map(|entry| (Plugin::of(&entry, sources), Some(entry))).collect();
    let (mut all, mut new) = (vec![None; known.len()], Vec::new());
    for entry in upper {
        let plugin = Plugin::of(&entry, sources);
        let free = || known.iter().enumerate().filter(|(_, (_, entry))| entry.is_some());
        let same = free().find(|(_, (other, _))| other.folder == plugin.folder).map(|(at, _)| at);
        let other = || free().find(|(_, (other, _))| other.id.is_some() && other.id == plugin.id).map(|(at, _)| at);
        match same.or_else(other) {
            Some(at) => {
                let below = known[at].1.take().filter(|_| same.is_some());
                all[at] = Some(over(below, entry));
            }
            None => new.push(entry),
        }
    }
    let merged = all.into_iter().zip(known).filter_map(|(merged, (_, below))| merged.or(below));
    DeValue::Array(merged.chain(new).collect())
}

fn over<'a>(below: Option<Value<'a>>, entry: Value<'a>) -> Value<'a> {
    let span = entry.span();
    match (below.map(Spanned::into_inner), entry.into_inner()) {
        (Some(DeValue::Table(mut below)), DeValue::Table(entry)) => {
            merge(&mut below, entry, &mut |_, _, upper| upper);
            Spanned::new(span, DeValue::Table(below))
        }
        (_, entry) => Spanned::new(span, entry),
    }
}

/// What an entry is about.
struct Plugin {
    folder: PathBuf,
    /// `None`: its manifest cannot be read, which is reported when the plugin is loaded.
    id: Option<PluginId>,
}

impl Plugin {
    fn of(entry: &Value<'_>, sources: &Sources<'_>) -> Self {
        let path = entry.get_ref().get("path");
        let base = path.map_or(Path::new(""), |path| sources.folder(path.span().start));
        let named = path.and_then(|path| path.get_ref().as_str()).unwrap_or_default();
        let folder = plugin_folder(&base.join(named));
        let id = Manifest::load(&folder.join(MANIFEST_FILE)).ok().map(|manifest| manifest.id);
        Self { folder: folder.canonicalize().unwrap_or(folder), id }
    }
}

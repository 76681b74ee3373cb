//! `tidegate plugin enable` and `plugin disable`: one value of an operator's file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use tempfile::NamedTempFile;
use tidegate::config::{FoundFiles, Layer, LayerKind, StatePlace};
use tidegate::diagnostic::SourceFile;
use tidegate::plugin::{Manifest, SwitchError, switch_plugin};
use tidegate::trust::WorkspaceSettings;
use tidegate::{Host, HostError, Operator, PluginId};

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::{open, print, say, screen};

/// Changes the file that names the plugin, and prints the result: that of the workspace or of `--config`, else the user's.
pub(crate) async fn plugin(common: &Common, plugin: &PluginId, enabled: bool) -> Result<Exit, Failure> {
    let settings = open::reader(common).read(&common.workspace)?;
    let found = settings.files();
    let mut unknown = Vec::new();
    // A variable cannot be changed for whoever set it.
    let files = |(_, layer): &(usize, &Layer)| layer.kind != LayerKind::Environment;
    for (at, layer) in found.layers.iter().enumerate().filter(files).rev() {
        let file = &layer.source.path;
        let is_trusted = layer.kind != LayerKind::Workspace || settings.request().is_none();
        let check = Check { found, at, is_trusted };
        match in_file(file, plugin, enabled, check).await? {
            Ok(changed) => {
                report(file, plugin, enabled, &changed)?;
                if layer.kind == LayerKind::Workspace && changed.is_new {
                    note_trust(&settings, &changed.text)?;
                }
                return Ok(Exit::Completed);
            }
            Err(SwitchError::Unknown { known, .. }) => {
                unknown.push(format!("{} {}", shown(file), known.trim_start_matches("it ")));
            }
            Err(SwitchError::Invalid(diagnostics)) => return Err(diagnostics.into()),
            Err(other) => return Err(Failure::setup(format_args!("{}: {other}", shown(file)))),
        }
    }
    let files: Vec<String> = found.absent.iter().map(|file| format!("there is no {}", shown(file))).collect();
    let known = unknown.into_iter().chain(files).collect::<Vec<_>>().join("; ");
    Err(Failure::setup(format_args!("no `[[plugin]]` has the id `{plugin}`: {known}")))
}

fn shown(file: &Path) -> String {
    print::tidy_path(&file.display().to_string())
}

/// An entry that was changed, or had the value already.
struct Changed {
    /// All of the file.
    text: String,
    is_new: bool,
    is_required: bool,
}

/// Whether a plugin can be loaded once a file is changed.
struct Check<'f> {
    found: &'f FoundFiles,
    /// The index of the file's layer.
    at: usize,
    /// Code that the file names is run.
    is_trusted: bool,
}

impl Check<'_> {
    /// Loads the plugin as a host would with this text of the file. Where the file is not trusted, only its manifest is read.
    async fn loads(&self, text: &str, plugin: &PluginId) -> Result<(), HostError> {
        let mut layers = self.found.layers.clone();
        if let Some(layer) = layers.get_mut(self.at) {
            layer.source = SourceFile::new(&layer.source.path, text);
        }
        let mut operator = Operator::of_layers(&layers)?;
        // No session is opened.
        operator.state.place = StatePlace::Memory;
        operator.plugins.retain(|entry| match Manifest::load(&entry.folder) {
            Ok(manifest) => manifest.id == *plugin,
            Err(_) => entry.folder.file_name().is_some_and(|name| name == plugin.as_str()),
        });
        if self.is_trusted {
            return Host::builder(operator).max_instances(1).check_plugins().await;
        }
        operator.load_plugins()?;
        Ok(())
    }
}

async fn in_file(
    file: &Path,
    plugin: &PluginId,
    enabled: bool,
    check: Check<'_>,
) -> Result<Result<Changed, SwitchError>, Failure> {
    let failed = |doing, error: io::Error| Failure::setup(format_args!("cannot {doing} {}: {error}", shown(file)));
    // Two programs that change the file at once do it one after the other.
    let target = file.canonicalize().map_err(|error| failed("read", error))?;
    let _lock = lock_folder(&target).map_err(|error| failed("lock the folder of", error))?;
    let text = fs::read_to_string(file).map_err(|error| failed("read", error))?;
    let source = SourceFile::new(file, text);
    let switched = match switch_plugin(&source, plugin, enabled) {
        Ok(switched) => switched,
        Err(error) => return Ok(Err(error)),
    };
    let is_new = switched.text != source.text;
    if is_new && enabled {
        check.loads(&switched.text, plugin).await.map_err(|error| {
            let (file, reason) = (shown(file), error.with_hint());
            Failure::setup(format_args!(
                "{file}: plugin {plugin} stays disabled, because it cannot be loaded: {reason}"
            ))
        })?;
    }
    if is_new {
        replace(file, &source.text, &switched.text).map_err(|error| failed("write", error))?;
    }
    Ok(Ok(Changed { is_new, is_required: switched.required, text: switched.text }))
}

/// A file that the user trusts counts after their own change, too; any other one is as little trusted as before.
fn note_trust(settings: &WorkspaceSettings, text: &str) -> Result<(), Failure> {
    if !settings.switched(text).map_err(Failure::setup)? {
        say::note("note: the file is not trusted as it is now: `tidegate trust` shows and trusts it");
    }
    Ok(())
}

fn report(file: &Path, plugin: &PluginId, enabled: bool, changed: &Changed) -> Result<(), Failure> {
    let word = if enabled { "enabled" } else { "disabled" };
    let mut out = screen::out();
    let already = if changed.is_new { "" } else { "already " };
    writeln!(out, "{}: plugin {plugin} is {already}{word}", shown(file))?;
    out.flush()?;
    if changed.is_new && !enabled {
        let guards = if changed.is_required {
            "the plugin is `required`: a"
        } else {
            "if the plugin fails closed, or has what was shown kept, a"
        };
        say::note(format_args!("note: {guards} running program uses it until it is restarted"));
    }
    Ok(())
}

/// Locks the file's folder, because the file itself is replaced.
fn lock_folder(file: &Path) -> io::Result<File> {
    let folder = File::open(file.parent().unwrap_or(Path::new("/")))?;
    folder.lock()?;
    Ok(folder)
}

/// Renames a new file into the place of the old one, so that a running program reads the whole file. A link stays one; the permissions
/// stay, and so do owner and group where the user is allowed to set them. A file that must not be written is not replaced either, and neither is one that an editor has changed since it was read.
fn replace(file: &Path, before: &str, text: &str) -> io::Result<()> {
    let file = file.canonicalize()?;
    let old = OpenOptions::new().write(true).open(&file)?.metadata()?;
    let mut new = NamedTempFile::with_prefix_in(".tidegate-", file.parent().unwrap_or(Path::new("/")))?;
    new.write_all(text.as_bytes())?;
    keep_owner(&old, new.as_file())?;
    // After the change of the owner, which takes some of them away.
    new.as_file().set_permissions(old.permissions())?;
    new.as_file().sync_all()?;
    if fs::read_to_string(&file)? != before {
        return Err(io::Error::other("the file was changed meanwhile; nothing was written, run the command again"));
    }
    new.persist(&file)?;
    Ok(())
}

/// Gives a new file the owner and the group of the old one, or the group alone: only root is allowed to give files away.
fn keep_owner(old: &Metadata, new: &File) -> io::Result<()> {
    let is = new.metadata()?;
    if (is.uid(), is.gid()) != (old.uid(), old.gid()) && fchown(new, Some(old.uid()), Some(old.gid())).is_err() {
        // Whoever is in neither gets a file of their own, as from any editor.
        let _not_permitted = fchown(new, None, Some(old.gid()));
    }
    Ok(())
}

//! `tidegate plugin enable` and `plugin disable`: one value of the operator's file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tidegate::{OPERATOR_FILE, PluginId, SourceFile, SwitchError, switch_plugin};

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::{print, say, screen};

/// Changes the file, and prints what it says now.
pub(crate) fn plugin(common: &Common, plugin: &PluginId, enabled: bool) -> Result<Exit, Failure> {
    let file = common.config.clone().unwrap_or_else(|| common.workspace.join(OPERATOR_FILE));
    let name = print::tidy_path(&file.display().to_string());
    let told = |error: io::Error| Failure::setup(format_args!("{name}: {error}"));
    // Two programs that change the file at once do it one after the other.
    let _alone = alone(&file).map_err(told)?;
    let text = fs::read_to_string(&file).map_err(told)?;
    let source = SourceFile::new(&file, text);
    let switched = switch_plugin(&source, plugin, enabled).map_err(|error| match error {
        SwitchError::Invalid(diagnostics) => diagnostics.into(),
        other => Failure::setup(format_args!("{name}: {other}")),
    })?;
    let (word, is_new) = (if enabled { "enabled" } else { "disabled" }, switched.text != source.text);
    if is_new {
        replace(&file, &source.text, &switched.text).map_err(told)?;
    }
    let mut out = screen::out();
    writeln!(out, "{name}: plugin {plugin} is {}{word}", if is_new { "" } else { "already " })?;
    out.flush()?;
    if is_new && !enabled && switched.required {
        say::note(format_args!("note: the plugin is `required`: a running program uses it until it is restarted"));
    }
    Ok(Exit::Completed)
}

/// Holds the lock of the file's folder: the file itself is replaced.
fn alone(file: &Path) -> io::Result<File> {
    let file = file.canonicalize()?;
    let folder = File::open(file.parent().unwrap_or(Path::new("/")))?;
    folder.lock()?;
    Ok(folder)
}

/// Written next to it and renamed, so that a running program reads the whole file. A link stays one; the permissions stay. A file that
/// may not be written is not replaced either, and neither is one that an editor has changed since it was read.
fn replace(file: &Path, before: &str, text: &str) -> io::Result<()> {
    let file: PathBuf = file.canonicalize()?;
    drop(OpenOptions::new().write(true).open(&file)?);
    let mut beside = file.clone().into_os_string();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = PathBuf::from(beside);
    // What is there already, such as a link that leads elsewhere, is not written through.
    let mut new = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let mut write = || {
        new.write_all(text.as_bytes())?;
        fs::set_permissions(&beside, fs::metadata(&file)?.permissions())?;
        if fs::read_to_string(&file)? != before {
            return Err(io::Error::other("the file was changed meanwhile; nothing was written, run the command again"));
        }
        fs::rename(&beside, &file)
    };
    write().inspect_err(|_| _ = fs::remove_file(&beside))
}

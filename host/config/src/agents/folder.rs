//! A folder of agent files.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use super::{Agent, AgentLayer, Agents, MAX_AGENT_BYTES, MAX_AGENTS};
use crate::{Code, Diagnostic, Diagnostics, SourceFile, presence};

/// Reads the agents of a folder, which need not exist. `fence`: the files must be in this folder once links are resolved, so that a project
/// cannot have files of this machine sent to a model.
pub(super) fn read(folder: &Path, fence: Option<&Path>, layer: AgentLayer) -> Agents {
    let mut agents = Agents::default();
    let names =
        match presence::is_there(folder).and_then(|is_there| if is_there { names(folder) } else { Ok(Vec::new()) }) {
            Ok(names) => names,
            Err(error) => {
                let message = format!("cannot read the folder of agents `{}`: {error}", folder.display());
                agents
                    .found
                    .push(Diagnostic::error(Code::ConfigUnreadable, message).help("make it readable, or remove it"));
                return agents;
            }
        };
    if names.len() > MAX_AGENTS {
        let message = format!(
            "the folder `{}` has {} agent files, more than the limit of {MAX_AGENTS}",
            folder.display(),
            names.len()
        );
        let help = "the first of them are used; is this the right folder?";
        agents.found.push(Diagnostic::error(Code::ConfigOutOfRange, message).help(help));
    }
    for name in names.into_iter().take(MAX_AGENTS) {
        let path = folder.join(&name);
        let agent = text(&path, fence).and_then(|source| match is_about_agents(&path, &source) {
            true => Ok(None),
            false => Agent::of_source(&source, layer).map(Some),
        });
        match agent {
            Ok(agent) => agents.list.extend(agent),
            Err(found) => agents.found.extend(found.0),
        }
    }
    agents
}

/// Whether the file of an agent is in the folder, or that cannot be found out: one that cannot be used is not one that is absent.
pub(super) fn has_file(folder: &Path, agent: &str) -> bool {
    presence::is_there(&folder.join(format!("{agent}.md"))).unwrap_or(true)
}

/// A `README.md` without front matter is about the agents, and is none.
fn is_about_agents(path: &Path, source: &SourceFile) -> bool {
    path.file_stem().is_some_and(|name| name.eq_ignore_ascii_case("readme")) && !super::file::has_front_matter(source)
}

/// The files `*.md` of a folder, in the order of their names. Hidden ones are left out: editors keep their locks so.
fn names(folder: &Path) -> std::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in folder.read_dir()? {
        names.push(entry?.file_name());
    }
    let is_agent = |name: &OsString| {
        let extension = Path::new(name).extension().and_then(OsStr::to_str);
        !name.as_encoded_bytes().starts_with(b".") && extension == Some("md")
    };
    names.retain(is_agent);
    names.sort_unstable();
    Ok(names)
}

fn text(path: &Path, fence: Option<&Path>) -> Result<Arc<SourceFile>, Diagnostics> {
    let refuse = |cause: String, help: &str| {
        let message = format!("cannot read the agent file `{}`: {cause}", path.display());
        Diagnostics::from(Diagnostic::error(Code::ConfigUnreadable, message).help(help))
    };
    let is_inside = |fence: &Path| Ok(path.canonicalize()?.starts_with(fence.canonicalize()?));
    let is_inside = fence.map_or(Ok(true), is_inside);
    if !is_inside.map_err(|error: std::io::Error| refuse(error.to_string(), "make it readable, or remove it"))? {
        return Err(refuse("it leads out of the workspace".to_owned(), "replace the link by the file itself"));
    }
    if path.metadata().is_ok_and(|found| found.len() > MAX_AGENT_BYTES) {
        let help = "the prompt is sent with each request of the agent: shorten it";
        return Err(refuse(format!("its size exceeds the limit of {MAX_AGENT_BYTES} bytes"), help));
    }
    crate::read(path, "make it readable, or remove it")
}

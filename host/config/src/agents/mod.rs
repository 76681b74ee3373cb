//! Agents: what the tool `spawn_agent` can start, each declared in a file of its own.
//!
//! An agent file is `NAME.md` in `agents` of the user's folder or in `.tidegate/agents` of a workspace: front matter in YAML between lines of
//! `---`, or in TOML between lines of `+++`, and then the agent's system prompt. A file of the workspace replaces none of the user, whose agent of
//! that name stays: the workspace can come from somebody else. A file that cannot be used costs only its agent: [`Agents::found`] says why.

mod file;
mod folder;

use std::path::{Path, PathBuf};

use flow::Limits;
use rules::Glob;

use crate::Diagnostic;

/// Where a workspace has agent files.
pub const PROJECT_FOLDER: &str = ".tidegate/agents";

/// The name of the agent of every session that no agent has started.
pub const MAIN: &str = "main";

/// The most bytes an agent file can have: 64 KiB. All of it is sent with each request of the agent.
pub const MAX_AGENT_BYTES: u64 = 64 << 10;

/// The most agents of one folder. The model reads the name and the description of each.
pub const MAX_AGENTS: usize = 64;

/// Agents that can be started, and what is wrong with files that declare others.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// In the order of their names, each of which is there once.
    pub list: Vec<Agent>,
    /// Why files and folders cannot be used.
    pub found: Vec<Diagnostic>,
}

/// An agent that can be started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Agent {
    /// Its name: that of its file.
    pub name: String,
    /// When to use it, for the model.
    pub description: String,
    /// Its system prompt, in the place of the operator's.
    pub system: String,
    /// The tools that it can use, each with its place in the file; `None`: those of the session that starts it.
    pub tools: Option<Vec<(Glob, flow::Location)>>,
    /// The model that answers; `None`: that of the session that starts it.
    pub model: Option<String>,
    /// How much it can use for one task. What is `None` is limited only by the session that starts it.
    pub limits: Limits,
    /// Whose file it is.
    pub layer: AgentLayer,
    /// The file that declares it.
    pub path: PathBuf,
}

/// Whose file declares an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AgentLayer {
    /// A file of the user, for all workspaces.
    User,
    /// A file of the workspace, which can come from somebody else.
    Project,
}

impl AgentLayer {
    /// The layer's word on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

impl Agent {
    /// Reads an agent file whose text is there already.
    ///
    /// # Errors
    /// Something in the file is wrong; all that is wrong is reported together.
    pub fn of_source(
        source: &std::sync::Arc<crate::SourceFile>,
        layer: AgentLayer,
    ) -> Result<Self, crate::Diagnostics> {
        file::read(source, layer)
    }

    /// Whether the agent can use a tool, if the session that starts it can.
    pub fn may_use(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|(glob, _)| glob.matches(tool, "")))
    }

    /// A warning for each entry of its `tools` that none of these tools fulfils: what the agent is to work with is not there.
    pub fn unknown_tools<'t>(&'t self, known: &'t [String]) -> impl Iterator<Item = Diagnostic> + 't {
        let unknown = |(glob, _): &&(Glob, flow::Location)| !known.iter().any(|tool| glob.matches(tool, ""));
        self.tools.iter().flatten().filter(unknown).map(|(glob, place)| {
            let message = format!("the agent `{}` has no tool `{}`: there is none here", self.name, glob.as_str());
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let help = crate::check::suggest(glob.as_str(), &known, "tools");
            Diagnostic::warning(crate::Code::AgentUnknownTool, message).at(place.clone(), "").help(help)
        })
    }
}

impl Agent {
    /// The warning about an agent of a project whose name the user's `file` has.
    fn left_out(&self, file: &Path) -> Diagnostic {
        let (own, name) = (self.path.display(), &self.name);
        let message = format!("`{own}` is not used: the agent `{name}` is the user's, in `{}`", file.display());
        let help = "a file that comes with the workspace replaces no agent of the user's: give it another name";
        Diagnostic::warning(crate::Code::AgentShadowed, message).help(help)
    }
}

impl Agents {
    /// Reads the agent files of the user and of a workspace, as far as there are any. `user`: the folder of the user's files, `tidegate` in
    /// the configuration folder.
    pub fn load(user: Option<&Path>, workspace: &Path) -> Self {
        let users = user.map(|user| user.join("agents"));
        let mut agents = users.as_deref().map(|users| folder::read(users, None, AgentLayer::User)).unwrap_or_default();
        // As diagnostics of rule files show theirs.
        let shown = workspace.strip_prefix(".").unwrap_or(workspace).join(PROJECT_FOLDER);
        let project = folder::read(&shown, Some(workspace), AgentLayer::Project);
        agents.found.extend(project.found);
        for agent in project.list {
            match users.as_deref().filter(|users| folder::has_file(users, &agent.name)) {
                Some(users) => agents.found.push(agent.left_out(&users.join(format!("{}.md", agent.name)))),
                None => agents.list.push(agent),
            }
        }
        agents.list.sort_by(|one, other| one.name.cmp(&other.name));
        agents
    }

    /// The agent of this name.
    pub fn get(&self, name: &str) -> Option<&Agent> {
        self.list.iter().find(|agent| agent.name == name)
    }
}

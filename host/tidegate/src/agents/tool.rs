//! The tool `spawn_agent`: offered while there are agents, and under the operator's permissions like any tool.

use std::fmt::Write as _;
use std::sync::Arc;

use config::agents::{Agent, AgentLayer, Agents};
use flow::ports::{BoxFuture, PreparedCall, Progress};
use flow::{Permission, Preview, ToolCall, ToolOutput, ToolSpec};
use serde::Deserialize;

use super::Children;
use crate::HostError;
use crate::session::toolbox::Decisions;

/// The name of the tool with which the model starts an agent.
pub(crate) const SPAWN_AGENT: &str = "spawn_agent";

/// What the model reads of the tool before the list of agents.
const ABOUT: &str = "Starts another agent with a task, waits until it is done, and returns its answer. The agent works in the same workspace \
                     and does not see this conversation: the task must contain all that it needs to know. The agents:";

/// The tool in one session.
pub(crate) struct AgentTool {
    pub(crate) agents: Arc<Agents>,
    pub(crate) children: Arc<Children>,
    /// The operator's permissions of the tool.
    pub(crate) decisions: Decisions,
}

/// Takes the permissions of the tool out of the settings.
///
/// # Errors
/// One has a pattern, and the tool has nothing to match it with.
pub(crate) fn permission(settings: &mut tools::ToolSettings) -> Result<Decisions, HostError> {
    Decisions::take(settings, &[SPAWN_AGENT.to_owned()], |_| false)
}

/// The definition of the tool for the model.
pub(crate) fn spec(agents: &Agents) -> ToolSpec {
    let mut description = ABOUT.to_owned();
    for agent in &agents.list {
        // Writing to a string cannot fail.
        let _ = write!(description, "\n- `{}`: {}", agent.name, agent.description);
    }
    let names: Vec<&str> = agents.list.iter().map(|agent| agent.name.as_str()).collect();
    ToolSpec {
        name: SPAWN_AGENT.to_owned(),
        description,
        parameters: serde_json::json!({
            "type": "object",
            "properties": {
                "agent": { "type": "string", "enum": names, "description": "The agent's name." },
                "task": {
                    "type": "string",
                    "description": "What to do and what to answer, with everything that the agent needs to know.",
                },
            },
            "required": ["agent", "task"],
            "additionalProperties": false,
        }),
    }
}

impl AgentTool {
    /// The definition for the model.
    pub(crate) fn spec(&self) -> ToolSpec {
        spec(&self.agents)
    }

    /// A call of the tool.
    pub(crate) fn call<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(Spawn { call, wanted: self.wanted(&call.arguments), tool: self })
    }

    fn wanted(&self, arguments: &str) -> Result<(Arc<Agent>, String), String> {
        let Arguments { agent: name, task } = serde_json::from_str(arguments).map_err(|error| {
            format!("the arguments of `{SPAWN_AGENT}` are not valid: {error}; it takes an object with `agent` and `task`, both strings")
        })?;
        let agent = self.agents.get(&name).ok_or_else(|| {
            let names: Vec<String> = self.agents.list.iter().map(|agent| format!("`{}`", agent.name)).collect();
            format!("there is no agent `{name}`; the agents are {}", names.join(", "))
        })?;
        if task.trim().is_empty() {
            return Err(format!("the `task` of `{name}` is empty: write what it is to do"));
        }
        match self.children.refusal() {
            Some(refusal) => Err(refusal),
            None => Ok((Arc::new(agent.clone()), task)),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    agent: String,
    task: String,
}

/// A call of `spawn_agent`.
struct Spawn<'a> {
    call: &'a ToolCall,
    wanted: Result<(Arc<Agent>, String), String>,
    tool: &'a AgentTool,
}

/// The permission where the operator has set none. An agent can do nothing that its parent cannot, under the same permissions, and how many there
/// are is limited. Only the choice of another model is not for a project's file to make: it can cost more than the operator expects.
fn default_permission(agent: &Agent) -> Permission {
    match &agent.model {
        Some(model) if agent.layer == AgentLayer::Project => Permission::Ask {
            reason: format!(
                "the agent `{}` of this project chooses the model `{model}`; `{SPAWN_AGENT} = \"allow\"` under [tools.permission] stops the \
                 question",
                agent.name
            ),
        },
        _ => Permission::Allow,
    }
}

impl PreparedCall for Spawn<'_> {
    /// Nobody is asked about a call that cannot be made.
    fn permission(&self) -> Permission {
        let own = self.wanted.as_ref().map_or(Permission::Allow, |(agent, _)| default_permission(agent));
        match (self.tool.decisions.decide(SPAWN_AGENT, own), &self.wanted) {
            (denied @ Permission::Deny { .. }, _) => denied,
            (_, Err(reason)) => Permission::Deny { reason: reason.clone() },
            (decided, Ok(_)) => decided,
        }
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        let mut preview = Preview::of_arguments(&self.call.arguments).unwrap_or_default();
        if let Ok((agent, _)) = &self.wanted {
            let model = agent.model.as_ref().map(|model| format!(", with the model `{model}`")).unwrap_or_default();
            let of = agent.layer.as_str();
            preview.notes.push(format!("It is an agent of the {of} ({}){model}.", agent.path.display()));
            preview.notes.push("What it does is subject to the same permissions and questions.".to_owned());
        }
        Box::pin(std::future::ready(preview))
    }

    /// What can be allowed is the start of this agent with its model, whatever its task is. Its file can name another model when the session
    /// continues, which is another question then.
    fn always(&self) -> Option<String> {
        let (agent, _) = self.wanted.as_ref().ok()?;
        let model = agent.model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
        self.tool.decisions.always(SPAWN_AGENT, Some(format!("{SPAWN_AGENT}({}{model})", agent.name)))
    }

    fn run<'a>(&'a mut self, progress: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let result = match &self.wanted {
                Ok((agent, task)) => self.tool.children.run(agent, task, &self.call.id, progress).await,
                Err(reason) => Err(reason.clone()),
            };
            match result {
                Ok(content) => ToolOutput { content, diff: None, is_error: false },
                Err(content) => ToolOutput { content, diff: None, is_error: true },
            }
        })
    }
}

//! `tidegate agents list`.

use std::io::Write;

use serde_json::{Value, json};
use tidegate::Host;
use tidegate::agent::Agent;
use tidegate::limit::Limit;
use tidegate::plugin::Loaded;

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::screen::clean::flat;
use crate::{open, print, screen, style};

/// Prints the agents that the model can start, and what is wrong with files that declare others.
///
/// JSON is one object; a limit that is not set is left out:
/// ```json
/// {"agents": [{"name": "reviewer", "description": "…", "layer": "project", "file": ".tidegate/agents/reviewer.md", "model": "small",
///    "tools": ["read_file"], "limits": {"steps": 12, "tokens": 200000, "spend": 0.5, "spawns": 2, "depth": 1, "duration_ms": 600000}}],
///  "forbidden_by": ["depth"], "problems": ["…"]}
/// ```
/// `forbidden_by`: limits of the workspace that let no session start any of them.
pub(crate) async fn list(common: &Common, json: bool) -> Result<Exit, Failure> {
    let builder = Host::builder(open::operator(common)?).max_instances(open::MAX_INSTANCES);
    let host = builder.load(&common.workspace).await?;
    let agents = host.agents();
    let has_failed = agents.found.iter().any(tidegate::diagnostic::Diagnostic::is_error);
    if json {
        let problems: Vec<String> = agents.found.iter().map(ToString::to_string).collect();
        let agents: Vec<Value> = agents.list.iter().map(as_json).collect();
        let forbidden_by: Vec<&str> = forbidding(&host).iter().map(|limit| limit.as_str()).collect();
        screen::json(&json!({"agents": agents, "forbidden_by": forbidden_by, "problems": problems}))?;
    } else {
        text(&host)?;
        print::warnings(&host);
    }
    Ok(if has_failed { Exit::Failed } else { Exit::Completed })
}

/// The limits of sessions here that forbid all agents.
fn forbidding(host: &Loaded) -> Vec<Limit> {
    let limits = host.limits();
    [Limit::Depth, Limit::Spawns].into_iter().filter(|limit| limits.value(*limit) == Some(0.0)).collect()
}

fn as_json(agent: &Agent) -> Value {
    let limits = &agent.limits;
    let known = [
        ("steps", limits.steps.map(Value::from)),
        ("tokens", limits.tokens.map(Value::from)),
        ("spend", limits.spend.map(|most| most.dollars().into())),
        ("spawns", limits.spawns.map(Value::from)),
        ("depth", limits.depth.map(Value::from)),
        ("duration_ms", limits.duration.map(|time| Value::from(time.as_millis() as u64))),
    ];
    let limits = known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    json!({
        "name": agent.name,
        "description": agent.description,
        "layer": agent.layer.as_str(),
        "file": agent.path.display().to_string(),
        "model": agent.model,
        "tools": agent.tools.as_ref().map(|tools| tools.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>()),
        "limits": Value::Object(limits),
    })
}

fn text(host: &Loaded) -> std::io::Result<()> {
    let mut out = screen::out();
    if host.agents().list.is_empty() {
        writeln!(out, "no agents: declare them in .tidegate/agents/NAME.md")?;
    }
    for limit in forbidding(host).iter().filter(|_| !host.agents().list.is_empty()) {
        let line = format!("no session can start them: its limit `{limit}` is 0 (`[limits.session]`)");
        writeln!(out, "{}", style::out(style::WARNING, &line))?;
    }
    for agent in &host.agents().list {
        let name = style::out(style::STRONG, &flat(&agent.name));
        writeln!(out, "{name}  {}", flat(&agent.description))?;
        let tools = match &agent.tools {
            None => "those of the session that starts it".to_owned(),
            Some(tools) if tools.is_empty() => "none".to_owned(),
            Some(tools) => tools.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>().join(", "),
        };
        let model = agent.model.as_ref().map(|model| format!("; model: {}", flat(model))).unwrap_or_default();
        writeln!(out, "  tools: {}{model}", flat(&tools))?;
        let limits = limits(agent);
        if !limits.is_empty() {
            writeln!(out, "  limits: {}", limits.join(", "))?;
        }
        let path = print::tidy_path(&agent.path.display().to_string());
        writeln!(out, "  from {path} ({})", agent.layer.as_str())?;
    }
    out.flush()
}

fn limits(agent: &Agent) -> Vec<String> {
    let limits = &agent.limits;
    let known = [
        limits.steps.map(|most| format!("{most} steps")),
        limits.tokens.map(|most| format!("{most} tokens")),
        limits.spend.map(|most| format!("{} US dollars", most.dollars())),
        limits.spawns.map(|most| format!("{most} agents")),
        limits.depth.map(|most| format!("{most} levels of agents")),
        limits.duration.map(|most| format!("{} s", most.as_secs_f64())),
    ];
    known.into_iter().flatten().collect()
}

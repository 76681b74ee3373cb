//! The tools of a session: those of its embedder, the built-in ones, and those that its plugins provide.

use std::sync::Arc;

use config::Diagnostics;
use flow::ports::{BoxFuture, PreparedCall, Progress, Tools, TtsrEvent};
use flow::text::nearest;
use flow::{
    Diagnostic, DiagnosticCode as Code, Permission, PermissionMode, PlanEntry, Preview, ToolCall, ToolOutput, ToolSpec,
};
use tools::{PermissionRule, ToolSettings};

use crate::HostError;
use crate::agents::{AgentTool, Role, SPAWN_AGENT};
use crate::plugins::tools::PluginTools;

/// What the operator decides about tools that have no permissions of their own kind, by name, below what nothing goes beyond.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    own: Named,
    ceiling: Named,
}

/// The entries about some tools, and the one about all.
#[derive(Clone, Debug, Default)]
struct Named {
    named: Vec<PermissionRule>,
    any: Option<PermissionRule>,
}

impl Named {
    /// Takes the entries of `names` out of `rules`. Where `builtin` has the name as well, it keeps its copy.
    fn take(
        rules: &mut Vec<PermissionRule>,
        names: &[String],
        builtin: &impl Fn(&str) -> bool,
    ) -> Result<Self, HostError> {
        let mine = |rule: &PermissionRule| names.contains(&rule.tool);
        let named: Vec<PermissionRule> = rules.iter().filter(|rule| mine(rule)).cloned().collect();
        if let Some(rule) = named.iter().find(|rule| rule.pattern.is_some()) {
            let key = format!("{}({})", rule.tool, rule.pattern.as_deref().unwrap_or_default());
            return Err(HostError::Permission { tool: rule.tool.clone(), key, origin: rule.origin.clone() });
        }
        rules.retain(|rule| !mine(rule) || builtin(&rule.tool));
        let any = rules.iter().filter(|rule| rule.tool == "*").max_by_key(|rule| rule.mode);
        Ok(Self { named, any: any.cloned() })
    }

    fn of(&self, tool: &str) -> Option<&PermissionRule> {
        let named = self.named.iter().filter(|rule| rule.tool == tool).max_by_key(|rule| rule.mode);
        named.or(self.any.as_ref())
    }
}

impl Decisions {
    /// Takes the permissions of `names` out of `settings`. Where `builtin` has the name as well, it keeps its copy: searches go
    /// by it.
    ///
    /// # Errors
    /// A permission has a pattern: what it would be about is known to the built-in tools only.
    pub(crate) fn take(
        settings: &mut ToolSettings,
        names: &[String],
        builtin: impl Fn(&str) -> bool,
    ) -> Result<Self, HostError> {
        let own = Named::take(&mut settings.permissions, names, &builtin)?;
        let ceiling = Named::take(&mut settings.ceiling, names, &builtin)?;
        Ok(Self { own, ceiling })
    }

    /// The permission of a call: the operator's word where there is one, but never against a denial of the tool itself, and never beyond
    /// the ceiling.
    pub(crate) fn decide(&self, tool: &str, own: Permission) -> Permission {
        let change = "; the operator can set it to \"ask\" or \"allow\"";
        let decided = match (self.own.of(tool), own) {
            (None, own) | (Some(_), own @ Permission::Deny { .. }) => own,
            (Some(rule), _) => of_rule(tool, rule, change),
        };
        self.above(tool).stricter(decided)
    }

    /// What a person can allow for the rest of a session, where the tool offers `own`.
    pub(crate) fn always(&self, tool: &str, own: Option<String>) -> Option<String> {
        own.filter(|_| self.above(tool) == Permission::Allow)
    }

    fn above(&self, tool: &str) -> Permission {
        self.ceiling.of(tool).map_or(Permission::Allow, |rule| of_rule(tool, rule, ""))
    }
}

fn of_rule(tool: &str, rule: &PermissionRule, change: &str) -> Permission {
    let set = format!("the permission `{}` ({})", rule.tool, rule.origin);
    match rule.mode {
        PermissionMode::Allow => Permission::Allow,
        PermissionMode::Ask => Permission::Ask { reason: format!("set by {set}") },
        PermissionMode::Deny => Permission::Deny { reason: format!("`{tool}` is denied here by {set}{change}") },
    }
}

/// Takes the permissions of tools that the session does not have out of `settings`, and returns a warning for each: the tool can
/// be one that an embedder gives to other sessions. Those of `ceiling`, for all hosts of the machine, are expected to name such tools.
///
/// # Errors
/// A name is similar to that of a tool. It is taken for a misspelling, which would leave the tool without its permission.
pub(crate) fn take_absent(
    settings: &mut ToolSettings,
    own: &[String],
    (operator, ceiling): (&[config::PermissionRule], &[config::PermissionRule]),
) -> Result<Vec<Diagnostic>, Diagnostics> {
    let is_known = |rule: &PermissionRule| rule.tool == "*" || tools::is_builtin(&rule.tool);
    let found = |rules: &[PermissionRule], written: &[config::PermissionRule]| -> Vec<Diagnostic> {
        rules.iter().filter(|rule| !is_known(rule)).map(|rule| absent(rule, own, written)).collect()
    };
    let mut all = found(&settings.permissions, operator);
    all.extend(found(&settings.ceiling, ceiling).into_iter().filter(Diagnostic::is_error));
    settings.permissions.retain(is_known);
    settings.ceiling.retain(is_known);
    if all.iter().any(Diagnostic::is_error) { Err(Diagnostics(all)) } else { Ok(all) }
}

fn absent(rule: &PermissionRule, own: &[String], written: &[config::PermissionRule]) -> Diagnostic {
    let builtin: Vec<&str> = tools::builtin_names().collect();
    let known = [own.iter().map(String::as_str).collect(), builtin, vec![rules::READ_RULE, SPAWN_AGENT]].concat();
    let message = format!("the permission `{}` is for a tool that is not offered here ({})", rule.tool, rule.origin);
    let found = match nearest(&rule.tool, known.iter().copied()) {
        Some(near) => Diagnostic::error(Code::ConfigUnknownTool, message).help(format!("did you mean `{near}`?")),
        None => {
            let tools = known.join(", ");
            let help = format!("it is used in sessions whose embedder offers the tool; the tools here are {tools}");
            Diagnostic::warning(Code::ConfigUnknownTool, message).help(help)
        }
    };
    let same = |one: &&config::PermissionRule| (&one.tool, &one.pattern) == (&rule.tool, &rule.pattern);
    match written.iter().find(same).and_then(|written| written.place.clone()) {
        Some(place) => found.at(place, ""),
        None => found,
    }
}

/// The tools of one session, without `read_rule`.
pub(crate) struct Toolbox {
    pub(crate) own: Option<Arc<dyn Tools>>,
    pub(crate) builtin: Option<Arc<dyn Tools>>,
    pub(crate) plugins: PluginTools,
    pub(crate) decisions: Decisions,
    /// What starts agents; `None`: there are none.
    pub(crate) agents: Option<AgentTool>,
    /// The child agent that has the tools, which can be limited to some of them.
    pub(crate) role: Option<Arc<Role>>,
}

impl Toolbox {
    fn is_permitted(&self, tool: &str) -> bool {
        self.role.as_ref().is_none_or(|role| role.may_use(tool))
    }
}

impl Tools for Toolbox {
    fn specs(&self) -> Vec<ToolSpec> {
        let mut all = self.own.as_ref().map(|own| own.specs()).unwrap_or_default();
        let builtin = self.builtin.as_ref().map(|tools| tools.specs()).unwrap_or_default();
        let replaced = |spec: &ToolSpec| all.iter().any(|own| own.name == spec.name);
        let kept: Vec<ToolSpec> = builtin.into_iter().filter(|spec| !replaced(spec)).collect();
        all.extend(kept);
        all.extend(self.plugins.table.specs());
        let agents = self.agents.as_ref().filter(|_| all.iter().all(|tool| tool.name != SPAWN_AGENT));
        all.extend(agents.map(AgentTool::spec));
        all.retain(|tool| self.is_permitted(&tool.name));
        all
    }

    fn ttsr_triggered(&self, event: &TtsrEvent) {
        self.own.iter().chain(&self.builtin).for_each(|tools| tools.ttsr_triggered(event));
    }

    /// The embedder's order where all calls are of its tools: it knows of no others.
    fn order(&self, calls: &[ToolCall]) -> Vec<usize> {
        let is_own = |own: &Arc<dyn Tools>| {
            let specs = own.specs();
            calls.iter().all(|call| specs.iter().any(|spec| spec.name == call.name))
        };
        let own = self.own.as_ref().filter(|own| is_own(own));
        own.map_or_else(|| (0..calls.len()).collect(), |own| own.order(calls))
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        if !self.is_permitted(&call.name) {
            return Box::new(Unknown { call, offered: self.specs() });
        }
        let has = |tools: &Arc<dyn Tools>| tools.specs().iter().any(|spec| spec.name == call.name);
        if let Some(own) = self.own.as_ref().filter(|own| has(own)) {
            return Box::new(Decided { call: own.prepare(call), name: &call.name, decisions: &self.decisions });
        }
        if let Some(prepared) = self.plugins.call(call) {
            return prepared;
        }
        if let Some(agents) = self.agents.as_ref().filter(|_| call.name == SPAWN_AGENT) {
            return agents.call(call);
        }
        match self.builtin.as_ref().filter(|builtin| has(builtin)) {
            Some(builtin) => builtin.prepare(call),
            None => Box::new(Unknown { call, offered: self.specs() }),
        }
    }
}

/// A call of a tool of the embedder, under the operator's permissions.
struct Decided<'a> {
    call: Box<dyn PreparedCall + 'a>,
    name: &'a str,
    decisions: &'a Decisions,
}

impl PreparedCall for Decided<'_> {
    fn permission(&self) -> Permission {
        self.decisions.decide(self.name, self.call.permission())
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        self.call.preview()
    }

    fn always(&self) -> Option<String> {
        self.decisions.always(self.name, self.call.always())
    }

    fn changes_nothing(&self) -> bool {
        self.call.changes_nothing()
    }

    fn plan(&self) -> Option<Vec<PlanEntry>> {
        self.call.plan()
    }

    fn run<'a>(&'a mut self, progress: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        self.call.run(progress)
    }
}

/// A call of an unknown tool.
struct Unknown<'a> {
    call: &'a ToolCall,
    offered: Vec<ToolSpec>,
}

impl Unknown<'_> {
    fn why(&self) -> String {
        let names: Vec<String> = self.offered.iter().map(|tool| format!("`{}`", tool.name)).collect();
        format!("there is no tool `{}`; the tools are {}", self.call.name, names.join(", "))
    }
}

impl PreparedCall for Unknown<'_> {
    fn permission(&self) -> Permission {
        Permission::Deny { reason: self.why() }
    }

    fn preview(&mut self) -> BoxFuture<'_, Preview> {
        let preview = Preview::of_arguments(&self.call.arguments).unwrap_or_default();
        Box::pin(std::future::ready(preview))
    }

    fn run<'a>(&'a mut self, _: Progress<'a>) -> BoxFuture<'a, ToolOutput> {
        let output = ToolOutput { content: self.why(), diff: None, is_error: true };
        Box::pin(std::future::ready(output))
    }
}

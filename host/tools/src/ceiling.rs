//! Two sets of permissions, of which the stricter decides about each call: those of the operator, and the ceiling that nothing goes beyond.

use flow::{Permission, PermissionMode, ToolCall};

use crate::ToolsError;
use crate::builtin::{Builtin, Subject};
use crate::guard::Guards;
use crate::permission::{CHANGE, PermissionRule, Policy};
use crate::workspace::Workspace;

/// The permissions of the operator below the ceiling.
#[derive(Debug)]
pub(crate) struct Permissions {
    own: Policy,
    ceiling: Option<Policy>,
}

impl Permissions {
    pub(crate) fn new(own: Policy, ceiling: &[PermissionRule]) -> Result<Self, ToolsError> {
        if ceiling.is_empty() {
            return Ok(Self { own, ceiling: None });
        }
        // What no entry is about is not its business.
        let any =
            PermissionRule { tool: "*".to_owned(), pattern: None, mode: PermissionMode::Allow, origin: String::new() };
        let rules: Vec<PermissionRule> = std::iter::once(any).chain(ceiling.iter().cloned()).collect();
        Ok(Self { own, ceiling: Some(Policy::new(&rules, Guards::none())?) })
    }

    /// Whether a call is allowed to run.
    pub(crate) fn decide(&self, workspace: &Workspace, tool: Builtin, subject: &Subject) -> Permission {
        self.above(workspace, tool, subject).stricter(self.own.decide(workspace, tool, subject))
    }

    /// What a person can allow for the rest of a session; nothing where the ceiling has them asked about each call.
    pub(crate) fn always(&self, workspace: &Workspace, tool: Builtin, subject: &Subject) -> Option<String> {
        match self.above(workspace, tool, subject) {
            Permission::Allow => self.own.always(workspace, tool, subject),
            Permission::Ask { .. } | Permission::Deny { .. } => None,
        }
    }

    /// The permission of a call that no tool could decode.
    pub(crate) fn undecoded(&self, call: &ToolCall) -> Permission {
        self.own.undecoded(call)
    }

    /// Whether reading this file was restricted by a glob: then a search does not show it.
    pub(crate) fn hides(&self, relative: &str) -> bool {
        self.own.hides(relative) || self.ceiling.as_ref().is_some_and(|ceiling| ceiling.hides(relative))
    }

    fn above(&self, workspace: &Workspace, tool: Builtin, subject: &Subject) -> Permission {
        let Some(ceiling) = &self.ceiling else { return Permission::Allow };
        match ceiling.decide(workspace, tool, subject) {
            // Nobody here can change it.
            Permission::Deny { reason } => {
                Permission::Deny { reason: reason.strip_suffix(CHANGE).unwrap_or(&reason).to_owned() }
            }
            other => other,
        }
    }
}

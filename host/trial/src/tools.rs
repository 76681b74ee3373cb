//! Tools that a trial names and this host does not offer.

use std::fmt;

use flow::text::nearest;
use rules::Scope;

use super::Catalogue;

/// A tool that this host does not offer. A rule is tested with it anyway: it can be a tool of another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTool {
    /// Its name, as given.
    pub tool: String,
    /// The offered tool whose name comes nearest.
    pub nearest: Option<String>,
    /// The tools that are offered.
    pub offered: Vec<String>,
}

impl fmt::Display for UnknownTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no tool `{}` here", self.tool)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => write!(f, "; the tools are {}.", self.offered.join(", ")),
        }
    }
}

impl Catalogue {
    /// A note about a tool that this host does not offer; `None` where it is offered, under this name or under one
    /// that rule files write for it.
    pub fn unknown_tool(&self, tool: &str) -> Option<UnknownTool> {
        let named = Scope::Tool { name: Some(tool.to_lowercase()), glob: None };
        if self.tools().iter().any(|offered| named.takes_tool(offered)) {
            return None;
        }
        let nearest = nearest(tool, self.tools().iter().map(String::as_str)).map(str::to_owned);
        Some(UnknownTool { tool: tool.to_owned(), nearest, offered: self.tools().to_vec() })
    }
}

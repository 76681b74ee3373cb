//! Where a stream rule is defined.

use std::fmt;

use crate::PluginId;

/// The file or manifest that defines a rule. Of several rules with one name the highest layer wins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleOrigin {
    /// Who provides the file.
    pub layer: RuleLayer,
    /// The path as it is shown: relative where possible. Of a rule without a file: whose code gives it.
    pub path: String,
}

/// Who provides a rule, highest priority first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleLayer {
    /// The program that embeds the host: rules that it gives as values, without a file.
    Code,
    /// The project's rules folder.
    Project,
    /// The user's rules folder.
    User,
    /// A plugin's manifest.
    Plugin(PluginId),
    /// The built-in pack.
    Builtin,
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.layer {
            RuleLayer::Code => f.write_str(&self.path),
            RuleLayer::Project => write!(f, "project, {}", self.path),
            RuleLayer::User => write!(f, "user, {}", self.path),
            RuleLayer::Plugin(id) => write!(f, "plugin {id}, {}", self.path),
            RuleLayer::Builtin => write!(f, "built-in, {}", self.path),
        }
    }
}

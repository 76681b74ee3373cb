//! Imported rules in force.

use std::path::Path;
use std::sync::Arc;

use flow::{RuleLayer, SourceFile, StreamKind};
use rules::{RuleSession, RuleSet, RuleSettings};
use tidegate_import::RuleText;

pub(crate) fn in_force(one: &RuleText) -> Arc<RuleSet> {
    let file = SourceFile::new("a.md", one.text.as_str());
    let rule = config::RuleFile::of_source(&file, &RuleLayer::Project, "a.md", Path::new("a.md")).rule.unwrap();
    RuleSet::build(vec![rule], RuleSettings::default(), "").0
}

pub(crate) fn fires(set: &Arc<RuleSet>, text: &str) -> bool {
    let mut gate = RuleSession::new(Arc::clone(set)).gate();
    gate.block_start(0, &StreamKind::Text);
    !gate.piece(0, text).matches.is_empty() || !gate.end(0).matches.is_empty()
}

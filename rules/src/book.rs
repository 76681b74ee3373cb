//! What rules without a condition add to the system prompt: the bodies of those that always apply, and the rulebook, a
//! list from which the model reads on demand.

use std::fmt::Write as _;

use flow::{BlockOrigin, SystemBlock};

use crate::{Rule, RuleSet};

/// The tool with which the model reads the rulebook; its argument `name` is a rule's name. The host offers it if
/// [`RuleSet::has_rulebook`], and answers with [`RuleSet::read`].
pub const READ_RULE: &str = "read_rule";

/// The most bytes of a body that are read at once: 64 KiB, some 16,000 tokens.
const MAX_READ: usize = 64 << 10;

impl RuleSet {
    /// Blocks for the system prompt of an agent: the bodies of the rules that always apply, highest layer first, then one that lists
    /// the rulebook, where there is one. Rules with `agents` that do not name it stay out.
    pub fn system_blocks(&self, agent: &str) -> Vec<SystemBlock> {
        let bodies = self.always_apply().filter(|rule| rule.watches_agent(agent));
        let block = |rule: &Rule| SystemBlock::new(BlockOrigin::Rules(vec![rule.name.clone()]), rule.body.clone());
        bodies.map(block).chain(self.rulebook_block(agent)).collect()
    }

    /// Whether the system prompt of an agent lists rules that can be read.
    pub fn has_rulebook(&self, agent: &str) -> bool {
        self.listed(agent).next().is_some()
    }

    /// What the model of an agent reads of the rule of this name. Rules that watch a stream can be read too: a reminder names them.
    ///
    /// # Errors
    /// There is no such rule. The error message is for the model and lists the rules.
    pub fn read(&self, name: &str, agent: &str) -> Result<String, String> {
        let Some(rule) = self.rule(name.trim()) else {
            let names: Vec<String> = self.listed(agent).map(|rule| format!("`{}`", rule.name)).collect();
            return Err(format!("there is no rule `{}`; the rulebook has {}", name.trim(), names.join(", ")));
        };
        let body = rule.body.as_str();
        if body.len() <= MAX_READ {
            return Ok(body.to_owned());
        }
        let cut = &body[..body.floor_char_boundary(MAX_READ)];
        Ok(format!("{cut}\n\n[the rule continues: {} of {} bytes are shown]", cut.len(), body.len()))
    }

    fn listed<'s>(&'s self, agent: &'s str) -> impl Iterator<Item = &'s Rule> {
        self.rulebook().filter(|rule| rule.watches_agent(agent))
    }

    fn rulebook_block(&self, agent: &str) -> Option<SystemBlock> {
        let (mut block, mut names) = (String::new(), Vec::new());
        let mut any_files = false;
        for rule in self.listed(agent) {
            let description = rule.description.as_deref().unwrap_or_default();
            let words: Vec<&str> = description.split_whitespace().collect();
            let files: Vec<String> = rule.globs.iter().map(|glob| format!("`{}`", glob.as_str())).collect();
            any_files |= !files.is_empty();
            let _ = write!(block, "\n- `{}`", rule.name);
            if !files.is_empty() {
                let _ = write!(block, " (files {})", files.join(", "));
            }
            match (words.is_empty(), files.is_empty()) {
                (false, _) => drop(write!(block, ": {}", words.join(" "))),
                (true, true) => block.push_str(": for when the user names it"),
                (true, false) => {}
            }
            names.push(rule.name.clone());
        }
        let files = if any_files { ", or work on a file that it names" } else { "" };
        let lead = format!(
            "This project has a rulebook. Before you do something that an entry covers{files}, call `{READ_RULE}` with \
             the entry's name and follow what it says."
        );
        (!block.is_empty()).then(|| SystemBlock::new(BlockOrigin::Rules(names), lead + &block))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{RuleLayer, RuleOrigin, RuleSettings, parse_rule_file};

    fn set(files: &[(&str, &str)]) -> Arc<RuleSet> {
        let rule = |(name, text): &(&str, &str)| {
            let source = RuleOrigin { layer: RuleLayer::Project, path: format!("{name}.md") };
            parse_rule_file(name, &source, text).0.unwrap()
        };
        RuleSet::build(files.iter().map(rule).collect(), RuleSettings::default(), "").0
    }

    #[test]
    fn bodies_come_first_and_the_rulebook_is_listed_by_description() {
        let set = set(&[
            ("deploy", "---\ndescription: How   to deploy.\n---\nFrom `release`.\n"),
            ("house", "---\nalwaysApply: true\n---\nPlain words.\n"),
            ("stream", "---\ncondition: x\ndescription: Watched, not listed.\n---\nDo not.\n"),
            ("helpers", "---\ndescription: For others.\nagents: helper-*\n---\nElsewhere.\n"),
            ("off", "---\ndescription: Off.\nenabled: false\n---\nNever.\n"),
        ]);
        let [house, book] = <[SystemBlock; 2]>::try_from(set.system_blocks("main")).unwrap();
        assert_eq!(house, SystemBlock::new(BlockOrigin::Rules(vec!["house".into()]), "Plain words."));
        assert_eq!(book.origin, BlockOrigin::Rules(vec!["deploy".into()]));
        let book = book.text;
        assert!(set.has_rulebook("main"));
        assert!(
            book.contains("call `read_rule`") && book.ends_with("follow what it says.\n- `deploy`: How to deploy.")
        );
        assert_eq!(set.read(" deploy ", "main").unwrap(), "From `release`.");
        assert_eq!(set.read("stream", "main").unwrap(), "Do not.");
        assert_eq!(set.read("off", "main").unwrap_err(), "there is no rule `off`; the rulebook has `deploy`");
        let of_helper = set.system_blocks("helper-1");
        assert_eq!(of_helper[1].origin, BlockOrigin::Rules(vec!["deploy".into(), "helpers".into()]));
        assert_eq!(
            set.read("off", "helper-1").unwrap_err(),
            "there is no rule `off`; the rulebook has `deploy`, `helpers`"
        );
    }

    #[test]
    fn a_body_without_end_is_cut_between_characters() {
        let long = format!("+++\ndescription = 'Long.'\n+++\nab{}", "é".repeat(MAX_READ));
        let read = set(&[("long", &long)]).read("long", "main").unwrap();
        assert!(read.len() < MAX_READ + 100, "{}", read.len());
        assert!(
            read.ends_with(&format!("é\n\n[the rule continues: {MAX_READ} of {} bytes are shown]", 2 * MAX_READ + 2))
        );
    }

    #[test]
    fn without_such_rules_the_prompt_is_left_alone() {
        assert!(set(&[("stream", "---\ncondition: x\n---\nDo not.\n")]).system_blocks("main").is_empty());
    }
}

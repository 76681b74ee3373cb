//! `[[rule]]` of a manifest: typed rules become used ones, and what is wrong with them gets its place.

use std::collections::BTreeMap;
use std::ops::Range;

use flow::PluginId;
use rules::{Bucket, Rule, RuleLayer};

use crate::document::{Document, LeftOut, steps};
use crate::typed::ManifestFile;
use crate::{Code, Diagnostic};

/// The rules of a manifest.
#[derive(Debug, Default)]
pub(crate) struct ManifestRules {
    /// Those that can be used.
    pub(crate) rules: Vec<Rule>,
    /// What is wrong with these and with the others.
    pub(crate) findings: Vec<Diagnostic>,
    /// The errors among these that are about a rule with `required = true`.
    pub(crate) unmet: Vec<Diagnostic>,
}

/// Reads the rules of a manifest. `left_out` are those that contradict its schema: each costs itself.
pub(crate) fn rules(
    document: &mut Document<'_>,
    id: &PluginId,
    typed: &ManifestFile,
    left_out: Vec<LeftOut>,
) -> ManifestRules {
    let file = document.place(&[]).file;
    let path = file.path.display().to_string();
    let source = rules::RuleOrigin { layer: RuleLayer::Plugin(id.clone()), path };
    let (mut out, mut first) = (ManifestRules::default(), BTreeMap::new());
    for LeftOut { name, required, found } in left_out {
        let about = |one: Diagnostic| if name.is_empty() { one } else { one.about_rule(&name, Some(&source)) };
        let found: Vec<Diagnostic> = found.into_iter().map(about).collect();
        out.unmet.extend(found.iter().filter(|_| required).cloned());
        out.findings.extend(found);
    }
    for (index, spec) in typed.rule.iter().enumerate() {
        // The schema has seen to it that there is a name.
        let name = spec.name.as_deref().unwrap_or_default();
        let region = region(document, index);
        let (rule, found) = Rule::from_spec(name, &source, spec, Some((&file, region)));
        if spec.required {
            out.unmet.extend(found.iter().filter(|one| one.is_error()).cloned());
        }
        out.findings.extend(found);
        let at = steps!["rule", index, "name"];
        if let Some(before) = first.insert(name.trim().to_owned(), index) {
            let other = document.place(&steps!["rule", before, "name"]);
            let message = "another rule of this plugin has the same name";
            let error = Diagnostic::error(Code::RuleDuplicateName, message).about_rule(name.trim(), Some(&source));
            document.found.push(error.at(document.place(&at), "").at(other, "the first").help("rename one of them"));
        }
        let speaks = rule.as_ref().is_some_and(|rule| rule.bucket != Bucket::Stream);
        if speaks && typed.capabilities.prompt.is_none() {
            let message = "the rule has no condition, so its text is added to the prompt";
            let help = "give it a `condition`, or add `prompt = \"why\"` under `[capabilities]`";
            let error =
                Diagnostic::error(Code::ManifestMissingCapability, message).about_rule(name.trim(), Some(&source));
            document.found.push(error.at(document.place(&at), "").help(help));
        }
        out.rules.extend(rule);
    }
    out
}

/// The bytes of one `[[rule]]`: from its header to the next one.
fn region(document: &Document<'_>, index: usize) -> Range<usize> {
    let start = document.place(&steps!["rule", index]).span.start;
    // If there is no next rule, the span is that of the whole list: it begins at or before this rule.
    let next = document.place(&steps!["rule", index + 1]).span.start;
    start..if next > start { next } else { document.place(&[]).file.text.len() }
}

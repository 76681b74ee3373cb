//! `[[rule]]` of a manifest: typed rules become used ones, and what is wrong with them gets its place.

use std::collections::BTreeMap;
use std::ops::Range;

use flow::PluginId;
use rules::{Bucket, Layer, Rule};

use crate::document::{Document, steps};
use crate::typed::ManifestFile;
use crate::{Diagnostic, Place, Severity};

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

/// Reads the rules of a manifest.
pub(crate) fn rules(document: &mut Document<'_>, id: &PluginId, typed: &ManifestFile) -> ManifestRules {
    let path = document.source().path.display().to_string();
    let source = rules::Source { layer: Layer::Plugin(id.clone()), path };
    let (mut out, mut first) = (ManifestRules::default(), BTreeMap::new());
    for (index, spec) in typed.rule.iter().enumerate() {
        // The schema has seen to it that there is a name.
        let name = spec.name.as_deref().unwrap_or_default();
        let region = region(document, index);
        let text = document.source().text.get(region.clone());
        let (rule, found) = Rule::from_spec(name, &source, spec, text);
        let found: Vec<Diagnostic> = found.into_iter().map(|one| placed(document, index, &region, one)).collect();
        if spec.required {
            out.unmet.extend(found.iter().filter(|one| one.severity == Severity::Error).cloned());
        }
        out.findings.extend(found);
        let at = steps!["rule", index, "name"];
        if let Some(before) = first.insert(name.trim().to_owned(), index) {
            let other = document.place(&steps!["rule", before, "name"]);
            let error = Diagnostic::error(format!("two rules of this plugin have the name `{}`", name.trim()));
            document.found.push(error.at(document.place(&at), "").also(other, "the first").help("rename one of them"));
        }
        let speaks = rule.as_ref().is_some_and(|rule| rule.bucket != Bucket::Stream);
        if speaks && typed.capabilities.prompt.is_none() {
            let message = format!("the rule `{}` has no condition, so its text joins the prompt", name.trim());
            let help = "give it a `condition`, or add `prompt = \"why\"` under `[capabilities]`";
            document.error(&at, message, "", help);
        }
        out.rules.extend(rule);
    }
    out
}

/// The bytes of one `[[rule]]`: from its header to the next one.
fn region(document: &Document<'_>, index: usize) -> Range<usize> {
    let start = document.place(&steps!["rule", index]).span.start;
    // Where there is no next rule, the place is that of the whole list: it begins at or before this rule.
    let next = document.place(&steps!["rule", index + 1]).span.start;
    start..if next > start { next } else { document.source().text.len() }
}

fn placed(document: &Document<'_>, index: usize, region: &Range<usize>, found: rules::Diagnostic) -> Diagnostic {
    let span = match found.span {
        Some(span) => region.start + span.start..region.start + span.end,
        // The text stands in the file with escapes: the rule's name has to do.
        None => document.place(&steps!["rule", index, "name"]).span,
    };
    let severity = match found.severity {
        rules::Severity::Error => Severity::Error,
        rules::Severity::Warning => Severity::Warning,
    };
    let message = format!("rule `{}`: {}", found.rule, found.message);
    let place = Place::new(document.source(), span);
    Diagnostic { severity, help: found.help, ..Diagnostic::error(message).at(place, "") }
}

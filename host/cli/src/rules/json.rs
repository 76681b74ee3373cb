//! What several commands print of the same things, as JSON.

use serde_json::{Value, json};
use tidegate::diagnostic::{Diagnostic, Label, Subject};
use tidegate::event::StreamKind;
use tidegate::rule::{RuleMatch, RuleOrigin};
use trial::RuleEntry;

/// A diagnostic: `{"code", "severity", "rule", "plugin", "message", "file", "line", "column", "labels", "help"}`; what is
/// not known is `null`. `file`, `line` and `column` are those of the first label; `labels` are all of them:
/// `{"file", "line", "column", "start", "end", "text"}`, with the marked bytes of the file.
pub(super) fn finding(finding: &Diagnostic) -> Value {
    let first = finding.location();
    let plugin = match &finding.subject {
        Some(Subject::Plugin(id)) => Some(id.as_str()),
        _ => None,
    };
    json!({
        "code": finding.code.as_str(),
        "severity": finding.severity.as_str(),
        "rule": finding.rule(),
        "plugin": plugin,
        "message": finding.message,
        "file": first.map(|at| at.file.shown()),
        "line": first.map(|at| at.line()),
        "column": first.map(|at| at.column()),
        "labels": finding.labels.iter().map(label).collect::<Vec<_>>(),
        "help": finding.help,
    })
}

fn label(label: &Label) -> Value {
    let at = &label.location;
    json!({
        "file": at.file.shown(),
        "line": at.line(),
        "column": at.column(),
        "start": at.span.start,
        "end": at.span.end,
        "text": label.text,
    })
}

/// Where a rule comes from: `{"layer", "path"}`, for a plugin's rule with `"plugin"`.
pub(super) fn source(source: &RuleOrigin) -> Value {
    use tidegate::rule::RuleLayer;
    let (layer, plugin) = match &source.layer {
        RuleLayer::Code => ("code", None),
        RuleLayer::Project => ("project", None),
        RuleLayer::User => ("user", None),
        RuleLayer::Plugin(id) => ("plugin", Some(id.as_str())),
        RuleLayer::Builtin => ("builtin", None),
    };
    let mut value = json!({"layer": layer, "path": crate::print::tidy_path(&source.path)});
    if let Some(plugin) = plugin {
        value["plugin"] = plugin.into();
    }
    value
}

/// A rule with its state, as `rules list --json` and `rules explain --json` give it.
pub(super) fn entry(entry: &RuleEntry) -> Value {
    use tidegate::rule::Bucket;
    let rule = &entry.rule;
    let bucket = match rule.bucket {
        Bucket::Stream => "stream",
        Bucket::AlwaysApply => "always_apply",
        Bucket::Rulebook => "rulebook",
    };
    let globs = |globs: &[tidegate::rule::Glob]| globs.iter().map(|glob| glob.as_str().to_owned()).collect::<Vec<_>>();
    let stream = rule.bucket == Bucket::Stream;
    json!({
        "name": rule.name,
        "description": rule.description,
        "state": entry.status.as_str(),
        "reason": entry.status.reason(),
        "bucket": bucket,
        "source": source(&rule.source),
        "scope": if stream { entry.scopes.clone() } else { Vec::new() },
        "globs": globs(&rule.globs),
        "field": rule.fields,
        "agents": globs(&rule.agents),
        "action": stream.then(|| entry.action()),
        "interrupt": stream.then(|| entry.interrupt.as_str()),
        "repeat": stream.then(|| entry.repeat.as_str()),
        "promise": entry.promise,
        "required": entry.required,
        "secret": rule.secret,
        "fold": rule.fold.words().collect::<Vec<_>>(),
        "gap": (stream && entry.repeat == tidegate::rule::RepeatMode::AfterGap).then_some(entry.gap),
        "conditions": rule.conditions.len(),
        "all": rule.all.len(),
        "unless": rule.unless.len(),
        "longest_match": entry.longest_match.filter(|_| stream),
        "examples": rule.examples.len(),
        "findings": entry.findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

/// A match: the stream, for tools with `"tool"`, `"field"` and `"path"`, and what was found where, in bytes of its block. Of a
/// call that the rule could not read, `"unread"` is true and `"text"` says why.
pub(super) fn found(found: &RuleMatch) -> Value {
    let evidence = &found.evidence;
    let mut value = json!({
        "stream": found.stream.as_str(),
        "pattern": evidence.pattern,
        "text": evidence.text,
        "start": evidence.start,
        "end": evidence.end,
        "line": evidence.line,
    });
    if evidence.unread {
        value["unread"] = true.into();
    }
    if let StreamKind::Tool { name, .. } = &found.stream {
        value["tool"] = name.as_str().into();
        value["field"] = evidence.field.clone().into();
        value["path"] = evidence.path.clone().into();
    }
    value
}

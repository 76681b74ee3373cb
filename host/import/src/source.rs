//! Which format a file is in, and its tree.

use std::sync::Arc;

use config::{Diagnostics, yaml_tree};
use flow::{Diagnostic, DiagnosticCode as Code, Location, SourceFile};
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::set::{Format, Set};
use crate::table::Table;
use crate::{detect_secrets, gitleaks, trufflehog};

/// How a file is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Toml,
    Yaml,
    Json,
}

/// Reads a rule set in any of the formats.
pub(crate) fn read(source: &Arc<SourceFile>) -> Result<Set, Diagnostics> {
    if source.text.trim().is_empty() {
        return Err(unknown(source, 0..0, "the file is empty"));
    }
    match syntax(source) {
        Syntax::Json => json(source),
        Syntax::Yaml => tree(source, yaml_tree(source, Code::RuleSetFormat)?, Syntax::Yaml),
        Syntax::Toml => {
            let (root, errors) = DeTable::parse_recoverable(&source.text);
            if errors.is_empty() {
                return tree(source, root, Syntax::Toml);
            }
            let one = |error: &toml::de::Error| {
                let place = Location::new(source, error.span().unwrap_or(0..0));
                let message = error.message().lines().next().unwrap_or("this is not TOML");
                Diagnostic::error(Code::ConfigSyntax, message).at(place, "")
            };
            Err(Diagnostics(errors.iter().map(one).collect()))
        }
    }
}

/// By the name of the file, or by its text where that says nothing: `.secrets.baseline` is JSON.
fn syntax(source: &SourceFile) -> Syntax {
    let end = source.path.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    match end.as_str() {
        "toml" => Syntax::Toml,
        "yaml" | "yml" => Syntax::Yaml,
        "json" => Syntax::Json,
        _ if source.text.trim_start_matches('\u{feff}').trim_start().starts_with('{') => Syntax::Json,
        _ if source.text.lines().any(|line| line.trim_end() == "detectors:") => Syntax::Yaml,
        _ => Syntax::Toml,
    }
}

fn tree(source: &Arc<SourceFile>, root: Spanned<DeTable<'_>>, syntax: Syntax) -> Result<Set, Diagnostics> {
    let span = root.span();
    let root = Spanned::new(span, DeValue::Table(root.into_inner()));
    let mut found = Vec::new();
    let Some(table) = Table::of(source, &root, &mut found) else { return Err(Diagnostics(found)) };
    let has = |keys: &[&str]| keys.iter().any(|key| table.value(key).is_some());
    let set = match syntax {
        Syntax::Yaml if has(&["detectors"]) => trufflehog::read(&table, &mut found),
        Syntax::Toml if has(&["rules", "allowlist", "allowlists", "extend"]) => gitleaks::read(&table, &mut found),
        _ => return Err(unknown(source, 0..first_line(&source.text), "this is no rule set of a secret scanner")),
    };
    if found.is_empty() { Ok(set) } else { Err(Diagnostics(found)) }
}

fn json(source: &Arc<SourceFile>) -> Result<Set, Diagnostics> {
    let text = source.text.trim_start_matches('\u{feff}');
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let at = character(&source.text, source.text.len() - text.len() + offset(text, error.line(), error.column()));
        let message = format!("this is not JSON: {error}");
        Diagnostics::from(Diagnostic::error(Code::ConfigSyntax, message).at(Location::new(source, at), ""))
    })?;
    match value {
        Value::Object(all) if all.contains_key("plugins_used") => Ok(detect_secrets::read(source, &all)),
        Value::Object(all) if !all.is_empty() && all.values().all(Value::is_string) => {
            Ok(trufflehog::read_regexes(source, &all))
        }
        _ => Err(unknown(source, 0..first_line(&source.text), "this is no rule set of a secret scanner")),
    }
}

fn unknown(source: &Arc<SourceFile>, at: std::ops::Range<usize>, message: &str) -> Diagnostics {
    let help = format!("these are read: {}", Format::READ);
    Diagnostic::error(Code::RuleSetFormat, message).help(help).at(Location::new(source, at), "").into()
}

fn first_line(text: &str) -> usize {
    text.lines().next().unwrap_or_default().len()
}

/// The character that has the byte `at`.
fn character(text: &str, at: usize) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(at);
    start..start + text[start..].chars().next().map_or(0, char::len_utf8)
}

/// The byte at a line and column, both counted from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column.saturating_sub(1)).min(text.len())
}

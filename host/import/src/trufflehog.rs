//! TruffleHog: custom detectors of version 3 in YAML, and the rules of version 2 in JSON.

use std::sync::Arc;

use flow::text::nearest;
use flow::{Diagnostic, DiagnosticCode as Code, SourceFile};
use serde_json::{Map, Value};

use crate::engine::Engine;
use crate::json::Keys;
use crate::set::{AllowList, Detector, Expression, Format, Part, Set, Skipped, Target};
use crate::table::Table;
use crate::{Feature, LeftOut};

const DETECTOR: &[&str] = &[
    "name",
    "keywords",
    "regex",
    "verify",
    "description",
    "exclude_regexes_capture",
    "exclude_words",
    "entropy",
    "exclude_regexes_match",
    "primary_regex_name",
    "validations",
];

/// Custom detectors. Settings of the program next to them are no rules.
pub(crate) fn read(root: &Table<'_>, found: &mut Vec<Diagnostic>) -> Set {
    let mut set = Set::new(Format::Trufflehog);
    for table in root.tables("detectors", found) {
        match detector(&table, found) {
            Ok(one) => set.detectors.push(one),
            Err(skipped) => set.skipped.push(*skipped),
        }
    }
    set
}

fn detector(table: &Table<'_>, found: &mut Vec<Diagnostic>) -> Result<Detector, Box<Skipped>> {
    let id = table.text("name", found).unwrap_or_default();
    let id = if id.trim().is_empty() { format!("detector-{}", table.head().line()) } else { id };
    let mut all = table.table("regex", found).map(|regex| regex.strings(found)).unwrap_or_default();
    // Without a name of it, the first of the sorted names is the primary one.
    all.sort_by(|a, b| a.0.cmp(&b.0));
    let at = primary(table, &all, found);
    if all.is_empty() {
        let why = Diagnostic::warning(Code::RuleNoCondition, "the detector has no `regex`").at(table.head(), "");
        return Err(Box::new(Skipped { id, why }));
    }
    let (_, first) = all.remove(at);
    let mut allowed = Vec::new();
    let of = |target, expressions: Vec<String>, words: Vec<String>| AllowList {
        target,
        expressions: expressions.iter().map(|one| Engine::Go.spell(one)).collect(),
        words,
        ..AllowList::default()
    };
    allowed.push(of(
        Target::Secret,
        table.texts("exclude_regexes_capture", found),
        table.texts("exclude_words", found),
    ));
    allowed.push(of(Target::Match, table.texts("exclude_regexes_match", found), Vec::new()));
    let place = if table.value("name").is_some() { table.place("name") } else { table.head() };
    Ok(Detector {
        id,
        place,
        description: table.text("description", found).unwrap_or_default(),
        expressions: vec![first.read_by(Engine::Go)],
        also: all.into_iter().map(|(_, expression)| expression.read_by(Engine::Go)).collect(),
        keywords: table.texts("keywords", found),
        path: None,
        part: Part::FirstGroup,
        allowed,
        left_out: left_out(table, found),
    })
}

/// Which expression is the secret: the one that `primary_regex_name` names, else the first.
fn primary(table: &Table<'_>, all: &[(String, Expression)], found: &mut Vec<Diagnostic>) -> usize {
    let Some(name) = table.text("primary_regex_name", found).filter(|name| !name.is_empty()) else { return 0 };
    let names = || all.iter().map(|(known, _)| known.as_str());
    if let Some(at) = names().position(|known| known == name) {
        return at;
    }
    let help = match nearest(&name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", names().collect::<Vec<_>>().join(", ")),
    };
    let message = format!("`primary_regex_name` names `{name}`, which is no expression in `regex`");
    let place = table.place("primary_regex_name");
    found.push(Diagnostic::error(Code::ConfigUnknownValue, message).help(help).at(place, ""));
    0
}

fn left_out(table: &Table<'_>, found: &mut Vec<Diagnostic>) -> Vec<LeftOut> {
    let mut out = table.unknown(DETECTOR);
    let entropy = table.number("entropy", found).filter(|number| *number > 0.0);
    out.extend(entropy.map(|number| LeftOut::new(Feature::Entropy, format!("at least {number}"))));
    if table.value("validations").is_some() {
        out.push(LeftOut::new(Feature::Validation, format!("line {}", table.place("validations").line())));
    }
    if table.value("verify").is_some() {
        out.push(LeftOut::new(Feature::Verification, format!("line {}", table.place("verify").line())));
    }
    out
}

/// Rules of version 2: a name and an expression each. All of a match is the secret. Of two with one name Python uses the last.
pub(crate) fn read_regexes(source: &Arc<SourceFile>, all: &Map<String, Value>) -> Set {
    let mut set = Set::new(Format::TrufflehogRegexes);
    let keys = Keys::of(source);
    for (name, value) in all {
        let (place, before) = keys.places(source, name);
        for earlier in before {
            let message = format!("line {} has a rule of the same name, which is used", place.line());
            let why = Diagnostic::warning(Code::RuleDuplicateName, message).at(earlier, "");
            set.skipped.push(Skipped { id: name.clone(), why });
        }
        let Value::String(text) = value else { continue };
        let wider = Engine::Python.wider(text).join(", ");
        set.detectors.push(Detector {
            id: name.clone(),
            description: name.clone(),
            expressions: vec![Expression { text: text.clone(), place: place.clone() }.read_by(Engine::Python)],
            place,
            also: Vec::new(),
            keywords: Vec::new(),
            path: None,
            part: Part::Match,
            allowed: Vec::new(),
            left_out: if wider.is_empty() { Vec::new() } else { vec![LeftOut::new(Feature::Engine, wider)] },
        });
    }
    set
}

//! TruffleHog: custom detectors of version 3 in YAML, and the rules of version 2 in JSON.

use std::sync::Arc;

use flow::{Diagnostic, DiagnosticCode as Code, Location, SourceFile};
use serde_json::{Map, Value};

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
    let primary = table.text("primary_regex_name", found);
    let at = primary.and_then(|name| all.iter().position(|(known, _)| *known == name)).unwrap_or_default();
    if all.is_empty() {
        let why = Diagnostic::warning(Code::RuleNoCondition, "the detector has no `regex`").at(table.head(), "");
        return Err(Box::new(Skipped { id, why }));
    }
    let (_, first) = all.remove(at);
    let mut allowed = Vec::new();
    let of = |target, expressions: Vec<String>, words: Vec<String>| AllowList {
        target,
        expressions,
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
        expressions: vec![first],
        also: all.into_iter().map(|(_, expression)| expression).collect(),
        keywords: table.texts("keywords", found),
        path: None,
        part: Part::FirstGroup,
        allowed,
        left_out: left_out(table, found),
    })
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

/// Rules of version 2: a name and an expression each. All of a match is the secret.
pub(crate) fn read_regexes(source: &Arc<SourceFile>, all: &Map<String, Value>) -> Set {
    let mut set = Set::new(Format::TrufflehogRegexes);
    for (name, value) in all {
        let place = place_of(source, name);
        let Value::String(text) = value else { continue };
        set.detectors.push(Detector {
            id: name.clone(),
            description: name.clone(),
            expressions: vec![Expression { text: text.clone(), place: place.clone() }],
            place,
            also: Vec::new(),
            keywords: Vec::new(),
            path: None,
            part: Part::Whole,
            allowed: Vec::new(),
            left_out: Vec::new(),
        });
    }
    set
}

/// Where a string of a JSON file is.
pub(crate) fn place_of(source: &Arc<SourceFile>, text: &str) -> Location {
    let quoted = Value::from(text).to_string();
    let at = source.text.find(&quoted).map_or(0..0, |at| at..at + quoted.len());
    Location::new(source, at)
}

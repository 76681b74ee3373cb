//! `gitleaks.toml`: `[[rules]]`, `[allowlist]` and `[[allowlists]]`, as gitleaks 8 reads them.

use flow::text::nearest;
use flow::{Diagnostic, DiagnosticCode as Code};

use crate::engine::Engine;
use crate::set::{AllowList, Detector, Expression, Format, Part, Set, Skipped, Target};
use crate::table::Table;
use crate::{Feature, LeftOut};

const SET: &[&str] = &["title", "description", "minVersion", "extend", "rules", "allowlist", "allowlists"];
const EXTEND: &[&str] = &["path", "url", "useDefault", "disabledRules"];
const RULE: &[&str] = &[
    "id",
    "description",
    "path",
    "regex",
    "secretGroup",
    "entropy",
    "keywords",
    "tags",
    "allowlist",
    "allowlists",
    "required",
    "skipReport",
];
const ALLOW: &[&str] =
    &["description", "condition", "commits", "paths", "regexTarget", "regexes", "stopwords", "targetRules"];

pub(crate) fn read(root: &Table<'_>, found: &mut Vec<Diagnostic>) -> Set {
    let mut set = Set::new(Format::Gitleaks);
    set.left_out.extend(root.unknown(SET));
    let mut extends = false;
    if let Some(extend) = root.table("extend", found) {
        let named = ["path", "url"].iter().find_map(|key| extend.text(key, found));
        let default = extend.is_true("useDefault").then(|| "the default of gitleaks".to_owned());
        let base = named.or(default);
        extends = base.is_some();
        set.left_out.extend(base.map(|what| LeftOut::new(Feature::Extended, what)));
        let disabled = extend.texts("disabledRules", found);
        if !disabled.is_empty() {
            set.left_out.push(LeftOut::new(Feature::Extended, format!("without its rules {}", disabled.join(", "))));
        }
        set.left_out.extend(extend.unknown(EXTEND));
    }
    for table in root.tables("rules", found) {
        match rule(&table, extends, found) {
            Ok(one) => add(&mut set, one),
            Err(skipped) => set.skipped.push(*skipped),
        }
    }
    let one = root.table("allowlist", found);
    for table in one.into_iter().chain(root.tables("allowlists", found)) {
        set.left_out.extend(table.unknown(ALLOW));
        let list = allow_list(&table, found);
        let targets = table.texts("targetRules", found);
        if targets.is_empty() {
            set.allowed.push(list);
            continue;
        }
        let line = table.place("targetRules").line();
        let missing: Vec<_> = targets.iter().filter_map(|target| missing(&set, target, line)).collect();
        set.left_out.extend(missing);
        let about = set.detectors.iter_mut().filter(|one| targets.contains(&one.id));
        about.for_each(|one| one.allowed.push(list.clone()));
    }
    set
}

/// An entry of `targetRules` that no rule has the name of, or one that is skipped.
fn missing(set: &Set, target: &str, line: usize) -> Option<LeftOut> {
    let mut ids = set.detectors.iter().map(|one| one.id.as_str());
    if ids.clone().any(|id| id == target) {
        return None;
    }
    let what = match nearest(target, ids.by_ref()) {
        _ if set.skipped.iter().any(|one| one.id == target) => {
            format!("for `{target}` in line {line}, which is skipped")
        }
        Some(near) => format!("for `{target}` in line {line}, which is no rule of this set; did you mean `{near}`?"),
        None => format!("for `{target}` in line {line}, which is no rule of this set"),
    };
    Some(LeftOut::new(Feature::TargetRule, what))
}

/// Of two rules with one name gitleaks uses the last.
fn add(set: &mut Set, one: Detector) {
    if let Some(at) = set.detectors.iter().position(|known| known.id == one.id) {
        let before = set.detectors.remove(at);
        let message = format!("line {} has a rule of the same name, which is used", one.place.line());
        let why = Diagnostic::warning(Code::RuleDuplicateName, message).at(before.place, "");
        set.skipped.push(Skipped { id: before.id, why });
    }
    set.detectors.push(one);
}

fn rule(table: &Table<'_>, extends: bool, found: &mut Vec<Diagnostic>) -> Result<Detector, Box<Skipped>> {
    let id = table.text("id", found).unwrap_or_default();
    let skip = |code: Code, message: &str, place| {
        let why = Diagnostic::warning(code, message).at(place, "");
        Box::new(Skipped { id: if id.is_empty() { "(no id)".to_owned() } else { id.clone() }, why })
    };
    if id.trim().is_empty() {
        return Err(skip(Code::ConfigMissingKey, "the rule has no `id`", table.head()));
    }
    if table.is_true("skipReport") {
        let message = "`skipReport`: the rule is only a requirement of others and finds nothing by itself";
        return Err(skip(Code::RuleDisabled, message, table.head()));
    }
    let mut expression = |key| table.expression(key, found).map(|one| one.read_by(Engine::Go));
    let (regex, path): (Option<Expression>, Option<Expression>) = (expression("regex"), expression("path"));
    if regex.is_none() && extends {
        let message = "the rule has no `regex`, so it may change one of the rule set that this one extends";
        return Err(skip(Code::RuleNoCondition, message, table.head()));
    }
    if regex.is_none() && path.is_none() {
        let mut skipped = skip(Code::RuleNoCondition, "the rule has neither `regex` nor `path`", table.head());
        skipped.why.help = table.unknown(RULE).first().map(|one| format!("unknown key {}", one.what));
        return Err(skipped);
    }
    let group = table.number("secretGroup", found).filter(|number| *number >= 1.0);
    let own = table.table("allowlist", found);
    let lists: Vec<_> = own.into_iter().chain(table.tables("allowlists", found)).collect();
    let mut left_out = table.unknown(RULE);
    left_out.extend(lists.iter().flat_map(|list| list.unknown(ALLOW)));
    let entropy = table.number("entropy", found).filter(|number| *number > 0.0);
    left_out.extend(entropy.map(|number| LeftOut::new(Feature::Entropy, format!("more than {number}"))));
    let required: Vec<_> = table.tables("required", found).iter().filter_map(|one| one.text("id", found)).collect();
    if !required.is_empty() {
        left_out.push(LeftOut::new(Feature::Required, required.join(", ")));
    }
    Ok(Detector {
        description: table.text("description", found).unwrap_or_default(),
        place: table.place("id"),
        expressions: regex.into_iter().collect(),
        also: Vec::new(),
        keywords: table.texts("keywords", found),
        path,
        part: group.map_or(Part::FirstGroup, |number| Part::Group(number as usize)),
        allowed: lists.iter().map(|list| allow_list(list, found)).collect(),
        left_out,
        id,
    })
}

fn allow_list(table: &Table<'_>, found: &mut Vec<Diagnostic>) -> AllowList {
    let condition = word(table, "condition", &["or", "and", "||", "&&"], found);
    let target = word(table, "regexTarget", &["secret", "match", "line"], found);
    AllowList {
        target: match target.as_deref() {
            Some("match") => Target::Match,
            Some("line") => Target::Line,
            _ => Target::Secret,
        },
        expressions: table.texts("regexes", found).iter().map(|one| Engine::Go.spell(one)).collect(),
        words: table.texts("stopwords", found),
        paths: table.texts("paths", found),
        commits: table.texts("commits", found).len(),
        all: matches!(condition.as_deref(), Some("and" | "&&")),
    }
}

/// One of a few words, in any case.
fn word(table: &Table<'_>, key: &str, known: &[&str], found: &mut Vec<Diagnostic>) -> Option<String> {
    let value = table.text(key, found)?.to_lowercase();
    if !value.is_empty() && !known.contains(&value.as_str()) {
        let message = format!("`{key}` is none of {}", known.join(", "));
        found.push(Diagnostic::error(Code::ConfigUnknownValue, message).at(table.place(key), ""));
    }
    Some(value)
}

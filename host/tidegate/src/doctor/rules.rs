//! The doctor's word on rules: where they come from, and for each whether it can fire.

use std::collections::BTreeMap;

use config::{FolderReport, FolderState};
use flow::{Diagnostic, DiagnosticCode};
use rules::{Bucket, RuleInfo, RuleLayer, RuleState};

use crate::doctor::{Check, Health};
use crate::host::loaded::Loaded;
use config::rule_sources::BuiltRules;

/// Checks the folders, the files, every rule, and the engine.
pub(crate) fn rule_checks(loaded: &Loaded) -> Vec<Check> {
    let built = loaded.live.built();
    let mut checks: Vec<Check> = loaded.live.folders().iter().map(folder).collect();
    checks.extend(loaded.unread.iter().map(|(shown, detail)| Check::good(format!("rule folder {shown}"), detail)));
    checks.extend(config::by_kind(built.about_files.clone()).iter().map(|one| Check::of("rules", one)));
    checks.extend(built.unmet.iter().map(|one| Check::of("required rules", one)));
    // A shadowed rule is reported with the rule that shadows it.
    let told = built.set.rules().filter(|info| !matches!(info.state, RuleState::Shadowed(_)));
    // A pack that is disabled as a whole is reported as a whole.
    let pack = built.set.settings().builtin_rules;
    let told = told.filter(|info| pack || info.rule.source.layer != RuleLayer::Builtin);
    checks.extend(grouped(told.map(|info| rule(&built, &info)).collect()));
    if !pack {
        checks.push(Check::good("built-in rules", "switched off: the setting `builtin_rules` is false"));
    }
    checks.push(engine(&built));
    checks
}

/// So many rules with the same result have a line each. Of more with an error the first ones have.
const MOST: usize = 20;

/// The checks of rules, where those of many rules with the same result are one. How many of those that come with the program are shown is
/// for front ends to decide.
fn grouped(checks: Vec<Check>) -> Vec<Check> {
    let kind = |check: &Check| (check.health as u8, check.code.map(|code| code.as_str()));
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    checks.iter().filter(|check| !check.is_built_in).for_each(|check| *counts.entry(kind(check)).or_default() += 1);
    let (mut out, mut met): (Vec<Check>, BTreeMap<_, usize>) = (Vec::new(), BTreeMap::new());
    for check in checks {
        let (all, shown) = (counts.get(&kind(&check)).copied(), if check.health == Health::Bad { MOST } else { 0 });
        let Some(all) = all.filter(|all| *all > MOST && !check.is_built_in) else {
            out.push(check);
            continue;
        };
        let before = met.entry(kind(&check)).or_default();
        *before += 1;
        if *before <= shown {
            out.push(check);
        } else if *before == shown + 1 {
            out.push(many(&check, all - shown, shown > 0));
        }
    }
    out
}

/// What the checks of so many rules have in common.
fn many(first: &Check, count: usize, are_more: bool) -> Check {
    let more = if are_more { " more" } else { "" };
    let detail = match first.health {
        Health::Good => format!("{count} without a problem; `tidegate rules list` lists them"),
        _ => format!(
            "{count}{more} of this kind (`tidegate rules list` lists all), the first: {}: {}",
            first.what, first.detail
        ),
    };
    Check { what: "rules".to_owned(), detail, ..first.clone() }
}

fn folder(report: &FolderReport) -> Check {
    let detail = match report.state {
        FolderState::Absent => "not there".to_owned(),
        FolderState::Unreadable => "cannot be read; its rules remain unchanged".to_owned(),
        FolderState::Twice => "read already, under another name".to_owned(),
        FolderState::Read => match (report.files, report.refused) {
            (0, _) => "no rule files".to_owned(),
            (1, 0) => "1 rule file".to_owned(),
            (files, 0) => format!("{files} rule files"),
            (files, refused) => format!("{refused} of {files} rule files refused"),
        },
    };
    let health = match report.state {
        FolderState::Unreadable => Health::Bad,
        FolderState::Twice => Health::Warning,
        FolderState::Absent | FolderState::Read => Health::Good,
    };
    Check { health, ..Check::good(format!("rule folder {}", report.shown), detail) }
}

/// One rule: what it watches or why it cannot, and what else is to be known of it.
fn rule(built: &BuiltRules, info: &RuleInfo<'_>) -> Check {
    let idle = built.idle.iter().find(|(rule, _)| rule.name == info.rule.name && rule.source == info.rule.source);
    let (health, mut detail) = match (info.state, info.rule.bucket) {
        (RuleState::Disabled(why), _) => (Health::Good, format!("switched off: {why}")),
        (RuleState::Shadowed(by), _) => (Health::Warning, format!("not used: {by}")),
        (RuleState::Unreachable(why), _) => (Health::Bad, format!("can never fire: {why}")),
        (RuleState::Active, Bucket::AlwaysApply) => (Health::Good, "joins the system prompt".to_owned()),
        (RuleState::Active, Bucket::Rulebook) => (Health::Good, "is listed in the rulebook".to_owned()),
        (RuleState::Active, Bucket::Stream) => match idle {
            Some((_, why)) => (Health::Warning, format!("cannot fire: {why}")),
            None => (Health::Good, format!("watches {}", info.scopes.join(", "))),
        },
    };
    let of_this = |one: &&Diagnostic| one.is_about_rule(&info.rule.name, &info.rule.source);
    let more: Vec<&Diagnostic> = built.about_set.iter().filter(of_this).collect();
    for one in &more {
        // For a rule that can never fire this was reported already.
        if !detail.contains(one.message.trim_start_matches("it ")) {
            detail = format!("{detail}; {}", one.message);
        }
        detail.extend(one.help.iter().map(|help| format!("; {help}")));
    }
    let health = if health == Health::Good && !more.is_empty() { Health::Warning } else { health };
    let code = more.first().map(|one| one.code).or_else(|| match info.state {
        RuleState::Unreachable(_) => Some(DiagnosticCode::RuleUnreachable),
        RuleState::Shadowed(_) => Some(DiagnosticCode::RuleShadowed),
        RuleState::Active if idle.is_some() => Some(DiagnosticCode::RuleIdle),
        RuleState::Active | RuleState::Disabled(_) => None,
    });
    let detail = format!("{detail} ({})", info.rule.source);
    let is_built_in = info.rule.source.layer == RuleLayer::Builtin;
    Check { health, code, is_built_in, ..Check::good(format!("rule {}", info.rule.name), detail) }
}

/// The current size of the automata: none before text was processed.
fn engine(built: &BuiltRules) -> Check {
    let engines = rules::engine::stats(&built.set);
    let bytes: usize = engines.iter().map(|engine| engine.bytes).sum();
    let patterns: usize = engines.iter().map(|engine| engine.patterns).sum();
    let mut detail = format!("{patterns} patterns in {} automata", engines.len());
    if bytes > 0 {
        detail = format!("{detail}, {} KiB", bytes.div_ceil(1024));
    }
    let Some(trouble) = built.set.engine_trouble() else { return Check::good("rule engine", detail) };
    let detail = format!("{detail}; {trouble}");
    Check { health: Health::Warning, ..Check::good("rule engine", detail) }
}

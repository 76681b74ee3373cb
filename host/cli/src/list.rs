//! `tidegate plugin list` and `tidegate rules list`.

use std::io::{Write, stdout};

use tidegate::{CallbackKind, Host, Loaded};

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::{open, print, style};

/// Prints the plugins, and for each callback who is called in which order.
pub(crate) async fn plugins(common: &Common) -> Result<Exit, Failure> {
    let host = load(common).await?;
    let plugins = host.plugins();
    let mut out = stdout().lock();
    if plugins.is_empty() {
        writeln!(out, "no plugins: add `[[plugin]]` entries to tidegate.toml, or give --plugin DIR")?;
    }
    for plugin in &plugins {
        writeln!(out, "{} {}  {}", style::out(style::STRONG, plugin.id.as_str()), plugin.version, plugin.description)?;
        let powers = if plugin.powers.is_empty() { "none".to_owned() } else { plugin.powers.join(", ") };
        writeln!(out, "  powers: {powers}; stream rules: {}; prompt additions: {}", plugin.rules, plugin.prompts)?;
        writeln!(out, "  from {}", print::tidy_path(&plugin.folder.display().to_string()))?;
    }
    let chains = CallbackKind::ALL.map(|callback| (callback, host.chain(callback)));
    if chains.iter().any(|(_, chain)| !chain.is_empty()) {
        writeln!(out, "\nOrder of calls (priority; the last one has the last word):")?;
    }
    for (callback, chain) in chains {
        if !chain.is_empty() {
            let names: Vec<String> = chain.iter().map(|(id, priority)| format!("{id} ({priority})")).collect();
            writeln!(out, "  {:<18} {}", callback.as_str(), names.join(" → "))?;
        }
    }
    print::warnings(&host);
    Ok(Exit::Completed)
}

/// Prints the rules.
pub(crate) async fn rules(common: &Common) -> Result<Exit, Failure> {
    let host = load(common).await?;
    let mut out = stdout().lock();
    for info in host.rules().rules() {
        let state = match info.state {
            tidegate::RuleState::Active => style::out(style::GOOD, "active"),
            tidegate::RuleState::Disabled(why) => format!("{}: {why}", style::out(style::DIM, "disabled")),
            tidegate::RuleState::Shadowed(by) => format!("{}: {by}", style::out(style::WARNING, "shadowed")),
            tidegate::RuleState::Unreachable(why) => format!("{}: {why}", style::out(style::BAD, "cannot fire")),
        };
        writeln!(out, "{}  {state}", style::out(style::STRONG, &info.rule.name))?;
        if let Some(description) = &info.rule.description {
            writeln!(out, "  {description}")?;
        }
        let gap =
            if info.repeat == tidegate::RepeatMode::AfterGap { format!(" {} turns", info.gap) } else { String::new() };
        let action = match info.rule.action {
            Some(tidegate::RuleAction::Remind) => "remind".to_owned(),
            Some(tidegate::RuleAction::Block) => "block".to_owned(),
            Some(tidegate::RuleAction::Stop) => "stop".to_owned(),
            Some(tidegate::RuleAction::Interrupt) | None => format!("interrupt ({})", info.interrupt.as_str()),
        };
        writeln!(out, "  watches {}; action {action}; repeats {}{gap}", info.scopes.join(", "), info.repeat.as_str())?;
        writeln!(out, "  from {}", print::tidy_path(&info.rule.source.to_string()))?;
    }
    print::warnings(&host);
    Ok(Exit::Completed)
}

async fn load(common: &Common) -> Result<Loaded, Failure> {
    let builder = Host::builder(open::operator(common)?, &common.workspace).max_instances(open::MAX_INSTANCES);
    Ok(builder.load().await?)
}
